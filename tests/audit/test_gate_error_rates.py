"""The error rates of a gate: what is predicted from stored runs is what happens, and rules are blamed rightly."""

from __future__ import annotations

import numpy as np
import pytest

from deemster.audit.gate_error_rates import GateTrial, TrialSettings, audit_gate_rates, simulated_gate
from deemster.audit.simulated_runs import ExecutionPool
from deemster.errors import ConfigurationError
from deemster.gate.read_gate import BaselineRules, GateRules, Rule
from tests.results import make_compared_runs
from tests.results.simulated_histories import NAMES, compare_rates, draw_runs

MARGIN = GateRules(baseline=BaselineRules(margin=0.05, max_newly_failing=9), decision="three-way")


def pool(chances, *, count=4, seed=0, **more):
    rng = np.random.default_rng(seed)
    return ExecutionPool(draw_runs(make_compared_runs, rng, np.asarray(chances), count=count, **more))


def test_predicted_rates_are_those_of_real_runs():
    found = compare_rates(
        make_compared_runs,
        MARGIN,
        lambda rng: rng.beta(4, 1, 60),
        histories=15,
        runs=3,
        drops=(0.1,),
        draws=8,
        real=4,
    )
    for predicted, realised in found.values():
        difference = predicted - realised
        error = difference.std(axis=0, ddof=1) / np.sqrt(len(difference)) + 1e-3
        assert (np.abs(difference.mean(axis=0)) <= 3.5 * error).all()
    # The rates are neither all 0 nor all 1, so that a wrong prediction would be seen.
    assert 0.1 < found[0.0][1][:, 0].mean() < 0.6 < found[0.1][1][:, 0].mean()


def test_rule_that_no_noise_can_keep_is_blamed():
    gate = GateRules(
        rules=(Rule("min_pass_rate", "pass_rate", 0.2, ""),), baseline=BaselineRules(margin=0.3, max_newly_failing=0)
    )
    told = audit_gate_rates(gate, pool([0.5] * 40), metrics=NAMES, settings=TrialSettings(draws=20, drops=()))
    first = told["rules"][0]
    assert first.name == "baseline.max_newly_failing"
    assert (first.failed.count, first.alone) == (20, 20)
    assert told["unchanged"].failed.count == 20


def test_samples_that_never_flip_raise_no_alarm_and_certify_what_their_number_allows():
    told = audit_gate_rates(MARGIN, pool([1.0] * 180), metrics=NAMES, settings=TrialSettings(draws=5, drops=(0.2,)))
    assert told["unchanged"].passed.count == 5
    assert told["margin"].value == pytest.approx(0.02, abs=5e-4)
    assert told["drops"][0].outcomes.failed.count == 5


def test_more_is_caught_of_a_larger_drop():
    settings = TrialSettings(draws=15, drops=(0.01, 0.05, 0.1, 0.2))
    told = audit_gate_rates(MARGIN, pool([0.95] * 80), metrics=NAMES, settings=settings)
    caught = [each.outcomes.failed.count for each in told["drops"]]
    assert caught == sorted(caught)
    assert caught[-1] > caught[0]


def test_drop_of_one_cohort_breaks_only_its_samples():
    tags = [["small"]] * 10 + [["large"]] * 70
    runs = pool([1.0] * 80, tags=tags)
    gate = GateRules(baseline=BaselineRules(margin=0.05, cohorts=("*",)))
    settings = TrialSettings(draws=10, drops=(1.0,))
    whole, one = audit_gate_rates(gate, runs, metrics=NAMES, settings=settings)["drops"]
    assert (one.cohort, one.samples, whole.cohort) == ("small", 10, None)
    rng = np.random.default_rng(0)
    before, after = runs.draw_pair(rng)
    after = runs.break_samples(rng, after, drop=1.0, scope=np.arange(10))
    checks = GateTrial(gate, runs, metrics=NAMES).decide(before, after).decision.checks
    failed = {check.name for check in checks if check.status == "fail"}
    assert failed == {"baseline.margin.cohorts.small.metrics.quality"}


def test_pass_rate_that_cannot_fall_so_far_is_undefined_with_the_reason():
    told = audit_gate_rates(
        MARGIN, pool([0.0] * 19 + [1.0]), metrics=NAMES, settings=TrialSettings(draws=3, drops=(0.2,))
    )
    (found,) = told["drops"]
    assert found.outcomes is None
    assert found.reason == "A pass-rate of 0.0500 cannot fall by 0.2000."


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.18])
def test_stated_flips_are_as_many_as_stated_and_leave_the_pass_rate(rate):
    stated = pool([1.0] * 180 + [0.0] * 20, count=1).with_noise(flip_rate=rate)
    assert stated.flip_rate == pytest.approx(rate)
    rng = np.random.default_rng(1)
    pairs = [stated.draw_pair(rng) for _ in range(60)]
    passed = np.array([[stated.passed[run.samples[:, 0], 0] for run in pair] for pair in pairs])
    assert (passed[:, 0] != passed[:, 1]).mean() == pytest.approx(rate, abs=4 * (rate / (60 * 200)) ** 0.5)
    assert passed.mean() == pytest.approx(0.9, abs=0.01)


def test_stated_flips_that_would_change_what_passes_are_refused():
    with pytest.raises(ConfigurationError, match=r"`flip_rate` is at most 0\.1800"):
        pool([1.0] * 90 + [0.0] * 10, count=1).with_noise(flip_rate=0.3)


def test_pairs_share_no_execution_of_a_sample():
    runs = pool([0.5] * 30, count=5, repetitions=2)
    before, after = runs.draw_pair(np.random.default_rng(3))
    used = np.concatenate([before.executions, after.executions], axis=1)
    assert all(len(set(row)) == 4 for row in used.tolist())


def test_rules_that_marks_cannot_answer_are_left_out_with_the_reason():
    rules = (
        Rule("budget.max_cost_usd", "cost_usd", 1.0, "", upper=True),
        Rule("metrics.quality.min_pass_rate", "pass_rate", 0.5, "", metric="quality", on="corrected"),
        Rule("metrics.other.min_pass_rate", "pass_rate", 0.5, "", metric="other"),
        Rule("min_pass_rate", "pass_rate", 0.5, ""),
    )
    kept, reasons = simulated_gate(GateRules(rules=rules), metrics=NAMES)
    assert [rule.name for rule in kept.rules] == ["min_pass_rate"]
    assert len(reasons) == 3


def test_stated_spread_of_scores_is_that_of_the_differences():
    rng = np.random.default_rng(4)
    scores = rng.beta(2, 2, 300)
    stated = ExecutionPool([make_compared_runs.run({"quality": scores.tolist()})]).with_noise(sd=0.2)
    pairs = [stated.draw_pair(rng) for _ in range(20)]
    differences = np.concatenate(
        [scores[after.samples[:, 0]] - scores[before.samples[:, 0]] for before, after in pairs]
    )
    assert differences.std() == pytest.approx(0.2, abs=0.01)
    assert differences.mean() == pytest.approx(0.0, abs=0.01)
    with pytest.raises(ConfigurationError, match="`sd` is at most"):
        stated.with_noise(sd=0.9)
