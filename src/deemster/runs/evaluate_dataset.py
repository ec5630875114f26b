"""The door for Python: from a dataset, a target and metrics to a report."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from types import FrameType
from typing import Any

from deemster.datasets import Dataset
from deemster.errors import ConfigurationError
from deemster.models.clock import Clock, clock_from_environment
from deemster.records import Execution, Sample
from deemster.records.shared_call_cost import NOTHING_SPENT, Spending
from deemster.report import Report, redact_report
from deemster.results import Aggregator, MarkTable, check_gate_names
from deemster.results.mark_table import AggregateColumns
from deemster.runs._constant_judge_warning import ConstantJudgeWatch
from deemster.runs._engine import PendingStorage, Sink, execute_plan
from deemster.runs._report_settings import card_spellings, report_settings
from deemster.runs._score_batch import WorkItem, needs_settling
from deemster.runs.build_report import LiveTally, build_report
from deemster.runs.evaluation_job import DELTA, Job, build_job, with_secrets
from deemster.runs.model_access import open_gateway
from deemster.runs.progress import Counter, Progress
from deemster.runs.run_lifecycle import RunStorage
from deemster.runs.run_plan import survey
from deemster.runs.run_sync import run_sync, with_parameters_of
from deemster.runs.run_writer import metric_cards, open_run_writer
from deemster.runs.stop_request import Stop
from deemster.runs.suite import CONCURRENCY, SEED
from deemster.store import Store, open_store
from deemster.targets.saved_outputs import SavedOutputs


def evaluate(
    dataset: Dataset | Iterable[Any] | str | Path,
    *,
    target: Callable[..., Any] | None = None,
    outputs: SavedOutputs | Mapping[str, Any] | str | Path | None = None,
    metrics: Sequence[Any] = (),
    group: str | None = None,
    repetitions: int | None = None,
    thresholds: Mapping[str, float] | None = None,
    gate: Mapping[str, Any] | None = None,
    concurrency: int = CONCURRENCY,
    seed: int = SEED,
    delta: float = DELTA,
    strict: bool = False,
    max_unscored: int | str = 0,
    models: Mapping[str, Any] | None = None,
    cache: str | Path | None = None,
    budget_usd: Decimal | float | None = None,
    budget_tokens: int | None = None,
    offline: bool = False,
    aggregator: Aggregator | str | Mapping[str, Any] | None = None,
    store: Store | str | Path | None = None,
    resume: str | bool | None = None,
    clock: Clock | None = None,
) -> Report:
    """Run a target over a golden dataset, score what it says, and report.

    Works in a script, inside a running event loop (a notebook) and in any thread.

    Args:
        dataset: The samples, as a dataset, the path of its file, or a list of samples or maps.
        target: A function, sync or async, from a sample's input to text, an ``Output`` or JSON data.
        outputs: Saved outputs in place of a target: a map of id to text, or a file.
        metrics: Metrics, specs such as `ndcg@10`, or one-key maps of alias to options.
        group: A ready-made group of metrics with its aggregator, such as `generation`; `metrics` come beside it.
        repetitions: How often each sample is run; otherwise what the dataset says, or once.
        thresholds: Pass marks that replace the metrics' own, by metric name.
        gate: Rules as in a suite's `gate` section.
        concurrency: How many calls of the target may be under way at once.
        seed: For everything that draws.
        delta: The difference that repeated runs should be able to show.
        strict: Whether something absent in a sample is an error instead of a warning.
        max_unscored: Marks that may stay unscored before the run counts as incomplete: a count, or a share like `2%`.
        models: Models by role, such as `judge` and `embedding`: a client, or a map as in a suite's `models` section.
        cache: A file in which the models' answers are kept, and looked up first.
        budget_usd: US dollars that the models must not cost more than.
        budget_tokens: Tokens that the models must not use more of.
        offline: Whether nothing may be asked over the network.
        aggregator: Makes one success and one score of each execution's marks: an aggregator such as ``AtLeast(2)``, or
            what a suite's `aggregator` section would say.
        store: Where the run is kept: a file, or `postgresql://...`; it ends with the program unless given.
        resume: The stored run to go on with: its id, or True for the last unfinished one without a suite of this
            dataset.
        clock: The time; the machine's own unless given.

    Raises:
        InputError: Something given cannot be used.
        StoreError: The store fails, or the run that is to be resumed is not there or in other hands.
    """
    job = build_job(
        dataset,
        target=target,
        outputs=outputs,
        metrics=metrics,
        group=group,
        repetitions=repetitions,
        thresholds=thresholds,
        gate=gate,
        concurrency=concurrency,
        seed=seed,
        delta=delta,
        strict=strict,
        max_unscored=max_unscored,
        models=models,
        cache=cache,
        budget_usd=budget_usd,
        budget_tokens=budget_tokens,
        offline=offline,
        aggregator=aggregator,
    )
    storage, warn = _keeping(store, resume), warner(inspect.currentframe())
    return _shown(run_sync(run_job(job, clock=clock, warn=warn, storage=storage)))


@with_parameters_of(evaluate)
async def evaluate_async(
    dataset: Dataset | Iterable[Any] | str | Path,
    *,
    store: Store | str | Path | None = None,
    resume: str | bool | None = None,
    clock: Clock | None = None,
    **options: Any,
) -> Report:
    """The same as ``evaluate``, to be awaited inside a running event loop.

    Raises:
        InputError: Something given cannot be used.
        StoreError: The store fails, or the run that is to be resumed is not there or in other hands.
    """
    job, warn = build_job(dataset, **options), warner(inspect.currentframe())
    return _shown(await run_job(job, clock=clock, warn=warn, storage=_keeping(store, resume)))


def _keeping(store: Store | str | Path | None, resume: str | bool | None) -> RunStorage | None:  # noqa: FBT001 - as given
    """How a run is stored. The store stays open, for the report reads from it as long as it lives."""
    if store is None:
        if resume:
            raise ConfigurationError("`resume` goes on with a stored run: give its `store` too.")
        return None
    return RunStorage(store if isinstance(store, Store) else open_store(store), resume)


def _shown(report: Report) -> Report:
    """The report as it is shown unless somebody asks for more: without the samples' input."""
    return redact_report(report, quotes=lambda _: None)


def warner(frame: FrameType | None) -> Callable[[str], None]:
    """Warns at the line that called the function of a frame; a stack level would count the event loop's own."""
    caller = frame.f_back if frame is not None else None
    file, line = (caller.f_code.co_filename, caller.f_lineno) if caller is not None else ("deemster", 1)

    def warn(message: str) -> None:
        warnings.warn_explicit(message, UserWarning, file, line)

    return warn


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
        stopped = stop.reason or counter.open_circuit or getattr(job.plan.target, "open_circuit", None)
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
                pools=gateway.may_batch,
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
