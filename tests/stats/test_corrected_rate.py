"""Corrected rates: laws and edges, labels drawn with unequal probabilities, and the refusal of a judge at chance."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.stats import corrected_rate, rogan_gladen, weighted_share, wilson
from tests.builders.published_numbers import PUBLISHED, ends, near


def test_perfect_judge_leaves_rate_unchanged():
    options = {"sensitivity": 1.0, "positives": 10**9, "specificity": 1.0, "negatives": 10**9}
    result = rogan_gladen(0.3, n=1000, **options)
    assert result.value == pytest.approx(0.3)
    share = wilson(300, 1000).interval
    assert [result.interval.lower, result.interval.upper] == pytest.approx([share.lower, share.upper], abs=1e-3)


def test_judge_at_chance_gives_no_corrected_rate():
    result = rogan_gladen(0.3, n=1000, sensitivity=0.4, positives=50, specificity=0.6, negatives=50)
    assert (result.value, result.interval) == (None, None)
    assert "chance" in result.note


@pytest.mark.parametrize(("labels", "refused"), [(50, True), (400, True), (40_000, True), (200_000, False)])
def test_correction_is_refused_until_labels_tell_the_judge_from_chance(labels, refused):
    # Sensitivity + specificity - 1 is .006, as measured on the public arena labels.
    result = rogan_gladen(0.5, n=1000, sensitivity=0.503, positives=labels, specificity=0.503, negatives=labels)
    assert (result.value is None) == refused
    if refused:
        assert result.interval is None
        assert "sensitivity + specificity - 1 is 0.0060, and its interval reaches 0" in result.note


def test_judge_at_chance_is_corrected_in_few_samples():
    rng = np.random.default_rng(5)
    given_out = 0
    for hits, alarms in rng.binomial(40, 0.5, (400, 2)):
        found = rogan_gladen(0.5, n=500, sensitivity=hits / 40, positives=40, specificity=1 - alarms / 40, negatives=40)
        given_out += found.value is not None
    assert given_out / 400 <= 0.05


@given(st.floats(0, 1), st.integers(1, 500), st.floats(0, 1), st.integers(1, 200), st.floats(0, 1), st.integers(1, 200))
def test_corrected_rate_stays_in_range_and_no_interval_has_width_zero(rate, n, se, positives, sp, negatives):
    result = rogan_gladen(rate, n=n, sensitivity=se, positives=positives, specificity=sp, negatives=negatives)
    if result.value is not None:
        assert 0 <= result.value <= 1
    if result.interval is not None:
        assert 0 <= result.interval.lower < result.interval.upper <= 1
    else:
        assert result.note


@pytest.mark.parametrize("bad", [{"sensitivity": 1.2}, {"specificity": -0.1}, {"positives": 0}, {"n": 0}])
def test_impossible_error_rates_are_refused(bad):
    options = {"n": 10, "sensitivity": 0.9, "positives": 10, "specificity": 0.9, "negatives": 10} | bad
    with pytest.raises(ValueError, match=next(iter(bad))):
        rogan_gladen(0.5, **options)


COUNTS = Path(__file__).parent.parent / "fixtures" / "published" / "arena_judges" / "counts.json"


def labelled(*, hits, misses, alarms, rejections):
    """People's labels and a judge's verdicts of so many items."""
    people = [1] * (hits + misses) + [0] * (alarms + rejections)
    return people, [1] * hits + [0] * misses + [1] * alarms + [0] * rejections


@pytest.mark.parametrize("judge", ["gpt-4o-mini", "gpt-5.2"])
def test_correction_is_refused_on_the_public_arena_labels(judge):
    # The set has 876 pairs of three pairs of models. People prefer the first answer of 40 % of these 275; the judges'
    # 70 % and 22 %, and their errors, are those of the same pairs.
    counts = json.loads(COUNTS.read_text())["counts"][judge]
    people, verdicts = labelled(**counts)
    youden = counts["hits"] / (counts["hits"] + counts["misses"]) - counts["alarms"] / (
        counts["alarms"] + counts["rejections"]
    )
    assert len(people) == 275
    assert np.mean(people) == pytest.approx(0.4)
    assert (round(float(np.mean(verdicts)), 2), round(youden, 3)) == {
        "gpt-4o-mini": (0.23, 0.048),
        "gpt-5.2": (0.71, 0.006),
    }[judge]

    found = corrected_rate(people, verdicts, float(np.mean(verdicts)), n=len(people))

    assert (found.value, found.interval) == (None, None)
    assert "do not tell the judge from chance" in found.note


def test_labels_correct_a_rate_as_their_shares_do():
    people, verdicts = labelled(hits=108, misses=12, alarms=16, rejections=64)
    shares = {"sensitivity": 0.9, "positives": 120, "specificity": 0.8, "negatives": 80}
    assert corrected_rate(people, verdicts, 0.62, n=1000) == rogan_gladen(0.62, n=1000, **shares)


def test_unequal_probabilities_are_taken_out_of_the_rate():
    rng = np.random.default_rng(3)
    people = rng.random(4000) < 0.8
    verdicts = rng.random(4000) < np.where(people, 0.9, 0.3)
    drawn = np.concatenate([np.flatnonzero(verdicts)[:300], np.flatnonzero(~verdicts)[:300]])
    chances = np.where(verdicts[drawn], 300 / verdicts.sum(), 300 / (~verdicts).sum())
    known = {"n": 4000}

    weighted = corrected_rate(people[drawn], verdicts[drawn], verdicts.mean(), probabilities=chances, **known)
    plain = corrected_rate(people[drawn], verdicts[drawn], verdicts.mean(), **known)
    within_strata = corrected_rate(
        people[drawn], verdicts[drawn], verdicts.mean(), probabilities=chances, strata=verdicts[drawn], **known
    )

    assert abs(weighted.value - 0.8) < 0.03 < abs(plain.value - 0.8)
    assert within_strata.value == weighted.value
    assert within_strata.interval.width < weighted.interval.width


def test_labels_of_one_side_correct_nothing():
    for people, said in (([1, 1], "passes"), ([0, 0], "fails"), ([], "is labelled")):
        found = corrected_rate(people, people, 0.5, n=10)
        assert found.value is None
        assert said in found.note


@given(st.lists(st.tuples(st.booleans(), st.floats(0.01, 1)), min_size=1, max_size=40))
def test_effective_number_of_items_is_theirs_where_weights_are_equal(items):
    hits = [hit for hit, _ in items]
    assert weighted_share(hits) == weighted_share(hits, [3.0] * len(hits))
    value, size = weighted_share(hits, [weight for _, weight in items])
    assert 0 <= value <= 1
    assert size >= 1


def corrected(name):
    p, specificity, sensitivity, n, negatives, positives = PUBLISHED[name]["input"]
    return rogan_gladen(
        p, n=n, sensitivity=sensitivity, positives=positives, specificity=specificity, negatives=negatives
    )


def test_rate_is_corrected_for_the_judges_errors():
    result = corrected("rogan_gladen_0.4")
    assert result.value == near("rogan_gladen_0.4", PUBLISHED["rogan_gladen_0.4"]["expected"]["theta"])
    assert ends(result) == near("rogan_gladen_0.4", PUBLISHED["rogan_gladen_0.4"]["expected"]["ci"])
    assert not result.out_of_range


def test_rate_that_contradicts_the_judges_errors_is_flagged_and_has_no_interval_of_width_zero():
    result = corrected("rogan_gladen_degenerate")
    assert result.out_of_range
    assert result.value == 1.0
    assert result.unclipped == pytest.approx(0.65 / 0.6)
    assert result.interval is None or result.interval.width > 0
    assert "contradicts" in result.note


@pytest.mark.parametrize("drawn", [False, True])
def test_repetitions_of_a_labelled_sample_say_no_more_than_the_sample(drawn):
    rng = np.random.default_rng(2)
    people = rng.random(80) < 0.7
    judge = np.where(people, rng.random(80) < 0.9, rng.random(80) < 0.25)
    chances, strata = np.where(judge, 0.1, 0.4), judge.astype(int)
    known = {"probabilities": chances, "strata": strata} if drawn else {}
    once = corrected_rate(people, judge, 0.7, n=500, **known)
    five = corrected_rate(
        np.repeat(people, 5), np.repeat(judge, 5), 0.7, n=500, units=np.repeat(np.arange(80), 5),
        **{name: np.repeat(value, 5) for name, value in known.items()},
    )  # fmt: skip
    assert five.value == pytest.approx(once.value)
    assert (five.interval.lower, five.interval.upper) == pytest.approx((once.interval.lower, once.interval.upper))


def test_labels_of_repeated_samples_of_another_run_hold_the_truth():
    held = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        people, run = rng.random(40) < 0.7, rng.random(1000) < 0.7
        judge = np.where(people, rng.random(40) < 0.9, rng.random(40) < 0.25)
        rate = np.where(run, rng.random(1000) < 0.9, rng.random(1000) < 0.25).mean()
        units = np.repeat(np.arange(40), 5)
        found = corrected_rate(np.repeat(people, 5), np.repeat(judge, 5), rate, n=1000, units=units).interval
        held += found is None or found.lower <= 0.7 <= found.upper
    assert held >= 92
