"""Compares two runs: reads them as columns, from a store or a report, and builds the comparison."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Never, Protocol, TypeAlias, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster import __version__
from deemster.comparison import load_report
from deemster.comparison.compare_columns import ComparisonSettings, compare_columns
from deemster.comparison.compare_labels import compare_labels, read_both_labels
from deemster.comparison.comparison import ComparedSample, Comparison
from deemster.comparison.ranking import Ranking, rank_columns
from deemster.comparison.without_text import join_privacy
from deemster.datasets import SelectedPart
from deemster.datasets.only_expression import Only, condition_text
from deemster.datasets.sample_selection import Selection, select_positions
from deemster.engine.run_sync import warner
from deemster.errors import ConfigurationError, ReportError
from deemster.formats.json_values import json_bytes
from deemster.judges.metric_catalog import quotes_of_spec
from deemster.records import CAUSES, MetricCard, Sample, SampleFacts
from deemster.report import Report, RunEntry, RunSamples
from deemster.report.build_report import metric_identity, quoted_details, report_identities
from deemster.report.failing_samples import executed_samples
from deemster.report.report_assembly import execution_entry
from deemster.report.report_entries import DatasetEntry, ExecutionEntry, PrivacyEntry, ScoreEntry
from deemster.report.report_settings import report_facts
from deemster.report.stored_columns import SampleColumns, run_columns
from deemster.results import RunSummary, SampleEntry
from deemster.results.difference_origin import AnchorScores, find_anchor_drift
from deemster.results.mark_table import MarkTable, output_digest
from deemster.results.metric_summary import SCORED, RunMetricSummary
from deemster.results.run_columns import ComparedRun, RunColumns
from deemster.results.run_summary import pass_rates
from deemster.results.sample_changes import ChangedSamples, Status
from deemster.store import RunRow, Store, open_store
from deemster.store.open_runs import is_run_file, open_runs

# So many samples of each status are shown with their question and both answers.
SHOWN: dict[Status, int] = {"newly_failing": 20, "newly_passing": 20, "regressed": 20, "unscored_now": 20}
_ROW_HASH = re.compile("[0-9a-f]{64}")
DEFAULT_SETTINGS = ComparisonSettings()
_WORSE = frozenset({"newly_failing", "regressed", "unscored_now"})


# A sample with its executions.
ShownSample: TypeAlias = tuple[SampleEntry | SampleFacts, Sequence[ExecutionEntry]]


class RunSource(Protocol):
    """Where the facts of a compared run come from: a store, or a report.

    Attributes:
        cluster: The metadata key whose equal values belong together in the run, where that can be looked at.
    """

    cluster: str | None

    def columns(self, *, cluster: str | None) -> RunColumns:
        """The run as arrays; `cluster` is the metadata key whose equal values make one unit."""

    def samples(self, positions: Sequence[int]) -> list[ShownSample]:
        """The samples at some positions."""

    def every_sample(self) -> Iterator[Sample]:
        """Every sample in order, as far as it is kept, for what selects samples."""

    @property
    def quotes(self) -> dict[str, frozenset[str] | None]:
        """By a metric's name, the details that may repeat text of a sample or output; None where all may."""

    @property
    def privacy(self) -> PrivacyEntry:
        """What was left out already."""

    @property
    def anchors(self) -> AnchorScores:
        """How the anchors of the run were judged."""

    @property
    def row_hashes(self) -> Iterable[str]:
        """The row hash of every sample, in order; empty where it is left out."""

    @property
    def stored(self) -> tuple[Store, str] | None:
        """The store of the run, and its id there; None for a report."""


def quotes_of_either(*sources: RunSource) -> Callable[[str], frozenset[str] | None]:
    """Says by a metric's name which of its details may repeat text, in any of the runs."""
    known = [source.quotes for source in sources]

    def quotes(name: str) -> frozenset[str] | None:
        found = [one[name] for one in known if name in one]
        return None if not found or None in found else frozenset().union(*filter(None, found))

    return quotes


