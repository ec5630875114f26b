"""Where the executions of a run are kept while it goes on: a spool that ends with the program, or a store."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol

import msgspec

from deemster import __version__
from deemster.errors import DeemsterError, StoreError
from deemster.models.clock import Clock
from deemster.records import Execution, MetricCard
from deemster.records.shared_call_cost import NOTHING_SPENT, Spending
from deemster.report import BudgetEntry, Report, RunSamples
from deemster.runs import metric_catalog as catalog
from deemster.runs._begin_run import begin_run
from deemster.runs._build_report import RunRecord, batches
from deemster.runs._execution_batch import WorkItem
from deemster.runs._final_marks import needs_settling, settle_marks
from deemster.runs._live_tally import LiveTally
from deemster.runs._pending_answers import PendingStorage
from deemster.runs._resume_run import choose_run, reconcile_job
from deemster.runs._run_identity import evaluation_identity, format_time, run_id
from deemster.runs._run_settings import settings_facts, stop_reason, stored_changes
from deemster.runs.evaluation_job import Job
from deemster.runs.resume_backlog import ResumeBacklog
from deemster.runs.stored_run import ExecutionSlots, StoredSamples, stored_report
from deemster.store import RunRow, Spool, Store, Writer
from deemster.targets.saved_outputs import SavedOutputs

# With the time until a commit, answers that wait for their judges are kept within a quarter of a second.
_HOLD_S = 0.1


class RunStorage(NamedTuple):
    """How a run is stored.

    Attributes:
        store: Where.
        resume: The run to go on with: its id, True for the last unfinished one of this suite, None for a new one.
        allow_changed: Whether to go on where something changed since.
        tell: Told which run is gone on with, and how much of it is left.
    """

    store: Store
    resume: str | bool | None = None
    allow_changed: bool = False
    tell: Callable[[str], None] = lambda _: None


class PriorProgress(NamedTuple):
    """How far a run was before it went on.

    Attributes:
        done: Executions that are finished.
        unscored: Their marks that are no score.
        spent: What the models used.
    """

    done: int = 0
    unscored: int = 0
    spent: Spending = NOTHING_SPENT


class RunWriter(Protocol):
    """Keeps the executions of a run while it goes on, and what else is known of it.

    Attributes:
        token: Tells the run's own calls of models from those of others; None where nobody resumes it.
        job: What is run; the order of its metrics is that of the marks.
        before: How far the run was.
        works: What is left to do; None for everything.
        hold: Keeps answers that wait for their marks; None where nobody resumes the run.
    """

    token: str | None
    job: Job
    before: PriorProgress
    works: Iterable[WorkItem] | None
    hold: PendingStorage | None

    def add(self, executions: Sequence[Execution]) -> None:
        """Keep executions, with the marks as they were made."""
        ...

    def settle(self) -> None:
        """Make the marks final that need all of a run."""
        ...

    def remains(self, *, stopped: str | None, budget: BudgetEntry | None) -> RunRecord:
        """What the run left behind."""
        ...

    def close(self, report: Report, *, stopped: str | None) -> Report:
        """Note how the run ended; its report."""
        ...


@contextmanager
def open_run_writer(
    job: Job, storage: RunStorage | None, *, order: str, live: LiveTally, clock: Clock, warn: Callable[[str], None]
) -> Iterator[RunWriter]:
    """Where the executions of a run are kept, while it goes on.

    Args:
        job: What is run.
        storage: How it is stored; None where it ends with the program.
        order: A digest of the samples' ids in their order.
        live: Counts what is kept of a run that is gone on with.
        clock: The time.
        warn: Told what a person should know.

    Raises:
        StoreError: The store fails, or the run that is to be resumed is not there or in other hands.
        ConfigurationError: The run that is to be resumed is another one.
    """
    cards = metric_cards(job)
    if storage is None:
        yield SpooledWriter(job, cards, clock=clock)
        return
    row = None if not storage.resume else choose_run(storage.store, job, storage.resume)
    if row is None and storage.resume:
        storage.tell("There is no run to resume; this is a new one.")
    with (
        begin_run(job, cards, storage.store, clock, order=order)
        if row is None
        else storage.store.lease(row.id) as lease
    ):
        is_new = row is None
        # Whoever had the run before may have gone on with it until the lease was ours.
        row = storage.store.run(lease.run_id)
        job, row, backlog = (
            (job, row, None) if is_new else _left(job, cards, row, storage, warn, order=order, live=live)
        )
        with storage.store.writer(row.id) as writer:
            ledger = StoredWriter(job, storage.store, row, backlog, writer=writer, clock=clock)
            try:
                yield ledger
            except StoreError:
                raise
            except DeemsterError as error:
                ledger.give_up(error)
                raise


def metric_cards(job: Job) -> tuple[MetricCard, ...]:
    """What reports say of a job's metrics beside their numbers."""
    thresholds = job.plan.thresholds
    return tuple(catalog.card(metric, threshold=thresholds.get(metric.name)) for metric in job.plan.metrics)


