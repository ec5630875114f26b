"""Running a job: samples through target and metrics, marks into numbers, numbers into a report."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec

from deemster.evaluation.asking import opened
from deemster.evaluation.counting import Counter, Progress
from deemster.evaluation.job import Job, spellings
from deemster.evaluation.sameness import Sameness
from deemster.records import Execution, MetricCard, Sample
from deemster.report import Report, RunNote, assemble
from deemster.run import catalog
from deemster.run.clock import Clock, clock_of_environment
from deemster.run.engine import Sink, perform
from deemster.run.plan import survey
from deemster.run.settling import Settling
from deemster.run.stopping import Stop
from deemster.store import Spool
from deemster.summary import Allowance, Tally, Totals, aggregator_name, decide, summarize, unknown_names


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
    counter = Counter(len(spool), progress)

    def keep(executions: Sequence[Execution]) -> None:
        tally.add(executions)
        spool.add(executions)

    started, began = clock.now(), clock.elapsed_s()
    await _performed(job, keep=keep, clock=clock, stop=stop, counter=counter, warn=warn)
    ended, finished_s = clock.now(), clock.elapsed_s()
    summary = summarize(tally, delta=job.delta)
    missing = _missing(summary.totals, stop.reason or counter.held_back, job.allowance)
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
    return report if counter.budget is None else msgspec.structs.replace(report, budget=counter.budget)


async def _performed(
    job: Job, *, keep: Sink, clock: Clock, stop: Stop, counter: Counter, warn: Callable[[str], None]
) -> None:
    """Run the plan, and keep every execution once its marks are final."""
    settling, sameness = Settling(job.plan, keep), Sameness(job.plan)

    def sink(executions: Sequence[Execution]) -> None:
        sameness.add(executions)
        settling.add(executions)
        counter.add(executions)

    if job.plan.scorers:
        await _asked(job, sink=sink, clock=clock, stop=stop, counter=counter, warn=warn)
    else:
        await perform(job.plan, sink=sink, clock=clock, stop=stop)
    for warning in sameness.warnings():
        warn(warning)
    settling.finish()


async def _asked(
    job: Job, *, sink: Sink, clock: Clock, stop: Stop, counter: Counter, warn: Callable[[str], None]
) -> None:
    """Run the plan with a gateway to the models that its metrics ask."""
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


def _missing(totals: Totals, reason: str | None, allowance: Allowance) -> str | None:
    """Why a run is incomplete: marks that were not run, or more unscored ones than are allowed."""
    if totals.not_run:
        why = "" if reason is None else f" ({reason.rstrip('.')})"
        return f"{totals.not_run} of {totals.marks} marks were not run{why}"
    if allowance.exceeded(totals.unscored, totals.marks):
        return f"{totals.unscored} of {totals.marks} marks are unscored, above the allowance of {allowance}"
    return None


def _run_id(started: datetime, job: Job, cards: Sequence[MetricCard]) -> str:
    """A run's id: when it started, and a digest of what it was."""
    facts = (job.plan.dataset.fingerprint, *(card.identity for card in cards), job.seed, job.suite, _written(started))
    further = () if job.aggregator is None else (aggregator_name(job.aggregator),)
    digest = hashlib.sha256(repr(facts + further).encode()).hexdigest()
    return f"{started:%Y%m%dT%H%M%SZ}-{digest[:6]}"


def _written(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"
