"""The checks against a baseline: pass, fail or inconclusive, with Holm over all, and what would decide."""

from __future__ import annotations

import re

import msgspec
import numpy as np
import pytest

from deemster.gate.baseline_gate import BaselineEvidence, LostScore, PinnedBaseline, baseline_checks
from deemster.gate.gate_decision import conclude
from deemster.gate.read_gate import BaselineRules, GateRules
from deemster.results.compared_numbers import CohortComparison, Difference, SampleCounts
from deemster.results.difference_origin import JudgeDrift
from deemster.results.run_columns import ComparedRun
from deemster.stats import Interval, noise_split, paired_difference

RUN = ComparedRun(
    id="run-0",
    dataset="golden",
    fingerprint=None,
    started_at="2026-01-01",
    status="complete",
    samples=100,
    repetitions=1,
    macro_f1=0.9,
    pass_rate=0.9,
)


def difference(moved, margin=0.05, confidence=0.95):
    """The difference of a pass-rate, from what each sample gained."""
    moved = np.asarray(moved, dtype=float)
    found = paired_difference(moved, margin=margin, confidence=confidence)
    return Difference(
        n=len(moved),
        units=found.n,
        difference=found.value,
        interval=None if found.interval is None else Interval(found.interval.lower, found.interval.upper),
        lower_bound=found.lower_bound,
        upper_bound=found.upper_bound,
        effect=found.effect,
        equal=int((moved == 0).sum()),
        certifiable=found.certifiable,
        certifiable_unchanged=found.certifiable_unchanged,
        p_beyond=found.p_beyond,
    )


def evidence(metrics, *, cohorts=(), **other):
    known = {
        "baseline": RUN,
        "confidence": 0.95,
        "margin": 0.05,
        "is_part": False,
        "samples": SampleCounts(paired=100, added=0, removed=0),
        "pass_rate": next(iter(metrics.values()), difference([])),
        "metrics": metrics,
        "cohorts": tuple(
            CohortComparison(
                label=label, samples=rate.n, macro_f1=rate, pass_rate=rate, metrics=dict.fromkeys(metrics, rate)
            )
            for label, rate in dict(cohorts).items()
        ),
        "not_comparable": {},
        "drift": {},
        "newly_failing": 0,
        "largest_drop": None,
    }
    return BaselineEvidence(**{**known, **other})


def checks(found, *, mode="three-way", min_samples=None, **rules):
    gate = GateRules(decision=mode, min_samples=min_samples or {}, baseline=BaselineRules(**{"margin": 0.05, **rules}))
    return {check.name: check for check in baseline_checks(gate, gate.baseline, found)}


def flips(n, down=0, up=0):
    return [-1.0] * down + [1.0] * up + [0.0] * (n - down - up)


@pytest.mark.parametrize(
    ("moved", "status"),
    [
        (flips(100), "pass"),
        (flips(60), "inconclusive"),
        (flips(200, down=3), "pass"),
        (flips(200, down=10), "inconclusive"),
        (flips(200, down=40), "fail"),
        (flips(20, down=1), "inconclusive"),
        (flips(20, up=15), "pass"),
    ],
)
def test_margin_passes_above_the_bound_fails_by_the_test_and_is_open_between(moved, status):
    check = checks(evidence({"a": difference(moved)}))["baseline.margin.metrics.a"]
    assert (check.status, check.required) == (status, -0.05)
    assert check.observed == pytest.approx(np.mean(moved))


def test_nothing_flipping_on_twenty_samples_is_no_pass_at_two_percent():
    found = difference(flips(20), margin=0.02)
    check = checks(evidence({"a": found}, margin=0.02), margin=0.02)["baseline.margin.metrics.a"]
    assert check.status == "inconclusive"


def test_failing_is_corrected_over_all_checks_and_passing_is_not():
    one = difference(flips(40, down=9))
    alone = checks(evidence({"a": one}))["baseline.margin.metrics.a"]
    assert alone.status == "fail"
    assert "Holm" not in alone.because
    many = checks(
        evidence({"a": one}, cohorts={f"c{at}": one if not at else difference(flips(100)) for at in range(20)})
    )
    assert many["baseline.margin.metrics.a"].status == "inconclusive"
    assert [many[f"baseline.margin.cohorts.c{at}.metrics.a"].status for at in (0, 1)] == ["inconclusive", "pass"]
    heavy = difference(flips(40, down=20))
    found = checks(evidence({"a": heavy}, cohorts={"c": one}), cohorts=("*",))
    assert found["baseline.margin.metrics.a"].because.endswith("after Holm's correction over 2 checks")


def test_a_a_comparison_with_twenty_cohorts_fails_at_most_five_times_in_a_hundred():
    draw, failed, repeats = np.random.default_rng(16), 0, 100
    for _ in range(repeats):
        # Each of the 30 samples of a cohort passes at random in both runs: nothing but noise.
        moved = draw.integers(0, 2, (20, 30)) - draw.integers(0, 2, (20, 30))
        cohorts = {f"c{at}": difference(row) for at, row in enumerate(moved)}
        found = baseline_checks(
            GateRules(),
            BaselineRules(margin=0.05, cohorts=("*",)),
            evidence({"a": difference(moved.ravel())}, cohorts=cohorts),
        )
        failed += conclude(found, mode="three-way").decision == "fail"
    assert failed / repeats <= 0.05


