"""The check before a run: every sample against every metric, missing references, misspelt keys, names in the gate."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deemster.datasets import Dataset
from deemster.datasets.attack_facts import KEY as ATTACK
from deemster.datasets.attack_facts import AttackCollector, AttackedSamples
from deemster.datasets.sample_selection import SampleSearch
from deemster.datasets.where_condition import describe_where, where_selection
from deemster.errors import ConfigurationError, Issue, list_names, nearest, plural, visible
from deemster.errors.user_code_guard import UserCodeGuard
from deemster.metrics.builtin_metric import BuiltinScorer
from deemster.records import Metric, MetricCard, Sample
from deemster.records.marks import reaches
from deemster.results import Aggregator, Gate, MarkTable, check_gate_names, cohort_label
from deemster.results.gate_rules import EVERY, Rule
from deemster.runs import metric_catalog as catalog
from deemster.runs.run_plan import Plan
from deemster.stats import bounded_mean, certifiable_margin, wilson

_MOST_MARGINS = 5
_NO_CLUSTER = "it has no `metadata.{}`, by which samples are clustered"


class Survey(NamedTuple):
    """What the survey of a run found.

    Attributes:
        table: A table of marks that knows the samples' tags, and has no mark.
        order: A digest of the samples' ids in their order.
        warnings: What a person should know before the run.
        applicable: By metric, how many samples it applies to and can read.
        attacks: Which samples are attacks; None where none is.
    """

    table: MarkTable
    order: str
    warnings: tuple[str, ...]
    applicable: Mapping[str, int]
    attacks: AttackedSamples | None


def survey(
    plan: Plan,
    *,
    aggregator: Aggregator | None = None,
    gate: Gate | None = None,
    strict: bool = False,
    redact: bool = False,
) -> Survey:
    """Check every sample with every metric, and the names in the gate, before anything runs.

    Args:
        plan: The run.
        aggregator: Makes one result of each execution's marks; None for none.
        gate: The rules the run is held to; None for no gate.
        strict: Whether something absent is an error instead of a warning.
        redact: Whether warnings leave out what a sample says.

    Raises:
        ConfigurationError: A sample is malformed for a metric, a `where` or the gate names something that no sample
            has; all are listed.
    """
    size, cards = len(plan.dataset), plan.cards
    checks = [_MetricCheck(metric, card) for metric, card in zip(plan.metrics, cards, strict=True)]
    table = MarkTable(cards, samples=size, repetitions=plan.repetitions, aggregator=aggregator)
    order = hashlib.sha256()
    issues: dict[tuple[str, str], list[str]] = {}
    keys: set[str] = set()
    gate_cluster = gate.baseline.cluster if gate is not None and gate.baseline is not None else None
    cluster_keys = {plan.dataset.cluster, gate_cluster} - {None}
    clusters: list[Any] = []
    attacks: AttackCollector | None = None
    for position, sample in enumerate(plan.dataset):
        table.tag(position, sample.tags)
        order.update(sample.id.encode() + b"\0")
        keys.update(sample.metadata)
        if ATTACK in sample.metadata:
            attacks = attacks or AttackCollector()
            for message in attacks.add(position, sample):
                issues.setdefault((sample.id, message), []).append("the report")
        for key in cluster_keys and cluster_keys - sample.metadata.keys():
            issues.setdefault((sample.id, _NO_CLUSTER.format(key)), []).append("cluster")
        if gate_cluster is not None:
            clusters.append(repr(sample.metadata.get(gate_cluster)))
        for place, check in enumerate(checks):
            found = check.look_at(sample, strict=strict)
            if found is None:
                table.leave_out(position, place)
            else:
                for message in found:
                    issues.setdefault((sample.id, message), []).append(check.card.name)
    _check_where(plan, checks)
    _refuse_samples(issues, plan.dataset.path)
    warnings = [warning for check in checks for warning in check.warnings(size, redact=redact)]
    warnings += _misspelt_keys(plan.metrics, keys)
    if gate is not None and (gate.rules or gate.min_samples or gate.baseline is not None):
        _check_gate(gate, table, plan.dataset)
        warnings += [*_bound_warnings(gate, table), *_margin_warnings(gate, table, clusters)]
    applicable = {check.card.name: check.inside - check.absent for check in checks}
    attacked = None if attacks is None else attacks.collected()
    return Survey(table, order.hexdigest(), (*plan.dataset.warnings, *warnings), applicable, attacked)


def _refuse_samples(issues: Mapping[tuple[str, str], Sequence[str]], where: str | None) -> None:
    """Raise the issues of samples, each with the names of those that it concerns."""
    if issues:
        raise ConfigurationError(
            Issue(f"{', '.join(names)}: {message}", where, sample) for (sample, message), names in issues.items()
        )


class _MetricCheck:
    """Checks samples with one metric, and counts those that it applies to.

    Args:
        metric: The metric.
        card: What reports say of it.

    Attributes:
        search: Finds the samples that it applies to, and what its `where` names that none has; None for all samples.
        inside: How many samples it applies to.
        absent: Of them, those that lack something that it reads.
    """

    def __init__(self, metric: Metric, card: MetricCard) -> None:
        self.card = card
        self.search = None if card.where is None else SampleSearch(where_selection(card.where))
        self.inside = self.absent = 0
        self._check = _check(metric)
        self._first: tuple[str, str] | None = None

    def look_at(self, sample: Sample, *, strict: bool) -> list[str] | None:
        """What is wrong with a sample; None where the metric does not apply to it."""
        if self.search is not None and not self.search.takes(sample):
            return None
        self.inside += 1
        wrong = []
        for issue in self._check(sample):
            if strict or not issue.warning:
                wrong.append(issue.message)
            else:
                self._first = self._first or (sample.id, issue.message)
                self.absent += 1
        return wrong

    def warnings(self, samples: int, *, redact: bool) -> Iterator[str]:
        """What a person should know about the samples."""
        if self._first is not None:
            sample, message = self._first
            why = "" if redact else f": {visible(message)}"
            count = f"{self.absent} of {self.inside} samples"
            yield f"{self.card.name}: {count} will be unscored, first `{visible(sample, limit=80)}`{why}"
        if not self.inside:
            yield f"{self.card.name} applies to none of the {samples} samples."


def _check_where(plan: Plan, checks: Sequence[_MetricCheck]) -> None:
    """Refuse a `where` that names a tag, a key or a value that no sample of the whole dataset has, or fits none.

    `auto` names nothing itself. The samples of a stored run may be other ones than those that the suite was written
    for: there it is no error.
    """
    dataset = plan.dataset
    if not isinstance(dataset, Dataset):
        return
    issues: list[Issue] = []
    for check in checks:
        card, search, count = check.card, check.search, check.inside
        if search is None or card.where is None or card.where.auto:
            continue
        if dataset.part is not None:
            search = SampleSearch(where_selection(card.where))
            count = sum(map(search.takes, dataset.whole))
        place = plan.places.get(card.name) or dataset.path
        found = list(search.issues(place))
        if not found and not count:
            found = [Issue(f"No sample fits all of it: {describe_where(card.where)}.", place)]
        issues += [issue._replace(message=f"`where` of `{card.name}`: {issue.message}") for issue in found]
    if issues:
        raise ConfigurationError(issues)


def _check_gate(gate: Gate, table: MarkTable, dataset: Dataset) -> None:
    cohorts = dict.fromkeys(name for name, _ in table.cohorts)
    if dataset.part is not None:
        # Rules about cohorts that the part lacks are skipped.
        cohorts.update((tag, None) for sample in dataset.whole for tag in sample.tags or (None,))
    parts = [f"{card.name}/{part}" for card in table.cards for part in card.parts]
    metrics, aggregates = catalog.card_spellings(table.cards), table.aggregates is not None
    check_gate_names(gate, metrics=metrics, cohorts=list(cohorts), aggregates=aggregates, parts=parts)


def _bound_warnings(gate: Gate, table: MarkTable) -> list[str]:
    """Where a rule looks at an end of an interval that so few samples cannot reach, whatever the outputs are."""
    names = catalog.card_spellings(table.cards)
    places = {card.name: place for place, card in enumerate(table.cards)}
    found = []
    for rule in gate.rules:
        if rule.on != "lower" or rule.quantity not in ("pass_rate", "macro_f1", "mean"):
            continue
        for label, positions in _ruled_parts(rule, gate, table):
            applies = table.applies_to(positions)
            if rule.metric is not None:
                if rule.metric not in names:
                    continue
                applies = applies[:, [places[names[rule.metric]]]]
            n = int(applies.any(axis=1).sum())
            perfect = bounded_mean([1.0] * n) if rule.quantity == "mean" else wilson(n, n)
            if n < 2 or perfect.interval is None:
                continue
            best = 1 - perfect.interval.lower if rule.upper else perfect.interval.lower
            if not reaches(best, rule.bound, higher_is_better=not rule.upper):
                end = "upper" if rule.upper else "lower"
                found.append(
                    f"The gate can never pass: `{visible(rule.name)}` holds the {end} end of the interval to "
                    f"{rule.bound:.4g}, and {plural(n, 'perfect sample')}{label} would reach {best:.4f}."
                )
    rest = len(found) - _MOST_MARGINS
    return found if rest <= 0 else [*found[:_MOST_MARGINS], f"The same holds for {plural(rest, 'further rule')}."]


def _ruled_parts(rule: Rule, gate: Gate, table: MarkTable) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """The samples that a rule is about: all, or those of each cohort that is large enough to be gated."""
    if rule.cohort is None:
        yield "", np.arange(table.samples)
        return
    for tag, positions in table.cohorts:
        label = cohort_label(tag)
        least = gate.least_samples(label)
        if rule.cohort in (EVERY, label) and len(positions) >= least:
            yield f" of the cohort `{visible(label, limit=80)}`", positions


def _margin_warnings(gate: Gate, table: MarkTable, clusters: Sequence[Any]) -> list[str]:
    """Where the margin of the gate is smaller than what the samples can certify."""
    rules = gate.baseline
    if rules is None or rules.margin is None:
        return []
    parts: list[tuple[str, Sequence[int]]] = [("", range(table.samples))]
    for tag, positions in table.cohorts:
        label = cohort_label(tag)
        least = gate.least_samples(label)
        if (EVERY in rules.cohorts or label in rules.cohorts) and len(positions) >= least:
            parts.append((f" of the cohort `{visible(label, limit=80)}`", [int(position) for position in positions]))
    found = []
    for name, places in parts:
        sizes = list(Counter(clusters[place] for place in places).values()) if clusters else None
        units = len(places) if sizes is None else len(sizes)
        best = certifiable_margin(units, sizes=sizes, confidence=rules.confidence)
        if best is not None and best > rules.margin:
            counted = plural(len(places), "sample") + ("" if sizes is None else f" in {plural(units, 'cluster')}")
            found.append(
                f"The gate's margin of {rules.margin:.4g} is too small for the {counted}{name}: if nothing changes, "
                f"they certify {best:.4f}. So it stays inconclusive, unless the run is clearly better or worse."
            )
    rest = len(found) - _MOST_MARGINS
    return found if rest <= 0 else [*found[:_MOST_MARGINS], f"The same holds for {plural(rest, 'further cohort')}."]


def _check(metric: Any) -> Callable[[Sample], Sequence[Issue]]:
    """A metric's check; an error or a wrong result of a user's check is an issue."""
    if isinstance(metric, BuiltinScorer):
        return metric.check
    if not hasattr(metric, "check"):
        return lambda _: ()

    def guarded(sample: Sample) -> Sequence[Issue]:
        with UserCodeGuard() as caught:
            found = tuple(metric.check(sample) or ())
            if all(isinstance(issue, Issue) for issue in found):
                return found
            return (Issue("its check failed: it returns a list of `Issue`s."),)
        return (Issue(f"its check failed with {caught.message}"),)

    return guarded


def _misspelt_keys(metrics: tuple[Metric, ...], keys: set[str]) -> list[str]:
    read = {key for metric in metrics if isinstance(metric, BuiltinScorer) for key in metric.reads} | {"tags"}
    warnings = []
    for key in sorted(keys - read):
        meant = nearest(key, read)
        if meant is not None and meant not in keys and _is_one_edit(key, meant):
            warnings.append(f"metadata has the key {list_names([visible(key, limit=80)])}. Did you mean `{meant}`?")
    return warnings


def _is_one_edit(first: str, second: str) -> bool:
    from rapidfuzz.distance import OSA  # noqa: PLC0415 - loaded only where a key looks misspelt

    return OSA.distance(first, second, score_cutoff=1) <= 1