class SpooledWriter:
    """A run that is kept until its reports are written.

    Args:
        job: What is run.
        cards: Its metrics.
        clock: The time.
    """

    token: str | None = None
    works: Iterable[WorkItem] | None = None
    hold: PendingStorage | None = None
    before = PriorProgress()

    def __init__(self, job: Job, cards: Sequence[MetricCard], *, clock: Clock) -> None:
        self.job, self._cards, self._clock = job, cards, clock
        self._spool = Spool(samples=len(job.plan.dataset), repetitions=job.plan.repetitions)
        self._started, self._began = clock.now(), clock.elapsed_s()

    def add(self, executions: Sequence[Execution]) -> None:
        """Keep executions, with the marks as they were made."""
        self._spool.add(executions)

    def settle(self) -> None:
        """Make the marks final that need all of a run."""
        if needs_settling(self.job.plan.metrics):
            for batch in batches(settle_marks(self.job.plan.metrics, self._spool)):
                self._spool.add(batch)

    def remains(self, *, stopped: str | None, budget: BudgetEntry | None) -> RunRecord:
        """What the run left behind."""
        job = self.job
        return RunRecord(
            id=run_id(self._started, job, self._cards),
            suite=job.suite,
            started_at=format_time(self._started),
            finished_at=format_time(self._clock.now()),
            duration_s=_since(self._began, self._clock),
            seed=job.seed,
            tool_version=__version__,
            samples=job.plan.dataset,
            repetitions=job.plan.repetitions,
            cards=self._cards,
            executions=self._spool,
            stopped=stopped,
            budget=budget,
        )

    def close(self, report: Report, *, stopped: str | None) -> Report:  # noqa: ARG002 - nothing is noted
        """The report."""
        return report


