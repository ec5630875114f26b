"""Records calls of an application in production, without blocking it and without raising into it."""

from __future__ import annotations

import atexit
import contextlib
import functools
import inspect
import os
import random
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from queue import Empty, Queue
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

import msgspec

from deemster.errors import ConfigurationError
from deemster.errors.user_code_guard import UserCodeGuard
from deemster.models.clock import Clock, clock_from_environment
from deemster.monitoring.recording_writer import Record, RecordingWriter
from deemster.records import Usage

LARGEST = 8 * 1024 * 1024
_BATCH = 256
_PAUSE_S = 1.0
# How often an idle recorder checks whether its recording is old enough to be closed.
_LOOK_S = 10.0
_F = TypeVar("_F", bound=Callable[..., Any])
_encode = msgspec.json.Encoder(enc_hook=msgspec.to_builtins).encode


class RecorderCounts(NamedTuple):
    """What became of the calls that a recorder has seen.

    Attributes:
        seen: All of them.
        sampled: Of them, those that were chosen by the rate.
        recorded: Those that are stored.
        dropped: Those the full queue had no room for.
        withheld: Those the redaction kept back: it returned None or failed.
        failed: Those that are no JSON data, are too large, or could not be stored.
    """

    seen: int = 0
    sampled: int = 0
    recorded: int = 0
    dropped: int = 0
    withheld: int = 0
    failed: int = 0


_decode = msgspec.json.Decoder(Record).decode


class Beside(NamedTuple):
    """What is known of a call beside input and output; None for what the output itself may say."""

    tags: Iterable[str] | None = None
    metadata: Mapping[str, Any] | None = None
    retrieved: Any = None
    usage: Usage | None = None
    model: str | None = None


