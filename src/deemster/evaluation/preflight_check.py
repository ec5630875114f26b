"""The check before a run: every sample against every metric, missing references, misspelt keys, names in the gate."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from deemster.datasets import Dataset
from deemster.datasets.attack_facts import KEY as ATTACK
from deemster.datasets.attack_facts import AttackCollector, AttackedSamples
from deemster.datasets.sample_selection import SampleSearch
from deemster.datasets.where_condition import describe_where, where_selection
from deemster.engine.run_plan import Plan
from deemster.errors import ConfigurationError, Issue, list_names, nearest, plural, visible
from deemster.errors.user_code_guard import UserCodeGuard
from deemster.evaluation.resolved_evaluation import Evaluation
from deemster.gate import GateRules, check_gate_names
from deemster.gate.read_gate import EVERY, Rule
from deemster.judges import metric_catalog as catalog
from deemster.metrics.builtin_metric import BuiltinScorer
from deemster.records import Metric, Sample
from deemster.records.marks import reaches
from deemster.results.mark_table import MarkTable
from deemster.results.run_summary import cohort_label
from deemster.stats import bounded_mean, certifiable_margin, wilson
from deemster.targets.chat_target import ChatTarget

_MOST_MARGINS = 5
_NO_CLUSTER = "it has no `metadata.{}`, by which samples are clustered"


class CheckedSamples(NamedTuple):
    """What was seen of the samples of a run before it began.

    Attributes:
        table: A table of marks that knows the samples' tags, and has no mark.
        order: A digest of the samples' ids in their order.
        warnings: What a person should know before the run.
        gate_warnings: Those among them about rules of the gate that these samples cannot decide.
        applicable: By metric, how many samples it applies to and can read.
        attacks: Which samples are attacks; None where none is.
    """

    table: MarkTable
    order: str
    warnings: tuple[str, ...]
    gate_warnings: tuple[str, ...]
    applicable: Mapping[str, int]
    attacks: AttackedSamples | None


def check_samples(evaluation: Evaluation) -> CheckedSamples:
    """Look at every sample once, and at the names in the gate, before anything runs or costs money.

    Args:
        evaluation: What is to be run.

    Raises:
        ConfigurationError: A sample is malformed for a metric, a metric can read no sample, or a `where` or the gate
            names something that no sample has; all are listed.
    """
    plan = evaluation.plan
    table = MarkTable(
        plan.cards, samples=len(plan.dataset), repetitions=plan.repetitions, aggregator=evaluation.aggregator
    )
    issues = SampleIssues()
    order = OrderDigest()
    attacks = AttackCheck(issues)
    clusters = ClusterCheck(evaluation, issues)
    metrics = [MetricCheck(evaluation, place, table, issues) for place in range(len(plan.metrics))]
    keys = KeyCheck(plan.metrics)
    prompts = [PromptCheck(plan.target, issues)] if isinstance(plan.target, ChatTarget) else []
    onlookers: list[Onlooker] = [TagCollector(table), order, attacks, clusters, *metrics, keys, *prompts]

    for position, sample in enumerate(plan.dataset):
        for onlooker in onlookers:
            onlooker.look_at(position, sample)

    _check_where(plan, metrics)
    issues.refuse(plan.dataset.path)
    _refuse_idle(plan, metrics)
    warnings = [*plan.dataset.warnings]
    for metric in metrics:
        warnings += metric.warnings()
    warnings += keys.warnings()
    for prompt in prompts:
        warnings += prompt.warnings(len(plan.dataset))
    gate_warnings = tuple(_gate_warnings(evaluation, table, clusters))
    warnings += gate_warnings
    applicable = {metric.card.name: metric.inside - metric.absent for metric in metrics}
    return CheckedSamples(table, order.hexdigest(), tuple(warnings), gate_warnings, applicable, attacks.collected())


class Onlooker(Protocol):
    """Looks at every sample of a run before it begins."""

    def look_at(self, position: int, sample: Sample) -> None:
        """Look at one sample, at its place in the dataset."""
        ...


class SampleIssues:
    """What is wrong with samples: each fault once, with the names of those that it concerns."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], list[str]] = {}

    def add(self, sample: Sample, message: str, name: str) -> None:
        """Note that something is wrong with a sample, for a metric or another part of the run."""
        self._names.setdefault((sample.id, message), []).append(name)

    def refuse(self, where: str | None) -> None:
        """Refuse the samples, if anything is wrong with one.

        Args:
            where: Their file.

        Raises:
            ConfigurationError: Something is wrong; all is listed.
        """
        if self._names:
            raise ConfigurationError(
                Issue(f"{', '.join(names)}: {message}", where, sample)
                for (sample, message), names in self._names.items()
            )


