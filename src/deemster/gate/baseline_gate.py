"""The checks of a gate against a baseline: the margin, newly failing samples, removed samples, judge drift."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from statistics import NormalDist
from typing import Literal, NamedTuple

import msgspec

from deemster.errors import list_first, plural
from deemster.gate.confirmation import Confirmation
from deemster.gate.gate_decision import GateCheck, GateDecision, Status, conclude
from deemster.gate.read_gate import EVERY, BaselineRules, GateRules
from deemster.records.marks import reaches
from deemster.results.compared_numbers import CohortComparison, Difference, SampleCounts
from deemster.results.difference_origin import DRIFT_LEVEL, JudgeDrift
from deemster.results.run_columns import IDENTITY_CHANGE, ComparedRun
from deemster.stats import Interval, PairedNoise, gate_power, holm
from deemster.stats.bounded_mean import ENOUGH_DIFFERENT
from deemster.stats.noise_split import NoiseSplit
from deemster.stats.power_analysis import fewest_samples

# How often the samples that are asked for would settle a margin.
_POWER = 0.8
# A number of samples that is so many times what there is decides nothing in practice.
_FAR_MORE = 1000
_NEWLY_FAILING = "baseline.max_newly_failing"


class LostScore(msgspec.Struct, frozen=True, kw_only=True):
    """The sample that lost most of a score.

    Attributes:
        metric: The metric.
        id: The sample.
        drop: How much it lost.
    """

    metric: str
    id: str
    drop: float


class BrokenSample(msgspec.Struct, frozen=True, kw_only=True):
    """A sample that passed before and does not pass now.

    Attributes:
        id: Its id.
        position: Its place in the dataset of the run.
    """

    id: str
    position: int


class SequentialCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What a run of an earlier version knew of one margin, which it looked at after every sample until it was settled.

    Attributes:
        n: How many units were seen: samples, or clusters of them.
        settled: Whether the drop is settled to be within the margin or beyond it; None for neither.
        at: After how many units it was settled.
        p_within: Against a drop of the margin or more, valid at every look.
        p_beyond: Against a drop of at most the margin, in the same way.
        interval: The interval of the difference that holds at every look; None where units are clusters.
    """

    n: int
    settled: Literal["pass", "fail"] | None
    at: int | None
    p_within: float
    p_beyond: float
    interval: Interval | None


class BaselineEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """What a gate looks at of the comparison of a run with its baseline. It is stored with the run.

    Attributes:
        baseline: The run before.
        confidence: The level of the one-sided bounds.
        margin: The drop that would still be acceptable, where the gate has one.
        is_part: Whether the run took a part of its dataset.
        samples: How many samples were joined.
        pass_rate: The difference of the share of executions in which every metric passed.
        metrics: The difference of each metric's pass-rate.
        cohorts: The same in the cohorts that the gate names.
        not_comparable: Metrics that cannot be compared, and why.
        drift: By metric, how the marks of equal outputs moved.
        newly_failing: How many samples passed before and do not pass now.
        first_broken: The first of them, the worst first; none in what earlier versions stored.
        largest_drop: The sample that lost most of a score; None where none lost anything.
        confirmation: Which newly failing samples really fail; None where none was run again.
        sequence: By the name of a margin check, what a run knew that stopped once it was settled; None for other runs.
        noise: By the name of a margin check, how much of its noise is the system's own, where there are repetitions.
        anchors: By metric, how the marks of the anchors moved, in what earlier versions stored.
    """

    baseline: ComparedRun
    confidence: float
    margin: float | None
    is_part: bool
    samples: SampleCounts
    pass_rate: Difference
    metrics: dict[str, Difference]
    cohorts: tuple[CohortComparison, ...]
    not_comparable: dict[str, str]
    drift: dict[str, JudgeDrift]
    newly_failing: int
    first_broken: tuple[BrokenSample, ...] = ()
    largest_drop: LostScore | None
    confirmation: Confirmation | None = None
    sequence: Mapping[str, SequentialCheck] | None = None
    noise: Mapping[str, NoiseSplit] = {}
    anchors: dict[str, JudgeDrift] | None = None


