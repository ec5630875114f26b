"""Tests of confirm or clear: which newly failing samples really fail more often."""

import math

import numpy as np
import pytest

from deemster.stats import confirm_failures, fisher_exact, reruns_to_confirm


def test_without_a_history_nothing_is_confirmed():
    """A sample that mostly fails and passed the baseline by luck looks the same."""
    result = confirm_failures([0, 1, 5], 50, baseline_passed=1, baseline_n=1, needed=1)

    assert result.p_values == (1.0, 1.0, 1.0)
    assert result.confirmed == result.possible == (False, False, False)


def test_two_repetitions_of_the_baseline_are_a_history():
    """One pass was needed, and the second might have been a failure: 1 table of 1 + 2 x 10."""
    result = confirm_failures(0, 10, baseline_passed=2, baseline_n=2, needed=1)

    assert result.p_values == pytest.approx([1 / 21])
    assert result.confirmed == (True,)


def test_failure_in_the_history_must_be_outdone():
    """Three of six before, none of eight now: rare by Fisher's test too."""
    p_value = confirm_failures(0, 8, earlier_passed=3, earlier_n=6).p_values[0]

    assert p_value == pytest.approx(fisher_exact(3, 6, 0, 8, alternative="less")[0])


def test_pass_of_a_single_baseline_run_tells_nothing():
    """It had to pass; otherwise the sample would not be newly failing."""
    with_it = confirm_failures(0, 8, earlier_passed=2, earlier_n=5, baseline_passed=1, baseline_n=1, needed=1)

    assert with_it.p_values == confirm_failures(0, 8, earlier_passed=2, earlier_n=5).p_values


def test_repetitions_of_the_baseline_beyond_the_needed_passes_count():
    """4 of 5 passed, 3 were needed: given 4 passes in all, 4 or 3 of them lie in the baseline."""
    p_value = confirm_failures(0, 5, baseline_passed=4, baseline_n=5, needed=3).p_values[0]

    assert p_value == pytest.approx(5 / (5 + 10 * 5))


def test_samples_without_reruns_are_not_confirmed():
    assert confirm_failures([0], [0]).p_values == (1.0,)
    assert confirm_failures([], []).n == 0


def test_holms_correction_goes_over_all_flipped_samples():
    result = confirm_failures([0] * 4, 8, earlier_passed=3, earlier_n=3)

    assert result.adjusted == pytest.approx([4 / 165] * 4)
    assert confirm_failures([0] * 9, 8, earlier_passed=3, earlier_n=3).confirmed == (False,) * 9


@pytest.mark.parametrize("flipped", [1, 3, 10, 64])
def test_named_number_of_reruns_confirms(flipped):
    history = {"earlier_passed": 4, "earlier_n": 5, "baseline_passed": 3, "baseline_n": 3, "needed": 2}
    needed = reruns_to_confirm(flipped, **history)

    assert all(confirm_failures([0] * flipped, needed, **history).confirmed)
    assert not any(confirm_failures([0] * flipped, needed - 1, **history).confirmed)


def test_no_number_of_reruns_confirms_a_sample_without_a_history():
    assert reruns_to_confirm(1, baseline_passed=1, baseline_n=1, needed=1) is None


def family_error(rates, *, history, reruns, repetitions=1, draws=2000):
    """How often any sample of unchanged pass rate is confirmed, selected as it is in use."""
    rng = np.random.default_rng(11)
    wrong = 0
    needed = repetitions // 2 + 1
    for _ in range(draws):
        baseline, earlier = rng.binomial(repetitions, rates), rng.binomial(history, rates)
        flipped = (baseline >= needed) & (rng.binomial(repetitions, rates) < needed)
        if flipped.any():
            wrong += any(
                confirm_failures(
                    rng.binomial(reruns, rates)[flipped],
                    reruns,
                    earlier_passed=earlier[flipped],
                    earlier_n=history,
                    baseline_passed=baseline[flipped],
                    baseline_n=repetitions,
                    needed=needed,
                ).confirmed
            )
    return wrong / draws


@pytest.mark.parametrize("rates", [(0.5, 1.0), (0.05, 0.95), (0.02, 0.2)])
@pytest.mark.parametrize(("history", "repetitions"), [(0, 1), (5, 1), (0, 5), (8, 3)])
def test_family_error_is_at_the_level_whatever_the_samples_do(rates, history, repetitions):
    chances = np.random.default_rng(1).uniform(*rates, 40)

    error = family_error(chances, history=history, reruns=10, repetitions=repetitions, draws=200)
    assert error <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 200)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: confirm_failures(3, 2), "more often"),
        (lambda: confirm_failures(0, 2, baseline_passed=1, baseline_n=3, needed=2), "needs"),
        (lambda: confirm_failures(0.5, 2), "whole numbers"),
        (lambda: reruns_to_confirm(0), "at least one"),
    ],
)
def test_impossible_counts_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
