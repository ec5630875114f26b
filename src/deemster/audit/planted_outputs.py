"""Marks outputs that an audit planted, by the metrics and judges of a suite; no target is called, nothing is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from deemster.audit.mutation_score import EXPECTED
from deemster.datasets import Dataset
from deemster.datasets.planted_defects import GoodOutput, reference_output
from deemster.engine.backend import InThisProcess, RemainingWork, RunWork
from deemster.engine.model_access import NO_LIMITS, ModelCalls
from deemster.engine.progress import ProgressCounter
from deemster.engine.settle_marks import settle_marks
from deemster.engine.watchers import Watchers
from deemster.engine.work_items import WorkItem
from deemster.errors import ConfigurationError, Issue, did_you_mean, plural
from deemster.evaluation.check_file import find_kind
from deemster.evaluation.resolve_evaluation import SuiteOverrides, resolve_evaluation
from deemster.evaluation.resolved_evaluation import Evaluation
from deemster.evaluation.suite import CONCURRENCY, SEED, Suite, load_suite
from deemster.gate.gate_decision import AGGREGATES
from deemster.judges.metric_catalog import metric_spellings
from deemster.records import Execution, Invocation, Output, TargetFailure, Unscored
from deemster.runs.retried_marks import FAILED_CAUSES
from deemster.runs.run_timer import RunTimer
from deemster.store import Store
from deemster.store.open_runs import open_runs
from deemster.targets.saved_outputs import SavedOutputs


class _NoTarget:
    """Stands for the target of an audit, whose outputs are all known."""

    is_async = False

    def call(self, _: Invocation) -> None:
        """It is never called."""

    async def call_async(self, _: Invocation) -> None:
        """It is never called."""


def audit_job(suite: Suite) -> Evaluation:
    """The job of a suite without its target.

    Args:
        suite: The suite.

    Raises:
        InputError: Something in the suite cannot be used; the issues of all parts are listed.
    """
    return resolve_evaluation(suite._replace(repetitions=1), SuiteOverrides(target=_NoTarget()))


def with_metrics(job: Evaluation, names: Sequence[str]) -> Evaluation:
    """A job with some of its metrics, and the rules of its gate about them.

    Args:
        job: The job.
        names: The metrics to keep; all where none is named.

    Raises:
        ConfigurationError: It has no such metric.
    """
    if not names:
        return job
    known = metric_spellings(job.plan.metrics)
    for name in names:
        if name not in known:
            raise ConfigurationError(f"The suite has no metric `{name}`. {did_you_mean(name, known.values())}")
    wanted = {known[name] for name in names}
    kept = tuple(metric for metric in job.plan.metrics if metric.name in wanted)
    gate = job.gate
    if gate is not None:
        # An aggregate of some of the metrics is not the one that the gate is about.
        rules = tuple(rule for rule in gate.rules if rule.quantity not in AGGREGATES)
        gate = gate._replace(idle=frozenset(known), rules=rules)
    return job._replace(plan=job.plan._replace(metrics=kept), gate=gate, aggregator=None)


class AuditedOutputs(NamedTuple):
    """Which outputs an audit begins with: those of a stored run, those of a file, or the expected ones.

    Attributes:
        run: The stored run.
        file: The file.
        store: Where the run is stored; None for `.deemster/runs.db`.
    """

    run: str | None = None
    file: str | Path | None = None
    store: str | Path | None = None

    def read(self, dataset: Dataset) -> tuple[dict[str, Output], str]:
        """The outputs by sample id, and where they come from.

        Args:
            dataset: The samples.

        Raises:
            ConfigurationError: Both a run and a file are named.
            OutputsError: The file cannot be read.
            StoreError: There is no such run, or it cannot be read.
        """
        if self.run is not None and self.file is not None:
            raise ConfigurationError("The outputs are those of a run or of a file, not of both.")
        if self.run is not None:
            with open_runs(self.store, [self.run]) as (opened, (name,)):
                return stored_outputs(opened, name), f"run {opened.run(name, kind='run').id}"
        if self.file is not None:
            return saved_outputs(str(self.file), dataset), str(self.file)
        return expected_outputs(dataset), EXPECTED


class AuditInput(NamedTuple):
    """What an audit of a suite begins with.

    Attributes:
        job: The suite's metrics, gate and models, without its target.
        outputs: The good outputs by sample id.
        source: Where they come from, as the audit says it.
    """

    job: Evaluation
    outputs: dict[str, Output]
    source: str


def load_audit(
    suite: str | Path, outputs: AuditedOutputs, *, metrics: Sequence[str] = (), limits: ModelCalls = NO_LIMITS
) -> AuditInput:
    """What an audit of a suite begins with.

    Args:
        suite: The suite's file, or that of a dataset, whose metrics are then named.
        outputs: Which outputs it begins with.
        metrics: The metrics to keep; all where none is named.
        limits: Cache and budget.

    Raises:
        InputError: The suite cannot be used, it has no such metric, or the outputs cannot be read.
        StoreError: There is no such run, or it cannot be read.
    """
    if find_kind(str(suite)) == "dataset":
        job = audit_job(_suite_of_dataset(suite, metrics).called_with(limits))
    else:
        loaded = load_suite(suite, calls_target=False).called_with(limits)
        job = with_metrics(audit_job(loaded), metrics)
    return AuditInput(job, *outputs.read(job.plan.dataset))


def _suite_of_dataset(file: str | Path, metrics: Sequence[str]) -> Suite:
    """A suite without a file, of a dataset and metrics.

    Raises:
        ConfigurationError: No metric is named.
    """
    if not metrics:
        message = "This is a dataset, which names no metrics: give its suite, or metrics with `--metric SPEC`."
        raise ConfigurationError(Issue(message, str(file)))
    return Suite(dataset=file, metrics=metrics, models=None, seed=SEED, concurrency=CONCURRENCY, gate=None)


def expected_outputs(dataset: Dataset) -> dict[str, Output]:
    """By id, the outputs that samples expect; samples without an expected output are left out."""
    found = {sample.id: reference_output(sample) for sample in dataset}
    return {name: output for name, output in found.items() if output is not None}


def stored_outputs(store: Store, run: str) -> dict[str, Output]:
    """By id, the outputs of a stored run, those of its first repetition.

    Args:
        store: Where the run is stored.
        run: Its id, the beginning of one, or `latest`.

    Raises:
        StoreError: There is no such run, or it cannot be read.
    """
    executions = store.executions(store.run(run, kind="run").id)
    return {
        each.id: each.answer
        for each in executions
        if each.repetition == 0 and each.cut is None and isinstance(each.answer, Output)
    }


def saved_outputs(file: str, dataset: Dataset) -> dict[str, Output]:
    """By id, the outputs of a file, those of the first repetition.

    Args:
        file: The file.
        dataset: The samples; those without an output are left out.

    Raises:
        OutputsError: The file cannot be read.
    """
    saved = SavedOutputs.load(file)
    missing = frozenset(saved.missing(dataset))
    ids = [sample.id for sample in dataset if sample.id not in missing]
    answers = zip(ids, saved.answers(ids), strict=True)
    return {name: answer for name, answer in answers if not isinstance(answer, TargetFailure)}


def good_outputs(
    dataset: Dataset, outputs: Mapping[str, Output], *, most: int | None = None, seed: int = 0
) -> list[GoodOutput]:
    """The samples that have an output, with it, in order.

    Args:
        dataset: The samples.
        outputs: Outputs by id.
        most: How many of them are drawn at random; None for all.
        seed: The seed of the draw.

    Raises:
        ConfigurationError: No sample has one.
    """
    found = [GoodOutput(sample, outputs[sample.id]) for sample in dataset if sample.id in outputs]
    if not found:
        raise ConfigurationError("No sample has an output to plant anything in.")
    if most is None or most >= len(found):
        return found
    drawn = Random(seed).sample(range(len(found)), most)  # noqa: S311 - a seeded draw, no secret
    return [found[place] for place in sorted(drawn)]


async def mark_outputs(
    job: Evaluation,
    planted: Sequence[GoodOutput],
    *,
    watchers: Watchers,
) -> list[Execution | None]:
    """Mark outputs by the metrics of a job; what was not marked before a stop is None.

    Args:
        job: The metrics, and how they may ask models.
        planted: What is marked.
        watchers: Who watches it, and may stop it.

    Raises:
        ConfigurationError: A request could not be made because of how the suite is set up.
    """
    found: list[Execution | None] = [None] * len(planted)

    def keep(executions: Sequence[Execution]) -> None:
        for execution in executions:
            found[execution.position] = execution

    def works() -> Iterator[WorkItem]:
        for position, (sample, output) in enumerate(planted):
            yield WorkItem(position, sample, 0, output)

    counter = ProgressCounter(len(planted), watchers.progress)
    clock = RunTimer().clock
    work = RunWork(job, RemainingWork(works()), [keep], counter, clock, watchers.stop, watchers.warn)
    await InThisProcess().execute(work)
    marked = [execution for execution in found if execution is not None]
    for execution in settle_marks(job.plan.metrics, marked):
        found[execution.position] = execution
    _warn_of_failures(job, found, warn=watchers.warn)
    return found


def _warn_of_failures(job: Evaluation, found: Sequence[Execution | None], *, warn: Callable[[str], None]) -> None:
    """Say how many marks could not be made, and why the first of them could not."""
    names = [metric.name for metric in job.plan.metrics]
    failed = [
        (name, mark.message)
        for execution in found
        if execution is not None
        for name, mark in zip(names, execution.marks, strict=True)
        if isinstance(mark, Unscored) and mark.cause in FAILED_CAUSES
    ]
    if failed:
        name, message = failed[0]
        warn(f"{plural(len(failed), 'score')} could not be made. The first, by {name}: {message}")
