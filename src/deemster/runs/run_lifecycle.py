"""The life-cycle of every stored run: begin, resume, write, give up, close, under one lease."""

from __future__ import annotations

import secrets
from asyncio import CancelledError
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeAlias

import msgspec

from deemster.engine.kept_calls import KeptCalls
from deemster.engine.kept_prompts import KeptPrompts, WhichPrompts, check_keep_prompts
from deemster.engine.score_batch import needs_settling, settle_marks
from deemster.errors import ConfigurationError, DeemsterError, Issue, RunExistsError, StoreError
from deemster.formats.streamed_list import Stream
from deemster.models.call_log import LoggedCall
from deemster.models.clock import Clock, clock_from_environment
from deemster.models.secret_redaction import Secrets
from deemster.records import Execution, Metric, MetricCard, SampleFacts
from deemster.runs.run_figures import NO_FIGURES
from deemster.runs.run_identity import format_time, identity_differences
from deemster.store import Lease, RunFacts, RunRow, Store, open_store
from deemster.store.run_facts import TRAITS, RunEnd, RunKind, RunStatus

_MOST_RUNS_OF_ONE_ID = 10_000
_UNFINISHED = ("running", "incomplete")
_ENCODER, _DECODER = msgspec.json.Encoder(), msgspec.json.Decoder(LoggedCall)


class RunStorage:
    """Where a run is stored, and whether it resumes an earlier one.

    Args:
        store: The store, or what opens it when it is needed first: bad input leaves no store behind.
        resume: The id of the run to resume; True for the last unfinished one of its suite or dataset; None for a new
            run.
        allow_changed: Whether a run may be resumed although its identity changed.
        tell: Gets a sentence about the run that is resumed.
        begun: Gets the id of the run once it is begun or resumed.
        keep_prompts: Which prompts of judges are kept: of marks that did not pass, of all, or none.
    """

    def __init__(
        self,
        store: Store | Callable[[], Store],
        resume: str | bool | None = None,  # noqa: FBT001 - as users give it
        allow_changed: bool = False,  # noqa: FBT001, FBT002 - as above
        tell: Callable[[str], None] = lambda _: None,
        *,
        begun: Callable[[str], None] = lambda _: None,
        keep_prompts: WhichPrompts = "failed",
    ) -> None:
        self._store, self._opens = store, not isinstance(store, Store)
        self.resume, self.allow_changed, self.keep_prompts = resume, allow_changed, keep_prompts
        self.tell, self.begun = tell, begun

    @property
    def store(self) -> Store:
        """The store.

        Raises:
            StoreError: It cannot be opened.
        """
        if not isinstance(self._store, Store):
            self._store = self._store()
        return self._store

    def close(self) -> None:
        """Close the store, if it was opened here."""
        if self._opens and isinstance(self._store, Store):
            self._store.close()


class NotStored:
    """A run that is kept nowhere: it ends with its report."""

    store: None = None
    resume: None = None

    def close(self) -> None:
        """Close nothing."""


NOT_STORED = NotStored()
StoredOrNot: TypeAlias = RunStorage | NotStored


class Storage(NamedTuple):
    """Where runs are stored, and which one is resumed.

    Attributes:
        where: The store: a file, `postgresql://...`, or one that is open.
        resume: The run to resume: its id, or True for the last unfinished one of the dataset; None for a new run.
        durable: Whether every sample is committed by itself; a store that is open has its own way.
        allow_changed: Whether a run may be resumed although something changed; a grading is then `mixed`.
    """

    where: Store | str | Path
    resume: str | bool | None = None
    durable: bool = False
    allow_changed: bool = False


def build_storage(
    storage: Storage | Store | str | Path | None, *, keep_prompts: WhichPrompts = "failed"
) -> StoredOrNot:
    """Where a run is stored, as a program gives it.

    Args:
        storage: Where, and what is resumed; None for a run that is not stored.
        keep_prompts: Which prompts of judges are kept, as `RunStorage` has it.

    Raises:
        ConfigurationError: `keep_prompts` is no such word.
    """
    which = check_keep_prompts(keep_prompts)
    if storage is None:
        return NOT_STORED
    where, resume, durable, allow_changed = storage if isinstance(storage, Storage) else Storage(storage)
    opens = where if isinstance(where, Store) else partial(open_store, where, durable=durable)
    return RunStorage(opens, resume, allow_changed, keep_prompts=which)


