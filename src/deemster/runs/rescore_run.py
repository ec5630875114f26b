"""Rescores the stored outputs of a run with other metrics; the target is not called."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from deemster.errors import ConfigurationError, StoreError
from deemster.models.clock import Clock, clock_from_environment
from deemster.records import Execution, Mark, Metric, Output, Unscored
from deemster.records.shared_call_cost import sum_spending
from deemster.report import Report
from deemster.runs._run_identity import scoring_identity
from deemster.runs._score_batch import WorkItem, needs_settling, settle_marks
from deemster.runs.build_report import ExecutionSlots, StoredSamples, stored_report
from deemster.runs.evaluate_dataset import execute_job
from deemster.runs.evaluation_job import Job, with_secrets
from deemster.runs.model_access import ModelAccess, complete_model_access
from deemster.runs.progress import Counter, Progress
from deemster.runs.resume_backlog import RemainingWork, is_retried, restore_invalid_text
from deemster.runs.run_lifecycle import StoredRun, open_scoring
from deemster.runs.run_plan import Plan, survey
from deemster.runs.run_writer import metric_cards
from deemster.runs.stop_request import Stop
from deemster.store import RunRow, Store
from deemster.targets.saved_outputs import SavedOutputs

_CUT = Unscored("too_large", "The output was above 1 MiB and is not kept as a whole.")


class Rescoring(NamedTuple):
    """What came of marking a run again.

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
        warn: Told each warning.
        progress: Told how far it is.

    Raises:
        StoreError: There is no such run, another process holds it, or the store fails.
        ConfigurationError: A metric does not fit the samples, or asks a model that is not there.
    """
    clock, stop = clock or clock_from_environment(), stop or Stop()
    with store.lease(_scorable(store, run).id) as lease:
        row = store.run(lease.run_id)
        job = _job(store, row, metrics, access or ModelAccess())
        for warning in survey(job.plan, note=lambda _position, _sample: None):
            warn(warning)
        cards = metric_cards(job)
        with open_scoring(store, lease, cards, identity=scoring_identity(job, cards), clock=clock) as scoring:
            work = _ScoringWork(scoring, job, progress)
            await work.execute(stop=stop, warn=warn)
            work.settle()
            missing = work.missing(stop)
            if missing is None:
                # Otherwise the scoring stays open, and the same rescoring continues it.
                scoring.close("complete", None, duration_s=None)
    return Rescoring(stored_report(store, row.id, warn=warn), missing)


class _ScoringWork:
    """Marks the outputs that one scoring still lacks."""

    def __init__(self, scoring: StoredRun, job: Job, progress: Callable[[Progress], None] | None) -> None:
        self._run, self._job = scoring, job
        self._counter = Counter(scoring.row.done, progress, done=scoring.row.scorings[scoring.scoring].done)

    async def execute(self, *, stop: Stop, warn: Callable[[str], None]) -> None:
        """Make the marks, and store them."""
        run = self._run
        token = f"{run.token}/{run.scoring}"
        remaining = RemainingWork(self._works(), spent=sum_spending(self._marked()), token=token)
        await execute_job(
            self._job, run.writer.add, remaining, counter=self._counter, clock=run.clock, stop=stop, warn=warn
        )

    def settle(self) -> None:
        """Make the marks final that need the whole run."""
        self._run.writer.flush()
        metrics, row = self._job.plan.metrics, self._run.row
        if needs_settling(metrics):
            marked = ExecutionSlots(self._marked, samples=row.samples, repetitions=row.repetitions)
            self._run.store.settle(row.id, self._run.scoring, settle_marks(metrics, marked))

    def missing(self, stop: Stop) -> str | None:
        """Why marks are missing, where some are."""
        count = sum(not execution.marks or any(map(_is_not_run, execution.marks)) for execution in self._executions())
        if not count:
            return None
        why = stop.reason or self._counter.open_circuit
        told = "" if why is None else f" ({why.rstrip('.')})"
        return f"{count} of {self._run.row.done} outputs are not marked{told}"

    def _marked(self) -> Iterator[Execution]:
        return (execution for execution in self._executions() if execution.marks)

    def _executions(self) -> Iterator[Execution]:
        run = self._run
        return run.store.executions(run.id, scoring=run.scoring, settled=False)

    def _works(self) -> Iterator[WorkItem]:
        samples = iter(enumerate(self._job.plan.dataset))
        at, sample = next(samples)
        nothing = (_CUT,) * len(self._job.plan.metrics)
        for execution in self._executions():
            answer = execution.answer
            while at < execution.position:
                at, sample = next(samples)
            if answer is None or (execution.marks and not any(map(is_retried, execution.marks))):
                continue
            marks: tuple[Any, ...] | None = tuple(None if is_retried(mark) else mark for mark in execution.marks)
            if isinstance(answer, Output):
                answer = restore_invalid_text(answer, valid=execution.valid)
                marks = nothing if execution.cut is not None else marks
            yield WorkItem(
                execution.position, sample, execution.repetition, answer, marks or None, execution.marks or None
            )


def _is_not_run(mark: Mark) -> bool:
    return isinstance(mark, Unscored) and mark.cause == "not_run"


def _scorable(store: Store, run: str) -> RunRow:
    row = store.run(run)
    if row.kind == "grading":
        raise StoreError(f"{store.where}: `{row.id}` is a grading by a rubric; only outputs can be marked by metrics.")
    if not row.done:
        raise StoreError(f"{store.where}: `{row.id}` has no outputs to mark.")
    return row


def _job(store: Store, row: RunRow, metrics: Sequence[Metric], access: ModelAccess) -> Job:
    if not metrics:
        raise ConfigurationError("Name at least one metric, such as `--metric rouge-l`.")
    samples: Any = StoredSamples(store, row)
    # Every answer is there already, so what stands for the target is never asked.
    nobody = SavedOutputs({"nobody": ""})
    plan = Plan(samples, nobody, tuple(metrics), row.repetitions)
    return with_secrets(Job(plan, suite=row.suite, seed=row.seed, access=complete_model_access(access, plan.scorers)))
