from __future__ import annotations

import pytest

from deemster.records import MetricScore
from deemster.records.marks import reaches

# A half, computed from the weights 0.1, 0.2 and 0.3; none of them is the float 0.5.
HALVES = [(0.1 + 0.2) / 0.6, 0.3 / (0.1 + 0.2 + 0.3)]


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("higher_is_better", [True, False])
def test_score_that_equals_the_threshold_as_a_fraction_succeeds(half, higher_is_better):
    assert half != 0.5
    assert MetricScore(half, threshold=0.5, higher_is_better=higher_is_better).success
    assert reaches(half, 0.5, higher_is_better=higher_is_better)


@pytest.mark.parametrize("higher_is_better", [True, False])
def test_score_beyond_rounding_of_the_threshold_fails(higher_is_better):
    beside = 0.5 - 1e-9 if higher_is_better else 0.5 + 1e-9
    assert not MetricScore(beside, threshold=0.5, higher_is_better=higher_is_better).success


def test_score_that_reports_show_as_the_pass_mark_reaches_it():
    assert MetricScore(0.49999999999).success
    assert not MetricScore(0.499999999).success
    assert MetricScore(0.50000000001, higher_is_better=False).success
