"""Stores the records of a recorder: one recording after the other, opened again where the store fails."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from deemster import __version__
from deemster.datasets.fingerprint import row_hash
from deemster.errors.user_code_guard import UserCodeGuard
from deemster.models.clock import Clock
from deemster.records import Execution, Output, SampleContent, SampleFacts, SampleLabels, TargetFailure, Usage
from deemster.runs.run_identity import run_id
from deemster.runs.run_lifecycle import RunDefinition, StoredRun, begin_run
from deemster.runs.run_timer import RunTimer
from deemster.store import RunFacts, open_store
from deemster.targets.python_target import as_output

RETRY_S = 30.0
LASTS_S = 3600.0
_log = logging.getLogger("deemster")


class Record(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One call of an application, as its redaction sees it and as it is kept.

    Attributes:
        input: What the application was asked.
        output: What it said: text, or JSON data; None where it failed.
        error: Why it failed.
        tags: Words to slice by.
        metadata: Whatever else is to be known, such as a request's id.
        retrieved: The passages it used.
        usage: Tokens, money and time.
        model: The model behind it.
        at: When it was made.
    """

    input: dict[str, Any]
    output: Any = None
    error: str | None = None
    tags: list[str] = []
    metadata: dict[str, Any] = {}
    retrieved: Any = None
    usage: Usage | None = None
    model: str | None = None
    at: str = ""


class RecordingWriter:
    """Stores records, and says how many it could store; it never raises.

    Args:
        dataset: What the records belong to.
        store: The store's file or URL.
        clock: The time of day.
        rate: The share of calls that is recorded, which the recording says.
        records: After how many records a new recording begins.
    """

    def __init__(self, dataset: str, *, store: str | Path | None, clock: Clock, rate: float, records: int) -> None:
        self._dataset, self._where, self._clock, self._rate, self._records = dataset, store, clock, rate, records
        self._run: StoredRun | None = None
        self._position = 0
        self._began = self._closed_until = 0.0

    def put(self, records: Sequence[Record]) -> int:
        """Store records; how many are stored: those that can be, or none where the store fails.

        A recording that is full, or older than an hour, is closed.
        """
        if self._run is not None and time.monotonic() - self._began > LASTS_S:
            self.close()
        if not records or (self._run is None and time.monotonic() < self._closed_until):
            return 0
        with UserCodeGuard() as caught:
            run = self._run = self._run or self._begin()
            stored = 0
            for record in records:
                with UserCodeGuard() as unfit:
                    sample, execution = self._facts(run.id, record)
                if unfit.error is None:
                    run.writer.add_samples([sample])
                    run.writer.add([execution], at=record.at)
                    self._position += 1
                    stored += 1
            run.writer.flush()
        if caught.error is None:
            if self._position >= self._records:
                self.close()
            return stored
        self._give_up(caught.message)
        return 0

    def close(self) -> None:
        """End the recording."""
        if self._run is None:
            return
        run, self._run = self._run, None
        with UserCodeGuard() as caught:
            run.close("complete", None, duration_s=None)
        _release(run)
        if caught.error is not None:
            _log.warning("The recording %s could not be ended: %s", run.id, caught.message)

    def _begin(self) -> StoredRun:
        store = open_store(self._where)
        with UserCodeGuard() as caught:
            timer = RunTimer(self._clock)
            self._position, self._began = 0, time.monotonic()
            facts = RunFacts(
                # Two processes of one application may start in the same second.
                id=run_id(timer.started, secrets.token_hex(3)),
                kind="recording",
                dataset=self._dataset,
                fingerprint="",
                samples=0,
                started_at=timer.started_at,
                tool_version=__version__,
                facts={"rate": self._rate},
            )
            return begin_run(RunDefinition(facts, tuple), store, timer=timer)
        store.close()
        raise caught.error or RuntimeError

    def _facts(self, run_id: str, record: Record) -> tuple[SampleFacts, Execution]:
        name = f"{run_id}-{self._position + 1}"
        sample = SampleFacts(
            position=self._position,
            id=name,
            row_hash=row_hash(record.input, None),
            labels=SampleLabels(tuple(record.tags), record.metadata),
            content=SampleContent(None, record.input),
        )
        answer: Output | TargetFailure
        if record.error is not None:
            answer = TargetFailure(record.error)
        else:
            said = as_output(record.output)
            answer = Output(said.text, record.retrieved, said.trajectory, record.usage, record.model)
        return sample, Execution(self._position, name, 0, answer, ())

    def _give_up(self, why: str) -> None:
        """Pause storing after a failure of the store; the application continues."""
        _log.warning("Records of %s cannot be stored: %s; trying again in %.0f s", self._dataset, why, RETRY_S)
        run, self._run = self._run, None
        if run is not None:
            _release(run)
        self._closed_until = time.monotonic() + RETRY_S


def _release(run: StoredRun) -> None:
    """Close the writer, the lease and the store, whatever fails."""
    with UserCodeGuard(), run:
        pass
    with UserCodeGuard():
        run.store.close()
