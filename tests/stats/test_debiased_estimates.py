"""Multiplicity, debiasing, clustered means, power and attempts: laws and edges."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.stats import (
    ppi_mean,
    rogan_gladen,
    wilson,
)


def test_uninformative_predictions_give_plain_mean():
    result = ppi_mean([1, 0, 1, 1], [1, 1, 1, 1], [1] * 50)
    assert result.lam == 0.0
    assert (result.value, result.standard_error) == (result.classical, result.classical_error)


def test_perfect_predictions_are_worth_nearly_as_much_as_labels():
    labels = [1, 0, 1, 1, 0, 1, 0, 0, 1, 1] * 3
    result = ppi_mean(labels, labels, [1, 0] * 5_000)
    assert result.lam == pytest.approx(1, abs=0.05)
    assert result.value == pytest.approx(0.5, abs=0.01)
    assert result.standard_error < 0.1 * result.classical_error


def test_a_prediction_powered_mean_is_undefined_part_by_part():
    assert ppi_mean([], [], [1, 0]).value is None
    single = ppi_mean([1], [0], [1, 0])
    assert (single.value, single.lam, single.interval) == (1.0, 0.0, None)
    assert ppi_mean([1, 1], [1, 1], [1]).interval is None
    assert ppi_mean([1, 0], [1, 0], []).value == 0.5
    with pytest.raises(ValueError, match="one prediction"):
        ppi_mean([1, 0], [1], [1])


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


@given(st.data())
def test_bounded_prediction_powered_mean_stays_in_bounds_and_has_a_width(data):
    n = data.draw(st.integers(1, 12))
    scores = st.floats(0, 1) | st.sampled_from([0.0, 1.0])
    y, known = (data.draw(st.lists(scores, min_size=n, max_size=n)) for _ in range(2))
    result = ppi_mean(y, known, data.draw(st.lists(scores, max_size=30)), bounds=(0, 1))
    assert 0 <= result.value <= 1
    if n >= 2:
        assert 0 <= result.interval.lower <= result.value <= result.interval.upper <= 1
        assert result.interval.width > 1e-6


def test_bounded_prediction_powered_mean_covers_with_twenty_labels_of_a_rare_answer():
    rng = np.random.default_rng(10)
    hits = {"bounded": 0, "published": 0}
    for _ in range(400):
        truth = rng.random(420) < 0.1
        said = np.where(rng.random(420) < 0.85, truth, ~truth).astype(float)
        y, known, others = truth[:20].astype(float), said[:20], said[20:]
        for name, bounds in (("bounded", (0, 1)), ("published", None)):
            interval = ppi_mean(y, known, others, bounds=bounds).interval
            hits[name] += interval is not None and interval.lower <= 0.1 <= interval.upper
    assert hits["bounded"] / 400 >= 0.93
    assert hits["published"] / 400 <= 0.9


@given(st.floats(0, 1), st.integers(1, 500), st.floats(0, 1), st.integers(1, 200), st.floats(0, 1), st.integers(1, 200))
def test_a_corrected_rate_stays_in_range_and_no_interval_has_width_zero(rate, n, se, positives, sp, negatives):
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


FILE = Path(__file__).parent.parent / "fixtures" / "statistics.json"


FIXTURES = {entry["id"]: entry for entry in json.loads(FILE.read_text())}


def ends(result):
    return [result.interval.lower, result.interval.upper]


def near(name, expected=None):
    entry = FIXTURES[name]
    return pytest.approx(entry["expected"] if expected is None else expected, abs=entry["abs_tol"], rel=0)


def corrected(name):
    p, specificity, sensitivity, n, negatives, positives = FIXTURES[name]["input"]
    return rogan_gladen(
        p, n=n, sensitivity=sensitivity, positives=positives, specificity=specificity, negatives=negatives
    )


def test_a_rate_is_corrected_for_the_judges_errors():
    result = corrected("rogan_gladen_0.4")
    assert result.value == near("rogan_gladen_0.4", FIXTURES["rogan_gladen_0.4"]["expected"]["theta"])
    assert ends(result) == near("rogan_gladen_0.4", FIXTURES["rogan_gladen_0.4"]["expected"]["ci"])
    assert not result.out_of_range


def test_a_rate_that_contradicts_the_judges_errors_is_flagged_and_has_no_interval_of_width_zero():
    result = corrected("rogan_gladen_degenerate")
    assert result.out_of_range
    assert result.value == 1.0
    assert result.unclipped == pytest.approx(0.65 / 0.6)
    assert result.interval is None or result.interval.width > 0
    assert "contradicts" in result.note


def test_predictions_sharpen_a_mean_as_in_the_reference():
    given, expected = FIXTURES["ppi_mean"]["input"], FIXTURES["ppi_mean"]["expected"]
    unlabelled = ([1] * 8 + [0] * 2) * 20
    tuned = ppi_mean(given["Y"], given["Yhat"], unlabelled)
    assert [tuned.value, ends(tuned)] == [near("ppi_mean", part) for part in expected["ppi_plus_plus"]]
    assert tuned.lam == near("ppi_mean", expected["lam"])
    plain = ppi_mean(given["Y"], given["Yhat"], unlabelled, lam=1)
    assert [plain.value, ends(plain)] == [near("ppi_mean", part) for part in expected["ppi"]]
    labels = ppi_mean(given["Y"], given["Yhat"], unlabelled, lam=0)
    assert [labels.value, ends(labels)] == [near("ppi_mean", part) for part in expected["classical"]]
    assert labels.value == tuned.classical