class RunTimer:
    """Says when a run began, and how long it has taken so far.

    Args:
        clock: The time; the machine's own unless given.

    Attributes:
        clock: The time.
        started: When the run began.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or clock_from_environment()
        self.started, self._began = self.clock.now(), self.clock.elapsed_s()

    @property
    def started_at(self) -> str:
        """When the run began, as stores and reports write it."""
        return format_time(self.started)

    def now(self) -> str:
        """The time, as stores and reports write it."""
        return format_time(self.clock.now())

    def seconds(self) -> float:
        """How long the run has taken, to the millisecond; 0 where the clock measures no time."""
        now = self.clock.elapsed_s()
        return 0.0 if self._began is None or now is None else round(now - self._began, 3)


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
        self.store, self.row, self.timer, self.scoring = store, row, timer, scoring
        self.is_new, self.changes = is_new, changes
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


def open_run(definition: RunDefinition, storage: RunStorage, *, timer: RunTimer) -> StoredRun:
    """Begin a run, or resume the stored one that was asked for.

    Args:
        definition: The run.
        storage: Where it is stored, and what it resumes.
        timer: When it began.

    Raises:
        StoreError: The store fails, or the run that is to be resumed is missing or held by another process.
        ConfigurationError: The run that is to be resumed is another one; every difference is listed.
    """
    facts = definition.facts
    row = find_resumed(storage, kind=facts.kind, suite=facts.suite, dataset=facts.dataset)
    return open_found_run(definition, storage, None if row is None else row.id, timer=timer)


def open_found_run(definition: RunDefinition, storage: RunStorage, run: str | None, *, timer: RunTimer) -> StoredRun:
    """Resume a run that was found in the store, or begin a new one.

    Args:
        definition: The run.
        storage: Where it is stored.
        run: The id of the run to resume; None for a new one.
        timer: When it began.

    Raises:
        StoreError: The store fails, or the run that is to be resumed is held by another process.
        ConfigurationError: The run that is to be resumed is another one; every difference is listed.
    """
    if run is None:
        opened = begin_run(definition, storage.store, timer=timer)
    else:
        opened = _resume_run(definition, storage, run, timer=timer)
    storage.begun(opened.id)
    return opened


def find_resumed(
    storage: RunStorage,
    *,
    kind: RunKind,
    suite: str | None,
    dataset: str,
    accept: Callable[[RunRow], bool] = lambda _: True,
) -> RunRow | None:
    """The stored run that is to be resumed; None where a new one is to begin.

    Args:
        storage: Where it is stored, and what it resumes.
        kind: Its kind.
        suite: The name of its suite; None where it has none.
        dataset: The name of its dataset.
        accept: Whether a run that is not named by its id may be the one.

    Raises:
        StoreError: There is no run of that id, or it is of another kind.
    """
    if not storage.resume:
        return None
    row = choose_run(storage.store, storage.resume, kind=kind, suite=suite, dataset=dataset, accept=accept)
    if row is None:
        storage.tell(f"There is no {kind} to resume; this is a new one.")
    return row


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


def _refuse_changes(row: RunRow, changes: Sequence[str], way_out: str) -> ConfigurationError:
    """The error that says why a run cannot be resumed, and what the user can do."""
    refusal = f"The {row.kind} `{row.id}` cannot be resumed: it is not the same any more."
    return ConfigurationError(map(Issue, [refusal, *changes, way_out]))


def choose_run(
    store: Store,
    wanted: str | bool,  # noqa: FBT001 - what `resume` says
    *,
    kind: RunKind,
    suite: str | None,
    dataset: str | None = None,
    accept: Callable[[RunRow], bool] = lambda _: True,
) -> RunRow | None:
    """The run to resume: by its id, else the last unfinished one of the suite or dataset, else its last; or None.

    Args:
        store: Where it is stored.
        wanted: Its id, or True for the last one.
        kind: Its kind.
        suite: The name of its suite; None where it has none.
        dataset: The name of its dataset, where it has no suite.
        accept: Whether a run that is not named by its id may be the one.

    Raises:
        StoreError: There is no run of that id, or it is of another kind.
    """
    if isinstance(wanted, str):
        row = store.run(wanted, kind=kind)
        if row.kind != kind:
            message = f"`{row.id}` is a {row.kind}, which `{TRAITS[kind].command}` cannot resume."
            raise StoreError(Issue(message, store.where))
        return row
    alike = store.runs(suite=suite, dataset=None if suite else dataset, kind=kind)
    own = [row for row in alike if row.suite == suite and accept(row)]
    return next((row for row in own if row.status in _UNFINISHED), own[0] if own else None)


def _resume_run(definition: RunDefinition, storage: RunStorage, run_id: str, *, timer: RunTimer) -> StoredRun:
    """Take the lease of a stored run, and check that it is the one that is defined."""
    store = storage.store
    with ExitStack() as failing:
        lease = failing.enter_context(store.lease(run_id))
        # The process that had the lease before may have written until it was ours.
        row = store.run(run_id)
        changes = identity_differences(row.identity, definition.facts.identity)
        shape = definition.shape_changes(store, row) if changes else []
        kind = definition.facts.kind
        if shape:
            way_out = f"Start a new {kind}: not even `--allow-changed` mixes these."
            raise _refuse_changes(row, [*changes, *shape], way_out)
        if changes and not storage.allow_changed:
            marked = "the report is then marked as mixed" if kind == "run" else "it is then marked as mixed"
            mixed = f", or continue with `--allow-changed`: {marked}" if row.traits.may_be_mixed else ""
            raise _refuse_changes(row, changes, f"Start a new {kind}{mixed}.")
        run = StoredRun(store, lease, row, timer=timer, changes=changes)
        failing.pop_all()
        return run
