"""The life-cycle of every stored run: begin, resume, write, give up, close, under one lease."""

from __future__ import annotations

import secrets
from asyncio import CancelledError
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cached_property, partial
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgspec

from deemster.engine.kept_calls import KeptCalls
from deemster.engine.kept_prompts import KeptPrompts, WhichPrompts
from deemster.engine.settle_marks import needs_settling, settle_marks
from deemster.errors import ConfigurationError, DeemsterError, Issue, RunExistsError, StoreError
from deemster.formats.streamed_list import Stream
from deemster.models.call_log import LoggedCall
from deemster.models.secret_redaction import Secrets
from deemster.records import Execution, Metric, MetricCard, SampleFacts
from deemster.runs.run_figures import NO_FIGURES
from deemster.runs.run_identity import differing_parts, identity_differences
from deemster.runs.run_storage import RunStorage
from deemster.runs.run_timer import RunTimer
from deemster.store import Lease, RunFacts, RunRow, Store
from deemster.store.run_facts import RunEnd, RunStatus

_MOST_RUNS_OF_ONE_ID = 10_000
_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(LoggedCall)


class RunDefinition(NamedTuple):
    """A run as its kind defines it: what a new one begins with, and what a resumed one must still be.

    Attributes:
        facts: What the store keeps of it, its kind and identity included.
        samples: Gives its samples, in order.
        cards: Its metrics, in the order of the marks.
        shape_changes: Lists the changes since a run of a store that `allow_changed` does not permit, such as other
            samples.
    """

    facts: RunFacts
    samples: Callable[[], Iterable[SampleFacts]]
    cards: Sequence[MetricCard] = ()
    shape_changes: Callable[[Store, RunRow], list[str]] = lambda _, __: []