def compare_sources(
    baseline: RunSource,
    candidate: RunSource,
    *,
    settings: ComparisonSettings = DEFAULT_SETTINGS,
    only: Only | None = None,
) -> Comparison:
    """Compare two runs sample by sample.

    Args:
        baseline: The run before.
        candidate: The run now.
        settings: How they are compared.
        only: Which samples are looked at; all unless given.

    Raises:
        ReportError: The runs share no sample, or do not hold what the comparison needs.
        DatasetError: No sample of the candidate fits, or none has a tag, id or value that is asked for.
        StoreError: A run cannot be read.
    """
    # Only the candidate says which samples belong together. The columns have no other name, so that they are dropped
    # when they are no longer needed.
    settings = _with_declared_cluster(settings, [candidate])
    comparison = compare_columns(
        baseline.columns(cluster=None),
        candidate.columns(cluster=settings.cluster),
        settings=settings,
        tool_version=__version__,
        wanted=None if only is None else _find_wanted(candidate, only),
    )
    if only is not None:
        comparison = _as_part(comparison, only)
    privacy = join_privacy(candidate.privacy, baseline.privacy)
    # A comparison that is computed, not read from a file, has its samples in a table.
    changes = cast("ChangedSamples", comparison.changes)
    examples = tuple(_examples(changes, baseline, candidate))
    drifts = find_anchor_drift(baseline.anchors, candidate.anchors, seed=settings.seed)
    anchors = {name: drift for name, drift in drifts.items() if name in comparison.metrics} or None
    return msgspec.structs.replace(comparison, anchors=anchors, examples=examples, privacy=privacy)


def _find_wanted(run: RunSource, only: Only) -> NDArray[np.int64]:
    """The positions of the samples that are wanted."""
    selection = Selection(tags=only.tags, ids=only.ids, where=only.where)
    return np.array(select_positions(run.every_sample(), selection, file=None), dtype=np.int64)


def _as_part(comparison: Comparison, only: Only) -> Comparison:
    """The comparison, whose candidate says which part of it was looked at."""
    run = comparison.candidate
    looked_at = comparison.samples.paired + comparison.samples.added
    earlier = "" if run.part is None or run.part.selection is None else f"{run.part.selection} "
    of = run.samples if run.part is None else run.part.of
    part = SelectedPart(samples=looked_at, of=of, selection=f"{earlier}{condition_text(only)}")
    warning = f"Of the candidate `{run.id}` only a part is compared: {part.describe()}."
    return msgspec.structs.replace(
        comparison,
        candidate=msgspec.structs.replace(run, part=part),
        warnings=(warning, *comparison.warnings),
    )


def compare(
    baseline: Report | str | Path,
    candidate: Report | str | Path,
    /,
    *others: Never,
    store: str | Path | None = None,
    confidence: float = 0.95,
    margin: float | None = None,
    cluster: str | None = None,
    seed: int = 0,
    labels: str | Path | Sequence[str | Path] | None = None,
) -> Comparison:
    """Compare two runs sample by sample: is the second one worse, where, and why?

    Args:
        baseline: The run before: a report, the file of one, a run file, or a stored run by its id, name,
            `latest`, `previous` or `baseline`.
        candidate: The run now.
        others: None. ``rank`` is for more runs.
        store: The store of runs that are given by name; `.deemster/runs.db` where not given.
        confidence: The level of the intervals, and of one-sided bounds.
        margin: The drop that would still be acceptable.
        cluster: The metadata key whose equal values make one unit, such as a document or a customer.
        seed: The seed of what is drawn.
        labels: A sheet of people's labels of each run in their order, or `viewer`: the difference is corrected by them
            (`corrected`).

    Raises:
        ReportError: The runs share no sample, or do not hold what the comparison needs.
        StoreError: A run is not there, or cannot be read.
        ConfigurationError: There are more than two runs, or no labels for each.
        DatasetError: The labels cannot be used; every issue is given with its place.
    """
    if others:
        raise ConfigurationError("`compare` is for two runs. Rank more: `dm.rank(first, second, third)`.")
    settings = ComparisonSettings(confidence=confidence, margin=margin, cluster=cluster, seed=seed)
    with RunSources(store) as sources:
        now = sources.find(candidate)
        before = sources.find(baseline, beside=now)
        comparison = compare_sources(before, now, settings=settings)
        if labels is None:
            return comparison
        given = read_both_labels(labels, (before, now), warn=warner())
        return msgspec.structs.replace(comparison, corrected=compare_labels(before, now, given, settings=settings))