class TagCollector:
    """Collects the tags of samples in the table of their marks."""

    def __init__(self, table: MarkTable) -> None:
        self._table = table

    def look_at(self, position: int, sample: Sample) -> None:
        """Note the tags of a sample."""
        self._table.tag(position, sample.tags)


class OrderDigest:
    """Digests the ids of samples in their order."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def look_at(self, position: int, sample: Sample) -> None:  # noqa: ARG002 - the order of the calls says it
        """Note the id of the next sample."""
        self._digest.update(sample.id.encode() + b"\0")

    def hexdigest(self) -> str:
        """The digest of all ids."""
        return self._digest.hexdigest()


class KeyCheck:
    """Collects the keys of metadata, of which one may be misspelt."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics
        self._keys: set[str] = set()

    def look_at(self, position: int, sample: Sample) -> None:  # noqa: ARG002 - keys have no place
        """Note the keys of a sample."""
        self._keys.update(sample.metadata)

    def warnings(self) -> Iterator[str]:
        """Keys that look like a misspelt name of one that a metric reads."""
        read = {key for metric in self._metrics if isinstance(metric, BuiltinScorer) for key in metric.reads} | {"tags"}
        for key in sorted(self._keys - read):
            meant = nearest(key, read)
            if meant is not None and meant not in self._keys and _is_one_edit(key, meant):
                yield f"metadata has the key {list_names([visible(key, limit=80)])}. Did you mean `{meant}`?"


class AttackCheck:
    """Collects the samples that are attacks, and what is wrong with what they say of that."""

    def __init__(self, issues: SampleIssues) -> None:
        self._issues = issues
        self._collector: AttackCollector | None = None

    def look_at(self, position: int, sample: Sample) -> None:
        """Note a sample that is an attack."""
        if ATTACK in sample.metadata:
            self._collector = self._collector or AttackCollector()
            for message in self._collector.add(position, sample):
                self._issues.add(sample, message, "the report")

    def collected(self) -> AttackedSamples | None:
        """The attacks; None where there is none."""
        return None if self._collector is None else self._collector.collected()


class ClusterCheck:
    """Checks that samples name the cluster that they belong to, where the dataset or the gate asks for one.

    Attributes:
        clusters: The cluster of each sample, as the gate's comparison counts it; none where it counts samples.
    """

    def __init__(self, evaluation: Evaluation, issues: SampleIssues) -> None:
        gate = evaluation.gate
        self._gate_key = gate.baseline.cluster if gate is not None and gate.baseline is not None else None
        self._keys = {evaluation.plan.dataset.cluster, self._gate_key} - {None}
        self._issues = issues
        self.clusters: list[str] = []

    def look_at(self, position: int, sample: Sample) -> None:  # noqa: ARG002 - the order of the calls says it
        """Note the cluster of the next sample."""
        if not self._keys:
            return
        for key in self._keys - sample.metadata.keys():
            self._issues.add(sample, _NO_CLUSTER.format(key), "cluster")
        if self._gate_key is not None:
            self.clusters.append(repr(sample.metadata.get(self._gate_key)))


class PromptCheck:
    """Checks that samples have what the prompt of the target names.

    Args:
        target: The target.
        issues: What is wrong with samples.
    """

    def __init__(self, target: ChatTarget, issues: SampleIssues) -> None:
        self._target = target
        self._issues = issues

    def look_at(self, position: int, sample: Sample) -> None:  # noqa: ARG002 - a prompt has no place
        """Fill in the prompt for a sample."""
        try:
            self._target.messages(sample.input)
        except LookupError as error:
            self._issues.add(sample, str(error.args[0]), "prompt")

    def warnings(self, samples: int) -> Iterator[str]:
        """Says so where the prompt is the same for all samples."""
        if self._target.prompt.is_fixed and samples > 1:
            yield (
                "The prompt has no placeholder such as `{{input.question}}`: the model is asked the same for all "
                f"{samples:,} samples."
            )


