"""Runs an evaluation: from what was resolved to a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from deemster.engine.backend import Backend, InThisProcess, RunWork
from deemster.engine.execution_handover import Sink
from deemster.engine.progress import Progress, ProgressCounter
from deemster.engine.stop_request import Stop
from deemster.evaluation._broken_off_warning import BrokenOffWatch
from deemster.evaluation._constant_judge_warning import ConstantJudgeWatch
from deemster.evaluation.judge_anchors import anchor_evaluations, judge_anchors
from deemster.evaluation.preflight_check import CheckedSamples, check_samples
from deemster.evaluation.resolved_evaluation import Evaluation
from deemster.evaluation.run_writer import open_run_writer
from deemster.models.clock import Clock
from deemster.records import Execution
from deemster.report import Report
from deemster.report.build_report import (
    FinishedRun,
    RunRecord,
    build_report,
    count_marks,
    finish_run,
)
from deemster.report.live_marks import LiveMarks
from deemster.results.mark_table import MarkTable
from deemster.results.metric_summary import OUTSIDE
from deemster.results.undeclared_clusters import FEWEST_SAMPLES, MOST_SAMPLES, alike_key, alike_warnings
from deemster.runs.run_storage import NOT_STORED, StoredOrNot
from deemster.runs.run_timer import RunTimer

if TYPE_CHECKING:
    from deemster.comparison.comparison import Comparison

IN_THIS_PROCESS = InThisProcess()


def find_backend(cluster: str | None) -> Backend:
    """Where an evaluation is run, by the address of a cluster; None for this process."""
    if cluster is None:
        return IN_THIS_PROCESS
    from deemster.remote.cluster_backend import OnCluster  # noqa: PLC0415 - few suites name one

    return OnCluster(cluster)


async def run_evaluation(
    evaluation: Evaluation,
    *,
    storage: StoredOrNot = NOT_STORED,
    backend: Backend = IN_THIS_PROCESS,
    clock: Clock | None = None,
    stop: Stop | None = None,
    warn: Callable[[str], None],
    progress: Callable[[Progress], None] | None = None,
    watch: Sink | None = None,
    tell_comparison: Callable[[Comparison], None] | None = None,
    checked: CheckedSamples | None = None,
) -> Report:
    """Run an evaluation, keep what comes of it, and report. Whatever ends it early, what was finished is kept.

    Args:
        evaluation: What to run, as it was resolved with the same storage.
        storage: Where the run is stored.
        backend: Where the work is done.
        clock: The time; the machine's own unless given.
        stop: Asks the run to stop; what was not started is then `not_run`.
        warn: Gets each warning.
        progress: Gets the progress of the run.
        watch: Gets finished executions, in a thread, one call at a time.
        tell_comparison: Gets the comparison with the baseline of the gate, where there is one.
        checked: What was seen of its samples; they are looked at now unless given.

    Raises:
        InputError: A sample is malformed for a metric, the gate names something unknown, or the aggregator does not fit
            a mark.
        StoreError: The store fails, or the run that is to be resumed is held by another process.
    """
    timer = RunTimer(clock)
    stop = stop or Stop()
    warn = _each_key_once(warn)

    if checked is None:
        checked = check_samples(evaluation)
    _warn_of(checked.warnings, warn)

    anchors = anchor_evaluations(evaluation) if evaluation.plan.scorers else []
    live = LiveMarks(checked.table, evaluation.plan)

    with (
        backend.open() as execute,
        open_run_writer(evaluation, storage, checked, live=live, timer=timer, warn=warn) as run,
    ):
        remaining = run.remaining
        counter = ProgressCounter(evaluation.plan.size, progress, done=remaining.done, unscored=remaining.unscored)
        work = RunWork(
            evaluation,
            remaining=remaining,
            sinks=[run.add, live.add] if watch is None else [run.add, live.add, watch],
            counter=counter,
            clock=timer.clock,
            stop=stop,
            warn=warn,
            pending=run.pending,
        )
        await execute(work)

        if anchors and not stop.requested:
            judge = partial(run_evaluation, clock=timer.clock, stop=stop, warn=warn)
            run.findings = run.findings._replace(anchors=await judge_anchors(anchors, run=judge))
        run.settle()

        stopped = stop.reason or counter.open_circuit or getattr(evaluation.plan.target, "open_circuit", None)
        record = run.record(stopped=stopped, budget=counter.budget)
        table = live.table(record)
        if evaluation.plan.asking:
            table = _count_watched(record, evaluation, table, warn)
        finished = finish_run(record, evaluation.report_settings, table=table)
        _warn_of(_alike_samples(finished, evaluation), warn)

        baseline = record.findings.baseline
        comparison = None
        if baseline is not None:
            from deemster.evaluation.gate_baseline import compare_with_baseline  # noqa: PLC0415 - few runs have one

            baseline, comparison = compare_with_baseline(finished, baseline, evaluation, storage.store)
        if comparison is not None:
            _warn_of(filter(alike_key, comparison.warnings), warn)

        report = build_report(finished, baseline)
        if comparison is not None and tell_comparison is not None:
            tell_comparison(msgspec.structs.replace(comparison, gate=report.gate))
        return run.close(report, finished, baseline)


def _warn_of(warnings: Iterable[str], warn: Callable[[str], None]) -> None:
    for warning in warnings:
        warn(warning)


def _each_key_once(warn: Callable[[str], None]) -> Callable[[str], None]:
    """Gives warnings on, but of samples that come out alike by one key only the first."""
    told: set[str] = set()

    def warn_once(message: str) -> None:
        key = alike_key(message)
        if key in told:
            return
        if key is not None:
            told.add(key)
        warn(message)

    return warn_once


def _alike_samples(finished: FinishedRun, evaluation: Evaluation) -> list[str]:
    """Warnings of samples that come out alike although the dataset does not say that they belong together."""
    table = finished.table
    if table.clusters is not None or not FEWEST_SAMPLES <= table.samples <= MOST_SAMPLES:
        return []

    passed = np.where(table.causes == OUTSIDE, np.nan, table.passed).mean(axis=1)
    rates = {card.name: passed[:, column] for column, card in enumerate(table.cards)}
    return alike_warnings(rates, finished.record.samples.metadata(), seed=evaluation.seed)


def _count_watched(
    record: RunRecord, evaluation: Evaluation, table: MarkTable | None, warn: Callable[[str], None]
) -> MarkTable:
    """The marks of a run that asks models, with warnings of judges that always say the same and of broken answers."""
    judges = ConstantJudgeWatch(evaluation.plan)
    answers = BrokenOffWatch()

    def watch(executions: Sequence[Execution]) -> None:
        judges.add(executions)
        answers.add(executions)

    table = count_marks(record, evaluation.report_settings, table=table, watch=watch)
    _warn_of([*answers.warnings(), *judges.warnings()], warn)
    return table