def rank(
    first: Report | str | Path,
    second: Report | str | Path,
    /,
    *others: Report | str | Path,
    store: str | Path | None = None,
    confidence: float = 0.95,
    cluster: str | None = None,
    seed: int = 0,
) -> Ranking:
    """Rank runs by macro-F1: which are best, and which cannot be told apart?

    Args:
        first: The run that each other one is compared with: a report, the file of one, a run file, or a stored run by
            its id, name, `latest`, `previous` or `baseline`.
        second: Another run.
        others: More runs.
        store: The store of runs that are given by name; `.deemster/runs.db` where not given.
        confidence: The level of the intervals of all runs together.
        cluster: The metadata key whose equal values make one unit, such as a document or a customer.
        seed: The seed of what is drawn.

    Raises:
        ReportError: Two of the runs share no sample, or do not hold what the comparison needs.
        StoreError: A run is not there, or cannot be read.
    """
    settings = ComparisonSettings(confidence=confidence, cluster=cluster, seed=seed)
    with RunSources(store) as sources:
        beside = sources.find(second)
        runs = [sources.find(first, beside=beside), beside, *map(sources.find, others)]
        return rank_sources(runs, settings=settings)


def rank_sources(sources: Sequence[RunSource], *, settings: ComparisonSettings = DEFAULT_SETTINGS) -> Ranking:
    """Rank three or more runs, each compared with the first and with all others.

    Args:
        sources: The runs.
        settings: How they are compared.

    Raises:
        ReportError: Two of the runs share no sample, or do not hold what the comparison needs.
        StoreError: A run cannot be read.
    """
    settings = _with_declared_cluster(settings, sources)
    columns = [source.columns(cluster=settings.cluster) for source in sources]
    return rank_columns(columns, settings=settings, tool_version=__version__)


def _with_declared_cluster(settings: ComparisonSettings, sources: Sequence[RunSource]) -> ComparisonSettings:
    """Settings that look at the clusters which the runs declare alike, where they name none themselves."""
    declared = {source.cluster for source in sources}
    if settings.cluster is not None or len(declared) > 1:
        return settings
    return settings._replace(cluster=declared.pop())


class RunSources(ExitStack):
    """Finds runs by name; what it opens is closed at its end.

    Args:
        store: Where runs are that are given by name; `.deemster/runs.db` unless given.
    """

    def __init__(self, store: str | Path | None) -> None:
        super().__init__()
        self._place = store

    @functools.cached_property
    def store(self) -> Store:
        """The store of runs that are given by name, opened when it is first needed."""
        return self.enter_context(open_store(self._place, create=False))

    def find(self, run: Report | str | Path, *, beside: RunSource | None = None) -> RunSource:
        """One run: a report, the file of one, a run file, or a stored run.

        Args:
            run: The run.
            beside: The run whose suite's baseline is meant by `baseline`; the latest run unless given.

        Raises:
            ReportError: The file is no report.
            StoreError: There is no such run, or the file is no sound run file.
        """
        if isinstance(run, Report):
            return ReportSource(run)
        if is_run_file(run):
            held, (name,) = self.enter_context(open_runs(self._place, [str(run)]))
            return StoredSource(held, held.run(name, kind="run"))
        if Path(run).is_file() or Path(run).suffix == ".json":
            return ReportSource(load_report(run))

        row = beside.row if isinstance(beside, StoredSource) else None
        return StoredSource(self.store, self.store.run(str(run), kind="run", beside=row))