class StoredRun:
    """A stored run that this process writes under a lease.

    Used as a context, it gives the run up where an error ends the block. It always closes the writer and releases the
    lease.

    Args:
        store: The store.
        lease: The right to write the run.
        row: The run as the store had it when its lease was taken.
        timer: Says when it ended, and how long it took.
        scoring: Which scoring is written; 0 is the run's own.
        is_new: Whether nothing was stored of it before.
        changes: How its identity differs from the stored one, where that was allowed.

    Attributes:
        writer: Writes its executions or graded items.
    """

    def __init__(
        self,
        store: Store,
        lease: Lease,
        row: RunRow,
        *,
        timer: RunTimer,
        scoring: int = 0,
        is_new: bool = False,
        changes: Sequence[str] = (),
    ) -> None:
        self.store = store
        self.row = row
        self.timer = timer
        self.scoring = scoring
        self.is_new = is_new
        self.changes = changes
        self._lease = lease
        self.writer = store.writer(row.id, scoring=scoring, outputs=scoring == 0)

    @cached_property
    def calls(self) -> KeptCalls:
        """Keeps its model calls as they end."""
        token = str(self.row.facts.get("token", self.row.id))
        return KeptCalls(
            f"{token}/{self.scoring}" if self.scoring else token,
            lambda call: self.writer.add_calls([(call.id, _ENCODER.encode(call))]),
            self._stored_calls,
            commit=self.writer.flush if self.store.durable else None,
        )

    def prompts(self, which: WhichPrompts, *, secrets: Secrets) -> KeptPrompts | None:
        """Keeps what judges are asked; None where nothing of it is kept.

        Args:
            which: Which prompts are kept.
            secrets: What must not be kept.
        """
        return None if which == "none" else KeptPrompts(which, self.writer.add_prompts, secrets=secrets)

    @property
    def id(self) -> str:
        """The run's id."""
        return self.row.id

    @property
    def mixed(self) -> tuple[str, ...]:
        """What changed when the run was resumed."""
        return tuple(self.row.facts.get("mixed", ()))

    def add(self, executions: Sequence[Execution]) -> None:
        """Store executions, with the marks as they were made, in place of earlier ones.

        Raises:
            StoreError: The store fails.
        """
        self.writer.add(executions, at=self.timer.now())

    def executions(self, *, settled: bool = False) -> Iterator[Execution]:
        """Its executions, with the marks of the scoring that is written as they were made, or final.

        Raises:
            StoreError: The store fails.
        """
        # Resuming has reported damage already. Where the run ends before it is run again, it counts as not run.
        ignore = None if self.is_new or self.scoring else lambda _: None
        return self.store.executions(self.id, scoring=self.scoring, settled=settled, on_damage=ignore)

    def settle(self, metrics: Sequence[Metric]) -> None:
        """Make the marks final that need all of the run.

        Raises:
            StoreError: The store fails.
        """
        self.writer.flush()
        if needs_settling(metrics):
            marked = Stream(lambda: (execution for execution in self.executions() if execution.marks))
            self.store.settle(self.id, self.scoring, Stream(lambda: settle_marks(metrics, marked)))

    def mark_running(self, identity: Mapping[str, Any]) -> None:
        """Note that a resumed run continues, with what changed since.

        Args:
            identity: Its identity, which replaces the stored one where that changed.

        Raises:
            StoreError: The store fails.
        """
        if not self.changes:
            self.store.amend(self.id, status="running", facts=NO_FIGURES)
            return
        mixed = {"mixed": [*self.mixed, *self.changes]}
        self.store.amend(self.id, status="running", facts={**mixed, **NO_FIGURES}, identity=identity)
        self.row = msgspec.structs.replace(self.row, identity=identity, facts={**self.row.facts, **mixed})

    def _stored_calls(self) -> Iterator[LoggedCall]:
        """The calls of earlier processes. One that cannot be read is made again."""
        if not self.is_new:
            for _, body in self.store.calls(self.id, scoring=self.scoring, on_damage=lambda _: None):
                with suppress(msgspec.MsgspecError, UnicodeDecodeError):
                    yield _DECODER.decode(body)

    def duration_s(self) -> float:
        """How long the run took so far, without the time between its parts."""
        return round((self.row.duration_s or 0.0) + self.timer.seconds(), 3)

    def close(
        self,
        status: RunStatus,
        reason: str | None,
        *,
        finished_at: str | None = None,
        duration_s: float | None,
        facts: Mapping[str, Any] | None = None,
        is_final: bool = False,
        flush: bool = True,
    ) -> None:
        """Commit what was written, note how the run ended, and release the lease.

        Args:
            status: How it ended.
            reason: Why it is not complete.
            finished_at: When it ended; now unless given.
            duration_s: How long it took; None where that is not measured.
            facts: Added to the run's facts.
            is_final: Whether a resume has nothing left to do, so that no model call needs to be kept.
            flush: Whether what was written is committed first; a writer that failed cannot.

        Raises:
            StoreError: The store fails.
        """
        if flush:
            self.writer.flush()
        end = RunEnd(status, reason, finished_at or self.timer.now(), duration_s)
        if self.scoring:
            self.store.finish_scoring(self.id, self.scoring, end, facts=facts, forget_calls=is_final, release=True)
        else:
            self.store.finish(self.id, end, facts=facts, forget_calls=is_final, release=True)

    def give_up(self, error: BaseException) -> None:
        """Note that the run cannot continue, and why. A store that fails may refuse even that.

        Raises:
            StoreError: The store fails, and it was something else that ended the run.
        """
        reason = _end_reason(error)
        ending = partial(self.close, "incomplete", reason, duration_s=self.duration_s(), facts={"stopped": reason})
        if isinstance(error, StoreError):
            # What judges said is paid for: it is committed while the lease is held, if the store takes it.
            with suppress(StoreError):
                self.writer.flush()
            with suppress(StoreError):
                ending(flush=False)
        else:
            ending()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            # A rescoring that ends early stays open: the same rescoring continues it.
            if error is not None and not self.scoring:
                self.give_up(error)
        finally:
            try:
                self.writer.__exit__(kind, error, trace)
            finally:
                self._lease.release()


def _end_reason(error: BaseException) -> str:
    """Why a run ended, in one line. The text of an error that nobody expected may hold anything, so it is left out."""
    if isinstance(error, DeemsterError):
        return str(error).partition("\n")[0]
    if isinstance(error, (KeyboardInterrupt, CancelledError)):
        return "It was interrupted."
    return f"An unexpected {type(error).__name__} ended it."


