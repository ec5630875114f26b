"""The gate: checks every rule against the summary of a run and decides whether it passes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from deemster.errors import ExitCode, plural
from deemster.gate.read_gate import CORRECTED, EVERY, REPEATED, GateRules, Rule
from deemster.records.marks import reaches
from deemster.results.attack_success import AdversarialSummary, AttackFigures
from deemster.results.metric_summary import CorrectedPassRate, CriterionSummary
from deemster.results.run_summary import Cohort, RunSummary, cohort_label
from deemster.stats import Interval

Status: TypeAlias = Literal["pass", "fail", "inconclusive", "skipped"]
# What rules about the result of an aggregator look at.
AGGREGATES = ("aggregate_success", "aggregate_score")
_ATTACKS = ("critical_successes", "attack_success")
# What says something of any part of a dataset: what could not be scored, what it cost, how long it took.
_OF_ANY_PART = frozenset({"unscored", "samples_unscored", "cost_usd", "p95_latency_s"})
_WHOLE_DECIDES = "only what failed before was run; the whole suite decides"
_NOWHERE = "this metric applies to none of the samples"


class GateCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The check of one rule.

    Attributes:
        name: The rule, as its path in the suite.
        observed: The number that was compared; None if it is undefined.
        low: The lower end of its interval, if it has one.
        high: The upper end.
        required: The bound.
        status: Whether the rule holds.
        because: The reason, as a sentence.
    """

    name: str
    observed: float | None
    low: float | None
    high: float | None
    required: float
    status: Status
    because: str


class GateDecision(msgspec.Struct, frozen=True, kw_only=True):
    """The decision of the gate.

    Attributes:
        decision: `pass`, `fail`, or `inconclusive` (only if the gate is three-way).
        mode: `two-way` or `three-way`.
        checks: Every rule's check.
    """

    decision: Literal["pass", "fail", "inconclusive"]
    mode: Literal["two-way", "three-way"]
    checks: tuple[GateCheck, ...]

    @property
    def is_decided(self) -> bool:
        """Whether a rule was checked at all: where all are skipped, `pass` says only that none failed."""
        return any(check.status != "skipped" for check in self.checks)

    @property
    def exit_code(self) -> ExitCode:
        """The exit code that follows from the decision alone."""
        codes = {"pass": ExitCode.PASSED, "fail": ExitCode.GATE_FAILED, "inconclusive": ExitCode.INCONCLUSIVE}
        return codes[self.decision]


class BrokenRule(NamedTuple):
    """A rule that samples broke.

    Attributes:
        quantity: What it bounds, such as `pass_rate`.
        metric: The metric that it is about; None for all of them.
        cohort: The label of the cohort that it is about; None for the whole run.
    """

    quantity: str
    metric: str | None
    cohort: str | None


# Says of each rule which samples broke it, as half a sentence; empty where that is not known.
NameSamples: TypeAlias = Callable[[Sequence[BrokenRule]], Sequence[str]]


def name_no_samples(rules: Sequence[BrokenRule]) -> Sequence[str]:
    """Say of no rule which samples broke it.

    Args:
        rules: The rules.
    """
    return [""] * len(rules)


class _Outcome(NamedTuple):
    """The check of a rule, and what it is about."""

    check: GateCheck
    rule: BrokenRule


class _Reading(NamedTuple):
    """The number that a rule compares, why it may be missing, what it leaves out; whether there is nothing to rate."""

    observed: float | None
    interval: Interval | None = None
    missing: str = "it is undefined"
    partial: str = ""
    is_outside: bool = False


def decide_gate(
    gate: GateRules,
    summary: RunSummary,
    *,
    metrics: Mapping[str, str],
    against_baseline: Iterable[GateCheck] = (),
    is_part: bool = False,
    is_of_failed: bool = False,
    name_samples: NameSamples = name_no_samples,
) -> GateDecision:
    """Check every rule against a summary.

    A rule about a metric that applies to no sample of a cohort is skipped. So is one about the run, where that is only
    a part of its dataset; a whole run in which a metric applies nowhere does not reach what is required of it. Where
    only samples ran that failed before, every bound of a quality is skipped, since it is one of the whole run.

    Args:
        gate: The rules.
        summary: The numbers.
        metrics: Names of the run's metrics, and other spellings of them, by name.
        against_baseline: The checks against a baseline.
        is_part: Whether the run took only a part of its dataset.
        is_of_failed: Whether that part holds only what failed before.
        name_samples: Says which samples broke the rules that fail.
    """
    outcomes = [outcome for rule in gate.rules for outcome in _checks(rule, gate, summary, metrics, is_part=is_part)]
    if is_of_failed:
        outcomes = [_left_to_the_whole(outcome) for outcome in outcomes]
        against_baseline = [_without_margin(check) for check in against_baseline]

    checks = _with_samples(outcomes, name_samples)
    return conclude((*checks, *against_baseline), mode=gate.decision)


