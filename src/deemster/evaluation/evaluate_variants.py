"""Evaluates several targets over one dataset, side by side: which of them is best?"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deemster.comparison.experiment import Experiment
from deemster.datasets import Dataset
from deemster.engine.model_access import NO_LIMITS, ModelCalls
from deemster.engine.notebook_progress import notebook_progress
from deemster.engine.run_plan import AskingTarget, AwaitableTarget, CallableTarget
from deemster.engine.run_sync import waits_for, warner
from deemster.errors import ConfigurationError
from deemster.errors.parameter_checks import checks_parameters
from deemster.evaluation.evaluation_settings import USUAL_SETTINGS, EvaluationSettings
from deemster.evaluation.resolve_evaluation import SuiteOverrides, suite_of_arguments
from deemster.evaluation.run_experiment import (
    ResolvedExperiment,
    conclude_experiment,
    resolve_experiment,
    run_experiment,
)
from deemster.evaluation.suite import CONCURRENCY, SEED
from deemster.evaluation.variants import given_variants
from deemster.gate import Gate
from deemster.models import ChatClient, EmbeddingClient, Role
from deemster.records import Metric, Sample, Scorer
from deemster.report import Report
from deemster.results import Aggregator
from deemster.runs.run_storage import Storage, StoredOrNot, build_storage
from deemster.store import Store
from deemster.targets.saved_outputs import SavedOutputs

if TYPE_CHECKING:
    import pandas as pd


class EvaluatedExperiment(Experiment, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """What several variants show, with the report of each."""

    @property
    def reports(self) -> Mapping[str, Report]:
        """The report of each variant whose run came to its end, by its name. A file of the experiment lacks them."""
        reports: Mapping[str, Report] = self.__dict__["_reports"]
        return reports


@checks_parameters
def evaluate_variants_async(
    dataset: Dataset | Iterable[Sample | Mapping[str, Any]] | pd.DataFrame | str | Path,
    variants: Mapping[str, CallableTarget | AwaitableTarget | AskingTarget | Callable[..., Any] | SavedOutputs],
    *,
    metrics: Sequence[Metric | Scorer | str | Mapping[str, Any]] = (),
    aggregator: Aggregator | str | Mapping[str, Any] | None = None,
    gate: Gate | Mapping[str, Any] | None = None,
    models: Mapping[str, ChatClient | EmbeddingClient | Role | Mapping[str, Any]] | None = None,
    calls: ModelCalls = NO_LIMITS,
    storage: Storage | Store | str | Path | None = None,
    repetitions: int | None = None,
    concurrency: int = CONCURRENCY,
    seed: int = SEED,
    settings: EvaluationSettings = USUAL_SETTINGS,
) -> Coroutine[Any, Any, EvaluatedExperiment]:
    """Run several targets over one golden dataset side by side, score what they say, and rank them.

    All of them answer a sample before any of them is asked the next one. Budget, limits and concurrency hold for all of
    them together. Each is an ordinary run under its name.

    Args:
        dataset: The samples, as ``evaluate`` takes them.
        variants: By name a target: a function, sync or async, or a target such as ``ChatTarget``; or saved outputs.
        metrics: Metrics, as ``evaluate`` takes them.
        aggregator: Makes one success and one score of each execution's marks.
        gate: The rules by which each passes, or those that `variants` in it names. `compare` of its `baseline` may name
            one of them.
        models: Models by role, such as `judge`, or one that a ``ChatTarget`` asks.
        calls: Cache, budget and network of the models, and whose prompts are kept.
        storage: Where the runs are stored; with `resume`, all of them are resumed.
        repetitions: How often each sample is run.
        concurrency: How many calls of all targets together may be under way at once.
        seed: For everything that draws, the order within a sample included.
        settings: What is rarely said, such as `thresholds` and `max_unscored`.

    Raises:
        InputError: Something given cannot be used.
        StoreError: The store fails, or the experiment that is to be resumed is missing.
        ReportError: No variant has anything to be compared.
    """
    if settings.confirm or settings.on is not None:
        raise ConfigurationError("`confirm` and `on` are for one target: `evaluate`.")

    suite = suite_of_arguments(
        dataset,
        metrics=metrics,
        aggregator=aggregator,
        gate=gate,
        models=models,
        calls=calls,
        repetitions=repetitions,
        concurrency=concurrency,
        seed=seed,
        settings=settings,
    )
    run_storage = build_storage(storage, keep_prompts=calls.keep_prompts)
    experiment = resolve_experiment(suite, given_variants(variants), SuiteOverrides(), storage=run_storage)
    return _evaluate(experiment, run_storage, settings, warn=warner())


evaluate_variants = waits_for(evaluate_variants_async, EvaluatedExperiment)


async def _evaluate(
    experiment: ResolvedExperiment,
    storage: StoredOrNot,
    settings: EvaluationSettings,
    *,
    warn: Callable[[str], None],
) -> EvaluatedExperiment:
    """Run an experiment for a program. The store stays open: the reports read from it."""
    finished = await run_experiment(experiment, clock=settings.clock, warn=warn, progress=notebook_progress())
    errors = {variant.name: variant.error for variant in finished if variant.error is not None}
    if len(errors) == len(finished):
        raise next(iter(errors.values()))
    for name, error in errors.items():
        warn(f"{name}: {error}")

    answer = conclude_experiment(experiment, finished, storage.store)
    found = EvaluatedExperiment(**{name: getattr(answer, name) for name in Experiment.__struct_fields__})
    found.__dict__["_reports"] = {variant.name: variant.report for variant in finished if variant.report is not None}
    return found