def open_run(definition: RunDefinition, storage: RunStorage, *, resumed: str | None, timer: RunTimer) -> StoredRun:
    """Resume a run that was found in the store, or begin a new one.

    Args:
        definition: The run.
        storage: Where it is stored.
        resumed: The id of the run to resume, as `find_resumed` found it; None for a new one.
        timer: When it began.

    Raises:
        StoreError: The store fails, or the run that is to be resumed is held by another process.
        ConfigurationError: The run that is to be resumed is another one; every difference is listed.
    """
    if resumed is None:
        run = begin_run(definition, storage.store, timer=timer)
    else:
        run = _resume_run(definition, storage, resumed, timer=timer)
    storage.begun(run.id)
    return run


def begin_run(definition: RunDefinition, store: Store, *, timer: RunTimer) -> StoredRun:
    """Begin a run; one that would have the id of another gets a number after it.

    Args:
        definition: The run.
        store: Where it is stored.
        timer: When it began.

    Raises:
        StoreError: The store fails.
    """
    facts = definition.facts
    for number in range(1, _MOST_RUNS_OF_ONE_ID):
        numbered = facts if number == 1 else msgspec.structs.replace(facts, id=f"{facts.id}-{number}")
        try:
            lease = store.begin(numbered, definition.samples(), cards=definition.cards)
        except RunExistsError:
            continue
        return StoredRun(store, lease, store.run(lease.run_id), timer=timer, is_new=True)
    raise StoreError(Issue(f"There are {_MOST_RUNS_OF_ONE_ID:,} runs that would be called `{facts.id}`.", store.where))


def open_scoring(
    store: Store, lease: Lease, cards: Sequence[MetricCard], *, identity: Mapping[str, Any], timer: RunTimer
) -> StoredRun:
    """Begin a further scoring of a stored run, or continue an unfinished one of the same identity.

    Args:
        store: Where the run is stored.
        lease: The right to write the run.
        cards: The metrics, in the order of the marks.
        identity: The identity of the scoring.
        timer: When it began.

    Raises:
        StoreError: The store fails.
    """
    run = lease.run_id
    number = store.open_scoring(run, cards, identity=identity, started_at=timer.started_at)
    return StoredRun(store, lease, store.run(run), timer=timer, scoring=number)


def new_token() -> str:
    """A random token; runs that start at one time of a frozen clock share an id, and must not share their calls."""
    return secrets.token_hex(8)


def _resume_run(definition: RunDefinition, storage: RunStorage, run_id: str, *, timer: RunTimer) -> StoredRun:
    """Take the lease of a stored run, and check that it is the one that is defined."""
    store = storage.store
    with ExitStack() as failing:
        lease = failing.enter_context(store.lease(run_id))
        # The process that had the lease before may have written until it was ours.
        row = store.run(run_id)
        changes = identity_differences(row.identity, definition.facts.identity)
        if changes:
            _check_changes(definition, storage, row, changes)

        run = StoredRun(store, lease, row, timer=timer, changes=changes)
        failing.pop_all()
        return run


def _check_changes(definition: RunDefinition, storage: RunStorage, row: RunRow, changes: Sequence[str]) -> None:
    """Refuse a run whose identity changed, unless the storage allows that and the run keeps its shape."""
    kind = definition.facts.kind
    shape_changes = definition.shape_changes(storage.store, row)
    if shape_changes:
        way_out = f"Start a new {kind}: not even `--allow-changed` mixes these."
        raise _refuse_changes(definition, row, [*changes, *shape_changes], way_out)

    if not storage.allow_changed:
        marked = "the report is then marked as mixed" if kind == "run" else "it is then marked as mixed"
        mixed = f", or continue with `--allow-changed`: {marked}" if row.traits.may_be_mixed else ""
        raise _refuse_changes(definition, row, changes, f"Start a new {kind}{mixed}.")


def _refuse_changes(definition: RunDefinition, row: RunRow, changes: Sequence[str], way_out: str) -> ConfigurationError:
    """The error that says why a run cannot be resumed, and what the user can do."""
    refused = f"The {row.kind} `{row.id}` cannot be resumed"
    if len(changes) == 1 and differing_parts(row.identity, definition.facts.identity) == ["target.source"]:
        refusal = f"{refused}: the code of `{row.identity['target']['python']}` changed since it started."
        return ConfigurationError(map(Issue, [refusal, way_out]))
    return ConfigurationError(map(Issue, [f"{refused}: this changed since it started.", *changes, way_out]))
