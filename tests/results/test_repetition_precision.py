import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.results.metric_summary import share_interval
from deemster.results.repetition_precision import (
    repeated_passes,
    repetition_precision,
    required_repetitions,
    resolution,
    within_sample_variance,
)


def test_worked_example_of_repetitions_gives_specified_numbers():
    variance = within_sample_variance([5, 5, 3, 0], repetitions=5)
    assert variance == pytest.approx(0.075)
    assert resolution(variance, 5) == pytest.approx(0.3395, abs=5e-5)
    assert required_repetitions(variance, 0.05) == 231
    assert required_repetitions(variance, 0.1) == 58
    found = repetition_precision([5, 5, 3, 0], repetitions=5, delta=0.05)
    assert found.run.resolution == pytest.approx(0.1697, abs=5e-5)
    assert found.run.required_repetitions == 58
    assert found.unstable == 1
    assert not found.resolvable
    assert not found.run.resolvable


@pytest.mark.parametrize(
    ("variance", "repetitions", "expected"), [(0.25, 30, 0.2530), (2 / 9, 3, 0.7544), (0.0, 60, 0.05), (0.25, 1, 1.0)]
)
def test_resolution_gives_the_worked_numbers(variance, repetitions, expected):
    assert resolution(variance, repetitions) == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize(("variance", "expected"), [(2 / 9, 683), (1 / 4, 769), (0.0, 60)])
def test_required_repetitions_give_the_worked_numbers(variance, expected):
    assert required_repetitions(variance, 0.05) == expected


def test_one_repetition_gives_no_noise_estimate():
    assert within_sample_variance([1, 0, 1], repetitions=1) is None
    assert repetition_precision([1, 0, 1], repetitions=1, delta=0.05) is None


@pytest.mark.parametrize("delta", [0.0, -0.1, 1.01])
def test_difference_outside_zero_to_one_is_an_error(delta):
    with pytest.raises(ValueError, match="difference"):
        required_repetitions(0.1, delta)


@given(st.integers(2, 12).flatmap(lambda r: st.tuples(st.just(r), st.lists(st.integers(0, r), min_size=1))))
def test_variance_never_exceeds_a_quarter(case):
    repetitions, passed = case
    assert 0 <= within_sample_variance(passed, repetitions=repetitions) <= 0.25


def test_passes_of_all_repetitions_are_shares_of_samples_with_their_wilson_interval():
    found = repeated_passes(np.array([3, 3, 1, 0]), repetitions=3, k=3)

    assert (found.pass_at_k, found.pass_hat_k) == (0.75, 0.5)
    assert found.pass_hat_k_interval == pytest.approx(share_interval(np.array([1, 1, 0, 0]), 1), abs=1e-9)
    assert found.pass_at_k_interval.low < 0.75 < found.pass_at_k_interval.high


def test_precision_has_every_number_of_repetitions_together():
    found = repetition_precision([5, 5, 3, 0], repetitions=5, delta=0.05)

    assert [passes.k for passes in found.repeated] == [2, 3, 4, 5]
    assert [passes.pass_hat_k for passes in found.repeated] == pytest.approx([0.575, 0.525, 0.5, 0.5])
    assert [passes.pass_at_k for passes in found.repeated] == pytest.approx([0.725, 0.75, 0.75, 0.75])


def test_samples_of_one_cluster_count_as_one():
    passed = np.array([4, 4, 4, 4, 0, 0, 0, 0] * 5)
    alone = repeated_passes(passed, repetitions=4, k=2).pass_hat_k_interval
    clustered = repeated_passes(passed, repetitions=4, k=2, clusters=np.arange(40) // 4).pass_hat_k_interval

    assert clustered.high - clustered.low > 1.5 * (alone.high - alone.low)


@pytest.mark.parametrize(("k", "repetitions"), [(2, 5), (3, 3), (4, 8)])
def test_intervals_cover_the_chances_of_samples_that_differ(k, repetitions):
    rng = np.random.default_rng(5)
    at_k, hat_k = [], []
    # A sample passes with a chance of its own, from Beta(2, 1): its moments are 2/(k + 2).
    true_hat_k = 2 / (k + 2)
    true_at_k = 1 - 2 / ((k + 1) * (k + 2))

    for _ in range(400):
        passed = rng.binomial(repetitions, rng.beta(2, 1, 60))
        found = repeated_passes(passed, repetitions=repetitions, k=k)
        at_k.append(found.pass_at_k_interval.low <= true_at_k <= found.pass_at_k_interval.high)
        hat_k.append(found.pass_hat_k_interval.low <= true_hat_k <= found.pass_hat_k_interval.high)

    assert np.mean(hat_k) > 0.92
    assert np.mean(at_k) > 0.92
