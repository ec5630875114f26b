"""Evaluates a dataset: from a dataset, a target and metrics to a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from deemster.datasets import Dataset
from deemster.errors import plural
from deemster.models.clock import Clock
from deemster.records import Execution
from deemster.report import Report, redact_report
from deemster.report.comparison import Comparison
from deemster.report.report_sections import group_failures
from deemster.results import Aggregator, MarkTable
from deemster.results.alike_samples import ALIKE, MOST_SAMPLES, alike_warnings
from deemster.results.metric_summary import OUTSIDE
from deemster.runs._constant_judge_warning import ConstantJudgeWatch
from deemster.runs._engine import Sink
from deemster.runs._report_settings import report_settings
from deemster.runs.backend import Backend, InThisProcess, RunWork
from deemster.runs.build_report import LiveMarks, RunRecord, build_report, count_marks
from deemster.runs.cluster_backend import OnCluster
from deemster.runs.confirm_run import check_confirmation
from deemster.runs.gate_baseline import BaselineGate, pin_baseline
from deemster.runs.judge_anchors import judge_anchors, load_anchors
from deemster.runs.notebook_progress import notebook_progress
from deemster.runs.preflight_check import check_samples
from deemster.runs.progress import Progress, ProgressCounter
from deemster.runs.resolve_evaluation import resolve_arguments
from deemster.runs.run_lifecycle import RunStorage, RunTimer, build_storage
from deemster.runs.run_part import in_drawn_order
from deemster.runs.run_plan import Evaluation
from deemster.runs.run_sync import run_sync, warner, with_parameters_of
from deemster.runs.run_writer import open_run_writer
from deemster.runs.stop_request import Stop
from deemster.runs.suite import CONCURRENCY, DELTA, SEED
from deemster.store import Store
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
    max_unscored: int | str | None = None,
    models: Mapping[str, Any] | None = None,
    cache: str | Path | None = None,
    budget_usd: Decimal | float | None = None,
    budget_tokens: int | None = None,
    offline: bool = False,
    aggregator: Aggregator | str | Mapping[str, Any] | None = None,
    store: Store | str | Path | None = None,
    resume: str | bool | None = None,
    partial: bool = False,
    label: str | None = None,
    calibration: str | Path | None = None,
    keep_prompts: str = "failed",
    confirm: int = 0,
    cluster: str | None = None,
    clock: Clock | None = None,
) -> Report:
    """Run a target over a golden dataset, score what it says, and report.

    Works in a script, inside a running event loop (a notebook) and in any thread.

    Args:
        dataset: The samples, as a dataset, the path of its file, a list of samples or maps, or a pandas data frame with
            the columns of a CSV file. `Dataset.select` gives a part of a dataset.
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
        max_unscored: Marks that may stay unscored before the run counts as incomplete, whatever the gate says: a count,
            or a share like `2%`. Without it and the gate's, 0.
        models: Models by role, such as `judge` and `embedding`: a client, or a map as in a suite's `models` section.
        cache: A file that keeps the models' answers; they are looked up there first.
        budget_usd: The most that the models may cost, in US dollars.
        budget_tokens: The most tokens that the models may use.
        offline: Whether nothing may be asked over the network.
        aggregator: Makes one success and one score of each execution's marks: an aggregator such as ``AtLeast(2)``, or
            what a suite's `aggregator` section would say.
        store: Where the run is stored: a file, or `postgresql://...`; not stored unless given.
        resume: The stored run to resume: its id, or True for the last unfinished one without a suite of this
            dataset.
        partial: Whether samples without a saved output are left out; the run is then marked as a part.
        label: What you call the run; `deemster runs` shows it.
        calibration: The file of `deemster calibrate --json`, by whose labels pass-rates are corrected.
        keep_prompts: Whose prompts and replies a stored run keeps, for `deemster show --prompts`: judges' that did not
            pass (`failed`), of `all`, or of `none`.
        confirm: How often samples that newly fail against the gate's baseline are run again: confirmed, or only flaky?
        cluster: Runs it on the workers of a Ray cluster: an address as `ray.init` takes it, or `local-cluster`, which
            starts one on this machine.
        clock: The time; the machine's own unless given.

    Raises:
        InputError: Something given cannot be used.
        StoreError: The store fails, or the run that is to be resumed is missing or held by another process.
    """
    evaluation = resolve_arguments(
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
        partial=partial,
        label=label,
        calibration=calibration,
        confirm=confirm,
    )
    storage = build_storage(store, resume, keep_prompts=keep_prompts)
    return run_sync(_evaluate(evaluation, storage, cluster=cluster, clock=clock, warn=warner()))


@with_parameters_of(evaluate)
async def evaluate_async(
    dataset: Dataset | Iterable[Any] | str | Path,
    *,
    store: Store | str | Path | None = None,
    resume: str | bool | None = None,
    keep_prompts: str = "failed",
    cluster: str | None = None,
    clock: Clock | None = None,
    **arguments: Any,
) -> Report:
    """The same as ``evaluate``, to be awaited inside a running event loop.

    Raises:
        InputError: Something given cannot be used.
        StoreError: The store fails, or the run that is to be resumed is missing or held by another process.
    """
    evaluation = resolve_arguments(dataset, **arguments)
    storage = build_storage(store, resume, keep_prompts=keep_prompts)
    return await _evaluate(evaluation, storage, cluster=cluster, clock=clock, warn=warner())


async def _evaluate(
    evaluation: Evaluation,
    storage: RunStorage | None,
    *,
    cluster: str | None,
    clock: Clock | None,
    warn: Callable[[str], None],
) -> Report:
    """Run an evaluation for a program. The store stays open: the report reads from it."""
    check_confirmation(evaluation)
    report = await run_evaluation(
        evaluation, clock=clock, warn=warn, progress=notebook_progress(), storage=storage, backend=find_backend(cluster)
    )
    if (why := _why_all_failed(report)) is not None:
        warn(why)
    # The samples' input is shown only where the user asks for it.
    return redact_report(report, quotes=lambda _: None)


def _why_all_failed(report: Report) -> str | None:
    """The most frequent cause where the target answered no sample, else None."""
    totals = report.totals
    if totals.executions < 2 or totals.target_failures < totals.executions:
        return None
    group = group_failures(entry for entry in report.failure_list if entry.metric is None)[0]
    said = group.cause if group.message is None else f"{group.cause}: {group.message}"
    return f"Every sample failed: the target gave no answer. {plural(group.times, 'time')}: {said}"


IN_THIS_PROCESS = InThisProcess()


def find_backend(cluster: str | None) -> Backend:
    """Where an evaluation is run, by the address of a cluster; None for this process."""
    return IN_THIS_PROCESS if cluster is None else OnCluster(cluster)


async def run_evaluation(
    job: Evaluation,
    *,
    clock: Clock | None = None,
    stop: Stop | None = None,
    warn: Callable[[str], None],
    progress: Callable[[Progress], None] | None = None,
    storage: RunStorage | None = None,
    watch: Callable[[Sequence[Execution]], None] | None = None,
    tell_comparison: Callable[[Comparison], None] | None = None,
    backend: Backend = IN_THIS_PROCESS,
) -> Report:
    """Run a job and report on it.

    Args:
        job: What to run.
        clock: The time; the machine's own unless given.
        stop: Asks the run to stop; what was not started is then `not_run`.
        warn: Gets each warning.
        progress: Gets the progress of the run.
        storage: Where the run is stored, and what it resumes; None where it is not stored.
        watch: Gets finished executions, in a thread, one call at a time.
        tell_comparison: Gets the comparison with the baseline of the gate, where there is one.
        backend: Where the work is done.

    Raises:
        InputError: A sample is malformed for a metric, the gate names something unknown, or the aggregator does not fit
            a mark.
        StoreError: The store fails, or the run that is to be resumed is missing or held by another process.
    """
    timer, stop, warn = RunTimer(clock), stop or Stop(), _each_key_once(warn)
    job = job if storage is None else in_drawn_order(job, storage)
    checked = check_samples(job)
    for warning in checked.warnings:
        warn(warning)
    live = LiveMarks(checked.table, job.plan)
    anchors, store = load_anchors(job), None if storage is None else storage.store
    job = job._replace(baseline=pin_baseline(job, store), attacks=checked.attacks)
    open_writer = partial(open_run_writer, job, storage, order=checked.order, live=live, timer=timer, warn=warn)
    with backend.open() as workers, open_writer() as writer:
        remaining = writer.remaining
        total = len(job.plan.dataset) * job.plan.repetitions
        counter = ProgressCounter(total, progress, done=remaining.done, unscored=remaining.unscored)
        sinks: list[Sink] = [writer.add, live.add, *([watch] if watch else [])]
        work = RunWork(writer.job, remaining, sinks, counter, timer.clock, stop, warn, writer.pending)
        await workers.execute(work)
        run_cases = partial(run_evaluation, clock=timer.clock, stop=stop, warn=warn)
        job = writer.job = await judge_anchors(writer.job, [] if stop.requested else anchors, run=run_cases)
        writer.settle()
        stopped = stop.reason or counter.open_circuit or getattr(job.plan.target, "open_circuit", None)
        record = writer.record(stopped=stopped, budget=counter.budget)
        table = _count(record, job, live.table() if _is_counted(record, job, checked.table) else None, warn=warn)
        report = build_report(record, report_settings(job)._replace(baseline=None), table=table)
        against = BaselineGate(writer, store, clock=timer.clock, stop=stop, warn=warn, progress=progress)
        report = await against.conclude(report, record, table, tell=tell_comparison)
        return writer.close(report, table, stopped=stopped)


def _is_counted(record: RunRecord, job: Evaluation, table: MarkTable) -> bool:
    """Whether the marks that were counted as they came are those of the report.

    The report of a run that was resumed with changes shows the stored samples.
    """
    return record.samples is job.plan.dataset and table.cards == tuple(record.cards)


def _each_key_once(warn: Callable[[str], None]) -> Callable[[str], None]:
    """Gives warnings on, but of samples that come out alike by one key only the first."""
    keys: set[str] = set()

    def warn_once(message: str) -> None:
        key = message.partition(" come out alike")[0]
        if not message.startswith(ALIKE) or key not in keys:
            keys.add(key)
            warn(message)

    return warn_once


def _alike_samples(record: RunRecord, job: Evaluation, table: MarkTable) -> list[str]:
    """Warnings of samples that come out alike although the dataset does not say that they belong together."""
    if table.clusters is not None or table.samples > MOST_SAMPLES:
        return []
    passed = np.where(table.causes == OUTSIDE, np.nan, table.passed).mean(axis=1)
    rates = {card.name: passed[:, column] for column, card in enumerate(table.cards)}
    return alike_warnings(rates, record.samples.metadata(), seed=job.seed)


def _count(record: RunRecord, job: Evaluation, table: MarkTable | None, *, warn: Callable[[str], None]) -> MarkTable:
    """The marks of a run, with a warning of judges that always say the same."""
    judges = ConstantJudgeWatch(job.plan)
    table = count_marks(record, report_settings(job), table=table, watch=judges.add if job.plan.scorers else None)
    for warning in (*judges.warnings(), *_alike_samples(record, job, table)):
        warn(warning)
    return table
