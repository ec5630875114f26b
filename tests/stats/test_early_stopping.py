"""Tests of early stopping: levels under continuous peeking, without replacement too."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.stats import EarlyStopping, confidence_sequence
from deemster.stats.early_stopping import STAKES

DRAWS = 400
ALLOWED = 0.05 + 3 * math.sqrt(0.05 * 0.95 / DRAWS)


def flips(rng, n, worse, better):
    return rng.choice([-1.0, 1.0, 0.0], n, p=[worse, better, 1 - worse - better])


AT_THE_MARGIN = {
    "a few newly fail": lambda rng, n: flips(rng, n, 0.05, 0.0),
    "many flip": lambda rng, n: flips(rng, n, 0.225, 0.175),
    "scores move": lambda rng, n: np.clip(rng.normal(-0.05, 0.2, n), -1, 1),
    "rare large drops": lambda rng, n: np.where(rng.random(n) < 0.06, -0.9, 0.0) + 0.004,
}


@pytest.mark.parametrize("name", AT_THE_MARGIN)
def test_false_answers_under_continuous_peeking_stay_at_the_level(name):
    """The true drop is the margin; every look of all 600 counts."""
    rng = np.random.default_rng(3)
    answers = [EarlyStopping(0.05).add(AT_THE_MARGIN[name](rng, 600)).settled for _ in range(DRAWS)]

    assert answers.count("pass") / DRAWS <= ALLOWED
    assert answers.count("fail") / DRAWS <= ALLOWED


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_false_answers_without_replacement_stay_at_the_level(scale):
    """The mean of the dataset itself is exactly at the margin, and it is drawn to its end."""
    rng = np.random.default_rng(4)
    dataset = scale * np.repeat([-1.0, 1.0, 0.0], [45, 15, 240])
    margin = -dataset.mean()
    answers = [EarlyStopping(margin, dataset_size=300).add(rng.permutation(dataset)).settled for _ in range(DRAWS)]

    assert answers.count("pass") / DRAWS <= ALLOWED
    assert answers.count("fail") / DRAWS <= ALLOWED


def test_false_answers_for_clusters_stay_at_the_level():
    rng = np.random.default_rng(5)
    answers = []
    for _ in range(DRAWS):
        sizes = rng.integers(1, 6, 200).astype(float)
        answers.append(EarlyStopping(0.05, largest_size=5).add(flips(rng, 200, 0.05, 0.0) * sizes, sizes).settled)

    assert answers.count("pass") / DRAWS <= ALLOWED
    assert answers.count("fail") / DRAWS <= ALLOWED


@pytest.mark.parametrize(
    ("worse", "better", "expected", "at_most"), [(0.02, 0.02, "pass", 500), (0.3, 0.05, "fail", 200)]
)
def test_clear_case_is_settled_early(worse, better, expected, at_most):
    rng = np.random.default_rng(6)
    found = [EarlyStopping(0.05).add(flips(rng, 1000, worse, better)) for _ in range(50)]

    assert [evidence.settled for evidence in found].count(expected) >= 48
    assert np.mean([evidence.at or 1000 for evidence in found]) < at_most


def test_dataset_is_settled_sooner_than_its_population():
    assert EarlyStopping(0.05, dataset_size=200).add(np.zeros(200)).at < EarlyStopping(0.05).add(np.zeros(200)).at


def test_dataset_drawn_to_its_end_is_settled():
    rng = np.random.default_rng(7)
    for worse, expected in ((9, "pass"), (11, "fail")):
        dataset = np.repeat([-1.0, 0.0], [worse, 190 - worse + 10])
        assert EarlyStopping(0.05, dataset_size=200).add(rng.permutation(dataset)).settled == expected


@given(st.lists(st.sampled_from([-1.0, -0.2, 0.0, 0.0, 0.5, 1.0]), min_size=1, max_size=40), st.integers(0, 40))
def test_units_may_come_one_by_one_or_at_once(differences, cut):
    for options in ({}, {"dataset_size": 60}):
        once, twice = EarlyStopping(0.05, **options), EarlyStopping(0.05, **options)
        twice.add(differences[:cut])
        a, b = once.add(differences), twice.add(differences[cut:])
        assert (a.n, a.settled, a.at) == (b.n, b.settled, b.at)
        assert (a.p_within, a.p_beyond) == pytest.approx((b.p_within, b.p_beyond))


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30), st.floats(0, 0.5))
def test_evidence_equals_its_definition(differences, margin):
    """The largest mean capital of 14 bettors, computed one factor after the other."""
    expected = []
    for sign in (1, -1):
        capital, largest = np.ones(len(STAKES)), 1.0
        for value in differences:
            capital = capital * np.maximum(0, 1 - STAKES + STAKES * (1 + sign * value) / (1 - sign * margin))
            largest = max(largest, capital.mean())
        expected.append(1 / largest)
    found = EarlyStopping(margin).add(differences)
    assert (found.p_within, found.p_beyond) == pytest.approx(expected)


def test_several_checks_raise_what_failing_needs():
    one, many = (EarlyStopping(0.05, checks=checks).add(-np.ones(30)).at for checks in (1, 20))

    assert one < many
    assert EarlyStopping(0.05, checks=20).add(np.zeros(200)).at == EarlyStopping(0.05).add(np.zeros(200)).at


def test_intervals_hold_at_all_looks_together():
    rng = np.random.default_rng(8)
    looks = (10, 20, 40, 80, 160, 320)
    missed = 0
    for _ in range(150):
        values = flips(rng, 320, 0.15, 0.05)
        intervals = [confidence_sequence(values[:look]) for look in looks]
        missed += any(not interval.lower <= -0.1 <= interval.upper for interval in intervals)
    assert missed / 150 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 150)


def test_interval_of_a_whole_dataset_is_its_mean():
    values = np.repeat([-1.0, 0.0, 1.0], [10, 80, 10])
    interval = confidence_sequence(np.random.default_rng(9).permutation(values), dataset_size=100)

    assert (interval.lower, interval.upper) == pytest.approx((0.0, 0.0), abs=1e-6)


def test_interval_agrees_with_the_evidence():
    """A margin outside of the interval at 90 % is settled at 95 % on its side."""
    values = flips(np.random.default_rng(10), 400, 0.2, 0.05)
    interval = confidence_sequence(values, confidence=0.9)

    assert EarlyStopping(-interval.upper - 1e-4).add(values).p_beyond <= 0.05
    assert EarlyStopping(-interval.lower + 1e-4).add(values).p_within <= 0.05


def test_no_difference_has_no_interval():
    assert confidence_sequence([]) is None
    assert EarlyStopping(0.05).add([]).n == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: EarlyStopping(1.0), "margin"),
        (lambda: EarlyStopping(0.1, checks=0), "at least one check"),
        (lambda: EarlyStopping(0.1, largest_size=2, dataset_size=5), "size 1"),
        (lambda: EarlyStopping(0.1).add([1.5]), "outside"),
        (lambda: EarlyStopping(0.1).add([1.5], [2.0]), "up to 1"),
        (lambda: EarlyStopping(0.1, dataset_size=1).add([0.0, 0.0]), "1 units"),
        (lambda: confidence_sequence([2.0]), "Differences lie"),
    ],
)
def test_impossible_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