class Recorder:
    """Records some of the calls of an application, to be scored later with ``deemster run --outputs RUN``.

    It never blocks the application and never raises into it: a call is encoded, put into a bounded queue, and a thread
    of its own redacts and stores it. What finds no room is dropped and counted in `counts`. A child that the process
    forks begins a recording of its own.

    Args:
        dataset: What the recordings belong to; ``deemster monitor`` finds them by this name.
        rate: The share of calls that is recorded, drawn at random.
        redact: Given each ``Record`` before anything is stored; returns it, changed or not, or None to keep it back.
            Where it raises, the record is not stored.
        store: The store's file, or a PostgreSQL URL; `.deemster/runs.db` unless given.
        queue: How many records may wait.
        rotate: After how many records a new recording begins; it also does after an hour. A recording can be scored
            once it has ended.
        seed: Makes the choice repeatable.
        clock: The time; the machine's own unless given.

    Raises:
        ConfigurationError: The name is blank, or the rate or the length of the queue makes no sense.
    """

    def __init__(
        self,
        dataset: str,
        *,
        rate: float = 1.0,
        redact: Callable[[Record], Record | None] | None = None,
        store: str | Path | None = None,
        queue: int = 1000,
        rotate: int = 1000,
        seed: int | None = None,
        clock: Clock | None = None,
    ) -> None:
        if not isinstance(dataset, str) or not dataset.strip():
            raise ConfigurationError(f"A recorder needs the name of what it records, not {dataset!r}.")
        if isinstance(rate, bool) or not isinstance(rate, (int, float)) or not 0 <= rate <= 1:
            raise ConfigurationError(f"`rate` is a share between 0 and 1, not {rate!r}.")
        for name, length in (("queue", queue), ("rotate", rotate)):
            if type(length) is not int or length < 1:
                raise ConfigurationError(f"`{name}` is a number of records of at least 1, not {length!r}.")
        self._rate, self._redact, self._length = float(rate), redact, queue
        self._clock = clock or clock_from_environment()
        self._draw = random.Random(seed).random  # noqa: S311 - a share of calls, no secret
        self._open_writer = functools.partial(
            RecordingWriter, dataset, store=store, clock=self._clock, rate=self._rate, records=rotate
        )
        self.restart()
        # At exit the interpreter waits for the queue, but not for a recorder that was garbage-collected.
        atexit.register(_weakly(self.close))
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=_weakly(self.pause),
                after_in_parent=_weakly(self.resume),
                after_in_child=_weakly(self.restart),
            )

    def restart(self) -> None:
        """Begin with an empty queue: a forked child has no thread of its parent."""
        self._busy, self._is_paused = threading.Lock(), False
        self._lock = threading.Lock()
        self._queue: Queue[bytes | None] = Queue(self._length)
        self._thread: threading.Thread | None = None
        self._writer: RecordingWriter | None = None
        self._is_closed = False
        self._counts = dict.fromkeys(RecorderCounts._fields, 0)

    def pause(self) -> None:
        """Wait until nothing is being stored, and end the recording: no SQLite connection may be open across a fork."""
        self._is_paused = self._busy.acquire(timeout=_PAUSE_S)
        if self._is_paused and self._writer is not None:
            self._writer.close()

    def resume(self) -> None:
        """Continue to store after a pause."""
        if self._is_paused:
            self._is_paused = False
            self._busy.release()

    @property
    def counts(self) -> RecorderCounts:
        """What became of the calls so far."""
        with self._lock:
            return RecorderCounts(**self._counts)

    def record(
        self,
        input: Mapping[str, Any],  # noqa: A002 - the word for it in datasets and targets
        output: Any = None,
        *,
        error: str | BaseException | None = None,
        tags: Iterable[str] = (),
        metadata: Mapping[str, Any] | None = None,
        retrieved: Any = None,
        usage: Usage | None = None,
        model: str | None = None,
    ) -> bool:
        """Record one call, if the rate chooses it and there is room. Returns at once and never raises.

        Args:
            input: What the application was asked.
            output: What it said: text, JSON data or an ``Output``.
            error: In place of an output, why it failed.
            tags: Words to slice by.
            metadata: Whatever else is to be known, such as a request's id.
            retrieved: The passages it used.
            usage: Tokens, money and time.
            model: The model behind it.

        Returns:
            Whether it was put into the queue.
        """
        if not self.begin_call():
            return False
        return self.enqueue(input, output, Beside(tags, metadata, retrieved, usage, model), error=error)

    def begin_call(self) -> bool:
        """Count a call; whether the rate chooses it. The caller then hands it over with `enqueue`."""
        self._count("seen")
        if self._rate < 1 and self._draw() >= self._rate:
            return False
        self._count("sampled")
        return True

    def enqueue(
        self,
        input: Any,  # noqa: A002 - as above
        output: Any,
        beside: Beside,
        *,
        error: str | BaseException | None,
    ) -> bool:
        """Put a call that was chosen into the queue; whether there was room. See ``record``."""
        with UserCodeGuard() as caught:
            if isinstance(output, (bytes, bytearray, memoryview)):
                # They would become base64, which is not what the application said.
                raise TypeError("An output is text or JSON data.")
            given = {name: value for name, value in beside._asdict().items() if value is not None}
            own = {name: getattr(output, name, None) for name in ("retrieved", "usage", "model")}
            row = _encode(
                {
                    "input": input,
                    "output": getattr(output, "text", output),
                    "error": None if error is None else _error_text(error),
                    "at": f"{self._clock.now():%Y-%m-%dT%H:%M:%S.%f}Z",
                    **own,
                    **given,
                }
            )
            return self._put(row)
        if caught.error is not None:
            self.count_failure()
        return False

    def count_failure(self) -> None:
        """Count a chosen call that cannot be recorded."""
        self._count("failed")

    def watch(self, function: _F) -> _F:
        """Wrap a function, sync or async, so that its calls are recorded; its errors are recorded and raised.

        Its arguments by name are the input; a function of one map is recorded with that map as its input.
        """
        signature = inspect.signature(function)
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def watched_async(*arguments: Any, **named: Any) -> Any:
                with _Watched(self, signature, arguments, named) as call:
                    call.output = await function(*arguments, **named)
                return call.output

            return watched_async  # type: ignore[return-value]

        @functools.wraps(function)
        def watched(*arguments: Any, **named: Any) -> Any:
            with _Watched(self, signature, arguments, named) as call:
                call.output = function(*arguments, **named)
            return call.output

        return watched  # type: ignore[return-value]

    def close(self, timeout_s: float = 5.0) -> bool:
        """Store what waits, and end the recording.

        Args:
            timeout_s: How long to wait for that at most.

        Returns:
            Whether everything in the queue was dealt with.
        """
        with self._lock:
            thread, was_closed, self._is_closed = self._thread, self._is_closed, True
        if thread is None:
            return True
        if not was_closed:
            with UserCodeGuard():
                self._queue.put(None, timeout=timeout_s)
        thread.join(timeout_s)
        return not thread.is_alive()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _put(self, row: bytes) -> bool:
        if len(row) > LARGEST:
            self._count("failed")
            return False
        with self._lock:
            if self._is_closed or self._queue.full():
                self._counts["dropped"] += 1
                return False
            if self._thread is None:
                thread = threading.Thread(target=self._work, name="deemster-recorder", daemon=True)
                # This raises where no thread can start; then `close` waits for none.
                thread.start()
                self._thread = thread
            self._queue.put_nowait(row)
        return True

    def _count(self, name: str, times: int = 1) -> None:
        with self._lock:
            self._counts[name] += times

    def _work(self) -> None:
        """Redact and store the queued records, until None comes."""
        writer = self._writer = self._open_writer()
        goes_on = True
        while goes_on:
            rows = self._take_queued()
            # A full queue had no room for the None that ends it: a closed recorder ends with an empty queue.
            goes_on = None not in rows and not (self._is_closed and self._queue.empty())
            records = [record for row in rows if row is not None and (record := self._redacted(row)) is not None]
            with self._busy:
                stored = writer.put(records)
            self._count("recorded", stored)
            self._count("failed", len(records) - stored)
        with self._busy:
            writer.close()

    def _take_queued(self) -> list[bytes | None]:
        """The queued records; an empty list where none came for a while."""
        rows: list[bytes | None] = []
        with contextlib.suppress(Empty):
            rows.append(self._queue.get(timeout=_LOOK_S))
            while len(rows) < _BATCH:
                rows.append(self._queue.get_nowait())
        return rows

    def _redacted(self, row: bytes) -> Record | None:
        with UserCodeGuard() as unread:
            record: Record | None = _decode(row)
        if unread.error is not None:
            self.count_failure()
            return None
        if self._redact is not None:
            with UserCodeGuard(everything=True) as caught:
                record = self._redact(record)  # type: ignore[arg-type]
            if caught.error is not None or not isinstance(record, Record):
                self._count("withheld")
                return None
        return record


