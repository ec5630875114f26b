import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.results.repetition_precision import (
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