def _examples(changes: ChangedSamples, baseline: RunSource, candidate: RunSource) -> Iterator[ComparedSample]:
    """The first samples of each status that shows a change, with what both runs answered."""
    shown = [change for status, most in SHOWN.items() for change in changes.first(status, most)]
    before = baseline.samples([change.baseline.position for change in shown if change.baseline is not None])
    after = candidate.samples([change.candidate.position for change in shown if change.candidate is not None])
    for change, (_, earlier), (sample, later) in zip(shown, before, after, strict=True):
        yield ComparedSample(
            id=sample.id,
            status=change.status,
            tags=sample.tags,
            input=sample.input,
            expected_output=sample.expected_output,
            baseline=_telling(earlier, passing=change.status in _WORSE),
            candidate=_telling(later, passing=change.status not in _WORSE),
        )


def _telling(executions: Sequence[ExecutionEntry], *, passing: bool) -> ExecutionEntry | None:
    """The first repetition that passed, or that did not; the first one where all are alike."""
    for execution in executions:
        marks = execution.marks.values()
        if all(isinstance(mark, ScoreEntry) and mark.success for mark in marks) is passing:
            return execution
    return executions[0] if executions else None


class StoredSource:
    """A run of a store.

    Args:
        store: Where it is stored.
        row: The run.
        loaded: Its marks and samples, where they were read already.
    """

    def __init__(self, store: Store, row: RunRow, *, loaded: tuple[MarkTable, SampleColumns] | None = None) -> None:
        self.store, self.row, self._loaded = store, row, loaded
        self.quotes = quoted_details(store, row.id)
        self.privacy = PrivacyEntry()
        self.stored = store, row.id
        facts = report_facts(row)
        self.anchors, self.cluster = facts.anchors or AnchorScores(), facts.cluster

    @property
    def row_hashes(self) -> Iterable[str]:
        """The row hash of every sample, in order."""
        return (sample.row_hash for sample in self.store.samples(self.row.id, content=False))

    def every_sample(self) -> Iterator[Sample]:
        """Every sample in order, as far as it is kept, for what selects samples."""
        for sample in self.store.samples(self.row.id):
            labels = {**(sample.metadata or {}), "tags": list(sample.tags)}
            yield Sample(sample.id, sample.input or {}, None, labels)

    def columns(self, *, cluster: str | None) -> RunColumns:
        """The run as arrays.

        Raises:
            StoreError: It cannot be read.
            ReportError: It has no marks.
        """
        store, row = self.store, self.row
        cards = store.cards(row.id)
        if not row.traits.has_metrics or not cards or not row.samples:
            raise ReportError(f"`{row.id}` has no marks of metrics, so it cannot be compared.")
        clusters = None
        if cluster is not None:
            samples = store.samples(row.id, content=False)
            clusters = [cluster_value(sample.metadata, cluster, sample.id) for sample in samples]
        table, columns = self._loaded or run_columns(store, row, cards)
        rates = pass_rates(table)
        return RunColumns(
            run=ComparedRun(
                id=row.id,
                suite=row.suite,
                label=row.facts.get("label"),
                target=row.facts.get("target"),
                dataset=row.dataset,
                fingerprint=row.fingerprint or None,
                started_at=row.started_at,
                status=row.status,
                samples=row.samples,
                repetitions=row.repetitions,
                macro_f1=rates["macro_f1"],
                pass_rate=rates["pass_rate"],
                part=report_facts(row).part,
            ),
            marks=table,
            digests=columns.digests,
            identities=stored_identities(row, cards),
            clusters=clusters,
            ids=columns.ids,
            metadata=lambda: (sample.metadata or {} for sample in store.samples(row.id, content=False)),
            stored_usage=columns.usage,
        )

    def samples(self, positions: Sequence[int]) -> list[ShownSample]:
        """The samples at some positions.

        Raises:
            StoreError: They cannot be read.
        """
        names = [card.name for card in self.store.cards(self.row.id)]
        return [
            (sample, [execution_entry(execution, names) for execution in executions])
            for sample, executions in self.store.samples_at(self.row.id, positions)
        ]


