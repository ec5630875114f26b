"""Tests of the split of noise into repetitions and samples."""

import math

import numpy as np
import pytest

from deemster.results.repetition_precision import within_sample_variance
from deemster.stats import noise_split


def simulate(rng, n, repetitions, between, within):
    shifts = rng.normal(0, math.sqrt(between), n)
    return (
        rng.normal(0, math.sqrt(within[0]), (n, repetitions[0])),
        shifts[:, None] + rng.normal(0, math.sqrt(within[1]), (n, repetitions[1])),
    )


def test_planted_variances_are_recovered():
    rng = np.random.default_rng(3)
    split = noise_split(*simulate(rng, 20_000, (3, 5), 0.04, (0.09, 0.25)))

    assert split.within == pytest.approx((0.09, 0.25), rel=0.03)
    assert split.between == pytest.approx(0.04, rel=0.08)
    assert split.share_within == pytest.approx(0.08 / 0.12, rel=0.05)
    assert split.repetitions == pytest.approx((3, 5))


def test_expected_errors_come_true():
    rng = np.random.default_rng(4)
    split = noise_split(*simulate(rng, 5000, (2, 2), 0.01, (0.2, 0.2)))

    twice = noise_split(*simulate(rng, 5000, (4, 4), 0.01, (0.2, 0.2)))
    wider = noise_split(*simulate(rng, 10_000, (2, 2), 0.01, (0.2, 0.2)))
    assert split.error_twice_repetitions == pytest.approx(twice.standard_error, rel=0.05)
    assert split.error_twice_samples == pytest.approx(wider.standard_error, rel=0.05)
    assert split.error_endless_repetitions < split.error_twice_repetitions < split.standard_error


def test_variance_within_passes_is_that_of_the_report():
    rng = np.random.default_rng(5)
    marks = (rng.random((30, 4)) < 0.2).astype(int)

    split = noise_split(marks, marks)
    assert split.within[0] == pytest.approx(within_sample_variance(marks.sum(axis=1), repetitions=4))


def test_systems_that_never_vary_have_no_share_of_the_noise():
    split = noise_split([[1, 1], [0, 0], [1, 1]], [[0, 0], [0, 0], [1, 1]])

    assert (split.within, split.share_within) == ((0.0, 0.0), 0.0)
    assert split.between == pytest.approx(1 / 3)


def test_runs_without_any_difference_have_no_share():
    assert noise_split([[1, 1], [0, 0]], [[1, 1], [0, 0]]).share_within is None


def test_missing_marks_are_left_out():
    split = noise_split([[1, 0, None], [0, None, None], [1, 1, 1]], [[1, 1, 0], [None, None, None], [0, 1, 1]])

    assert split.n == 2
    assert split.within[0] == pytest.approx(0.5 / 3)


@pytest.mark.parametrize(
    ("before", "after"),
    [([[1, 0]], [[1, 1]]), ([[1], [0]], [[1, 1], [0, 0]]), ([], []), ([[1, 1], [0, 1]], [[1], [0]])],
)
def test_too_few_marks_have_no_split(before, after):
    assert noise_split(before, after) is None


def test_sides_with_different_samples_are_refused():
    with pytest.raises(ValueError, match="1 and 2 rows"):
        noise_split([[1, 1]], [[1, 1], [0, 0]])
