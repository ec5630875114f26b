"""Refuses a gate that names metrics, cohorts or an aggregator that the run does not have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from deemster.errors import ConfigurationError, Issue, did_you_mean
from deemster.gate.gate_decision import AGGREGATES
from deemster.gate.read_gate import EVERY, REPEATED, GateRules, Rule
from deemster.results.run_summary import cohort_label


def check_gate_names(
    gate: GateRules,
    *,
    metrics: Mapping[str, str],
    cohorts: list[str | None],
    aggregates: bool = False,
    parts: Iterable[str] = (),
    repetitions: int | None = None,
) -> None:
    """Refuse rules about metrics, cohorts, an aggregate or repetitions that the run does not have.

    Args:
        gate: The rules.
        metrics: Names of the run's metrics, and other spellings of them, by name.
        cohorts: The dataset's tags; None stands for samples without one.
        aggregates: Whether the run has an aggregator.
        parts: The criteria of metrics that have some, as `metric/criterion`.
        repetitions: How often each sample runs; None where that is not known.

    Raises:
        ConfigurationError: A rule names something unknown, or needs more repetitions; all are listed.
    """
    labels = [cohort_label(name) for name in cohorts]
    criteria = frozenset(parts)

    issues: list[Issue] = []
    for rule in gate.rules:
        if rule.metric in criteria and rule.metric not in metrics:
            issues += _criterion_issues(rule)
        else:
            issues += _metric_issues(rule, gate, metrics, criteria)
        if rule.quantity in AGGREGATES and not aggregates:
            message = f"The gate has `min_{rule.quantity}`, and this run has no `aggregator` to hold it to."
            issues.append(Issue(message, rule.where))
        if rule.quantity in REPEATED and repetitions is not None:
            issues += _repetition_issues(rule, repetitions)
        issues += _cohort_issues(rule.cohort, labels, rule.where)

    for cohort, (_, where) in gate.min_samples.items():
        issues += _cohort_issues(cohort, labels, where)
    if gate.baseline is not None:
        for cohort in gate.baseline.cohorts:
            issues += _cohort_issues(cohort, labels, gate.baseline.where)
    if issues:
        raise ConfigurationError(dict.fromkeys(issues))


def _metric_issues(
    rule: Rule, gate: GateRules, metrics: Mapping[str, str], criteria: frozenset[str]
) -> Iterator[Issue]:
    """What is wrong with the metric of a rule, where it is about one."""
    if rule.metric is None or rule.metric in metrics or _is_idle(rule.metric, gate):
        return
    known = did_you_mean(rule.metric, dict.fromkeys([*metrics.values(), *criteria]))
    yield Issue(f"The gate names the metric `{rule.metric}`, which this run does not have. {known}", rule.where)


def _cohort_issues(cohort: str | None, labels: list[str], where: str) -> Iterator[Issue]:
    if cohort not in (None, EVERY, *labels):
        known = did_you_mean(str(cohort), labels)
        yield Issue(f"The gate names the cohort `{cohort}`, which the dataset does not have. {known}", where)


def _repetition_issues(rule: Rule, repetitions: int) -> Iterator[Issue]:
    """What is wrong with a rule about several repetitions together, where each sample runs so often."""
    needed = 2 if rule.k is None else rule.k
    if repetitions < needed:
        message = (
            f"The gate has `min_{rule.quantity}`, which needs at least {needed} repetitions of each sample; "
            f"this run has {repetitions}. `repetitions` of the suite, or `--repetitions`, says how many."
        )
        yield Issue(message, rule.where)


def _criterion_issues(rule: Rule) -> Iterator[Issue]:
    """What is wrong with a rule about one criterion of a metric."""
    if rule.quantity != "mean":
        message = f"`{rule.metric}` is a criterion, which has no pass-rate; hold it to `min_mean` or `max_mean`."
        yield Issue(message, rule.where)
    if rule.cohort is not None:
        message = f"`{rule.metric}` is a criterion, whose figures are those of the whole run, not of a cohort."
        yield Issue(message, rule.where)


def _is_idle(name: str, gate: GateRules) -> bool:
    """Whether a name is that of a metric that this run leaves out, or of one of its criteria."""
    return name in gate.idle or any(name.startswith(f"{metric}/") for metric in gate.idle)