def test_run_has_a_check_of_its_own_only_beside_several_metrics():
    rate = difference(flips(100))
    assert "baseline.margin.pass_rate" not in checks(evidence({"a": rate}))
    found = checks(evidence({"a": rate, "b": rate}, cohorts={"c": rate}))
    assert [name for name in found if "margin" in name] == [
        "baseline.margin.pass_rate",
        "baseline.margin.metrics.a",
        "baseline.margin.metrics.b",
        "baseline.margin.cohorts.c.pass_rate",
        "baseline.margin.cohorts.c.metrics.a",
        "baseline.margin.cohorts.c.metrics.b",
    ]


@pytest.mark.parametrize(
    "moved", [flips(20), flips(60), flips(60, down=2), flips(100, down=6, up=3), flips(80, down=9)]
)
def test_samples_it_asks_for_decide_the_margin(moved):
    check = checks(evidence({"a": difference(moved)}))["baseline.margin.metrics.a"]
    assert check.status == "inconclusive"
    needed = int(re.search(r"about ([\d,]+) samples", check.because)[1].replace(",", ""))
    again = moved * (needed // len(moved) + 1)
    decided = checks(evidence({"a": difference(again)}))["baseline.margin.metrics.a"]
    assert decided.status in ("pass", "fail")
    third = moved * max(1, needed // len(moved) // 3)
    assert checks(evidence({"a": difference(third)}))["baseline.margin.metrics.a"].status == "inconclusive"


def test_margin_it_offers_is_certified():
    moved = flips(100, down=6, up=3)
    check = checks(evidence({"a": difference(moved)}))["baseline.margin.metrics.a"]
    offered = float(re.search(r"these 100 samples rule out a drop of more than ([\d.]+)", check.because)[1])
    found = evidence({"a": difference(moved, margin=offered)}, margin=offered)
    assert checks(found, margin=offered)["baseline.margin.metrics.a"].status == "pass"


def test_small_cohort_is_reported_and_not_gated():
    found = checks(
        evidence({"a": difference(flips(100))}, cohorts={"c": difference(flips(4, down=4))}),
        min_samples={"*": (5, "")},
    )
    assert found["baseline.margin.cohorts.c"].because == "4 samples in the cohort, below the 5 it takes to be gated"


def test_cohort_without_common_samples_is_open():
    found = checks(evidence({"a": difference(flips(100))}), cohorts=("c",))
    assert found["baseline.margin.cohorts.c"].status == "inconclusive"


def test_metric_that_cannot_be_compared_is_open():
    found = checks(evidence({}, not_comparable={"a": "its threshold was 0.5, and is 0.7"}))
    check = found["baseline.margin.metrics.a"]
    assert check.status == "inconclusive"
    assert check.because == (
        "type `deemster run SUITE --outputs run-0`, `deemster compare run-0 latest`, `deemster baseline latest`: "
        "it cannot be compared: its threshold was 0.5, and is 0.7"
    )


@pytest.mark.parametrize(
    ("rules", "other", "name", "status"),
    [
        ({"max_newly_failing": 3}, {"newly_failing": 3}, "max_newly_failing", "pass"),
        ({"max_newly_failing": 3}, {"newly_failing": 4}, "max_newly_failing", "fail"),
        ({"max_single_drop": 0.6}, {}, "max_single_drop", "pass"),
        (
            {"max_single_drop": 0.6},
            {"largest_drop": LostScore(metric="a", id="s1", drop=0.7)},
            "max_single_drop",
            "fail",
        ),
        ({}, {"samples": SampleCounts(paired=9, added=0, removed=1)}, "max_removed", "fail"),
        ({"max_removed": 1}, {"samples": SampleCounts(paired=9, added=0, removed=1)}, "max_removed", "pass"),
        ({}, {"is_part": True, "samples": SampleCounts(paired=9, added=0, removed=1)}, "max_removed", "skipped"),
    ],
)
def test_counts_are_bounded(rules, other, name, status):
    found = checks(evidence({"a": difference(flips(100))}, **other), **rules)
    assert found[f"baseline.{name}"].status == status


@pytest.mark.parametrize(
    ("drift", "rule", "status"),
    [
        (None, "inconclusive", "skipped"),
        (JudgeDrift(n=50, changed=2, difference=0.01, p_value=0.5, drifted=False), "inconclusive", "pass"),
        (JudgeDrift(n=50, changed=30, difference=-0.1, p_value=0.001, drifted=True), "inconclusive", "inconclusive"),
        (JudgeDrift(n=50, changed=30, difference=-0.1, p_value=0.001, drifted=True), "warn", "skipped"),
    ],
)
def test_judge_that_drifted_is_open_or_a_warning(drift, rule, status):
    known = {} if drift is None else {"drift": {"a": drift}}
    check = checks(evidence({"a": difference(flips(100))}, **known), judge_drift=rule)["baseline.judge_drift"]
    assert check.status == status
    if drift is not None and drift.drifted:
        assert "a scores 30 of 50 equal outputs otherwise than before, by -0.1000 on average: p 0.001" in check.because


def test_evidence_is_the_same_after_it_was_stored():
    rate = difference(flips(100, down=3))
    pinned = PinnedBaseline(
        name="baseline",
        run="run-0",
        evidence=evidence(
            {"a": rate},
            cohorts={"c": rate},
            drift={"a": JudgeDrift(n=5, changed=0, difference=0.0, p_value=1.0, drifted=False)},
            largest_drop=LostScore(metric="a", id="s1", drop=0.7),
        ),
    )
    stored = msgspec.json.decode(msgspec.json.encode(msgspec.to_builtins(pinned)))
    assert msgspec.convert(stored, PinnedBaseline) == pinned


@pytest.mark.parametrize(
    ("pinned", "status", "because"),
    [
        (PinnedBaseline(name="b", missing="there is none"), "skipped", "nothing was compared: there is none"),
        (PinnedBaseline(name="b", run="r"), "inconclusive", "the run has not ended"),
        (
            PinnedBaseline(name="b", run="r", evidence=evidence({}), scorings=2),
            "inconclusive",
            "the run was rescored since it was compared",
        ),
    ],
)
def test_run_that_was_not_compared_says_why(pinned, status, because):
    (check,) = pinned.checks(GateRules(baseline=BaselineRules()))
    assert (check.name, check.status, check.because) == ("baseline", status, because)
    assert pinned.checks(GateRules()) == ()


def test_repetitions_are_offered_where_the_noise_is_the_system_s_own():
    draw = np.random.default_rng(5)
    before, after = draw.random((2, 60, 4)) < np.tile([0.2, 0.5, 0.8], 20)[:, None]
    moved, noise = difference(after.mean(axis=1) - before.mean(axis=1)), noise_split(before, after)
    check = checks(evidence({"a": moved}, noise={"metrics.a": noise}))["baseline.margin.metrics.a"]
    assert check.status == "inconclusive"
    needed = int(re.search(r"about ([\d,]+) repetitions of each sample", check.because)[1].replace(",", ""))
    # With so many, and no fewer, the variance of the mean comes to what so many samples give.
    samples = samples_asked(check)
    at, below = (1 - noise.share_within + noise.share_within * 4 / times for times in (needed, needed - 1))
    assert at <= 60 / samples < below


def samples_asked(check):
    told = r"if the true change is what we saw, .*about ([\d,]+) samples would show it four times out of five"
    return int(re.search(told, check.because)[1].replace(",", ""))


@pytest.mark.parametrize(
    "moved",
    [
        flips(200, down=14, up=10),
        flips(60, down=6, up=2),
        flips(15, down=1),
        np.clip(np.random.default_rng(1).normal(-0.02, 0.2, 50), -1, 1),
    ],
)
def test_so_many_samples_settle_the_margin_four_times_out_of_five(moved):
    """Simulated as the sentence says: samples like those that were seen, so many of them, compared anew."""
    moved = np.asarray(moved)
    samples, rng = (
        samples_asked(checks(evidence({"a": difference(moved)}))["baseline.margin.metrics.a"]),
        np.random.default_rng(3),
    )
    again = [paired_difference(rng.choice(moved, samples), margin=0.05) for _ in range(250)]
    settled = [(one.p_within if moved.mean() > -0.05 else one.p_beyond) <= 0.05 for one in again]
    assert np.mean(settled) == pytest.approx(0.8, abs=0.08)


def test_samples_that_would_show_a_drop_are_more_than_there_are_after_the_correction():
    """Holm's correction alone keeps this drop from being shown, so more samples of the same kind would show it."""
    moved = np.zeros(60)
    moved[:17], moved[17:19] = -1, 1
    alone = {"a": difference(moved)}
    many = alone | {f"m{place}": difference(np.zeros(60)) for place in range(14)}
    assert checks(evidence(alone))["baseline.margin.metrics.a"].status == "fail"
    check = checks(evidence(many))["baseline.margin.metrics.a"]
    assert check.status == "inconclusive"
    needed = samples_asked(check)
    assert needed > 60
    more = {**many, "a": difference(moved[np.arange(needed) * 60 // needed])}
    assert checks(evidence(more))["baseline.margin.metrics.a"].status == "fail"


def test_repetitions_are_not_offered_where_samples_differ_in_truth():
    before, after = np.ones((40, 4)), np.ones((40, 4))
    after[:3] = 0.0
    moved = difference(after.mean(axis=1) - before.mean(axis=1))
    seen = evidence({"a": moved}, noise={"metrics.a": noise_split(before, after)})
    assert "repetition" not in checks(seen)["baseline.margin.metrics.a"].because
