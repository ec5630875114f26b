"""Running a job: samples through target and metrics, marks into numbers, numbers into a report."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Sequence

from deemster.models.clock import Clock, clock_from_environment
from deemster.records import Execution, Sample
from deemster.records.shared_call_cost import NOTHING_SPENT, Spending
from deemster.report import Report
from deemster.results import MarkTable, check_gate_names
from deemster.results.mark_table import AggregateColumns
from deemster.runs._build_report import build_report
from deemster.runs._constant_judge_warning import ConstantJudgeWatch
from deemster.runs._engine import Sink, execute_plan
from deemster.runs._execution_batch import WorkItem
from deemster.runs._final_marks import needs_settling
from deemster.runs._live_tally import LiveTally
from deemster.runs._pending_answers import PendingStorage
from deemster.runs._run_settings import card_spellings, report_settings
from deemster.runs.evaluation_job import Job, with_secrets
from deemster.runs.model_access import open_gateway
from deemster.runs.progress import Counter, Progress
from deemster.runs.run_lifecycle import RunStorage
from deemster.runs.run_plan import survey
from deemster.runs.run_writer import metric_cards, open_run_writer
from deemster.runs.stop_request import Stop


async def run_job(
    job: Job,
    *,
    clock: Clock | None = None,
    stop: Stop | None = None,
    warn: Callable[[str], None],
    progress: Callable[[Progress], None] | None = None,
    storage: RunStorage | None = None,
) -> Report:
    """Run a job and report on it.

    Args:
        job: What to run.
        clock: The time; the machine's own unless given.
        stop: Asks the run to stop; what was not started is then `not_run`.
        warn: Told each warning.
        progress: Told how far the run is.
        storage: How the run is stored; None where it ends with the program.

    Raises:
        InputError: A sample is malformed for a metric, the gate names something unknown, or the aggregator does not fit
            a mark.
        StoreError: The store fails, or the run that is to be resumed is not there or in other hands.
    """
    clock, stop = clock or clock_from_environment(), stop or Stop()
    job = with_secrets(job)
    tally, order = _surveyed(job, warn)
    live = LiveTally(tally, job.plan)
    with open_run_writer(job, storage, order=order, live=live, clock=clock, warn=warn) as writer:
        job, before = writer.job, writer.before
        total = len(job.plan.dataset) * job.plan.repetitions
        counter = Counter(total, progress, done=before.done, unscored=before.unscored)
        check = live.add if live.counts else _check(job)

        def sink(executions: Sequence[Execution]) -> None:
            writer.add(executions)
            check(executions)

        await execute_job(
            job,
            sink,
            counter=counter,
            clock=clock,
            stop=stop,
            warn=warn,
            works=writer.works,
            hold=writer.hold,
            token=writer.token,
            spent=before.spent,
        )
        writer.settle()
        stopped = stop.reason or counter.held_back or getattr(job.plan.target, "held_back", None)
        record = writer.record(stopped=stopped, budget=counter.budget)
        sameness = ConstantJudgeWatch(job.plan)
        # A run that was resumed with changes is told by the samples that are kept of it.
        fits = record.samples is job.plan.dataset and tally.cards == tuple(record.cards)
        watch = sameness.add if job.plan.scorers else None
        report = build_report(record, report_settings(job), tally=live.tally() if fits else None, watch=watch)
        for warning in sameness.warnings():
            warn(warning)
        return writer.close(report, stopped=stopped)


def _surveyed(job: Job, warn: Callable[[str], None]) -> tuple[MarkTable, str]:
    """Look at every sample before anything runs; a tally that knows the tags, and a digest of the order of the ids."""
    plan, cards = job.plan, metric_cards(job)
    tally = MarkTable(cards, samples=len(plan.dataset), repetitions=plan.repetitions, aggregator=job.aggregator)

    order = hashlib.sha256()

    def note(position: int, sample: Sample) -> None:
        tally.tag(position, sample.tags)
        order.update(sample.id.encode() + b"\0")

    for warning in survey(plan, note=note, strict=job.strict, discreet=job.discreet):
        warn(warning)
    if job.gate is not None:
        cohorts = [name for name, _ in tally.cohorts]
        parts = [f"{card.name}/{part}" for card in cards for part in card.parts]
        aggregates = job.aggregator is not None
        check_gate_names(job.gate, metrics=card_spellings(cards), cohorts=cohorts, aggregates=aggregates, parts=parts)
    return tally, order.hexdigest()


async def execute_job(
    job: Job,
    sink: Sink,
    *,
    counter: Counter,
    clock: Clock,
    stop: Stop,
    warn: Callable[[str], None],
    works: Iterable[WorkItem] | None = None,
    hold: PendingStorage | None = None,
    token: str | None = None,
    spent: Spending = NOTHING_SPENT,
) -> None:
    """Execute the plan of a job, with its models open where a metric asks one.

    Args:
        job: What is run.
        sink: Takes finished executions.
        counter: Counts them.
        clock: The time.
        stop: Asks it to stop.
        warn: Told each warning.
        works: What is left to do; everything unless given.
        hold: Stores answers that wait for their marks.
        token: Tells its model calls from those of other runs.
        spent: What it has used already.
    """

    def count(executions: Sequence[Execution]) -> None:
        sink(executions)
        counter.add(executions)

    if not job.plan.scorers:
        await execute_plan(job.plan, sink=count, clock=clock, stop=stop, works=works, hold=hold)
        return
    async with open_gateway(
        job.access, clock=clock, seed=job.seed, stop=stop, warn=warn, run=token, spent=spent
    ) as gateway:
        counter.gateway = gateway
        telling = asyncio.create_task(counter.tell_regularly())
        try:
            await execute_plan(
                job.plan,
                sink=count,
                clock=clock,
                stop=stop,
                ask=gateway.answers,
                works=works,
                pools=gateway.pools,
                hold=hold,
            )
        finally:
            telling.cancel()


def _check(job: Job) -> Sink:
    """Tries the aggregator on executions as they come: a run that it does not fit is told so before it is paid for."""
    if job.aggregator is None or needs_settling(job.plan.metrics):
        return lambda _: None
    names = [metric.name for metric in job.plan.metrics]
    samples, repetitions = len(job.plan.dataset), job.plan.repetitions
    return AggregateColumns(job.aggregator, names, samples=samples, repetitions=repetitions).add