class PinnedBaseline(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The baseline that a run is compared with, found when the run begins, and what the comparison found.

    The evidence is stored with the run, so that its report stays the same when the baseline is rescored or removed.

    Attributes:
        name: What the gate calls it.
        run: The id of the stored run.
        file: The report file.
        missing: Why there is none, as half a sentence.
        scorings: How many scorings the run had when it was compared.
        evidence: What the comparison found; None where the run has not ended.
    """

    name: str
    run: str | None = None
    file: str | None = None
    missing: str | None = None
    scorings: int = 1
    evidence: BaselineEvidence | None = None

    def concluded(self, evidence: BaselineEvidence) -> PinnedBaseline:
        """The baseline with what a comparison found, and with what earlier evidence knows that no comparison finds."""
        if self.evidence is not None:
            evidence = msgspec.structs.replace(
                evidence, sequence=self.evidence.sequence, confirmation=self.evidence.confirmation
            )
        return msgspec.structs.replace(self, evidence=evidence)

    def checks(self, gate: GateRules, *, scorings: int = 1) -> tuple[GateCheck, ...]:
        """The checks of a gate against this baseline.

        Args:
            gate: The gate.
            scorings: How many scorings the run has now.
        """
        rules = gate.baseline
        if rules is None:
            return ()
        if self.missing is not None:
            return (_missing_check(rules, self.missing),)
        if self.evidence is None or scorings != self.scorings:
            known = "the run has not ended" if self.evidence is None else "the run was rescored since it was compared"
            return (_check("baseline", None, 0.0, "inconclusive", known),)
        return baseline_checks(gate, rules, self.evidence)


def baseline_checks(gate: GateRules, rules: BaselineRules, evidence: BaselineEvidence) -> tuple[GateCheck, ...]:
    """Check every rule about a baseline.

    Passing a margin needs no correction, because all checks must pass. Failing it does: the chance that any of them
    fails although nothing dropped by more than the margin is at most 1 - confidence.

    Args:
        gate: The gate.
        rules: Its rules about a baseline.
        evidence: What the comparison found.
    """
    checks = [] if rules.margin is None else list(_margin_checks(gate, rules, rules.margin, evidence))
    return (*checks, *_count_checks(rules, evidence), _drift_check(rules, evidence))


def decide_again(decision: GateDecision, rules: BaselineRules, evidence: BaselineEvidence) -> GateDecision:
    """A decision whose check of newly failing samples knows that some were run again.

    Args:
        decision: The decision before.
        rules: The rules about a baseline.
        evidence: What the comparison found, and which samples really fail.
    """
    counted = {check.name: check for check in _count_checks(rules, evidence)}
    checks = [counted[check.name] if check.name == _NEWLY_FAILING else check for check in decision.checks]
    return conclude(checks, mode=decision.mode)


def _missing_check(rules: BaselineRules, reason: str) -> GateCheck:
    status: Status = "fail" if rules.missing == "fail" else "skipped"
    return _check("baseline", None, 0.0, status, f"nothing was compared: {reason}")


class MarginNumber(NamedTuple):
    """One number that a margin holds for: its difference, or why it has no check.

    Attributes:
        name: The number, as its check is called behind `baseline.margin`.
        difference: The difference; None where it has no check.
        skipped: Why it is not gated, as half a sentence.
        unknown: Why it is not known, as half a sentence.
    """

    name: str
    difference: Difference | None = None
    skipped: str | None = None
    unknown: str | None = None


def _margin_checks(
    gate: GateRules, rules: BaselineRules, margin: float, evidence: BaselineEvidence
) -> Iterator[GateCheck]:
    numbers = list(margin_numbers(gate, rules, evidence))
    p_values = [None if one.difference is None else one.difference.p_beyond for one in numbers]
    level = 1 - rules.confidence
    adjusted = holm(p_values, level=level).adjusted
    tests = sum(p is not None for p in p_values)
    for one, p_value in zip(numbers, adjusted, strict=True):
        name = f"baseline.margin.{one.name}"
        found = one.difference
        if one.skipped is not None:
            yield _check(name, None, -margin, "skipped", one.skipped)
        elif found is None or found.difference is None or found.lower_bound is None or p_value is None:
            yield _check(name, None, -margin, "inconclusive", one.unknown or "no sample of it is in both runs")
        elif evidence.sequence is not None:
            yield _sequential_check(name, found.difference, margin, evidence.sequence.get(one.name))
        elif found.lower_bound > -margin:
            bound = f"the one-sided {_percent(rules.confidence)} lower bound {found.lower_bound:.4f}"
            yield _check(name, found, -margin, "pass", f"{bound} lies above -{margin:.4g}")
        elif p_value <= level:
            corrected = f" after Holm's correction over {plural(tests, 'check')}" if tests > 1 else ""
            because = f"the drop is larger than {margin:.4g}: p {p_value:.2g}{corrected}"
            yield _check(name, found, -margin, "fail", because)
        else:
            because = _what_decides(found, margin, rules.confidence, p_value, evidence.noise.get(one.name))
            yield _check(name, found, -margin, "inconclusive", because)


def _sequential_check(name: str, observed: float, margin: float, found: SequentialCheck | None) -> GateCheck:
    """A margin that was looked at after every sample: only evidence that holds at every look counts."""
    status: Status = "inconclusive"
    if found is None:
        because = "no sample of it was run before the gate was decided"
    elif found.settled is None:
        because = (
            f"{found.n:,} samples, looked at one by one, did not settle a drop of {margin:.4g}: anytime-valid p "
            f"{found.p_within:.2g} that it is kept, {found.p_beyond:.2g} that it is exceeded"
        )
    else:
        status, p_value = found.settled, found.p_within if found.settled == "pass" else found.p_beyond
        word = "at most" if status == "pass" else "larger than"
        because = f"settled after {found.at:,} samples: the drop is {word} {margin:.4g}, anytime-valid p {p_value:.2g}"
    low, high = (None, None) if found is None or found.interval is None else found.interval
    return GateCheck(name=name, observed=observed, low=low, high=high, required=-margin, status=status, because=because)


def margin_numbers(gate: GateRules, rules: BaselineRules, evidence: BaselineEvidence) -> Iterator[MarginNumber]:
    """The numbers that the margin of a gate holds for.

    Args:
        gate: The gate.
        rules: Its rules about a baseline.
        evidence: What the comparison found.
    """
    yield from _part_margins("", evidence.pass_rate, evidence.metrics)
    for name, why in evidence.not_comparable.items():
        idle = "its metric is not part of this run" if name in gate.idle else None
        go_on = _go_on(evidence.baseline.id) if why.startswith(IDENTITY_CHANGE) else ""
        yield MarginNumber(f"metrics.{name}", skipped=idle, unknown=f"{go_on}it cannot be compared: {why}")
    known = {cohort.label for cohort in evidence.cohorts}
    for name in rules.cohorts:
        if name not in (EVERY, *known):
            outside = "this run has no sample of the cohort" if evidence.is_part else None
            yield MarginNumber(f"cohorts.{name}", skipped=outside, unknown="no sample of the cohort is in both runs")
    for cohort in evidence.cohorts:
        least = gate.least_samples(cohort.label)
        prefix = f"cohorts.{cohort.label}"
        if cohort.samples < least:
            because = f"{plural(cohort.samples, 'sample')} in the cohort, below the {least} it takes to be gated"
            yield MarginNumber(prefix, skipped=because)
        else:
            yield from _part_margins(f"{prefix}.", cohort.pass_rate, cohort.metrics)


def _go_on(baseline: str) -> str:
    """The commands that say what the numbers of another judge are worth, and go on under the new one."""
    judge = f"deemster run SUITE --outputs {baseline}"
    return f"type `{judge}`, `deemster compare {baseline} latest`, `deemster baseline latest`: "


def _part_margins(prefix: str, whole: Difference, metrics: Mapping[str, Difference]) -> Iterator[MarginNumber]:
    """The numbers of a run or a cohort: the pass-rate of each metric, and of all together where there are several."""
    if len(metrics) > 1:
        yield MarginNumber(f"{prefix}pass_rate", whole)
    for name, difference in metrics.items():
        yield MarginNumber(f"{prefix}metrics.{name}", difference)


def _what_decides(found: Difference, margin: float, confidence: float, p_value: float, noise: NoiseSplit | None) -> str:
    """Why a margin is neither kept nor exceeded for certain, and what would show it if the change is what was seen."""
    lower = found.lower_bound or 0.0
    open_ = f"a drop of {margin:.4g} is neither excluded nor shown: the one-sided {_percent(confidence)} lower bound is"
    rule = "this sample rules" if found.n == 1 else f"these {found.n:,} samples rule"
    ways = []
    if (units := _units_needed(found, margin, confidence, p_value)) is not None:
        if noise is not None and (times := _repetitions_needed(units / found.units, noise)) is not None:
            ways.append(f"about {plural(times, 'repetition')} of each sample in both runs")
        ways.append(f"about {math.ceil(units * found.n / found.units):,} samples")
    shown = f"if the true change is what we saw, {', or '.join(ways)} would show it four times out of five; "
    return f"{open_} {lower:.4f}; {shown if ways else ''}{rule} out a drop of more than {_up(-lower)}"


def _units_needed(found: Difference, margin: float, confidence: float, p_value: float) -> int | None:
    """How many units would settle a margin four times out of five, if the estimate is the truth.

    None if that is far too many, or if those that are there should have been enough. Where the estimate lies within the
    margin, the lower bound must. Otherwise the p-value after Holm's correction must be small, which asks for more.
    """
    gap = (found.difference or 0.0) + margin
    if not gap or found.interval is None:
        return None
    outcome: Literal["pass", "fail"] = "pass" if gap > 0 else "fail"
    if gap < 0 and p_value:
        confidence = 1 - (1 - confidence) * (found.p_beyond or 0.0) / p_value
    low, high = found.interval
    spread = (high - low) / 2 / NormalDist().inv_cdf(0.975) * found.units**0.5
    if found.effect:
        spread = (found.difference or 0.0) / found.effect
    elif found.equal == found.n:
        spread = 0.0
    changed = 1 - found.equal / found.n

    def is_enough(units: int) -> bool:
        # Where few units change, the bound imagines one more at the end of the range.
        imagined = 1 / units if 0 < changed * units < ENOUGH_DIFFERENT else 0.0
        distance = max(0.0, abs(gap) - imagined)
        margin, drop = (distance, 0.0) if outcome == "pass" else (0.0, distance)
        noise = PairedNoise(sd=math.sqrt(spread**2 + imagined))
        power = gate_power(units, noise, outcome=outcome, margin=margin, drop=drop, confidence=confidence)
        return power >= _POWER

    needed = None if is_enough(found.units) else fewest_samples(is_enough, above=found.units)
    return needed if needed is not None and needed <= _FAR_MORE * found.units else None


def _repetitions_needed(times: float, noise: NoiseSplit) -> int | None:
    """About how many repetitions do what so many times the units do; None where the choice of samples forbids it."""
    if not noise.share_within:
        return None
    left = 1 / times - (1 - noise.share_within)
    if left <= 0 or noise.share_within / left > _FAR_MORE:
        return None
    return math.ceil(max(noise.repetitions) * noise.share_within / left)


def _count_checks(rules: BaselineRules, evidence: BaselineEvidence) -> Iterator[GateCheck]:
    if rules.max_newly_failing is not None:
        yield _newly_failing_check(rules.max_newly_failing, evidence)
    if rules.max_single_drop is not None:
        lost = evidence.largest_drop
        because = "no sample lost anything" if lost is None else f"`{lost.id}` lost most, of {lost.metric}"
        yield _bounded("baseline.max_single_drop", 0.0 if lost is None else lost.drop, rules.max_single_drop, because)
    gone, name = evidence.samples.removed, "baseline.max_removed"
    because = f"{plural(gone, 'sample')} of the baseline {'is' if gone == 1 else 'are'} gone or edited"
    if evidence.is_part:
        skipped = "the run took a part of its dataset, so samples outside of it are not gone"
        yield _check(name, None, rules.max_removed, "skipped", skipped)
    else:
        yield _bounded(name, gone, rules.max_removed, because)


def _newly_failing_check(most: int, evidence: BaselineEvidence) -> GateCheck:
    """Samples that newly fail; those that running them again showed to be flaky do not count."""
    count, found = evidence.newly_failing, evidence.confirmation
    because = f"{plural(count, 'sample')} passed before and {'does' if count == 1 else 'do'} not pass now"
    if evidence.first_broken:
        because += f": {list_first([f'`{sample.id}`' for sample in evidence.first_broken], count)}"
    if found is not None:
        flaky, open_ = found.count("flaky"), count - found.count("flaky") - found.count("confirmed")
        because += f"; {found.count('confirmed'):,} confirmed by running them again, {flaky:,} flaky"
        if open_:
            takes = "they have no history: a baseline with repetitions, or runs before it, would be one"
            if found.needed is not None:
                takes = f"it takes {plural(found.needed, 'rerun')} to confirm one"
            because += f", {open_:,} open ({takes})"
        count -= flaky
    return _bounded(_NEWLY_FAILING, count, most, because)


def _bounded(name: str, observed: float, most: float, because: str) -> GateCheck:
    holds = reaches(observed, most, higher_is_better=False)
    return _check(name, None, most, "pass" if holds else "fail", because, observed=observed)


def _drift_check(rules: BaselineRules, evidence: BaselineEvidence) -> GateCheck:
    """Whether a judge marks equal outputs otherwise than before, beyond chance."""
    name = "baseline.judge_drift"
    found = [("equal output", metric, drift) for metric, drift in evidence.drift.items()]
    found += (("anchor", metric, drift) for metric, drift in (evidence.anchors or {}).items())
    if not found:
        return _check(name, None, DRIFT_LEVEL, "skipped", "no output is the same in both runs")
    kind, metric, worst = min(found, key=lambda each: each[2].p_value)
    if not worst.drifted:
        alike = " and ".join(dict.fromkeys(f"{each}s" for each, _, _ in found))
        because = f"{alike} are marked as before, as far as chance goes"
        return _check(name, None, DRIFT_LEVEL, "pass", because, observed=worst.p_value)
    moved = f"{metric} scores {worst.changed:,} of {plural(worst.n, kind)} otherwise than before"
    because = f"{moved}, by {worst.difference:+.4f} on average: p {worst.p_value:.2g}"
    if rules.judge_drift == "warn":
        return _check(name, None, DRIFT_LEVEL, "skipped", f"only a warning: {because}", observed=worst.p_value)
    return _check(name, None, DRIFT_LEVEL, "inconclusive", because, observed=worst.p_value)


def _check(
    name: str, found: Difference | None, required: float, status: Status, because: str, *, observed: float | None = None
) -> GateCheck:
    interval: Interval | tuple[None, None] = (None, None)
    if found is not None:
        observed, interval = found.difference, found.interval or interval
    low, high = interval
    return GateCheck(
        name=name, observed=observed, low=low, high=high, required=required, status=status, because=because
    )


def _percent(confidence: float) -> str:
    return f"{confidence * 100:.4g}%"


def _up(margin: float) -> str:
    """A margin rounded up, so that the one that is printed can be certified."""
    return f"{math.ceil(margin * 1e4) / 1e4:.4f}"
