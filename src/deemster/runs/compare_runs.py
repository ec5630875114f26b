"""Compares two runs: reads them as columns, from a store or a report, and builds the comparison."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np

from deemster import __version__
from deemster.errors import ReportError
from deemster.records import CAUSES, MetricCard, Output
from deemster.records.usage import Usage, count_tokens
from deemster.report import Report, load_report
from deemster.report.comparison_report import ComparedSample, ComparisonReport
from deemster.report.report_assembly import execution_entry
from deemster.report.report_entries import ExecutionEntry, ScoreEntry
from deemster.results import MarkTable
from deemster.results.compare_columns import ComparisonSettings, compare_columns
from deemster.results.metric_summary import SCORED
from deemster.results.run_columns import USAGE, ComparedRun, RunColumns
from deemster.results.sample_changes import SampleChange
from deemster.runs._report_settings import parse_part
from deemster.runs.build_report import batches
from deemster.store import RunRow, Store, open_store
from deemster.store.find_store import find_store

# So many changed samples are shown with their question and both answers.
SHOWN = 50
DEFAULT_SETTINGS = ComparisonSettings()
_WORSE = frozenset({"newly_failing", "regressed", "unscored_now"})
_encode = msgspec.json.Encoder(enc_hook=lambda value: dict(value) if isinstance(value, Mapping) else str(value)).encode


class ShownSample(NamedTuple):
    """A sample with its executions, as a report shows them."""

    tags: tuple[str, ...]
    input: Any
    expected_output: Any
    executions: Sequence[ExecutionEntry]


class RunSource(Protocol):
    """Where the facts of a compared run come from: a store, or a report."""

    def columns(self, *, cluster: str | None) -> RunColumns:
        """The run as arrays; `cluster` is the metadata key whose equal values make one unit."""

    def samples(self, ids: Collection[str]) -> dict[str, ShownSample]:
        """Some samples by id."""


def compare_sources(
    baseline: RunSource, candidate: RunSource, *, settings: ComparisonSettings = DEFAULT_SETTINGS
) -> ComparisonReport:
    """Compare two runs sample by sample.

    Args:
        baseline: The run before.
        candidate: The run now.
        settings: How they are compared.

    Raises:
        ReportError: The runs share no sample, or do not hold what the comparison needs.
        StoreError: A run cannot be read.
    """
    # Only the candidate says which samples belong together.
    before, after = baseline.columns(cluster=None), candidate.columns(cluster=settings.cluster)
    comparison = compare_columns(before, after, settings=settings, tool_version=__version__)
    fields = {name: getattr(comparison, name) for name in comparison.__struct_fields__}
    return ComparisonReport(**fields, examples=tuple(_examples(comparison.changes, baseline, candidate)))


def compare(
    baseline: Report | str | Path,
    candidate: Report | str | Path,
    *,
    store: str | Path | None = None,
    confidence: float = 0.95,
    margin: float | None = None,
    cluster: str | None = None,
    seed: int = 0,
) -> ComparisonReport:
    """Compare two runs sample by sample: is the second one worse, where, and why?

    Args:
        baseline: The run before: a report, the file of one, or a stored run by its id, label, `latest` or `previous`.
        candidate: The run now.
        store: The store of runs that are given by name; the nearest one where not given.
        confidence: The level of the intervals, and of one-sided bounds.
        margin: The drop that would still be acceptable.
        cluster: The metadata key whose equal values make one unit, such as a document or a customer.
        seed: The seed of what is drawn.

    Raises:
        ReportError: The runs share no sample, or do not hold what the comparison needs.
        StoreError: A run is not there, or cannot be read.
    """
    settings = ComparisonSettings(confidence=confidence, margin=margin, cluster=cluster, seed=seed)
    with ExitStack() as opened:
        sources = RunSources(lambda: opened.enter_context(open_store(find_store() if store is None else store)))
        return compare_sources(sources.find(baseline), sources.find(candidate), settings=settings)


class RunSources:
    """Finds runs by name.

    Args:
        open_store: Opens the store of runs that are given by name, when the first one is.
    """

    def __init__(self, open_store: Callable[[], Store]) -> None:
        self._open = open_store
        self._store: Store | None = None

    def find(self, run: Report | str | Path) -> RunSource:
        """One run: a report, the file of one, or a stored run.

        Raises:
            ReportError: The file is no report.
            StoreError: There is no such run.
        """
        if isinstance(run, Report):
            return LoadedReport(run)
        if Path(run).is_file() or Path(run).suffix == ".json":
            return LoadedReport(load_report(run))
        self._store = self._store or self._open()
        return StoredRun(self._store, self._store.run(str(run), kind="run"))


def _examples(changes: Iterable[SampleChange], baseline: RunSource, candidate: RunSource) -> Iterator[ComparedSample]:
    """The first samples that changed, with what both runs answered."""
    shown: list[SampleChange] = []
    for change in changes:
        if len(shown) == SHOWN or change.status in ("added", "removed"):
            break
        shown.append(change)
    before = baseline.samples({change.baseline.id for change in shown if change.baseline is not None})
    after = candidate.samples({change.candidate.id for change in shown if change.candidate is not None})
    for change in shown:
        if change.baseline is None or change.candidate is None:
            continue
        old, new = before[change.baseline.id], after[change.candidate.id]
        yield ComparedSample(
            id=change.candidate.id,
            status=change.status,
            tags=new.tags,
            input=new.input,
            expected_output=new.expected_output,
            baseline=_telling(old.executions, passing=change.status in _WORSE),
            candidate=_telling(new.executions, passing=change.status not in _WORSE),
        )


def _telling(executions: Sequence[ExecutionEntry], *, passing: bool) -> ExecutionEntry | None:
    """The first repetition that passed, or that did not; the first one where all are alike."""
    for execution in executions:
        marks = execution.marks.values()
        if all(isinstance(mark, ScoreEntry) and mark.success for mark in marks) is passing:
            return execution
    return executions[0] if executions else None


class StoredRun:
    """A run of a store.

    Args:
        store: Where it is stored.
        row: The run.
    """

    def __init__(self, store: Store, row: RunRow) -> None:
        self._store, self._row = store, row

    def columns(self, *, cluster: str | None) -> RunColumns:
        """The run as arrays.

        Raises:
            StoreError: It cannot be read.
            ReportError: It has no marks.
        """
        store, row = self._store, self._row
        cards = store.cards(row.id)
        if row.kind == "grading" or not cards or not row.samples:
            raise ReportError(f"`{row.id}` has no marks of metrics, so it cannot be compared.")
        table = MarkTable(cards, samples=row.samples, repetitions=row.repetitions)
        digests = np.zeros((row.samples, 32), dtype=np.uint8)
        clusters: list[Any] = []
        ids, ends = bytearray(), array("q", [0])
        for sample in store.samples(row.id, content=False):
            table.tag(sample.position, sample.tags)
            digests[sample.position] = np.frombuffer(bytes.fromhex(sample.row_hash), dtype=np.uint8)
            ids += sample.id.encode()
            ends.append(len(ids))
            if cluster is not None:
                clusters.append(_cluster_value(sample.metadata, cluster, sample.id))
        outputs = np.zeros((row.samples, row.repetitions), dtype=np.int64)
        usage = np.full((row.samples, row.repetitions, len(USAGE)), np.nan)
        for batch in batches(store.executions(row.id)):
            table.add(batch)
            for execution in batch:
                answer = execution.answer
                if isinstance(answer, Output):
                    at = execution.position, execution.repetition
                    outputs[at] = hash_output(answer.text, answer.retrieved, answer.trajectory)
                    if answer.usage is not None:
                        usage[at] = usage_numbers(answer.usage)
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
                macro_f1=int(table.passed.sum()) / table.passed.size,
                pass_rate=int(table.passed.all(axis=2).sum()) / (row.samples * row.repetitions),
                part=parse_part(row.facts, where=f"run `{row.id}`"),
            ),
            marks=table,
            digests=digests,
            outputs=outputs,
            usage=usage,
            identities=_stored_identities(row, cards),
            clusters=clusters if cluster is not None else None,
            ids=lambda positions: [ids[ends[place] : ends[place + 1]].decode() for place in positions],
        )

    def samples(self, ids: Collection[str]) -> dict[str, ShownSample]:
        """Some samples by id.

        Raises:
            StoreError: They cannot be read.
        """
        names = [card.name for card in self._store.cards(self._row.id)]
        found = {}
        for sample in self._store.samples(self._row.id):
            if sample.id in ids:
                executions = self._executions(sample.position, names)
                found[sample.id] = ShownSample(sample.tags, sample.input, sample.expected_output, executions)
        return found

    def _executions(self, position: int, names: Sequence[str]) -> list[ExecutionEntry]:
        entries = []
        for execution in self._store.executions(self._row.id, since=position):
            if execution.position != position:
                break
            entries.append(execution_entry(execution, names))
        return entries


def _stored_identities(row: RunRow, cards: Sequence[MetricCard]) -> dict[str, Any]:
    """By a metric's name, everything that must be equal for its marks to be compared."""
    found = {}
    for card in cards:
        # The latest scoring that has the metric is the one whose marks are shown.
        shown = next(
            (one for one in reversed(row.scorings) if one.number and any(each.name == card.name for each in one.cards)),
            None,
        )
        identity = row.identity if shown is None else shown.identity
        metric = identity.get("metrics", {}).get(card.name, {})
        found[card.name] = _identity(card.identity, card.threshold, card.roles, identity.get("models") or {}) | (
            {"source": metric["source"]} if "source" in metric else {}
        )
    return found


