"""Writes the executions of an evaluation: into a store, or into a temporary file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import msgspec

from deemster import __version__
from deemster.engine.backend import RemainingWork
from deemster.engine.execution_handover import NO_PENDING_STORAGE, PendingStorage
from deemster.engine.kept_prompts import PROMPTS_FACT, WhichPrompts
from deemster.engine.settle_marks import needs_settling, settle_marks
from deemster.evaluation.evaluation_identity import (
    evaluation_id,
    evaluation_identity,
    scoring_identity,
    target_name,
)
from deemster.evaluation.preflight_check import CheckedSamples
from deemster.evaluation.resolved_evaluation import Evaluation
from deemster.evaluation.resumed_evaluation import shape_changes
from deemster.gate.baseline_gate import PinnedBaseline
from deemster.models.budget import BudgetEntry
from deemster.records import Execution
from deemster.report import Report, RunSamples
from deemster.report.build_report import FinishedRun, RunRecord, batches
from deemster.report.live_marks import LiveMarks
from deemster.report.report_figures import figures_facts
from deemster.report.report_settings import RunFindings, report_facts, settings_facts
from deemster.report.stored_columns import ColumnSamples, save_columns
from deemster.report.stored_executions import StoredExecutions
from deemster.report.stored_report import StoredSamples, stored_report
from deemster.runs.resume_backlog import ResumeBacklog
from deemster.runs.retried_marks import RETRIED_CAUSES
from deemster.runs.run_figures import NO_FIGURES
from deemster.runs.run_identity import plain_json
from deemster.runs.run_lifecycle import RunDefinition, StoredRun, new_token, open_run
from deemster.runs.run_storage import NotStored, RunStorage, StoredOrNot
from deemster.runs.run_timer import RunTimer
from deemster.store import RunFacts, RunRow, Spool
from deemster.targets.saved_outputs import SavedOutputs

# Together with the time until a commit, an answer that waits for its judges is stored within a quarter of a second.
_PENDING_S = 0.1


@contextmanager
def open_run_writer(
    job: Evaluation,
    storage: StoredOrNot,
    checked: CheckedSamples,
    *,
    live: LiveMarks,
    timer: RunTimer,
    warn: Callable[[str], None],
) -> Iterator[SpooledWriter | StoredWriter]:
    """Begin or resume a run in its store, or spool it where it has none.

    Args:
        job: What is run.
        storage: Where it is stored, and what it resumes.
        checked: What was seen of its samples.
        live: Counts the stored executions of a resumed run.
        timer: When it began.
        warn: Gets each warning.

    Raises:
        StoreError: The store fails, or the run that is to be resumed is missing or held by another process.
        ConfigurationError: The run that is to be resumed is another one.
    """
    baseline_rules = None if job.gate is None else job.gate.baseline
    baseline = None
    if baseline_rules is not None:
        from deemster.evaluation.gate_baseline import pin_baseline  # noqa: PLC0415 - few runs have one

        baseline = pin_baseline(baseline_rules, job, storage.store)
    findings = RunFindings(checked.attacks, baseline)

    if isinstance(storage, NotStored):
        yield SpooledWriter(job, findings, timer=timer)
        return

    samples = ColumnSamples(job.plan.dataset.row_hashes)
    definition = _definition(job, storage, findings, timer, order=checked.order, samples=samples)
    with open_run(definition, storage, resumed=job.resumes, timer=timer) as run:
        if run.is_new:
            yield StoredWriter(job, run, findings, None, keep_prompts=storage.keep_prompts, samples=samples)
            return

        backlog = _read_backlog(job, run, warn, live=live)
        storage.tell(backlog.describe(run.id))
        if len(backlog):
            run.mark_running(definition.facts.identity)
        findings = _as_begun(findings, run.row)
        yield StoredWriter(job, run, findings, backlog, keep_prompts=storage.keep_prompts)


class SpooledWriter:
    """Keeps a run in a temporary file until the program ends.

    Args:
        job: What is run.
        findings: What is known of it when it begins.
        timer: When it began.

    Attributes:
        findings: What is found out about it as it goes on.
        remaining: What is left to do: everything.
        pending: Where answers that wait for their marks are stored: nowhere.
    """

    remaining = RemainingWork()
    pending = NO_PENDING_STORAGE

    def __init__(self, job: Evaluation, findings: RunFindings, *, timer: RunTimer) -> None:
        self.job = job
        self.findings = findings
        self._timer = timer
        self._spool = Spool(samples=len(job.plan.dataset), repetitions=job.plan.repetitions)
        self._facts = _run_facts(job, timer, identity=plain_json(scoring_identity(job)))

    def add(self, executions: Sequence[Execution]) -> None:
        """Keep executions, with the marks as they were made."""
        self._spool.add(executions)

    def settle(self) -> None:
        """Make the marks final that need all of a run."""
        if needs_settling(self.job.plan.metrics):
            for batch in batches(settle_marks(self.job.plan.metrics, self._spool)):
                self._spool.add(batch)

    def record(self, *, stopped: str | None, budget: BudgetEntry | None) -> RunRecord:
        """What the report is built from."""
        return RunRecord(
            self._facts,
            finished_at=self._timer.now(),
            duration_s=self._timer.seconds(),
            samples=self.job.plan.dataset,
            cards=self.job.plan.cards,
            executions=self._spool,
            stopped=stopped,
            budget=budget,
            findings=self.findings,
        )

    def close(self, report: Report, finished: FinishedRun, baseline: PinnedBaseline | None) -> Report:  # noqa: ARG002 - as a stored run
        """The report: nothing is noted."""
        return report


class StoredWriter:
    """Writes a run into a store.

    Args:
        job: What is run.
        run: The stored run.
        findings: What is known of it when it begins.
        backlog: What is left of it to do; None for everything.
        keep_prompts: Which prompts of judges are kept.
        samples: Its samples, as they were inserted; None where they were there before.

    Attributes:
        findings: What is found out about it as it goes on.
        remaining: What is left to do.
        pending: Where answers that wait for their marks are stored.
    """

    def __init__(
        self,
        job: Evaluation,
        run: StoredRun,
        findings: RunFindings,
        backlog: ResumeBacklog | None,
        *,
        keep_prompts: WhichPrompts,
        samples: ColumnSamples | None = None,
    ) -> None:
        self.job = job
        self.findings = findings
        self._run = run
        self._store = run.store
        self._backlog = backlog
        self._column_samples = samples
        self._kept = report_facts(run.row)

        self.remaining = RemainingWork() if backlog is None else backlog.remaining(job.plan.dataset)
        if job.plan.asking:
            self.remaining = self.remaining._replace(calls=run.calls)
        if job.plan.scorers:
            prompts = run.prompts(keep_prompts, secrets=job.plan.secrets)
            self.remaining = self.remaining._replace(prompts=prompts)

        self.pending = PendingStorage(self.add, 0.0 if run.store.durable else _PENDING_S)

    @property
    def is_idle(self) -> bool:
        """Whether the run had come to its end before, and nothing is left to do."""
        return self._backlog is not None and not len(self._backlog) and self._run.row.status != "running"

    def add(self, executions: Sequence[Execution]) -> None:
        """Store executions, with the marks as they were made.

        Raises:
            StoreError: The store fails.
        """
        self._run.add(executions)

    def settle(self) -> None:
        """Make the marks final that need the whole run.

        Raises:
            StoreError: The store fails.
        """
        if not self.is_idle:
            self._run.settle(self.job.plan.metrics)

    def record(self, *, stopped: str | None, budget: BudgetEntry | None) -> RunRecord:
        """What the report is built from."""
        run = self._run
        finished_at = run.row.finished_at
        duration_s = run.row.duration_s or 0.0
        if finished_at is None or not self.is_idle:
            finished_at = run.timer.now()
            duration_s = run.duration_s()

        return RunRecord(
            run.row,
            finished_at=finished_at,
            duration_s=duration_s,
            samples=self._samples(),
            cards=run.row.scorings[0].cards,
            executions=StoredExecutions(self._store, run.id, read=partial(run.executions, settled=True)),
            stopped=self._kept.stopped if self.is_idle else stopped,
            mixed=self._kept.mixed,
            budget=budget,
            findings=self.findings,
        )

    def close(self, report: Report, finished: FinishedRun, baseline: PinnedBaseline | None) -> Report:
        """Note how the run ended; its report, with what rescoring has added.

        Args:
            report: Its report.
            finished: Its numbers, and why it stopped early.
            baseline: The run that its gate compared it with.

        Raises:
            StoreError: The store fails.
        """
        facts = {
            **settings_facts(finished.settings, self.job.plan, origin=self.job.origin),
            **self.findings._replace(baseline=baseline).facts(),
            "budget": msgspec.to_builtins(report.budget),
        }
        if not self.is_idle:
            facts["stopped"] = finished.record.stopped

        # The marks of a rescoring are not in this report.
        is_only_scoring = len(self._run.row.scorings) == 1
        facts |= NO_FIGURES
        if is_only_scoring:
            samples = self._column_samples or ColumnSamples.stored(self._store, self._run.id)
            save_columns(self._store, report, finished.table, samples)
            facts |= figures_facts(report)

        self._run.close(
            report.run.status,
            report.run.reason,
            finished_at=report.run.finished_at,
            duration_s=report.run.duration_s,
            facts=facts,
            is_final=not self._has_retries(report),
        )
        return report if is_only_scoring else stored_report(self._store, report.run.id)

    def _has_retries(self, report: Report) -> bool:
        """Whether a resume would make marks again."""
        if any(panel.n_incomplete for panel in (report.panels or {}).values()):
            return True
        has_live_target = not isinstance(self.job.plan.target, SavedOutputs)
        causes = RETRIED_CAUSES | {"target_failed"} if has_live_target else RETRIED_CAUSES
        return any(
            metric.n_not_run > 0 or not causes.isdisjoint(metric.unscored_by_cause)
            for metric in report.metrics.values()
        )

    def _samples(self) -> RunSamples:
        """The samples of the report: the dataset itself where it is the stored one, since that is read faster."""
        dataset = self.job.plan.dataset
        row = self._run.row
        is_stored = (
            not self._kept.mixed
            and row.fingerprint == dataset.fingerprint
            and row.dataset == dataset.name
            and self._kept.schema_version == dataset.schema_version
        )
        return dataset if is_stored else StoredSamples(self._store, row)


def _definition(
    job: Evaluation,
    storage: RunStorage,
    findings: RunFindings,
    timer: RunTimer,
    *,
    order: str,
    samples: ColumnSamples,
) -> RunDefinition:
    """An evaluation as a store begins or resumes it."""
    run = _run_facts(job, timer, identity=evaluation_identity(job, order=order))
    facts = {
        **settings_facts(job.report_settings, job.plan, origin=job.origin),
        **findings.facts(),
        **run.facts,
        "token": new_token(),
    }
    if job.plan.scorers:
        facts[PROMPTS_FACT] = storage.keep_prompts
    run = msgspec.structs.replace(run, facts=facts)
    dataset = job.plan.dataset
    return RunDefinition(run, lambda: samples.note(dataset.facts()), job.plan.cards, partial(shape_changes, job, order))


def _run_facts(job: Evaluation, timer: RunTimer, *, identity: Mapping[str, Any]) -> RunFacts:
    """What is known of an evaluation when it begins, stored or not."""
    plan = job.plan
    return RunFacts(
        id=evaluation_id(timer.started, job),
        kind=job.kind,
        suite=job.suite,
        dataset=plan.dataset.name,
        fingerprint=plan.dataset.fingerprint,
        seed=job.seed,
        repetitions=plan.repetitions,
        samples=len(plan.dataset),
        started_at=timer.started_at,
        tool_version=__version__,
        identity=identity,
        facts={"label": job.label, "target": target_name(job), **job.facts},
        experiment=job.experiment,
    )


def _as_begun(findings: RunFindings, row: RunRow) -> RunFindings:
    """The findings of a resumed run: its baseline is the one that was found when it began."""
    stored = report_facts(row).findings
    baseline = findings.baseline
    if baseline is not None and stored.baseline is not None and stored.baseline.name == baseline.name:
        baseline = stored.baseline
    return findings._replace(baseline=baseline, earlier_usage=stored.earlier_usage)


def _read_backlog(job: Evaluation, run: StoredRun, warn: Callable[[str], None], *, live: LiveMarks) -> ResumeBacklog:
    """What is left to do of a resumed run."""
    warned: set[str] = set()

    def warn_once(message: str) -> None:
        if message not in warned:
            warned.add(message)
            warn(f"{message} What is damaged is run again.")

    return ResumeBacklog(
        partial(run.store.executions, run.id, scoring=0, settled=False, on_damage=warn_once),
        samples=run.row.samples,
        repetitions=run.row.repetitions,
        retry_target=not isinstance(job.plan.target, SavedOutputs),
        note=live.note if live.resume(job.plan.cards) else None,
    )
