"""Where a recorder puts its records: one recording in a store, opened again where it fails."""

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
from deemster.errors.user_code_guard import Caught
from deemster.models.clock import Clock
from deemster.records import Execution, Output, TargetFailure, Usage
from deemster.store import Lease, RunFacts, SampleFacts, Store, Writer, open_store
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
    """Stores records, and says how many it could store; what it cannot do never raises.

    Args:
        dataset: What they belong to.
        store: The store's file or URL.
        clock: The time of day.
        rate: The share of calls that is recorded, which the recording says.
        records: After how many records a new recording begins.
    """

    def __init__(self, dataset: str, *, store: str | Path | None, clock: Clock, rate: float, records: int) -> None:
        self._dataset, self._where, self._clock, self._rate, self._records = dataset, store, clock, rate, records
        self._open: tuple[Store, Lease, Writer] | None = None
        self._run = ""
        self._position = 0
        self._began = self._closed_until = 0.0

    def put(self, records: Sequence[Record]) -> int:
        """Store records; how many are stored: those that can be, or none where the store fails.

        A recording that is full, or older than an hour, is ended.
        """
        if self._open is not None and time.monotonic() - self._began > LASTS_S:
            self.close()
        if not records or (self._open is None and time.monotonic() < self._closed_until):
            return 0
        with Caught() as caught:
            _, _, writer = self._open = self._open or self._opened()
            stored = 0
            for record in records:
                with Caught() as unfit:
                    sample, execution = self._facts(record)
                if unfit.error is None:
                    writer.add_samples([sample])
                    writer.add([execution], at=record.at)
                    self._position += 1
                    stored += 1
            writer.flush()
        if caught.error is None:
            if self._position >= self._records:
                self.close()
            return stored
        self._give_up(caught.message)
        return 0

    def close(self) -> None:
        """End the recording."""
        if self._open is None:
            return
        store, lease, writer = self._open
        with Caught() as caught:
            writer.close()
            store.finish(
                self._run, status="complete", reason=None, finished_at=self._now(), duration_s=None, release=True
            )
        with Caught():
            lease.release()
            store.close()
        self._open = None
        if caught.error is not None:
            _log.warning("The recording %s could not be ended: %s", self._run, caught.message)

    def _opened(self) -> tuple[Store, Lease, Writer]:
        store = open_store(self._where)
        with Caught() as caught:
            # Two processes of one application may start in the same second.
            self._run = f"{self._clock.now():%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
            self._position, self._began = 0, time.monotonic()
            lease = store.begin(self._facts_of_run(), [], cards=[])
            return store, lease, store.writer(self._run)
        store.close()
        raise caught.error or RuntimeError

    def _facts_of_run(self) -> RunFacts:
        return RunFacts(
            id=self._run,
            kind="recording",
            suite=None,
            dataset=self._dataset,
            fingerprint="",
            seed=0,
            repetitions=1,
            samples=0,
            started_at=self._now(),
            tool_version=__version__,
            identity={},
            facts={"rate": self._rate},
        )

    def _facts(self, record: Record) -> tuple[SampleFacts, Execution]:
        name = f"{self._run}-{self._position + 1}"
        sample = SampleFacts(
            position=self._position,
            id=name,
            row_hash=row_hash(record.input, None),
            tags=tuple(record.tags),
            metadata=record.metadata,
            expected_output=None,
            input=record.input,
        )
        answer: Output | TargetFailure
        if record.error is not None:
            answer = TargetFailure(record.error)
        else:
            said = as_output(record.output)
            answer = Output(said.text, record.retrieved, said.trajectory, record.usage, record.model)
        return sample, Execution(self._position, name, 0, answer, ())

    def _give_up(self, why: str) -> None:
        """Let go of the store for a while; the application goes on."""
        _log.warning("Records of %s cannot be stored: %s; trying again in %.0f s", self._dataset, why, RETRY_S)
        held: tuple[Any, ...] = self._open or ()
        self._open = None
        for part in reversed(held):
            with Caught():
                (part.release if isinstance(part, Lease) else part.close)()
        self._closed_until = time.monotonic() + RETRY_S

    def _now(self) -> str:
        moment = self._clock.now()
        return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"