def _identity(
    identity: str, threshold: float | None, roles: Sequence[str], models: Mapping[str, Any]
) -> dict[str, Any]:
    known = {role: models[role] for role in roles if role in models}
    return {"definition": identity, "threshold": threshold, **{f"model `{role}`": known[role] for role in known}}


def _cluster_value(metadata: Mapping[str, Any] | None, key: str, name: str) -> Any:
    if metadata is None or key not in metadata:
        raise ReportError(f"The sample `{name}` has no `metadata.{key}`, by which samples are to be clustered.")
    return _encode(metadata[key])


class LoadedReport:
    """A run that a report tells of.

    Args:
        report: The report.
    """

    def __init__(self, report: Report) -> None:
        self._report = report

    def columns(self, *, cluster: str | None) -> RunColumns:
        """The run as arrays.

        Raises:
            ReportError: A cluster is asked for, or a sample has no row hash.
        """
        report = self._report
        if cluster is not None:
            raise ReportError("A report does not hold the metadata of samples. For clusters, compare stored runs.")
        names, totals = report.metric_order, report.totals
        cards = [
            MetricCard(
                name,
                figures.spec,
                figures.identity,
                figures.family,
                None,
                figures.threshold,
                figures.higher_is_better,
                roles=figures.roles,
            )
            for name, figures in report.metrics.items()
            if name in names
        ]
        cards.sort(key=lambda card: names.index(card.name))
        table = MarkTable(cards, samples=totals.samples, repetitions=totals.repetitions)
        digests = np.zeros((totals.samples, 32), dtype=np.uint8)
        outputs = np.zeros((totals.samples, totals.repetitions), dtype=np.int64)
        places: dict[str, int] = {}
        for position, sample in enumerate(report.samples):
            if sample.row_hash is None:
                raise ReportError("The report leaves out the hashes of samples, so its samples cannot be found again.")
            table.tag(position, sample.tags)
            digests[position] = np.frombuffer(bytes.fromhex(sample.row_hash), dtype=np.uint8)
            places[sample.id] = position
        for entry in report.executions:
            at = places[entry.id], entry.repetition
            if entry.output is not None:
                outputs[at] = hash_output(entry.output, entry.retrieved, entry.trajectory)
            for column, name in enumerate(names):
                mark = entry.marks[name]
                if isinstance(mark, ScoreEntry):
                    table.scores[*at, column], table.passed[*at, column] = mark.score, mark.success
                    table.causes[*at, column] = SCORED
                else:
                    table.causes[*at, column] = CAUSES.index(mark.unscored.cause) + 1
        ids = list(places)
        models = report.run.models or {}
        return RunColumns(
            run=ComparedRun(
                id=report.run.id,
                suite=report.run.suite,
                label=report.run.label,
                target=report.run.target,
                dataset=report.dataset.name,
                fingerprint=report.dataset.fingerprint,
                started_at=report.run.started_at,
                status=report.run.status,
                samples=totals.samples,
                repetitions=totals.repetitions,
                macro_f1=report.macro_f1,
                pass_rate=report.pass_rate,
                part=report.run.part,
            ),
            marks=table,
            digests=digests,
            outputs=outputs,
            usage=np.full((totals.samples, totals.repetitions, len(USAGE)), np.nan),
            identities={card.name: _identity(card.identity, card.threshold, card.roles, models) for card in cards},
            clusters=None,
            ids=lambda positions: [ids[position] for position in positions],
        )

    def samples(self, ids: Collection[str]) -> dict[str, ShownSample]:
        """Some samples by id."""
        executions: dict[str, list[ExecutionEntry]] = {name: [] for name in ids}
        for entry in self._report.executions:
            if entry.id in executions:
                executions[entry.id].append(entry)
        return {
            sample.id: ShownSample(sample.tags, sample.input, sample.expected_output, executions[sample.id])
            for sample in self._report.samples
            if sample.id in executions
        }


def hash_output(text: str, retrieved: Any, trajectory: Any) -> int:
    """A hash of an output: two outputs have the same only if they are the same to the byte. It is never 0."""
    said = text.encode("utf-8", "surrogatepass")
    if retrieved is not None or trajectory is not None:
        said += b"\0" + _encode([retrieved, trajectory])
    return int.from_bytes(hashlib.blake2b(said, digest_size=8).digest(), "little", signed=True) or 1


def usage_numbers(usage: Usage) -> tuple[float, float, float]:
    """What a target used, in the order of `USAGE`; NaN for what is not known."""
    tokens = count_tokens(usage, -1)
    return (
        float("nan") if usage.cost_usd is None else float(usage.cost_usd),
        float("nan") if tokens < 0 else float(tokens),
        float("nan") if usage.latency_ms is None else usage.latency_ms,
    )
