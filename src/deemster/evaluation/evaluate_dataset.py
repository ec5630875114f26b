"""Evaluates a dataset: from a dataset, a target and metrics to a report."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from deemster.comparison.comparison import Comparison
from deemster.datasets import Dataset
from deemster.engine.notebook_progress import notebook_progress
from deemster.engine.run_sync import waits_for, warner
from deemster.errors import plural
from deemster.evaluation.confirm_run import check_confirmation, confirm_report
from deemster.evaluation.resolve_evaluation import resolve_arguments
from deemster.evaluation.resolved_evaluation import Evaluation
from deemster.evaluation.run_evaluation import find_backend, run_evaluation
from deemster.evaluation.suite import CONCURRENCY, SEED
from deemster.models.clock import Clock
from deemster.report import Report
from deemster.report.report_sections import group_failures
from deemster.results import Aggregator
from deemster.results.repetition_precision import DELTA
from deemster.runs.run_lifecycle import Storage, build_storage
from deemster.store import Store
from deemster.targets.saved_outputs import SavedOutputs


def evaluate_async(
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
) -> Coroutine[Any, Any, Report]:
    """Run a target over a golden dataset, score what it says, and report.

    ``evaluate`` works in a script, inside a running event loop (a notebook) and in any thread; ``evaluate_async`` is
    the same function, to be awaited.

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
        label: What you call the run; `deemster show` shows it.
        calibration: The file of `deemster agreement --to FILE.json`, by whose labels pass-rates are corrected.
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
    storage = build_storage(store, resume, keep_prompts=keep_prompts)
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
        storage=storage,
    )
    return _evaluate(evaluation, storage, confirm=confirm, cluster=cluster, clock=clock, warn=warner())


evaluate = waits_for(evaluate_async, Report)


async def _evaluate(
    evaluation: Evaluation,
    storage: Storage,
    *,
    confirm: int,
    cluster: str | None,
    clock: Clock | None,
    warn: Callable[[str], None],
) -> Report:
    """Run an evaluation for a program. The store stays open: the report reads from it."""
    check_confirmation(evaluation, confirm)
    compared: list[Comparison] = []
    report = await run_evaluation(
        evaluation,
        storage=storage,
        backend=find_backend(cluster),
        clock=clock,
        warn=warn,
        progress=notebook_progress(),
        tell_comparison=compared.append,
    )
    if (why := _why_all_failed(report)) is not None:
        warn(why)
    for comparison in compared if confirm else ():
        report = await confirm_report(report, comparison, evaluation, confirm, storage, clock=clock)
    return report


def _why_all_failed(report: Report) -> str | None:
    """The most frequent cause where the target answered no sample, else None."""
    totals = report.totals
    if totals.executions < 2 or totals.target_failures < totals.executions:
        return None
    group = group_failures(entry for entry in report.failure_list if entry.metric is None)[0]
    said = group.cause if group.message is None else f"{group.cause}: {group.message}"
    return f"Every sample failed: the target gave no answer. {plural(group.times, 'time')}: {said}"
