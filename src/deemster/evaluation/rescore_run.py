"""Rescores the stored outputs of a run with other metrics; the target is not called."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from deemster.engine.backend import InThisProcess, RemainingWork, RunWork
from deemster.engine.model_access import ModelAccess, ModelCalls, complete_model_access, read_model_access
from deemster.engine.progress import Progress, ProgressCounter
from deemster.engine.run_plan import Plan, collect_secrets
from deemster.engine.stop_request import Stop
from deemster.engine.work_items import Answer, WorkItem
from deemster.errors import ConfigurationError, StoreError, did_you_mean
from deemster.evaluation.evaluation_identity import scoring_identity
from deemster.evaluation.gate_baseline import compare_again
from deemster.evaluation.preflight_check import check_samples
from deemster.evaluation.resolved_evaluation import Evaluation
from deemster.evaluation.suite import Suite, stored_suite
from deemster.evaluation.suite_parts import suite_metrics, suite_models
from deemster.judges import metric_catalog as catalog
from deemster.models.clock import Clock
from deemster.records import Execution, Mark, Metric, Output, Sample, Unscored
from deemster.records.shared_call_cost import SpendingSum
from deemster.report import Report
from deemster.report.report_settings import rubric_facts
from deemster.report.stored_columns import keep_columns
from deemster.report.stored_report import StoredSamples, stored_report
from deemster.runs.retried_marks import is_retried, restore_invalid_text
from deemster.runs.run_figures import NO_FIGURES
from deemster.runs.run_lifecycle import StoredRun, open_scoring
from deemster.runs.run_timer import RunTimer
from deemster.store import RunRow, Store
from deemster.targets.saved_outputs import SavedOutputs

_CUT = Unscored("too_large", "The output was above 1 MiB and is not kept as a whole.")


class Rescoring(NamedTuple):
    """The result of rescoring a run.

    Attributes:
        report: The run's report, with what was marked to the end.
        missing: Why not all was marked; None where it was.
    """

    report: Report
    missing: str | None


async def rescore(
    store: Store,
    run: str,
    *,
    metrics: Sequence[Metric],
    access: ModelAccess | None = None,
    clock: Clock | None = None,
    stop: Stop | None = None,
    warn: Callable[[str], None],
    progress: Callable[[Progress], None] | None = None,
) -> Rescoring:
    """Mark the outputs of a stored run by further metrics, or by the same ones anew.

    What is marked already by the same metrics and models, in a rescoring that was interrupted, is not marked again.

    Args:
        store: Where the run is stored.
        run: Its id, a unique beginning of it, or `latest`.
        metrics: The metrics; one of a name that the run has replaces that one.
        access: How they may ask models.
        clock: The time; the machine's own unless given.
        stop: Asks to stop.
        warn: Gets each warning.
        progress: Gets the progress.

    Raises:
        StoreError: There is no such run, another process holds it, or the store fails.
        ConfigurationError: A metric does not fit the samples, or asks a model that is not there.
    """
    timer = RunTimer(clock)
    stop = stop or Stop()

    with store.lease(_scorable(store, run).id) as lease:
        row = store.run(lease.run_id)
        job = _job(store, row, metrics, access or ModelAccess())
        checked = check_samples(job)
        for warning in checked.warnings:
            warn(warning)

        identity = scoring_identity(job)
        with open_scoring(store, lease, checked.table.cards, identity=identity, timer=timer) as scoring:
            counter = ProgressCounter(row.done, progress, done=scoring.row.scorings[scoring.scoring].done)
            remaining = _remaining_work(scoring, job.plan)
            work = RunWork(job, remaining, [scoring.writer.add], counter, timer.clock, stop, warn)
            await InThisProcess().execute(work)
            scoring.settle(job.plan.metrics)

            missing = _what_is_missing(scoring, stop.reason or counter.open_circuit)
            if missing is None:
                # Otherwise the scoring stays open, and the same rescoring continues it.
                facts = {**NO_FIGURES, **rubric_facts(metrics, known=row.facts)}
                scoring.close("complete", None, duration_s=None, facts=facts, is_final=True)

    if missing is None:
        _compare_again(store, row.id)
    report = stored_report(store, row.id, warn=warn)
    if missing is None and row.traits.has_end:
        keep_columns(store, report)
    return Rescoring(report, missing)


def _compare_again(store: Store, run_id: str) -> None:
    """Note how the run compares with its baseline by the marks that it has now."""
    facts = compare_again(store, run_id)
    if facts:
        with store.lease(run_id):
            store.amend(run_id, facts=facts)


def _remaining_work(scoring: StoredRun, plan: Plan) -> RemainingWork:
    """The outputs that one scoring has not marked yet, and what it has spent so far."""
    spending = SpendingSum()
    for execution in scoring.executions():
        spending.add(execution)
    return RemainingWork(
        _works(scoring, plan),
        spent=spending.total(),
        calls=scoring.calls,
        prompts=scoring.prompts("failed", secrets=plan.secrets),
    )


def _what_is_missing(scoring: StoredRun, why: str | None) -> str | None:
    """How many outputs are not scored, and why; None where all are."""
    count = sum(not execution.marks or any(map(_is_not_run, execution.marks)) for execution in scoring.executions())
    if not count:
        return None
    because = "" if why is None else f" ({why.rstrip('.')})"
    return f"{count} of {scoring.row.done} outputs are not scored{because}"


def _works(scoring: StoredRun, plan: Plan) -> Iterator[WorkItem]:
    """The outputs that are not marked yet, or whose marks are tried again."""
    samples = iter(enumerate(plan.dataset))
    position, sample = next(samples)

    for execution in scoring.executions():
        while position < execution.position:
            position, sample = next(samples)
        is_marked = bool(execution.marks) and not any(map(is_retried, execution.marks))
        if execution.answer is not None and not is_marked:
            yield _work(execution, execution.answer, sample, plan)


def _work(execution: Execution, answer: Answer, sample: Sample, plan: Plan) -> WorkItem:
    marks: tuple[Mark | None, ...] = tuple(None if is_retried(mark) else mark for mark in execution.marks)
    if isinstance(answer, Output):
        answer = restore_invalid_text(answer, valid=execution.valid)
        if execution.cut is not None:
            marks = (_CUT,) * len(plan.metrics)
    return WorkItem(
        execution.position, sample, execution.repetition, answer, marks or None, earlier=execution.marks or None
    )


def _is_not_run(mark: Mark) -> bool:
    return isinstance(mark, Unscored) and mark.cause == "not_run"


def _scorable(store: Store, run: str) -> RunRow:
    row = store.run(run)
    if not row.traits.has_metrics:
        raise StoreError(f"{store.where}: `{row.id}` is a grading by a rubric; only outputs can be scored by metrics.")
    if not row.done:
        raise StoreError(f"{store.where}: `{row.id}` has no outputs to score.")
    return row


def _job(store: Store, row: RunRow, metrics: Sequence[Metric], access: ModelAccess) -> Evaluation:
    if not metrics:
        raise ConfigurationError("Name at least one metric, such as `--metric rouge-l`.")

    samples: Any = StoredSamples(store, row)
    # Every answer is there already, so what stands for the target is never asked.
    no_target = SavedOutputs({"no target": ""})
    access = complete_model_access(access, [metric for metric in metrics if hasattr(metric, "script")])
    secrets = collect_secrets(no_target, access)
    plan = Plan(samples, no_target, tuple(metrics), row.repetitions, secrets=secrets)
    return Evaluation(plan, suite=row.suite, seed=row.seed, access=access)


def find_runs(store: Store, run: str | None, dataset: str | None) -> list[RunRow]:
    """The run of a name, or every recording of a dataset.

    Raises:
        StoreError: There is none.
    """
    if run is not None:
        return [store.run(run)]

    rows = store.runs(dataset=dataset, kind="recording")
    if not rows:
        names = sorted({row.dataset for row in store.runs(kind="recording")})
        near = f" {did_you_mean(dataset or '', names)}" if names else ""
        raise StoreError(f"{store.where}: There is no recording of the dataset `{dataset}`.{near}")
    return rows


def stored_outputs(store: Store, row: RunRow) -> SavedOutputs:
    """The outputs of a run, as saved outputs of another one: of the samples whose outputs are all kept whole.

    Args:
        store: Where the run is stored.
        row: The run.

    Raises:
        OutputsError: There is no such sample.
        StoreError: The run cannot be read.
    """
    answers: dict[str, list[Answer]] = {}
    for execution in store.executions(row.id):
        answer = execution.answer
        if isinstance(answer, Output):
            answer = restore_invalid_text(answer, valid=execution.valid)
        if answer is not None and execution.cut is None:
            answers.setdefault(execution.id, []).append(answer)
    whole = {name: repetitions for name, repetitions in answers.items() if len(repetitions) == row.repetitions}
    return SavedOutputs.of_run(row.id, whole)


def rescoring_metrics(row: RunRow, given: Sequence[str], *, suite: Suite | None) -> tuple[Metric, ...]:
    """The metrics that are given, or those of a suite.

    Args:
        row: The stored run.
        given: Specs of metrics.
        suite: The suite that is given, if any; otherwise import paths are relative to the one stored with the run.

    Raises:
        ConfigurationError: One of them cannot be made; all issues are listed.
    """
    if given:
        return catalog.resolve_all(given, search=suite.folder if suite is not None else _suite_folder(row))
    return () if suite is None else suite_metrics(suite)


def rescoring_models(row: RunRow, limits: ModelCalls, *, suite: Suite | None) -> ModelAccess:
    """Access to the models of the suite that is given, or of the one that is stored with the run.

    Args:
        row: The stored run.
        limits: Cache, budget and network.
        suite: The suite that is given, if any.

    Raises:
        ConfigurationError: Something in the `models` section cannot be used.
    """
    if suite is not None:
        return suite_models(suite, limits)

    stored = stored_suite(row)
    section = stored.get("document", {}).get("models")

    def place(path: Any) -> str:
        return f"{stored.get('file', row.id)}: {'.'.join(map(str, path))}"

    return read_model_access(section, limits, place=place, folder=_suite_folder(row), calls=section is not None)


def _suite_folder(row: RunRow) -> Path | None:
    file = stored_suite(row).get("file")
    return None if file is None else Path(file).parent
