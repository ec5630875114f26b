"""Rules about several repetitions of a sample together: pass@k and pass^k."""

import pytest

import deemster as dm
from deemster.errors import ConfigurationError

ANSWERS = {"always": ["yes", "yes", "yes"], "often": ["yes", "yes", "no"], "never": ["no", "no", "no"]}


def run_with(gate, answers=ANSWERS):
    samples = [{"id": name, "input": {"q": name}, "expected_output": "yes"} for name in answers]
    repetitions = len(next(iter(answers.values())))
    return dm.evaluate(samples, outputs=answers, metrics=["exact-match"], repetitions=repetitions, gate=gate)


def checks_of(report):
    return {check.name: check for check in report.gate.checks}


def test_rules_hold_all_repetitions_to_their_bounds_and_name_the_samples():
    checks = checks_of(run_with({"min_pass_at_k": 0.6, "min_pass_hat_k": 0.5}))

    at_k, hat_k = checks["min_pass_at_k"], checks["min_pass_hat_k"]
    assert (at_k.observed, at_k.status) == (pytest.approx(2 / 3), "pass")
    assert (hat_k.observed, hat_k.status) == (pytest.approx(1 / 3), "fail")
    assert hat_k.low < hat_k.observed < hat_k.high
    assert hat_k.because == "the estimate is below the bound; samples `never` and `often` did not pass"


def test_sample_that_passes_once_did_not_break_pass_at_k():
    [check] = run_with({"min_pass_at_k": 0.9}).gate.checks

    assert check.because == "the estimate is below the bound; sample `never` did not pass"


def test_k_says_how_many_repetitions_count_together():
    [check] = run_with({"min_pass_hat_k": 0.5, "k": 2}).gate.checks

    assert check.observed == pytest.approx((1 + 1 / 3 + 0) / 3)


def test_lower_end_of_the_interval_is_held_to_the_bound_where_that_is_asked_for():
    [check] = run_with({"min_pass_at_k": 0.6, "on": "lower"}).gate.checks

    assert check.status == "fail"


@pytest.mark.parametrize(
    ("gate", "answers", "message"),
    [
        ({"min_pass_hat_k": 0.5}, {"a": ["yes"]}, "needs at least 2 repetitions of each sample; this run has 1."),
        ({"min_pass_at_k": 0.5, "k": 4}, ANSWERS, "needs at least 4 repetitions of each sample; this run has 3."),
        ({"min_pass_at_k": 0.5, "k": 1}, ANSWERS, "gate.k must be"),
    ],
)
def test_rule_that_needs_more_repetitions_is_refused_before_anything_runs(gate, answers, message):
    with pytest.raises(ConfigurationError, match=message):
        run_with(gate, answers)