def _left_to_the_whole(outcome: _Outcome) -> _Outcome:
    """What becomes of a rule where only samples ran that failed before."""
    if outcome.rule.quantity in _OF_ANY_PART:
        return outcome
    return outcome._replace(check=msgspec.structs.replace(outcome.check, status="skipped", because=_WHOLE_DECIDES))


def _without_margin(check: GateCheck) -> GateCheck:
    if not check.name.startswith("baseline.margin."):
        return check
    return msgspec.structs.replace(check, status="skipped", because=_WHOLE_DECIDES)


def _with_samples(outcomes: Sequence[_Outcome], name_samples: NameSamples) -> Iterator[GateCheck]:
    """The checks; those that fail name the samples that broke them."""
    names = iter(name_samples([rule for check, rule in outcomes if check.status == "fail"]))

    for check, _ in outcomes:
        if check.status == "fail" and (named := next(names)):
            yield msgspec.structs.replace(check, because=f"{check.because}; {named}")
        else:
            yield check


def conclude(checks: Sequence[GateCheck], *, mode: Literal["two-way", "three-way"]) -> GateDecision:
    """Decide from checks: fail if one fails, else inconclusive if one is and that is an answer, else pass.

    Args:
        checks: The checks.
        mode: Whether inconclusive is an answer of its own.
    """
    statuses = {check.status for check in checks}
    if "fail" in statuses:
        decision: Literal["pass", "fail", "inconclusive"] = "fail"
    elif "inconclusive" in statuses and mode == "three-way":
        decision = "inconclusive"
    else:
        decision = "pass"
    return GateDecision(decision=decision, mode=mode, checks=tuple(checks))


def _checks(
    rule: Rule, gate: GateRules, summary: RunSummary, metrics: Mapping[str, str], *, is_part: bool
) -> Iterator[_Outcome]:
    """The checks of a rule: one, or one for each cohort that it is about."""
    about = BrokenRule(rule.quantity, None if rule.metric is None else metrics.get(rule.metric), None)

    if rule.metric is not None and rule.metric not in metrics:
        yield _Outcome(_criterion_check(rule, summary, metrics), BrokenRule("criterion", None, None))
    elif rule.cohort is None:
        reading = _run_reading(rule, summary) or _reading(rule, summary, metrics)
        is_outside = reading.is_outside and (is_part or rule.quantity in _ATTACKS)
        yield _Outcome(_check(rule, rule.name, reading._replace(is_outside=is_outside)), about)
    else:
        for label, check in _checks_of_cohorts(rule, gate, summary, metrics):
            yield _Outcome(check, about._replace(cohort=label))


def _criterion_check(rule: Rule, summary: RunSummary, metrics: Mapping[str, str]) -> GateCheck:
    """The check of a rule about one criterion of a metric; skipped where the run has none of that name."""
    criterion = _criterion(rule.metric or "", summary, metrics)
    if criterion is None:
        return _result(rule, rule.name, _Reading(None), "skipped", "its metric is not part of this run")
    failed = f"{criterion.n_failed:,} of {plural(criterion.n, 'verdict')} failed" if criterion.n_failed else ""
    missing = "this criterion was never judged"
    return _check(rule, rule.name, _Reading(criterion.mean, criterion.mean_interval, missing, failed))


def _checks_of_cohorts(
    rule: Rule, gate: GateRules, summary: RunSummary, metrics: Mapping[str, str]
) -> Iterator[tuple[str | None, GateCheck]]:
    """The checks of a rule about cohorts, each with the label of its cohort."""
    cohorts = {cohort.label: cohort for cohort in summary.cohorts}
    if rule.cohort not in (EVERY, *cohorts):
        yield None, _result(rule, rule.name, _Reading(None), "skipped", "this run has no sample of the cohort")

    for name, label in _cohort_checks(rule, gate, cohorts):
        cohort = cohorts[label]
        reading = _reading(rule, cohort, metrics)
        samples = _rated_samples(rule, cohort, metrics, summary.totals.repetitions)
        least = gate.least_samples(label)
        if samples < least:
            because = f"{plural(samples, 'sample')} in the cohort, below the {least} it takes to be gated"
            yield label, _result(rule, name, reading, "skipped", because)
        else:
            yield label, _check(rule, name, reading)


