"""The report of a stored run, made again from the facts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import numpy as np

from deemster.errors import ReportError
from deemster.records import Execution, Sample
from deemster.report import Report
from deemster.results import Aggregator
from deemster.results.metric_aggregators import aggregator_name
from deemster.runs._build_report import RunRecord, build_report
from deemster.runs._run_settings import (
    RECORDING_SETTINGS,
    ReportSettings,
    parse_budget,
    parse_settings,
    stop_reason,
    stored_changes,
)
from deemster.store import RunRow, SampleFacts, Store

_AGGREGATE = "aggregate_"


def stored_report(
    store: Store,
    run: str,
    *,
    aggregator: Aggregator | None = None,
    warn: Callable[[str], None] | None = None,
) -> Report:
    """The report of a stored run, the same bytes as when it ended.

    Args:
        store: Where it is kept.
        run: Its id, a unique beginning of it, or `latest`.
        aggregator: The aggregator of the program that ran it, where it was none of the house.
        warn: Told what cannot be made again.

    Raises:
        StoreError: There is no such run, or what is kept of it cannot be read.
        ReportError: There is nothing to report on.
    """
    row = store.run(run)
    remains = stored_run_record(store, row)
    terms = RECORDING_SETTINGS if row.kind == "recording" else parse_settings(row.facts, where=_place(store, row))
    return build_report(remains, _with_aggregator(terms, aggregator, warn))


def quoted_details(store: Store, run: str) -> dict[str, frozenset[str] | None]:
    """By a metric's name, the details that may repeat text of a sample or output; None where all may.

    Args:
        store: Where the run is kept.
        run: Its id.

    Raises:
        StoreError: There is no such run, or what is kept of it cannot be read.
    """
    return {card.name: card.quotes for card in store.cards(run)}


def stored_run_record(store: Store, row: RunRow) -> RunRecord:
    """What a stored run left behind.

    Args:
        store: Where it is kept.
        row: The run.

    Raises:
        StoreError: What is kept of it cannot be read.
        ReportError: There is nothing to report on.
    """
    cards = store.cards(row.id)
    samples = StoredSamples(store, row)
    if row.kind == "grading":
        hint = f"`deemster grade DATASET --resume {row.id}`, with the flags it was made with, shows its results again."
        raise ReportError(f"`{row.id}` is a grading by a rubric, which has no report of metrics. {hint}")
    if not cards or not len(samples):
        hint = f"`deemster rescore {row.id} --metric NAME` adds some."
        raise ReportError(f"`{row.id}` has no marks to report on. {hint}")
    return RunRecord(
        id=row.id,
        suite=row.suite,
        started_at=row.started_at,
        finished_at=row.finished_at or row.started_at,
        duration_s=row.duration_s or 0.0,
        seed=row.seed,
        tool_version=row.tool_version,
        samples=samples,
        repetitions=row.repetitions,
        cards=cards,
        executions=ExecutionSlots(
            functools.partial(store.executions, row.id), samples=len(samples), repetitions=row.repetitions
        ),
        stopped=stop_reason(row.facts),
        # A recording goes on for as long as people use the application.
        ended=row.status != "running" or row.kind == "recording",
        mixed=stored_changes(row.facts),
        budget=parse_budget(row.facts, where=_place(store, row)),
    )


class ExecutionSlots:
    """Every execution of a run in order, read anew each time; None where there is none.

    Args:
        read: Gives those there are, in the order of position and repetition; with `lean`, without what is not counted.
        samples: How many samples there are.
        repetitions: How often each is run.
    """

    def __init__(self, read: Callable[..., Iterator[Execution]], *, samples: int, repetitions: int) -> None:
        self._read, self._samples, self._repetitions = read, samples, repetitions

    def __len__(self) -> int:
        return self._samples * self._repetitions

    def __iter__(self) -> Iterator[Execution | None]:
        place = 0
        for execution in self._read():
            at = execution.position * self._repetitions + execution.repetition
            while place < at:
                yield None
                place += 1
            yield execution
            place += 1
        while place < len(self):
            yield None
            place += 1

    def lean(self) -> Iterator[Execution]:
        """Those there are, in order, without what is not counted."""
        return self._read(lean=True)


class StoredSamples:
    """The samples of a stored run; it reads like the dataset they came from.

    Args:
        store: Where the run is kept.
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
        self.schema_version = str(row.facts.get("schema_version", ""))

    def __len__(self) -> int:
        return self._row.samples

    def __iter__(self) -> Iterator[Sample]:
        return (sample for sample, _ in self.hashed())

    def hashed(self) -> Iterator[tuple[Sample, str]]:
        """Every sample with its row hash, in order."""
        for kept in self._store.samples(self._row.id):
            yield _sample(kept), kept.row_hash

    def tags(self) -> Iterator[tuple[str, ...]]:
        """The tags of every sample, in order."""
        digests = bytearray()
        for kept in self._store.samples(self._row.id, lean=True):
            digests += bytes.fromhex(kept.row_hash)
            yield _sample(kept).tags
        # Whoever has gone through all of them has seen what is needed to tell which are equal.
        self._digests = self._digests or bytes(digests)

    @property
    def fingerprint(self) -> str | None:
        """The dataset's fingerprint; a recording, whose samples come as it goes on, has none."""
        return self._row.fingerprint or None

    @property
    def row_hashes(self) -> Iterator[str]:
        """The row hash of every sample, in order."""
        return (kept.row_hash for kept in self._store.samples(self._row.id, lean=True))

    @functools.cached_property
    def duplicates(self) -> list[list[str]]:
        """The ids of samples whose input and expected output are equal, group by group in order."""
        digests = self._digests or b"".join(map(bytes.fromhex, self.row_hashes))
        heads = np.frombuffer(digests, dtype=np.uint64)[::4]
        order = np.argsort(heads, kind="stable")
        twice = np.flatnonzero(heads[order[1:]] == heads[order[:-1]])
        wanted = set(np.concatenate([order[twice], order[twice + 1]]).tolist())
        if not wanted:
            return []
        groups: dict[bytes, list[str]] = {}
        for position, kept in enumerate(self._store.samples(self._row.id, lean=True)):
            if position in wanted:
                groups.setdefault(digests[position * 32 : position * 32 + 32], []).append(kept.id)
        return [ids for ids in groups.values() if len(ids) > 1]


def _sample(kept: SampleFacts) -> Sample:
    metadata = {"tags": list(kept.tags)} if kept.metadata is None else kept.metadata
    return Sample(kept.id, kept.input or {}, kept.expected_output, metadata)


def _with_aggregator(
    terms: ReportSettings, given: Aggregator | None, warn: Callable[[str], None] | None
) -> ReportSettings:
    """The terms with an aggregator that only a program has, or without what depends on it."""
    if terms.lost is None:
        return terms
    if given is not None and aggregator_name(given) == terms.lost:
        return terms._replace(aggregator=given, lost=None)
    gated = terms.gate is not None and any(rule.quantity.startswith(_AGGREGATE) for rule in terms.gate.rules)
    if warn is not None:
        also = ", nor the gate, which has rules about them" if gated else ""
        warn(
            f"The aggregates were made by `{terms.lost}`, an object of the program that ran this; "
            f"they cannot be made again here{also}."
        )
    return terms._replace(gate=None) if gated else terms


def _place(store: Store, row: RunRow) -> str:
    return f"{store.where}: run `{row.id}`"