def stored_identities(row: RunRow, cards: Sequence[MetricCard]) -> dict[str, Any]:
    """By a metric's name, everything that must be equal for its marks to be compared."""
    found: dict[str, Any] = {}
    for card in cards:
        # The latest scoring that has the metric is the one whose marks are shown.
        shown = next(
            (one for one in reversed(row.scorings) if one.number and any(each.name == card.name for each in one.cards)),
            None,
        )
        found |= card_identities([card], row.identity if shown is None else shown.identity)
    return found


def card_identities(cards: Sequence[MetricCard], identity: Mapping[str, Any]) -> dict[str, Any]:
    """By a metric's name, everything that must be equal for its marks to be compared.

    Args:
        cards: Metrics of a run.
        identity: The identity of the run, or of the scoring that made the marks.
    """
    metrics, models = identity.get("metrics", {}), identity.get("models") or {}
    found = {}
    for card in cards:
        metric = metrics.get(card.name, {})
        found[card.name] = metric_identity(card.identity, card.threshold, card.roles, models) | (
            {"source": metric["source"]} if "source" in metric else {}
        )
    return found


def build_columns(
    run: ComparedRun,
    marks: MarkTable,
    samples: RunSamples,
    *,
    identities: dict[str, Any],
    cluster: str | None = None,
) -> RunColumns:
    """A run whose samples and marks are at hand, as arrays.

    Args:
        run: How a comparison names it.
        marks: Its marks.
        samples: Its samples.
        identities: By a metric's name, everything that must be equal for its marks to be compared.
        cluster: The metadata key whose equal values make one unit; None where each sample is one.

    Raises:
        ReportError: A sample has no such key in its metadata.
    """
    clusters = None
    if cluster is not None:
        clusters = [cluster_value(sample.metadata, cluster, sample.id) for sample in samples]
    ids = [sample.id for sample in samples]
    return RunColumns(
        run=run,
        marks=marks,
        digests=np.frombuffer(bytes.fromhex("".join(samples.row_hashes)), dtype=np.uint8).reshape(-1, 32),
        identities=identities,
        clusters=clusters,
        ids=lambda positions: [ids[position] for position in positions],
        metadata=samples.metadata,
    )


def cluster_value(metadata: Mapping[str, Any] | None, key: str, name: str) -> Any:
    """The value that all samples of a cluster share.

    Args:
        metadata: The metadata of a sample.
        key: The key by which samples are clustered.
        name: The sample's id.

    Raises:
        ReportError: The sample has no such key.
    """
    if metadata is None or key not in metadata:
        raise ReportError(f"The sample `{name}` has no `metadata.{key}`, by which samples are to be clustered.")
    return json_bytes(metadata[key])


def compared_run(run: RunEntry, dataset: DatasetEntry | RunSamples, numbers: RunSummary | Report) -> ComparedRun:
    """A run as a comparison names it.

    Args:
        run: How its report names it.
        dataset: Its dataset.
        numbers: What it came to.
    """
    return ComparedRun(
        id=run.id,
        suite=run.suite,
        label=run.label,
        target=run.target,
        dataset=dataset.name,
        fingerprint=dataset.fingerprint,
        started_at=run.started_at,
        status=run.status,
        samples=numbers.totals.samples,
        repetitions=numbers.totals.repetitions,
        macro_f1=numbers.macro_f1,
        pass_rate=numbers.pass_rate,
        part=run.part,
    )


