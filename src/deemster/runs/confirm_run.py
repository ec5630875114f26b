"""Runs newly failing samples again on the target of a run, to confirm or clear them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from deemster.errors import ConfigurationError, Issue
from deemster.models.clock import Clock, clock_from_environment
from deemster.records import Execution, Output, Usage
from deemster.records.shared_call_cost import NOTHING_SPENT, CallPayments, Spending
from deemster.report.comparison import Comparison
from deemster.results.confirmation import Reruns, newly_failing
from deemster.results.sample_changes import SampleChange
from deemster.runs._report_settings import reruns_facts, stored_reruns
from deemster.runs._run_identity import identity_differences, plain_json, scoring_identity, target_identity
from deemster.runs._score_batch import WorkItem
from deemster.runs.backend import InThisProcess, RunWork
from deemster.runs.progress import Progress, ProgressCounter
from deemster.runs.resolve_evaluation import SuiteOverrides, resolve_evaluation
from deemster.runs.resume_backlog import RemainingWork
from deemster.runs.run_plan import Evaluation
from deemster.runs.stop_request import Stop
from deemster.runs.suite import load_suite, stored_suite
from deemster.store import RunRow, Store
from deemster.targets.saved_outputs import SavedOutputs


def check_confirmation(job: Evaluation) -> None:
    """Refuse a job that is to confirm failures and has no baseline, or whose target cannot be called again.

    Raises:
        ConfigurationError: The gate compares with no baseline, the outputs are saved ones, or the number is none.
    """
    if type(job.confirm) is not int or job.confirm < 0:
        raise ConfigurationError(f"`confirm` is a whole number of at least 0, not {job.confirm!r}.")
    if not job.confirm:
        return
    if job.gate is None or job.gate.baseline is None:
        raise ConfigurationError("To confirm that samples newly fail, the gate needs a section `baseline`.")
    _check_target(job)


def _check_target(job: Evaluation) -> None:
    if isinstance(job.plan.target, SavedOutputs):
        raise ConfigurationError("To confirm failures, the target is called again, and this run grades saved outputs.")


async def rerun_samples(
    job: Evaluation,
    changes: Iterable[SampleChange],
    *,
    known: Reruns,
    keep: Callable[[Reruns], None],
    clock: Clock,
    stop: Stop,
    warn: Callable[[str], None],
    spent: Spending,
    progress: Callable[[Progress], None] | None = None,
) -> Reruns:
    """Run samples again, each as often as the job says, and mark what comes out.

    Args:
        job: The run.
        changes: The samples: those that newly fail.
        known: What was run again already; it counts.
        keep: Stores the reruns as they finish; called in a thread, one call at a time.
        clock: The time.
        stop: Asks to stop.
        warn: Gets each warning.
        spent: What the models used before; it counts for the budget.
        progress: Gets the progress.
    """
    names = tuple(card.name for card in job.plan.cards)
    found = known if known.metrics == names else Reruns(metrics=names)
    wanted = {change.row_hash: change.candidate.id for change in changes if change.candidate is not None}
    works = list(_works(job, wanted, found))
    payments = CallPayments()
    for call in spent.call_ids:
        payments.pay(call)

    def sink(executions: Sequence[Execution]) -> None:
        nonlocal found
        for execution in executions:
            usages = [_target_usage(execution), *map(payments.usage, execution.marks)]
            found = found.add(execution.id, execution.marks, usages)
        keep(found)

    counter = ProgressCounter(len(works), progress)
    remaining = RemainingWork(works, spent=spent)
    await InThisProcess().execute(RunWork(job, remaining, [sink], counter, clock, stop, warn))
    return found


def _target_usage(execution: Execution) -> Usage | None:
    """What the target used, with the name of its model."""
    answer = execution.answer
    if not isinstance(answer, Output) or answer.usage is None:
        return None
    return msgspec.structs.replace(answer.usage, model=answer.usage.model or answer.model)


def _works(job: Evaluation, wanted: Mapping[str | None, str], known: Reruns) -> Iterator[WorkItem]:
    """What is left to run again. The repetitions are numbered on from those of the run, so that seeds differ."""
    dataset = job.plan.dataset
    for position, (sample, row_hash) in enumerate(zip(dataset, dataset.row_hashes, strict=True)):
        if wanted.get(row_hash) == sample.id:
            for number in range(len(known.samples.get(sample.id, ())), job.confirm):
                yield WorkItem(position, sample, job.plan.repetitions + number)


async def confirm_comparison(
    comparison: Comparison,
    store: Store,
    row: RunRow,
    *,
    confirm: int,
    stop: Stop,
    warn: Callable[[str], None],
    progress: Callable[[Progress], None] | None = None,
) -> Reruns:
    """Run the newly failing samples of a stored candidate again, and store that with it.

    Args:
        comparison: The comparison.
        store: Where the candidate is stored.
        row: The candidate.
        confirm: How often each sample is run again, those times included that it was already.
        stop: Asks to stop.
        warn: Gets each warning.
        progress: Gets the progress.

    Raises:
        ConfigurationError: The target of the candidate cannot be called again.
        StoreError: The store fails, or another process writes the run.
    """
    job = stored_job(row, confirm=confirm)
    with store.lease(row.id):
        return await rerun_samples(
            job,
            newly_failing(comparison.changes),
            known=stored_reruns(row.facts, where=f"run `{row.id}`"),
            keep=lambda reruns: store.amend(row.id, facts=reruns_facts(reruns)),
            clock=clock_from_environment(),
            stop=stop,
            warn=warn,
            spent=NOTHING_SPENT,
            progress=progress,
        )


def stored_job(row: RunRow, *, confirm: int) -> Evaluation:
    """The job of a stored run, to call its target again.

    Args:
        row: The run.
        confirm: How often newly failing samples are run again.

    Raises:
        ConfigurationError: Its suite is not known, cannot be read, or has another target, metric or model now.
    """
    suite = stored_suite(row)
    if "file" not in suite:
        message = f"The target of the run `{row.id}` cannot be called again: no suite is stored with it."
        raise ConfigurationError(message)
    job = resolve_evaluation(load_suite(suite["file"]), SuiteOverrides(confirm=confirm))
    _check_target(job)
    now = plain_json({"target": target_identity(job), **scoring_identity(job)})
    before = {name: row.identity.get(name) for name in now}
    if changes := identity_differences(before, now):
        message = f"The suite of the run `{row.id}` is not the same any more, so its samples are not run again."
        raise ConfigurationError([Issue(message, suite["file"]), *map(Issue, changes)])
    return job