class StoredWriter:
    """A run that is kept in a store.

    Args:
        job: What is run.
        store: Where it is kept.
        row: The run as the store has it.
        backlog: What is left of it to do; None for everything.
        writer: Writes its executions.
        clock: The time.
    """

    def __init__(
        self, job: Job, store: Store, row: RunRow, backlog: ResumeBacklog | None, *, writer: Writer, clock: Clock
    ) -> None:
        self.job, self._store, self._row, self._clock = job, store, row, clock
        self._writer, self._backlog = writer, backlog
        self.token: str | None = str(row.facts.get("token", row.id))
        self._began = clock.elapsed_s()
        self.before = (
            PriorProgress() if backlog is None else PriorProgress(backlog.done, backlog.unscored, backlog.spent)
        )
        self.works: Iterable[WorkItem] | None = None if backlog is None else backlog.works(job.plan.dataset)
        self.hold: PendingStorage | None = PendingStorage(self.add, 0.0 if store.durable else _HOLD_S)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is left to do of a run that has come to its end."""
        return self._backlog is not None and not len(self._backlog) and self._row.status != "running"

    def add(self, executions: Sequence[Execution]) -> None:
        """Keep executions, with the marks as they were made.

        Raises:
            StoreError: They cannot be kept.
        """
        self._writer.add(executions, at=format_time(self._clock.now()))

    def settle(self) -> None:
        """Make the marks final that need all of a run.

        Raises:
            StoreError: They cannot be kept.
        """
        self._writer.flush()
        metrics = self.job.plan.metrics
        if needs_settling(metrics) and not self.is_idle:
            raw = self._places(settled=False)
            self._store.settle(self._row.id, 0, settle_marks(metrics, raw))

    def remains(self, *, stopped: str | None, budget: BudgetEntry | None) -> RunRecord:
        """What the run left behind."""
        row = self._row
        finished_at, duration_s = row.finished_at, row.duration_s or 0.0
        if finished_at is None or not self.is_idle:
            finished_at = format_time(self._clock.now())
            duration_s = round(duration_s + _since(self._began, self._clock), 3)
        return RunRecord(
            id=row.id,
            suite=row.suite,
            started_at=row.started_at,
            finished_at=finished_at,
            duration_s=duration_s,
            seed=row.seed,
            tool_version=row.tool_version,
            samples=self._samples(),
            repetitions=row.repetitions,
            cards=row.scorings[0].cards,
            executions=self._places(settled=True),
            stopped=stop_reason(row.facts) if self.is_idle else stopped,
            mixed=stored_changes(row.facts),
            budget=budget,
        )

    def close(self, report: Report, *, stopped: str | None) -> Report:
        """Note how the run ended; its report, with what rescoring added meanwhile.

        Raises:
            StoreError: It cannot be noted.
        """
        run = report.run
        facts = {**settings_facts(self.job), "budget": msgspec.to_builtins(report.budget)}
        if not self.is_idle:
            facts["stopped"] = stopped
        self._store.finish(
            run.id,
            status=run.status,
            reason=run.reason,
            finished_at=run.finished_at,
            duration_s=run.duration_s,
            facts=facts,
            release=True,
        )
        return report if len(self._row.scorings) == 1 else stored_report(self._store, run.id)

    def give_up(self, error: DeemsterError) -> None:
        """Note that the run cannot go on as it is set up."""
        self._writer.flush()
        self._store.finish(
            self._row.id,
            status="incomplete",
            reason=str(error).partition("\n")[0],
            finished_at=format_time(self._clock.now()),
            duration_s=round((self._row.duration_s or 0.0) + _since(self._began, self._clock), 3),
            facts={"stopped": str(error).partition("\n")[0]},
        )

    def _samples(self) -> RunSamples:
        """The samples of the report: the dataset itself where it is the one that is kept, since that is read faster."""
        dataset, row = self.job.plan.dataset, self._row
        known = (row.fingerprint, row.dataset, row.facts.get("schema_version"))
        is_kept = not stored_changes(row.facts) and known == (dataset.fingerprint, dataset.name, dataset.schema_version)
        return dataset if is_kept else StoredSamples(self._store, row)

    def _places(self, *, settled: bool) -> ExecutionSlots:
        row = self._row
        # What is damaged was told when the run was taken up again. Where it ends before that is run, it was not run.
        tell = None if self._backlog is None else _heard
        read = functools.partial(self._store.executions, row.id, scoring=0, settled=settled, on_damage=tell)
        return ExecutionSlots(read, samples=row.samples, repetitions=row.repetitions)


def _left(
    job: Job,
    cards: Sequence[MetricCard],
    row: RunRow,
    storage: RunStorage,
    warn: Callable[[str], None],
    *,
    order: str,
    live: LiveTally,
) -> tuple[Job, RunRow, ResumeBacklog]:
    """What is left to do of a run, with the job that does it and the run as it stands then."""
    store = storage.store
    job, changes = reconcile_job(job, cards, row, store, order=order, allowed=storage.allow_changed)
    told: set[str] = set()

    def tell(message: str) -> None:
        if message not in told:
            told.add(message)
            warn(f"{message} What is damaged is run again.")

    backlog = ResumeBacklog(
        functools.partial(store.executions, row.id, scoring=0, settled=False, on_damage=tell),
        samples=row.samples,
        repetitions=row.repetitions,
        retarget=not isinstance(job.plan.target, SavedOutputs),
        note=live.note if live.resume(metric_cards(job)) else None,
    )
    storage.tell(backlog.told(row.id))
    if not len(backlog):
        return job, row, backlog
    if changes:
        mixed = {"mixed": [*stored_changes(row.facts), *changes]}
        store.amend(row.id, status="running", facts=mixed, identity=evaluation_identity(job, cards, order=order))
        row = msgspec.structs.replace(row, facts={**row.facts, **mixed})
    else:
        store.amend(row.id, status="running")
    return job, row, backlog


def _heard(_: str) -> None:
    """What was told before is not told again."""


def _since(began: float | None, clock: Clock) -> float:
    now = clock.elapsed_s()
    return 0.0 if began is None or now is None else round(now - began, 3)
