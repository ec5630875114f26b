"""Running a job: samples through target and metrics, marks into numbers, numbers into a report."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

import msgspec

from deemster.evaluation.asking import opened
from deemster.evaluation.job import Job, spellings
from deemster.evaluation.sameness import Sameness
from deemster.model import Gateway
from deemster.model.limits import Live
from deemster.records import Execution, MetricCard, Sample, Unscored, Usage
from deemster.report import Budget, Report, RunNote, assemble
from deemster.run import catalog
from deemster.run.clock import Clock, clock_of_environment
from deemster.run.engine import perform
from deemster.run.plan import survey
from deemster.run.settling import Settling
from deemster.run.stopping import Stop
from deemster.store import Spool
from deemster.summary import Allowance, Tally, Totals, aggregator_name, decide, summarize, unknown_names

_T = TypeVar("_T")
TELL_S = 1.0


class Progress(NamedTuple):
    """How far a run is.

    Attributes:
        done: Executions that are finished.
        total: All of them.
        unscored: Marks that are no score.
        spent: What each model that was asked has used so far, by role.
        limits: What the limits of each allow at the moment.
    """

    done: int
    total: int
    unscored: int
    spent: Mapping[str, Usage | None] = {}
    limits: Mapping[str, Live] = {}


async def run(
    job: Job,
    *,
    clock: Clock | None = None,
    stop: Stop | None = None,
    warn: Callable[[str], None],
    progress: Callable[[Progress], None] | None = None,
) -> Report:
    """Run a job and report on it.

    Args:
        job: What to run.
        clock: The time; the machine's own unless given.
        stop: Asks the run to stop; what was not started is then `not_run`.
        warn: Told each warning.
        progress: Told how far the run is.

    Raises:
        InputError: A sample is malformed for a metric, the gate names something unknown, or the aggregator does not fit
            a mark.
    """
    plan, clock, stop = job.plan, clock or clock_of_environment(), stop or Stop()
    cards = [catalog.card(metric, threshold=plan.thresholds.get(metric.name)) for metric in plan.metrics]
    tally = Tally(cards, samples=len(plan.dataset), repetitions=plan.repetitions, aggregator=job.aggregator)

    def tag(position: int, sample: Sample) -> None:
        tally.tag(position, sample.tags)

    for warning in survey(plan, note=tag, strict=job.strict, discreet=job.discreet):
        warn(warning)
    names = spellings(plan.metrics)
    if job.gate is not None:
        cohorts = [name for name, _ in tally.cohorts]
        unknown_names(job.gate, metrics=names, cohorts=cohorts, aggregates=job.aggregator is not None)
    spool = Spool(samples=len(plan.dataset), repetitions=plan.repetitions)
    counter = _Counter(len(spool), progress)

    def keep(executions: Sequence[Execution]) -> None:
        tally.add(executions)
        spool.add(executions)

    settling = Settling(plan, keep)

    sameness = Sameness(plan)

    def sink(executions: Sequence[Execution]) -> None:
        sameness.add(executions)
        settling.add(executions)
        counter.add(executions)

    started, began = clock.now(), clock.elapsed_s()
    budget = await _performed(job, sink=sink, clock=clock, stop=stop, counter=counter, warn=warn)
    for warning in sameness.warnings():
        warn(warning)
    settling.finish()
    ended, finished_s = clock.now(), clock.elapsed_s()
    summary = summarize(tally, delta=job.delta)
    missing = _missing(summary.totals, stop, job.allowance)
    note = RunNote(
        id=_run_id(started, job, cards),
        suite=job.suite,
        status="incomplete" if missing else "complete",
        reason=missing,
        started_at=_written(started),
        finished_at=_written(ended),
        duration_s=0.0 if began is None or finished_s is None else round(finished_s - began, 3),
        seed=job.seed,
        varied=plan.varied,
    )
    decision = None if job.gate is None else decide(job.gate, summary, metrics=names)
    report = assemble(run=note, dataset=plan.dataset, tally=tally, summary=summary, executions=spool, gate=decision)
    return msgspec.structs.replace(report, budget=budget) if budget is not None else report


async def _performed(
    job: Job,
    *,
    sink: Callable[[Sequence[Execution]], None],
    clock: Clock,
    stop: Stop,
    counter: _Counter,
    warn: Callable[[str], None],
) -> Budget | None:
    """Run the plan, with a gateway to the models where a metric asks one; what became of a budget."""
    if not job.plan.scorers:
        await perform(job.plan, sink=sink, clock=clock, stop=stop)
        return None
    async with opened(job.asking, clock=clock, seed=job.seed, on_stop=stop.request) as gateway:
        counter.gateway = gateway
        stop.call_in(asyncio.get_running_loop(), lambda: gateway.halt(stop.reason or "stopped"))
        telling = asyncio.create_task(counter.tell_regularly())
        try:
            await perform(job.plan, sink=sink, clock=clock, stop=stop, ask=gateway.answers)
        finally:
            telling.cancel()
        for note in gateway.notes:
            warn(note)
        return counter.budget()


def _missing(totals: Totals, stop: Stop, allowance: Allowance) -> str | None:
    """Why a run is incomplete: marks that were not run, or more unscored ones than are allowed."""
    if totals.not_run:
        return f"{totals.not_run} of {totals.marks} marks were not run ({(stop.reason or '').rstrip('.')})"
    if allowance.exceeded(totals.unscored, totals.marks):
        return f"{totals.unscored} of {totals.marks} marks are unscored, above the allowance of {allowance}"
    return None


class _Counter:
    """Counts finished executions and tells how far the run is."""

    def __init__(self, total: int, progress: Callable[[Progress], None] | None) -> None:
        self.total, self.done, self.unscored, self.progress = total, 0, 0, progress
        self.gateway: Gateway | None = None
        self.cut_off = 0

    def add(self, executions: Sequence[Execution]) -> None:
        self.done += len(executions)
        if self.gateway is not None and self.gateway.budget is not None:
            self.cut_off += sum(
                any(isinstance(mark, Unscored) and mark.cause == "not_run" for mark in execution.marks)
                for execution in executions
            )
        if self.progress is not None:
            self.unscored += sum(hasattr(mark, "cause") for execution in executions for mark in execution.marks)
            self.tell()

    def tell(self) -> None:
        if self.progress is not None:
            asked = () if self.gateway is None else (self.gateway.spent, self.gateway.limits())
            self.progress(Progress(self.done, self.total, self.unscored, *asked))

    def budget(self) -> Budget | None:
        """What the run was allowed to spend, and where that stopped it; None where it had no limit."""
        limits = None if self.gateway is None else self.gateway.budget
        if limits is None:
            return None
        completed = self.done - self.cut_off
        return Budget(
            limit_usd=limits.usd,
            limit_tokens=limits.tokens,
            spent_usd=limits.spent.usd,
            spent_tokens=limits.spent.tokens,
            halted=limits.exhausted is not None,
            completed=completed,
            remaining=self.total - completed,
            reason=None if limits.exhausted is None else limits.exhausted.rstrip("."),
        )

    async def tell_regularly(self) -> None:
        """Tell also while nothing finishes: a slow model is when people want to know."""
        while self.progress is not None:
            await asyncio.sleep(TELL_S)
            self.tell()


def finished(work: Coroutine[Any, Any, _T]) -> _T:
    """The result of a coroutine, whether or not an event loop is running already.

    Inside a running loop (a notebook) it runs in a thread of its own, so that nothing has to be patched. An interrupt
    of the caller's thread ends it there too.
    """
    if not _in_a_loop():
        return asyncio.run(work)
    with ThreadPoolExecutor(1, thread_name_prefix="deemster-evaluate") as pool:
        apart = _Apart()
        result = pool.submit(asyncio.run, apart.done(work))
        try:
            return result.result()
        finally:
            apart.cancel()


class _Apart:
    """Work in the event loop of another thread, which this one can end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._end: Callable[[], object] | None = None
        self._is_cancelled = False

    async def done(self, work: Coroutine[Any, Any, _T]) -> _T:
        """The work's result, unless it is cancelled first."""
        task, loop = asyncio.ensure_future(work), asyncio.get_running_loop()
        with self._lock:
            self._end = lambda: loop.call_soon_threadsafe(task.cancel)
            if self._is_cancelled:
                task.cancel()
        try:
            return await task
        finally:
            with self._lock:
                self._end = None

    def cancel(self) -> None:
        """End the work, where it has not ended yet."""
        with self._lock:
            self._is_cancelled = True
            if self._end is not None:
                self._end()


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _run_id(started: datetime, job: Job, cards: Sequence[MetricCard]) -> str:
    """A run's id: when it started, and a digest of what it was."""
    facts = (job.plan.dataset.fingerprint, *(card.identity for card in cards), job.seed, job.suite, _written(started))
    further = () if job.aggregator is None else (aggregator_name(job.aggregator),)
    digest = hashlib.sha256(repr(facts + further).encode()).hexdigest()
    return f"{started:%Y%m%dT%H%M%SZ}-{digest[:6]}"


def _written(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"
