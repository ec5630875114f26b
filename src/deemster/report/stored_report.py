"""The report of a stored run: its numbers as they were kept when it ended, or built again from its facts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import msgspec

from deemster import __version__
from deemster.datasets.duplicate_rows import equal_rows
from deemster.errors import ReportError
from deemster.formats.streamed_list import Stream
from deemster.records import Sample, SampleFacts
from deemster.report.build_report import RunRecord, build_report, finish_run, to_sample
from deemster.report.report_assembly import execution_entries, failure_entries, sample_entries
from deemster.report.report_document import Report
from deemster.report.report_settings import RECORDING_SETTINGS, ReportSettings, report_facts, stored_settings
from deemster.report.stored_columns import run_columns, stored_numbers
from deemster.report.stored_executions import StoredExecutions
from deemster.results.mark_table import MarkTable
from deemster.store import RunRow, Store

_AGGREGATE = "aggregate_"


def stored_report(store: Store, run: str, *, warn: Callable[[str], None] = lambda _: None) -> Report:
    """Build the report of a stored run: the same bytes as when it ended.

    Args:
        store: Where it is stored.
        run: Its id, a unique beginning of it, or `latest`.
        warn: Gets a warning about what cannot be made again.

    Raises:
        StoreError: There is no such run, or it cannot be read.
        ReportError: There is nothing to report on.
    """
    row = store.run(run)
    record = stored_run_record(store, row)
    return _kept_report(store, row, record) or _computed_report(row, record, warn)


def computed_report(store: Store, run: str) -> Report:
    """Build the report of a stored run from its facts, whatever numbers are kept with it.

    Args:
        store: Where it is stored.
        run: Its id, a unique beginning of it, or `latest`.

    Raises:
        StoreError: There is no such run, or it cannot be read.
        ReportError: There is nothing to report on.
    """
    row = store.run(run)
    return _computed_report(row, stored_run_record(store, row), lambda _: None)


def _kept_report(store: Store, row: RunRow, record: RunRecord) -> Report | None:
    """The report with the numbers that this version kept when the run ended; None where there are none.

    An aggregate of a sample is in no column: it is made again.
    """
    kept = stored_numbers(store, row) if row.tool_version == __version__ else None
    if kept is None or kept.aggregate is not None:
        return None

    @functools.cache
    def table() -> MarkTable:
        return run_columns(store, row, record.cards)[0]

    executions = execution_entries(record.samples, table, record.executions)
    return msgspec.structs.replace(
        kept,
        samples=sample_entries(
            record.samples,
            table,
            higher_is_better=[kept.metrics[name].higher_is_better for name in kept.metric_order],
        ),
        executions=executions,
        failure_list=Stream(lambda: failure_entries(executions)) if kept.totals.unscored else (),
    )


def _computed_report(row: RunRow, record: RunRecord, warn: Callable[[str], None]) -> Report:
    settings = _makeable(stored_settings(row), warn) if row.traits.has_end else RECORDING_SETTINGS
    return build_report(finish_run(record, settings), record.findings.baseline)


def quoted_details(store: Store, run: str) -> dict[str, frozenset[str] | None]:
    """By a metric's name, the details that may repeat text of a sample or output; None where all may.

    Args:
        store: Where the run is stored.
        run: Its id.

    Raises:
        StoreError: There is no such run, or it cannot be read.
    """
    return {card.name: card.quotes for card in store.cards(run)}


def stored_run_record(store: Store, row: RunRow) -> RunRecord:
    """What the report of a stored run is built from.

    Args:
        store: Where it is stored.
        row: The run.

    Raises:
        StoreError: It cannot be read.
        ReportError: There is nothing to report on.
    """
    cards = store.cards(row.id)
    samples = StoredSamples(store, row)
    if not row.traits.has_metrics:
        hint = f"`deemster grade DATASET --resume={row.id}`, with the flags it was made with, shows its results again."
        raise ReportError(f"`{row.id}` is a grading by a rubric, which has no report of metrics. {hint}")
    if not cards or not len(samples):
        hint = f"`deemster run --outputs {row.id} --metric NAME` adds some."
        raise ReportError(f"`{row.id}` has no scores to report on. {hint}")
    facts = report_facts(row)
    return RunRecord(
        row,
        finished_at=row.finished_at or row.started_at,
        duration_s=row.duration_s or 0.0,
        samples=samples,
        cards=cards,
        executions=StoredExecutions(store, row.id),
        stopped=facts.stopped,
        # A recording has no end of its own.
        ended=row.status != "running" or not row.traits.has_end,
        mixed=facts.mixed,
        budget=facts.budget,
        findings=facts.findings,
    )


class StoredSamples:
    """The samples of a stored run; it reads like the dataset they came from.

    Args:
        store: Where the run is stored.
        row: The run.
    """

    path = None
    description = None
    warnings: tuple[str, ...] = ()

    def __init__(self, store: Store, row: RunRow) -> None:
        self._store, self._row = store, row
        self._digests = b""
        self.name = row.dataset
        self.repetitions = row.repetitions
        facts = report_facts(row)
        self.schema_version, self.part, self.cluster = facts.schema_version, facts.part, facts.cluster

    def __len__(self) -> int:
        return self._row.samples

    def __iter__(self) -> Iterator[Sample]:
        return map(to_sample, self._store.samples(self._row.id))

    def facts(self, *, content: bool = True) -> Iterator[SampleFacts]:
        """Every sample as the run keeps it, in order."""
        digests = bytearray()
        for stored in self._store.samples(self._row.id, content=content):
            digests += bytes.fromhex(stored.row_hash)
            yield stored
        # A full pass has seen all digests that `duplicates` needs.
        self._digests = self._digests or bytes(digests)

    def metadata(self) -> Iterator[Mapping[str, Any]]:
        """The metadata of every sample, in order."""
        return (stored.metadata or {} for stored in self._store.samples(self._row.id, content=False))

    def facts_at(self, position: int) -> SampleFacts:
        """One sample as the run keeps it."""
        sample, _ = next(self._store.samples_at(self._row.id, [position]))
        return sample

    @property
    def fingerprint(self) -> str | None:
        """The dataset's fingerprint; a recording has none, as its samples come one by one."""
        return self._row.fingerprint or None

    @property
    def row_hashes(self) -> Iterator[str]:
        """The row hash of every sample, in order."""
        return (stored.row_hash for stored in self._store.samples(self._row.id, content=False))

    @functools.cached_property
    def duplicates(self) -> list[list[str]]:
        """The ids of samples whose input and expected output are equal, group by group in order."""
        digests = self._digests or b"".join(map(bytes.fromhex, self.row_hashes))
        return equal_rows(digests, self._ids_at)

    def _ids_at(self, places: Collection[int]) -> Iterator[str]:
        wanted = set(places)
        rows = enumerate(self._store.samples(self._row.id, content=False))
        return (stored.id for place, stored in rows if place in wanted)


def _makeable(settings: ReportSettings, warn: Callable[[str], None]) -> ReportSettings:
    """The settings, without what depends on an aggregator that only a program has."""
    if settings.missing_aggregator is None:
        return settings
    gated = settings.gate is not None and any(rule.quantity.startswith(_AGGREGATE) for rule in settings.gate.rules)
    also = ", nor the gate, which has rules about them" if gated else ""
    warn(
        f"The aggregates were made by `{settings.missing_aggregator}`, an object of the program that ran this; "
        f"they cannot be made again here{also}."
    )
    return settings._replace(gate=None) if gated else settings