class _Watched:
    """One call of a watched function: its input is encoded when it begins, its output when it ends."""

    def __init__(
        self, recorder: Recorder, signature: inspect.Signature, arguments: tuple[Any, ...], named: Mapping[str, Any]
    ) -> None:
        self.output: Any = None
        self._recorder = recorder
        self._input: msgspec.Raw | None = None
        if recorder.begin_call():
            with UserCodeGuard():
                self._input = msgspec.Raw(_encode(_input(signature.bind(*arguments, **named).arguments)))
            if self._input is None:
                recorder.count_failure()
        self._began = time.perf_counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._input is not None:
            taken_ms = (time.perf_counter() - self._began) * 1000
            usage = getattr(self.output, "usage", None) or Usage(calls=0, latency_ms=taken_ms)
            self._recorder.enqueue(self._input, self.output, Beside(usage=usage), error=error)


def _input(arguments: Mapping[str, Any]) -> Any:
    first = next(iter(arguments.values()), None)
    return first if len(arguments) == 1 and isinstance(first, Mapping) else arguments


def _weakly(method: Callable[[], object]) -> Callable[[], None]:
    """A function that calls a method as long as its object is alive elsewhere."""
    held = weakref.WeakMethod(method)

    def call() -> None:
        found = held()
        if found is not None:
            found()

    return call


def _error_text(error: str | BaseException) -> str:
    return error if isinstance(error, str) else f"{type(error).__name__}: {error}"
