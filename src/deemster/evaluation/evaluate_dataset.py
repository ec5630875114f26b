"""Evaluates a dataset: from a dataset, a target and metrics to a report."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deemster.comparison.comparison import Comparison
from deemster.datasets import Dataset
from deemster.engine.model_access import NO_LIMITS, ModelCalls
from deemster.engine.notebook_progress import notebook_progress
from deemster.engine.run_plan import AskingTarget, AwaitableTarget, CallableTarget
from deemster.engine.run_sync import waits_for, warner
from deemster.errors import plural
from deemster.errors.parameter_checks import checks_parameters
from deemster.evaluation.confirm_run import check_confirmation, confirm_report
from deemster.evaluation.evaluation_settings import USUAL_SETTINGS, EvaluationSettings
from deemster.evaluation.resolve_evaluation import resolve_arguments
from deemster.evaluation.resolved_evaluation import Evaluation
from deemster.evaluation.run_evaluation import find_backend, run_evaluation
from deemster.evaluation.suite import CONCURRENCY, SEED
from deemster.gate import Gate
from deemster.models import ChatClient, EmbeddingClient, Role
from deemster.records import Metric, Sample, Scorer
from deemster.report import Report
from deemster.report.unscored_causes import group_failures
from deemster.results import Aggregator
from deemster.runs.run_storage import Storage, StoredOrNot, build_storage
from deemster.store import Store
from deemster.targets.saved_outputs import SavedOutputs

if TYPE_CHECKING:
    import pandas as pd


@checks_parameters
def evaluate_async(
    dataset: Dataset | Iterable[Sample | Mapping[str, Any]] | pd.DataFrame | str | Path,
    *,
    target: CallableTarget | AwaitableTarget | AskingTarget | Callable[..., Any] | None = None,
    outputs: SavedOutputs | Mapping[str, Any] | str | Path | None = None,
    metrics: Sequence[Metric | Scorer | str | Mapping[str, Any]] = (),
    aggregator: Aggregator | str | Mapping[str, Any] | None = None,
    gate: Gate | Mapping[str, Any] | None = None,
    models: Mapping[str, ChatClient | EmbeddingClient | Role | Mapping[str, Any]] | None = None,
    calls: ModelCalls = NO_LIMITS,
    storage: Storage | Store | str | Path | None = None,
    repetitions: int | None = None,
    concurrency: int = CONCURRENCY,
    seed: int = SEED,
    name: str | None = None,
    settings: EvaluationSettings = USUAL_SETTINGS,
) -> Coroutine[Any, Any, Report]:
    """Run a target over a golden dataset, score what it says, and report.

    ``evaluate`` works in a script, inside a running event loop (a notebook) and in any thread; ``evaluate_async`` is
    the same function, to be awaited.

    Args:
        dataset: The samples, as a dataset, the path of its file, a list of samples or maps, or a pandas data frame with
            the columns of a CSV file. `Dataset.select` gives a part of a dataset.
        target: A function, sync or async, from a sample's input to text, an ``Output`` or JSON data; or a target, such
            as a ``ChatTarget``, which asks one of the ``models``.
        outputs: Saved outputs in place of a target: a map of id to text, or a file.
        metrics: Metrics, specs such as `ndcg@10`, or one-key maps of alias to options; and `group:NAME`, a ready-made
            group of metrics with its aggregator, such as `group:generation`.
        aggregator: Makes one success and one score of each execution's marks: an aggregator such as ``AtLeast(2)``, or
            what a suite's `aggregator` section would say.
        gate: The rules by which the run passes: a ``Gate``, or the map of a suite's `gate` section.
        models: Models by role, such as `judge` and `embedding`: a client, or a map as in a suite's `models` section.
        calls: Cache, budget and network of the models, and whose prompts are kept.
        storage: Where the run is stored: a file, `postgresql://...`, or a ``Storage``, which can say what is resumed;
            not stored unless given.
        repetitions: How often each sample is run; otherwise what the dataset says, or once.
        concurrency: How many calls of the target may be under way at once; of a ``ChatTarget``, what its model allows
            unless another number is given.
        seed: For everything that draws.
        name: What you call the run; `deemster show` shows it.
        settings: What is rarely said, such as `thresholds` and `max_unscored`.

    Raises:
        InputError: Something given cannot be used.
        StoreError: The store fails, or the run that is to be resumed is missing or held by another process.
    """
    run_storage = build_storage(storage, keep_prompts=calls.keep_prompts)
    evaluation = resolve_arguments(
        dataset,
        target=target,
        outputs=outputs,
        metrics=metrics,
        aggregator=aggregator,
        gate=gate,
        models=models,
        calls=calls,
        storage=run_storage,
        repetitions=repetitions,
        concurrency=concurrency,
        seed=seed,
        name=name,
        settings=settings,
    )
    return _evaluate(evaluation, run_storage, settings, warn=warner())


evaluate = waits_for(evaluate_async, Report)


async def _evaluate(
    evaluation: Evaluation,
    storage: StoredOrNot,
    settings: EvaluationSettings,
    *,
    warn: Callable[[str], None],
) -> Report:
    """Run an evaluation for a program. The store stays open: the report reads from it."""
    confirm = settings.confirm
    check_confirmation(evaluation, confirm)

    compared: list[Comparison] = []
    report = await run_evaluation(
        evaluation,
        storage=storage,
        backend=find_backend(settings.on),
        clock=settings.clock,
        warn=warn,
        progress=notebook_progress(),
        tell_comparison=compared.append,
    )

    if (why := _why_all_failed(report)) is not None:
        warn(why)
    for comparison in compared if confirm else ():
        report = await confirm_report(report, comparison, evaluation, confirm, storage, clock=settings.clock)
    return report


def _why_all_failed(report: Report) -> str | None:
    """The most frequent cause where the target answered no sample, else None."""
    totals = report.totals
    if totals.executions < 2 or totals.target_failures < totals.executions:
        return None
    group = group_failures(entry for entry in report.failure_list if entry.metric is None)[0]
    said = group.cause if group.message is None else f"{group.cause}: {group.message}"
    return f"Every sample failed: the target gave no answer. {plural(group.times, 'time')}: {said}"