def _cohort_checks(rule: Rule, gate: GateRules, labels: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The name and the cohort of each check that a rule about cohorts stands for.

    A rule about each cohort leaves out those that have a rule of their own.
    """
    for label in labels:
        if rule.cohort not in (EVERY, label):
            continue
        if rule.cohort == EVERY and any(
            other.cohort == label and other.quantity == rule.quantity and other.metric == rule.metric
            for other in gate.rules
        ):
            continue
        yield rule.name.replace(f"cohorts.{rule.cohort}", f"cohorts.{label}", 1), label


def check_names(gate: GateRules, cohorts: Iterable[str | None]) -> list[str]:
    """The names of the checks that a gate will make, in order; those against a baseline are `baseline` here.

    Args:
        gate: The rules.
        cohorts: The dataset's tags; None stands for samples without one.
    """
    labels = [cohort_label(name) for name in cohorts]
    names = [
        name
        for rule in gate.rules
        for name in ([rule.name] if rule.cohort is None else [name for name, _ in _cohort_checks(rule, gate, labels)])
    ]
    return [*names, *([] if gate.baseline is None else ["baseline"])]


def _rated_samples(rule: Rule, cohort: Cohort, metrics: Mapping[str, str], repetitions: int) -> int:
    """How many samples of a cohort a rule rests on: those that its metric, or any metric, applies to."""
    if rule.metric is None:
        return cohort.samples - cohort.samples_not_applicable
    return cohort.metrics[metrics[rule.metric]].n // repetitions


def _criterion(name: str, summary: RunSummary, metrics: Mapping[str, str]) -> CriterionSummary | None:
    """The summary of the criterion that is named as `metric/criterion`; None if the run has none of that name."""
    for spelling, metric in metrics.items():
        if name.startswith(f"{spelling}/"):
            found = (summary.metrics[metric].criteria or {}).get(name.removeprefix(f"{spelling}/"))
            if found is not None:
                return found
    return None


def _reading(rule: Rule, part: RunSummary | Cohort, metrics: Mapping[str, str]) -> _Reading:
    """The quality that a rule compares, of the run or of a cohort."""
    if rule.metric is not None:
        figures = part.metrics[metrics[rule.metric]]
        if not figures.n and figures.n_not_applicable:
            return _Reading(None, missing=_NOWHERE, is_outside=True)
        if rule.on in CORRECTED:
            return _corrected_reading(rule, figures.pass_rate_corrected)
        if rule.quantity == "mean":
            return _Reading(figures.mean, figures.mean_interval, "this metric scored nothing")
        return _Reading(figures.pass_rate, figures.pass_rate_interval)
    if part.macro_f1 is None:
        return _Reading(None, missing="no metric applies to any of its samples", is_outside=True)
    if rule.quantity == "macro_f1":
        return _Reading(part.macro_f1, part.macro_f1_interval)
    if rule.quantity not in AGGREGATES:
        return _Reading(part.pass_rate, part.pass_rate_interval)
    if part.aggregate is None:
        return _Reading(None, missing="no metric of the aggregator applies to any of its samples", is_outside=True)
    if rule.quantity == "aggregate_success":
        return _Reading(part.aggregate.success_rate, part.aggregate.interval)
    return _Reading(part.aggregate.mean_score, part.aggregate.mean_score_interval)


def _corrected_reading(rule: Rule, found: CorrectedPassRate | None) -> _Reading:
    """The corrected number of a metric."""
    if found is None:
        return _Reading(None, missing="no calibration has labels of this metric")
    number = found.mean if rule.quantity == "mean" else found
    if number is None:
        return _Reading(None, missing="people gave no scores, so the mean is not corrected")
    low, high = number.low, number.high
    interval = None if low is None or high is None else Interval(low, high)
    return _Reading(number.value, interval, (found.note or "it is undefined").rstrip("."))


def _repeated_reading(rule: Rule, summary: RunSummary) -> _Reading:
    """How often one of several repetitions passes, or all do."""
    if summary.precision is None:
        return _Reading(None, missing="no sample was run more than once")
    k = summary.totals.repetitions if rule.k is None else rule.k
    for passes in summary.precision.repeated:
        if passes.k == k:
            at_k = _Reading(passes.pass_at_k, passes.pass_at_k_interval)
            return at_k if rule.quantity == "pass_at_k" else _Reading(passes.pass_hat_k, passes.pass_hat_k_interval)
    return _Reading(None, missing=f"`k` is {k}, and there are {summary.totals.repetitions} repetitions")


def _attack_reading(rule: Rule, found: AdversarialSummary | None) -> _Reading:
    """How attacks did: how many critical ones succeeded, or the share of all that did."""
    if found is None:
        return _Reading(None, missing="no sample of this run is an attack", is_outside=True)
    if rule.quantity == "critical_successes":
        critical = found.severity("critical")
        if critical is None:
            return _Reading(None, missing="no attack of this run is critical", is_outside=True)
        return _Reading(float(critical.successes), partial=_undecided(critical))
    overall = found.overall
    return _Reading(overall.attack_success_rate, overall.interval, "no attack was decided", _undecided(overall))


def _undecided(figures: AttackFigures) -> str:
    count = figures.undecided
    return f"{count:,} of {plural(figures.executions, 'attack')} could not be decided" if count else ""


def _run_reading(rule: Rule, summary: RunSummary) -> _Reading | None:
    """What only a whole run has: unscored marks, cost, latency, attacks, passes of several repetitions together.

    None if the rule is about another quality.
    """
    if rule.quantity in _ATTACKS:
        return _attack_reading(rule, summary.adversarial)
    if rule.quantity in REPEATED:
        return _repeated_reading(rule, summary)
    if rule.quantity == "unscored":
        totals = summary.totals
        share = totals.unscored / totals.marks if totals.marks else 0.0
        return _Reading(share if rule.share else float(totals.unscored))
    if rule.quantity == "samples_unscored":
        return _Reading(float(summary.samples_unscored))
    if rule.quantity == "cost_usd":
        cost = summary.cost
        if cost is None:
            return _Reading(None, missing="no cost was recorded")
        partial = "" if cost.complete else "some calls have no price, so the cost is a floor"
        if missing := summary.answers_without_usage:
            partial = f"{plural(missing, 'answer')} without usage, so the cost is a floor"
        return _Reading(float(cost.total_usd), partial=partial)
    if rule.quantity == "p95_latency_s":
        latency = summary.usage.target.latency_ms
        if latency is None:
            return _Reading(None, missing="no latency was recorded")
        answered = summary.totals.executions - summary.totals.target_failures
        partial = f"only {latency.count} of {answered} answers have a latency" if latency.count < answered else ""
        return _Reading(latency.p95 / 1000, partial=partial)
    return None


def _check(rule: Rule, name: str, reading: _Reading) -> GateCheck:
    if reading.is_outside:
        return _result(rule, name, reading, "skipped", reading.missing)
    if reading.observed is None:
        # A quality that was not measured is not reached. A cost or latency that was not recorded is unknown.
        is_unknown = rule.quantity in ("cost_usd", "p95_latency_s") or rule.on in CORRECTED
        return _result(rule, name, reading, "inconclusive" if is_unknown else "fail", reading.missing)

    is_corrected = rule.on in CORRECTED
    value = reading.observed
    subject = "the corrected estimate" if is_corrected else "the estimate"
    if rule.on in ("lower", "corrected-lower"):
        if reading.interval is None:
            return _result(rule, name, reading, "inconclusive", "it has no interval to compare")
        value = reading.interval.high if rule.upper else reading.interval.low
        end = "upper end" if rule.upper else "lower end"
        subject = f"the corrected interval's {end}" if is_corrected else f"the interval's {end}"

    holds = reaches(value, rule.bound, higher_is_better=not rule.upper)
    if holds and reading.partial:
        return _result(rule, name, reading, "inconclusive", reading.partial)
    held, missed = ("is within", "is above") if rule.upper else ("reaches", "is below")
    outcome = held if holds else missed
    return _result(rule, name, reading, "pass" if holds else "fail", f"{subject} {outcome} the bound")


def _result(rule: Rule, name: str, reading: _Reading, status: Status, because: str) -> GateCheck:
    low, high = reading.interval or (None, None)
    return GateCheck(
        name=name, observed=reading.observed, low=low, high=high, required=rule.bound, status=status, because=because
    )