class ReportSource:
    """A run that a report tells of.

    Args:
        report: The report.
    """

    # A report does not hold the metadata of samples.
    cluster: str | None = None

    def __init__(self, report: Report) -> None:
        self._report = report
        self.quotes = {name: quotes_of_spec(figures.spec) for name, figures in report.metrics.items()}
        self.privacy = report.privacy
        self.anchors = AnchorScores()
        self.stored = None

    @property
    def row_hashes(self) -> Iterable[str]:
        """The row hash of every sample, in order; empty where it is left out."""
        return (sample.row_hash or "" for sample in self._report.samples)

    def every_sample(self) -> Iterator[Sample]:
        """Every sample in order, as far as it is kept, for what selects samples."""
        return (Sample(entry.id, entry.input or {}, None, {"tags": list(entry.tags)}) for entry in self._report.samples)

    def columns(self, *, cluster: str | None) -> RunColumns:
        """The run as arrays.

        Raises:
            ReportError: A cluster is asked for, or a sample has no row hash, or one that is none.
        """
        report, totals = self._report, self._report.totals
        if cluster is not None:
            raise ReportError("A report does not hold the metadata of samples. For clusters, compare stored runs.")
        cards = [_report_card(name, report.metrics[name]) for name in report.metric_order]
        table = MarkTable(cards, samples=totals.samples, repetitions=totals.repetitions)
        hashes, ids = [], []
        for position, sample in enumerate(report.samples):
            table.tag(position, sample.tags)
            hashes.append(sample.row_hash)
            ids.append(sample.id)
            for name in sample.not_applicable:
                table.leave_out(position, report.metric_order.index(name))
        if None in hashes:
            raise ReportError(
                "The report was written `--without-text`: it has no hashes by which its samples could be found again."
            )
        for name, row_hash in zip(ids, hashes, strict=True):
            if not _ROW_HASH.fullmatch(str(row_hash)):
                raise ReportError(f"The `row_hash` of the sample `{name}` is no SHA-256 of 64 hexadecimal digits.")
        for place, entry in enumerate(report.executions):
            _note_execution(table, divmod(place, totals.repetitions), entry)
        table.restore_panels(report.panels)
        return RunColumns(
            run=compared_run(report.run, report.dataset, report),
            marks=table,
            digests=np.frombuffer(bytes.fromhex("".join(map(str, hashes))), dtype=np.uint8).reshape(-1, 32),
            identities=report_identities(report.metrics, report.run.models),
            clusters=None,
            ids=lambda positions: [ids[position] for position in positions],
        )

    def samples(self, positions: Sequence[int]) -> list[ShownSample]:
        """The samples at some positions."""
        wanted = set(positions)
        # One pass: the report may read its samples from a store.
        every = executed_samples(self._report)
        found = {position: (sample, executions) for position, sample, executions in every if position in wanted}
        return [found[position] for position in positions]


def _report_card(name: str, figures: RunMetricSummary) -> MetricCard:
    return MetricCard(
        name=name,
        spec=figures.spec,
        identity=figures.identity,
        family=figures.family,
        quotes=None,
        threshold=figures.threshold,
        higher_is_better=figures.higher_is_better,
        roles=figures.roles,
        where=figures.where,
    )


def _note_execution(table: MarkTable, at: tuple[int, int], entry: ExecutionEntry) -> None:
    """Put an execution of a report into a table."""
    if entry.output is not None:
        table.outputs[at] = output_digest(entry.output, entry.retrieved, entry.trajectory)
        table.output_chars[at] = entry.output_chars
    if entry.usage is not None:
        table.note_usage(at, entry.usage)
    for place, card in enumerate(table.cards):
        mark = entry.marks.get(card.name)
        if mark is None:
            continue
        if isinstance(mark, ScoreEntry):
            table.scores[*at, place], table.passed[*at, place] = mark.score, mark.success
            table.causes[*at, place] = SCORED
        else:
            table.causes[*at, place] = CAUSES.index(mark.unscored.cause) + 1
