"""Tests of the answer about two judges of the same outputs."""

import numpy as np
import pytest

from deemster.comparison.judge_change import COHORT_MARGIN, MARGIN, JudgedOutputs, compare_judges, worst_answer


def judged(old, new, *, mark=0.7, new_mark=0.7, cohorts=None, **settings):
    return JudgedOutputs(
        old=old,
        new=new,
        old_passed=old >= mark,
        new_passed=new >= new_mark,
        units=np.arange(len(old)),
        cohorts={label: np.flatnonzero(rows) for label, rows in (cohorts or {}).items()},
        old_mark=mark,
        **settings,
    )


def compared(outputs):
    return compare_judges(outputs, confidence=0.95, seed=0)


@pytest.fixture
def old():
    return np.random.default_rng(4).beta(4, 1.6, 300)


def test_same_scores_are_interchangeable(old):
    found = compared(judged(old, old))
    assert found.answer == "interchangeable"
    assert (found.only_before, found.only_now, found.agreement.kappa) == (0, 0, 1.0)
    assert -MARGIN < found.pass_rate.lower_bound < found.pass_rate.upper_bound < MARGIN


def test_few_outputs_are_not_enough_and_it_says_how_many_are(old):
    found = compared(judged(old[:40], old[:40]))
    assert found.answer == "not-enough-data"
    assert 150 < found.needed < 400
    repeated = np.resize(old, found.needed)
    assert compared(judged(repeated, repeated)).answer == "interchangeable"


def test_stricter_judge_is_linked_by_the_mark_that_gives_the_old_pass_rate(old):
    found = compared(judged(old, old - 0.08))
    assert found.answer == "linked"
    assert found.exchange.mark == pytest.approx(0.62, abs=0.01)
    assert found.exchange.interval.low < 0.62 < found.exchange.interval.high
    assert "falls by" in found.because


def test_judge_that_is_stricter_in_one_cohort_is_not_comparable(old):
    first = np.arange(300) < 150
    found = compared(judged(old, old - 0.15 * first, cohorts={"first": first, "second": ~first}))
    assert found.answer == "not-comparable"
    assert "one pass mark would be unfair" in found.because
    assert {cohort.label for cohort in found.exchange.cohorts if cohort.is_uneven} == {"first", "second"}


def test_judge_that_ranks_otherwise_is_not_comparable_though_rates_are_equal(old):
    found = compared(judged(old, np.random.default_rng(0).permutation(old)))
    assert found.pass_rate.difference == 0
    assert found.answer == "not-comparable"
    assert "do not rise and fall together" in found.because


def test_cohort_that_is_too_small_keeps_the_answer_open(old):
    few = np.arange(300) < 30
    found = compared(judged(old, old, cohorts={"few": few, "many": ~few}))
    assert (found.answer, "`few`" in found.because) == ("not-enough-data", True)
    assert found.cohorts["few"].upper_bound > COHORT_MARGIN


def test_lower_scores_may_be_the_better_ones(old):
    risk = 1 - old
    outputs = judged(risk, risk + 0.05, old_is_loss=True, new_is_loss=True, mark=0.3)
    outputs = outputs._replace(old_passed=risk <= 0.3, new_passed=risk + 0.05 <= 0.3)
    found = compared(outputs)
    assert found.answer == "linked"
    assert found.exchange.mark == pytest.approx(0.35, abs=0.01)
    low, high = found.exchange.interval
    assert low <= 0.35 <= high


def test_verdicts_without_scores_between_have_no_exchange_rate(old):
    verdicts = (old >= 0.5).astype(float)
    strict = (old >= 0.6).astype(float)
    found = compared(judged(verdicts, strict, mark=0.5, new_mark=0.5))
    assert found.answer == "not-comparable"
    assert "within 5 points" in found.exchange.refused


def test_worst_metric_decides():
    assert worst_answer(["linked", "interchangeable", "not-enough-data"]) == "not-enough-data"
