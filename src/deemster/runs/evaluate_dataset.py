"""The door for Python: from a dataset, a target and metrics to a report."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from types import FrameType
from typing import Any

from deemster.datasets import Dataset
from deemster.errors import ConfigurationError
from deemster.models.clock import Clock
from deemster.report import Report, redact_report
from deemster.results import Aggregator
from deemster.runs.evaluation_job import DELTA, build_job
from deemster.runs.run_job import run_job
from deemster.runs.run_lifecycle import RunStorage
from deemster.runs.run_sync import run_sync, with_parameters_of
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
