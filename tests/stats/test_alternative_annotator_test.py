"""Latent truth, calibration and the alternative annotator test: laws and edges."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deemster.stats import alternative_annotator_test, brier, calibration_error, dawid_skene

ballots = st.lists(
    st.lists(st.one_of(st.none(), st.sampled_from("abc")), min_size=3, max_size=3), min_size=1, max_size=12
)


def plain_dawid_skene(rows, rounds):
    """The model with nested loops, for a fixed number of rounds."""
    rows = [row for row in rows if any(vote is not None for vote in row)]
    kinds = sorted({vote for row in rows for vote in row if vote is not None})
    truth = [
        [sum(vote == kind for vote in row) / sum(vote is not None for vote in row) for kind in kinds] for row in rows
    ]
    for _ in range(rounds):
        priors = [sum(t[k] for t in truth) / len(truth) for k in range(len(kinds))]
        errors = {}
        for judge in range(3):
            for k in range(len(kinds)):
                given_k = [
                    sum(t[k] for t, row in zip(truth, rows, strict=True) if row[judge] == kind) for kind in kinds
                ]
                errors[judge, k] = [part / sum(given_k) if sum(given_k) else 0.0 for part in given_k]
        truth = []
        for row in rows:
            joint = list(priors)
            for judge, vote in enumerate(row):
                if vote is not None:
                    joint = [part * errors[judge, k][kinds.index(vote)] for k, part in enumerate(joint)]
            truth.append([part / sum(joint) for part in joint])
    return truth


@settings(max_examples=60, deadline=None)
@given(ballots, st.integers(1, 6))
def test_the_vectorised_model_equals_nested_loops(rows, rounds):
    result = dawid_skene(rows, rounds=rounds, tolerance=-math.inf)
    expected = plain_dawid_skene(rows, rounds)
    assert np.allclose(np.array(result.posterior).reshape(-1), np.array(expected).reshape(-1), atol=1e-9)
    assert result.rounds == (rounds if result.n else 0)


@settings(deadline=None)
@given(ballots)
def test_every_round_gains_likelihood(rows):
    found = [dawid_skene(rows, rounds=rounds, tolerance=-math.inf).log_likelihood for rounds in range(1, 6)]
    if found[0] is not None:
        assert all(after >= before - 1e-9 for before, after in itertools.pairwise(found))


def test_a_good_judge_outvotes_four_that_nearly_guess():
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 2, 1000)
    votes = [np.where(rng.random(1000) < skill, truth, 1 - truth) for skill in (0.95, 0.75, 0.6, 0.55, 0.5)]
    result = dawid_skene(np.column_stack(votes))
    assert max(result.accuracy, key=result.accuracy.get) == 0
    assert result.accuracy[0] == pytest.approx(0.95, abs=0.04)
    majority = sum(votes) >= 3
    assert np.mean(np.array(result.labels) == truth) > np.mean(majority == truth)


def test_all_forms_of_votes_are_one():
    rows = [["a", "b"], ["b", "b"], ["a", None]]
    named = {place: {judge: vote for judge, vote in enumerate(row) if vote} for place, row in enumerate(rows)}
    nested = [[[vote] for vote in row] for row in rows]
    assert dawid_skene(rows) == dawid_skene(named) == dawid_skene(nested)
    numbers = np.array([[[0.0, np.nan], [1.0, 1.0]], [[1.0, 1.0], [1.0, 0.0]]])
    assert dawid_skene(numbers) == dawid_skene([[[0.0], [1.0, 1.0]], [[1.0, 1.0], [1.0, 0.0]]])


def test_items_without_a_vote_are_left_out():
    result = dawid_skene({"x": {"j": "a"}, "y": {"j": None}, "z": {}})
    assert (result.items, result.labels, result.n) == (("x",), ("a",), 1)
    empty = dawid_skene([])
    assert (empty.n, empty.log_likelihood, empty.labels) == (0, None, ())


def test_a_class_that_a_judge_never_met_has_no_row():
    result = dawid_skene([["a", None], ["b", "b"]])
    assert result.confusion[1] == (None, (0.0, 1.0))
    assert result.accuracy[1] == 1.0


def test_votes_that_fit_no_class_are_refused():
    with pytest.raises(ValueError, match="'c' is none of the classes 'a', 'b'"):
        dawid_skene([["a", "c"]], classes=["a", "b"])
    with pytest.raises(ValueError, match="item 1 has 1 and not 2"):
        dawid_skene([["a", "b"], ["a"]])


@given(st.lists(st.tuples(st.integers(0, 1), st.floats(0, 1)), min_size=1, max_size=30))
def test_two_classes_have_twice_the_brier_score_of_yes_or_no(pairs):
    outcomes, stated = [y for y, _ in pairs], [p for _, p in pairs]
    both = [[1 - p, p] for p in stated]
    assert brier(outcomes, both).value == pytest.approx(2 * brier(outcomes, stated).value)


def test_brier_at_its_extremes():
    assert brier([1, 0], [1, 0]).value == 0
    assert brier([1, 0], [1, 0]).skill == 1
    assert brier([1, 0], [0, 1]).value == 1
    assert brier([2, 0], [[1, 0, 0], [0, 1, 0]]).value == 2
    assert brier([1, 1], [0.5, 0.5]).skill is None
    assert brier([1, 0], [0.5, 0.5]).skill == 0
    assert brier([], []).value is None


def test_calibration_at_its_extremes():
    assert calibration_error([1, 0], [1, 0]).value == 0
    assert calibration_error([0, 1], [1, 0]).value == 1
    empty = calibration_error([], [])
    assert (empty.value, empty.largest, len(empty.bins)) == (None, None, 10)
    assert empty.bins[0].interval is None


def test_a_probability_of_one_is_in_the_last_bin_and_rounding_moves_none_down():
    result = calibration_error([1, 1], [1.0, 1 - 0.9])
    assert [entry.n for entry in result.bins] == [0, 1, 0, 0, 0, 0, 0, 0, 0, 1]
    assert result.bins[9].interval.upper == 1.0
    assert result.largest == pytest.approx(0.9)


def test_several_classes_are_calibrated_by_the_most_probable():
    rows = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]]
    several = calibration_error([0, 0, 2], rows)
    assert several.value == pytest.approx(calibration_error([1, 0, 1], [0.7, 0.8, 0.4]).value)


@pytest.mark.parametrize(
    ("outcomes", "stated", "message"),
    [
        ([1], [0.5, 0.5], "one probability"),
        ([1], [1.5], r"\[0, 1\]"),
        ([1], [math.nan], r"\[0, 1\]"),
        ([2], [0.5], "0 to 1"),
        ([0.5], [0.5], "0 to 1"),
        ([0], [[0.5, 0.2]], "sum to 1"),
    ],
)
def test_impossible_forecasts_are_refused(outcomes, stated, message):
    for function in (brier, calibration_error):
        with pytest.raises(ValueError, match=message):
            function(outcomes, stated)
    with pytest.raises(ValueError, match="one bin"):
        calibration_error([1], [0.5], bins=0)


def people(n=60):
    return [[(i + (7 * i + 11 * a) % 10 // 8) % 3 for i in range(n)] for a in range(3)]


def test_fewer_than_thirty_items_are_not_tested():
    result = alternative_annotator_test([i % 3 for i in range(29)], people(29))
    assert (result.value, result.passes, result.advantage, result.n) == (None, None, None, 0)
    assert result.trials[0].n == 29
    assert result.trials[0].p_value is None


def test_an_annotator_is_compared_on_its_own_items_only():
    rows = people()
    rows[0] = [None if place % 2 else label for place, label in enumerate(rows[0])]
    result = alternative_annotator_test([i % 3 for i in range(60)], dict(zip("xyz", rows, strict=True)))
    assert {name: trial.n for name, trial in result.trials.items()} == {"x": 30, "y": 60, "z": 60}


def test_on_a_scale_near_misses_count_as_near():
    truth = [i % 5 for i in range(60)]
    annotators = [[min(4, t + (i * (3 + a)) % 7 // 6) for i, t in enumerate(truth)] for a in range(3)]
    judge = [t + 0.5 for t in truth]
    named = alternative_annotator_test(judge, annotators)
    scaled = alternative_annotator_test(judge, annotators, ordinal=True)
    assert named.advantage < scaled.advantage


def test_without_spread_the_test_is_decided_by_the_mean():
    same = [[0] * 40] * 3
    assert alternative_annotator_test([0] * 40, same).value == 1.0
    assert alternative_annotator_test([1] * 40, same).value == 0.0
    assert alternative_annotator_test([0] * 40, same, epsilon=0).value == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: alternative_annotator_test([0], [[0], [0]]), "three annotators"),
        (lambda: alternative_annotator_test([0, 1], [[0], [0], [0]]), "one label for each item"),
        (lambda: alternative_annotator_test([0], [[0]] * 3, epsilon=1), "epsilon"),
        (lambda: alternative_annotator_test(["a"], [["a"]] * 3, ordinal=True), "numbers"),
    ],
)
def test_misuse_of_the_annotator_test_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
