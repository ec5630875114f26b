"""pass@k and pass^k of two runs with repetitions."""

import json

import pytest

import deemster as dm

BEFORE = {"a": "yyyy", "b": "yyny", "c": "nnnn", "d": "yyyy"}
NOW = {"a": "yyyy", "b": "nnny", "c": "nnnn", "d": "yn"}


def run_of(answers):
    repetitions = {len(letters) for letters in answers.values()}
    samples = [{"id": name, "input": {"q": name}, "expected_output": "y"} for name in answers]
    outputs = {name: list(letters) for name, letters in answers.items()}
    return dm.evaluate(samples, outputs=outputs, metrics=["exact-match"], repetitions=repetitions.pop())


def test_comparison_has_the_change_of_one_and_of_all_repetitions():
    now = {name: letters if len(letters) == 4 else "ynyn" for name, letters in NOW.items()}
    repeated = dm.compare(run_of(BEFORE), run_of(now)).repeated

    assert repeated.k == 4
    assert (repeated.pass_at_k.baseline, repeated.pass_at_k.candidate) == (0.75, 0.75)
    assert (repeated.pass_hat_k.baseline, repeated.pass_hat_k.candidate) == (0.5, 0.25)
    low, high = repeated.pass_hat_k.interval
    assert low < -0.25 < high


def test_runs_of_different_size_are_compared_at_the_fewer_repetitions():
    fewer = {name: letters[:2] for name, letters in NOW.items()}
    repeated = dm.compare(run_of(BEFORE), run_of(fewer)).repeated

    assert repeated.k == 2
    # Of four repetitions with three passes, two that are drawn pass both with a chance of one half.
    assert repeated.pass_hat_k.baseline == pytest.approx((1 + 0.5 + 0 + 1) / 4)
    assert repeated.pass_hat_k.candidate == pytest.approx((1 + 0 + 0 + 0) / 4)


def test_runs_without_repetitions_say_nothing_of_them():
    once = {name: letters[:1] for name, letters in NOW.items()}
    comparison = dm.compare(run_of(BEFORE), run_of(once))

    assert comparison.repeated is None
    assert "repeated" not in json.loads(comparison.to_json())
    assert "pass^" not in str(comparison)