class MetricCheck:
    """Checks samples with one metric, and counts those that it applies to.

    Args:
        evaluation: What is to be run.
        place: The place of the metric among all.
        table: The table of marks, where samples are noted that it does not apply to.
        issues: What is wrong with samples.

    Attributes:
        card: What reports say of the metric.
        search: Finds the samples that it applies to, and what its `where` names that none has; None for all samples.
        inside: How many samples it applies to.
        absent: Of them, those that lack something that it reads.
    """

    def __init__(self, evaluation: Evaluation, place: int, table: MarkTable, issues: SampleIssues) -> None:
        self.card = table.cards[place]
        self.search = None if self.card.where is None else SampleSearch(where_selection(self.card.where))
        self.inside = self.absent = 0
        self._place, self._table, self._issues = place, table, issues
        self._strict, self._redact = evaluation.strict, evaluation.redact_warnings
        self._check = _check(evaluation.plan.metrics[place])
        self._first: tuple[str, str] | None = None

    def look_at(self, position: int, sample: Sample) -> None:
        """Check a sample, where the metric applies to it."""
        if self.search is not None and not self.search.takes(sample):
            self._table.leave_out(position, self._place)
            return
        self.inside += 1
        for issue in self._check(sample):
            if self._strict or not issue.warning:
                self._issues.add(sample, issue.message, self.card.name)
            else:
                self._first = self._first or (sample.id, issue.message)
                self.absent += 1

    def idle(self) -> str | None:
        """Why the metric can read none of the samples that it is for; None where it can read some, or is for none."""
        if self._first is None or self.absent < self.inside:
            return None
        why = "" if self._redact else f": {visible(self._first[1]).rstrip('.')}"
        advice = "Leave it out; with `where: auto` it applies to samples that have what it reads."
        return f"{self.card.name} can score none of the {plural(self.inside, 'sample')}{why}. {advice}"

    def warnings(self) -> Iterator[str]:
        """What a person should know about the samples."""
        if self._first is not None:
            sample, message = self._first
            why = "" if self._redact else f": {visible(message)}"
            count = f"{self.absent} of {self.inside} samples"
            yield f"{self.card.name}: {count} will be unscored, first `{visible(sample, limit=80)}`{why}"
        if not self.inside:
            yield f"{self.card.name} applies to none of the {self._table.samples} samples."


def _check_where(plan: Plan, checks: Sequence[MetricCheck]) -> None:
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


def _refuse_idle(plan: Plan, checks: Sequence[MetricCheck]) -> None:
    """Refuse a metric that would leave every sample of the whole dataset unscored, and so count as failed."""
    if getattr(plan.dataset, "part", None) is not None:
        return
    idle = [(check.card.name, check.idle()) for check in checks]
    issues = [Issue(why, plan.places.get(name) or plan.dataset.path) for name, why in idle if why is not None]
    if issues:
        raise ConfigurationError(issues)


def _gate_warnings(evaluation: Evaluation, table: MarkTable, clusters: ClusterCheck) -> list[str]:
    """What a person should know about the rules of the gate, whose names are checked."""
    gate = evaluation.gate
    if gate is None or not (gate.rules or gate.min_samples or gate.baseline is not None):
        return []
    _check_gate(gate, table, evaluation.plan.dataset)
    return [*_bound_warnings(gate, table), *_margin_warnings(gate, table, clusters.clusters)]


def _check_gate(gate: GateRules, table: MarkTable, dataset: Dataset) -> None:
    cohorts = dict.fromkeys(name for name, _ in table.cohorts)
    if dataset.part is not None:
        # Rules about cohorts that the part lacks are skipped.
        cohorts.update((tag, None) for sample in dataset.whole for tag in sample.tags or (None,))
    parts = [f"{card.name}/{part}" for card in table.cards for part in card.parts]
    metrics, aggregates = catalog.card_spellings(table.cards), table.aggregates is not None
    check_gate_names(
        gate,
        metrics=metrics,
        cohorts=list(cohorts),
        aggregates=aggregates,
        parts=parts,
        repetitions=table.repetitions,
    )


def _bound_warnings(gate: GateRules, table: MarkTable) -> list[str]:
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


def _ruled_parts(rule: Rule, gate: GateRules, table: MarkTable) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """The samples that a rule is about: all, or those of each cohort that is large enough to be gated."""
    if rule.cohort is None:
        yield "", np.arange(table.samples)
        return
    for tag, positions in table.cohorts:
        label = cohort_label(tag)
        least = gate.least_samples(label)
        if rule.cohort in (EVERY, label) and len(positions) >= least:
            yield f" of the cohort `{visible(label, limit=80)}`", positions


def _margin_warnings(gate: GateRules, table: MarkTable, clusters: Sequence[Any]) -> list[str]:
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
                f"they rule out a drop of more than {best:.4f}. So it stays inconclusive, unless the run is clearly "
                "better or worse."
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


def _is_one_edit(first: str, second: str) -> bool:
    from rapidfuzz.distance import OSA  # noqa: PLC0415 - loaded only where a key looks misspelt

    return OSA.distance(first, second, score_cutoff=1) <= 1
