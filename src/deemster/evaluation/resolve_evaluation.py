"""Resolves an evaluation: a suite from a file, or the arguments of a program as a suite without one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from deemster.datasets import Dataset
from deemster.engine.model_access import (
    NO_LIMITS,
    ModelAccess,
    ModelCalls,
)
from deemster.engine.run_plan import Plan, Target, asks_models, collect_secrets
from deemster.errors import ConfigurationError, InputError, Issue, OutputsError, list_names, plural
from deemster.evaluation.evaluation_settings import USUAL_SETTINGS, EvaluationSettings
from deemster.evaluation.resolved_evaluation import Evaluation
from deemster.evaluation.resumed_evaluation import find_resumed_run
from deemster.evaluation.suite import CONCURRENCY, SEED, Suite, SuiteFile
from deemster.evaluation.suite_parts import (
    GivenOutputs,
    resolve_aggregator,
    resolve_calibration,
    resolve_metrics,
    resolve_models,
    resolve_target,
    resolve_thresholds,
    suite_dataset,
    suite_metrics,
)
from deemster.formats.schema_validation import shape_issues
from deemster.gate import NONE_UNSCORED, Allowance, Gate, GateRules, read_allowance, read_gate, with_allowance
from deemster.judges.metric_catalog import metric_spellings, with_group
from deemster.records import Metric
from deemster.results import Aggregator
from deemster.runs.run_storage import NOT_STORED, StoredOrNot
from deemster.targets.saved_outputs import SavedOutputs

# How an entry of `metrics` names a ready-made group.
GROUP = "group:"
# A run keeps a few bytes of each in memory.
MOST_EXECUTIONS = 100_000_000
# What an evaluation and its plan hold under these names is read and checked; other settings they hold as they are said.
_RESOLVED_SETTINGS = ("thresholds", "calibration")


class SuiteOverrides(NamedTuple):
    """What is given with a call or as a flag. It wins over what the suite says.

    Attributes:
        outputs: Saved outputs, or their file, in place of the target.
        metrics: Metrics in place of the suite's, by name or spec.
        redact_warnings: Whether warnings leave out what a sample says.
        asks_models: Whether models are going to be asked; otherwise their keys need not be set.
        label: What the user calls the run.
        select: Takes a part of the dataset.
        target: A target of a program.
        dataset: A dataset in place of the suite's.
    """

    outputs: GivenOutputs | None = None
    metrics: tuple[str, ...] = ()
    redact_warnings: bool = False
    asks_models: bool = True
    label: str | None = None
    select: Callable[[Dataset], Dataset] | None = None
    target: Any = None
    dataset: Dataset | None = None


def resolve_arguments(
    dataset: Dataset | Iterable[Any] | str | Path,
    *,
    target: Any = None,
    outputs: GivenOutputs | None = None,
    metrics: Sequence[Any] = (),
    aggregator: Aggregator | str | Mapping[str, Any] | None = None,
    gate: Gate | Mapping[str, Any] | None = None,
    models: Mapping[str, Any] | None = None,
    calls: ModelCalls = NO_LIMITS,
    storage: StoredOrNot = NOT_STORED,
    repetitions: int | None = None,
    concurrency: int = CONCURRENCY,
    seed: int = SEED,
    name: str | None = None,
    settings: EvaluationSettings = USUAL_SETTINGS,
) -> Evaluation:
    """Resolve the arguments of a program, as a suite without a document; see ``evaluate``.

    Raises:
        InputError: Something given cannot be used; the issues of all parts are listed.
    """
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
    overrides = SuiteOverrides(outputs=outputs, label=name, target=target)
    return resolve_evaluation(suite, overrides, storage=storage)


def suite_of_arguments(
    dataset: Dataset | Iterable[Any] | str | Path,
    *,
    metrics: Sequence[Any],
    aggregator: Aggregator | str | Mapping[str, Any] | None,
    gate: Gate | Mapping[str, Any] | None,
    models: Mapping[str, Any] | None,
    calls: ModelCalls,
    repetitions: int | None,
    concurrency: int,
    seed: int,
    settings: EvaluationSettings,
) -> Suite:
    """The arguments of a program as a suite without a document.

    Raises:
        ConfigurationError: The metrics name several groups, or one that there is not.
    """
    metrics, group = _take_group(metrics)
    if group is not None:
        metrics, aggregator = with_group(group, metrics, aggregator)

    return Suite(
        dataset=dataset,
        metrics=metrics,
        models=models,
        repetitions=repetitions,
        seed=seed,
        concurrency=concurrency,
        gate=gate,
        aggregator=aggregator,
        group=group,
        settings=settings,
        calls=calls,
    )


def _take_group(metrics: Sequence[Any]) -> tuple[Sequence[Any], str | None]:
    """The metrics without the entry `group:NAME`, and that name; None where there is no such entry.

    Raises:
        ConfigurationError: There are several.
    """
    if isinstance(metrics, (str, Mapping)) or not isinstance(metrics, Iterable):
        return metrics, None
    groups = [entry for entry in metrics if isinstance(entry, str) and entry.startswith(GROUP)]
    if len(groups) > 1:
        raise ConfigurationError(f"A run has one group of metrics, not {list_names(groups)}.")
    if not groups:
        return metrics, None
    return [entry for entry in metrics if entry is not groups[0]], groups[0].removeprefix(GROUP)


def resolve_evaluation(suite: Suite, overrides: SuiteOverrides, *, storage: StoredOrNot = NOT_STORED) -> Evaluation:
    """Resolve a suite: load its dataset and target, make its metrics, read its gate, find the run that it resumes.

    Args:
        suite: What a file or the arguments of a program say.
        overrides: What is given with the call.
        storage: Where the run will be stored, and what it resumes, which decides the order of samples and metrics.

    Raises:
        InputError: Something given cannot be used; the issues of all parts are listed.
        StoreError: The run that is to be resumed is missing, or cannot be read.
    """
    parts = _resolve_parts(suite, overrides)
    dataset = _with_outputs(parts.dataset, parts.target) if suite.settings.only_answered else parts.dataset
    resumed = find_resumed_run(storage, suite=suite.name or None, dataset=dataset)
    plan = _resolve_plan(parts, resumed.order_samples(dataset), suite, overrides)

    return Evaluation(
        plan._replace(metrics=resumed.order_metrics(plan.metrics)),
        gate=parts.gate,
        suite=suite.name or None,
        seed=suite.seed,
        allowance=parts.allowance,
        redact_warnings=overrides.redact_warnings,
        access=parts.access,
        aggregator=parts.aggregator,
        label=overrides.label,
        calibration=resolve_calibration(suite, parts.metrics, parts.gate),
        origin=suite.origin,
        resumes=resumed.id,
        **_plain_settings(suite.settings, Evaluation._fields),
    )


def _plain_settings(settings: EvaluationSettings, fields: Sequence[str]) -> dict[str, Any]:
    """The settings that are fields of an evaluation, or of its plan, by the same name and with the same value."""
    return {
        name: value for name, value in settings._asdict().items() if name in fields and name not in _RESOLVED_SETTINGS
    }


class _Parts(NamedTuple):
    """The parts of an evaluation, each of which can be used."""

    metrics: tuple[Metric, ...]
    aggregator: Aggregator | None
    target: Target
    gate: GateRules | None
    allowance: Allowance
    dataset: Dataset
    access: ModelAccess
    thresholds: Mapping[str, float]


def _resolve_parts(suite: Suite, overrides: SuiteOverrides) -> _Parts:
    """Resolve each part for itself, and list what is wrong with any."""
    settings = suite.settings
    metrics: tuple[Metric, ...] | None = None
    target: Target | None = None
    left_out: frozenset[str] = frozenset()
    thresholds: Mapping[str, float] = {}

    errors: list[InputError] = []
    with _collect(errors):
        _check_numbers(suite)
    with _collect(errors):
        metrics = resolve_metrics(suite, overrides.metrics)
        if overrides.metrics:
            left_out = frozenset(metric_spellings(suite_metrics(suite)))
    with _collect(errors):
        aggregator = resolve_aggregator(suite, metrics, idle=left_out)
    with _collect(errors):
        target = resolve_target(
            suite,
            target=overrides.target,
            outputs=overrides.outputs,
            offline=suite.calls.offline,
        )
    with _collect(errors):
        gate = None
        if suite.gate is not None:
            gate = read_gate(suite.gate, document=suite.document, of_run=suite.has_one_target)
    with _collect(errors):
        allowance = None if settings.max_unscored is None else read_allowance(settings.max_unscored)
    with _collect(errors):
        dataset = resolve_dataset(suite, overrides)
    with _collect(errors):
        access = resolve_models(suite, metrics or (), target, suite.calls, calls=overrides.asks_models)
    with _collect(errors):
        if settings.thresholds and metrics is not None:
            thresholds = resolve_thresholds(settings.thresholds, metrics)
    if errors or metrics is None or target is None:
        raise _joined(errors)

    # No error was collected, so every part is there.
    if gate is not None:
        gate = gate._replace(idle=left_out).with_cluster(dataset.cluster)
        gate = gate if allowance is None else with_allowance(gate, allowance)
        allowance = gate.allowance
    return _Parts(metrics, aggregator, target, gate, allowance or NONE_UNSCORED, dataset, access, thresholds)


@contextmanager
def _collect(errors: list[InputError]) -> Iterator[None]:
    """Collect the error of one part, so that the issues of all parts can be listed at once."""
    try:
        yield
    except InputError as error:
        errors.append(error)


def _joined(errors: Sequence[InputError]) -> InputError:
    if len(errors) == 1:
        return errors[0]
    return ConfigurationError(issue for error in errors for issue in error.issues)


def _check_numbers(suite: Suite) -> None:
    issues = shape_issues({"seed": suite.seed, "delta": suite.settings.delta}, SuiteFile, document=suite.document)
    if suite.repetitions is not None:
        issues += _count_issues("repetitions", suite.repetitions)
    issues += _count_issues("concurrency", suite.concurrency)
    if suite.timeout_s is not None and not 0 < suite.timeout_s < float("inf"):
        issues.append(Issue(f"`--timeout` is a number of seconds above 0, not {suite.timeout_s!r}."))
    if issues:
        raise ConfigurationError(issues)


def _count_issues(name: str, value: Any) -> list[Issue]:
    is_count = type(value) is int and value >= 1
    return [] if is_count else [Issue(f"`{name}` is a whole number of at least 1, not {value!r}.")]


def resolve_dataset(suite: Suite, overrides: SuiteOverrides) -> Dataset:
    """The samples that are run, clustered and selected.

    Raises:
        InputError: They cannot be read, or nothing is selected.
    """
    dataset = suite_dataset(suite) if overrides.dataset is None else overrides.dataset
    if suite.cluster is not None:
        dataset = dataset.clustered(suite.cluster)
    return dataset if overrides.select is None else overrides.select(dataset)


def _with_outputs(dataset: Dataset, target: Target) -> Dataset:
    """The samples that have a saved output."""
    if not isinstance(target, SavedOutputs):
        raise ConfigurationError("`--only answered` is for saved outputs, and this run has a live target.")
    missing = frozenset(target.missing(dataset))
    if not missing:
        return dataset
    return dataset.keep({sample.id for sample in dataset} - missing, selection="--only answered")


def _resolve_plan(parts: _Parts, dataset: Dataset, suite: Suite, overrides: SuiteOverrides) -> Plan:
    """The plan, with the suite's timeouts, and with where it declares each metric that has a `where`."""
    try:
        plan = build_plan(
            dataset,
            target=parts.target,
            metrics=parts.metrics,
            repetitions=suite.repetitions,
            thresholds=parts.thresholds,
            concurrency=suite.concurrency,
            access=parts.access,
        )
    except OutputsError as error:
        # Saved outputs that do not fit the dataset know their ids, but not their file.
        file = _outputs_file(suite, overrides)
        raise OutputsError([issue._replace(where=issue.where or file) for issue in error.issues]) from None

    return plan._replace(
        timeout_s=suite.timeout_s,
        target_timeout_s=suite.target_timeout_s,
        places={} if overrides.metrics else _declared_at(suite, plan),
        **_plain_settings(suite.settings, Plan._fields),
    )


def _outputs_file(suite: Suite, overrides: SuiteOverrides) -> str | None:
    """The file of the saved outputs; None where they come from memory."""
    if overrides.outputs is not None:
        return str(overrides.outputs) if isinstance(overrides.outputs, (str, Path)) else None
    return None if suite.target is None else suite.target.main


def _declared_at(suite: Suite, plan: Plan) -> dict[str, str | None]:
    """Where the suite declares each metric that has a `where`, by its name."""
    return {
        metric.name: suite.document.where(("metrics", index))
        for index, (metric, condition) in enumerate(zip(plan.metrics, plan.where, strict=True))
        if condition is not None
    }


def build_plan(
    dataset: Dataset,
    *,
    target: Target,
    metrics: tuple[Metric, ...],
    repetitions: int | None,
    thresholds: Mapping[str, float] | None = None,
    concurrency: int = CONCURRENCY,
    access: ModelAccess,
) -> Plan:
    """A plan whose parts fit each other.

    Args:
        dataset: The samples.
        target: What answers them.
        metrics: What marks the answers.
        repetitions: How often each sample is run; otherwise what the saved outputs or the dataset say, or once.
        thresholds: Pass marks by metric name.
        concurrency: How many calls of the target may be under way at once.
        access: How metrics may ask models.

    Raises:
        InputError: Repetitions or saved outputs do not fit.
    """
    if repetitions is not None and (issues := _count_issues("repetitions", repetitions)):
        raise ConfigurationError(issues)
    times = repetitions or dataset.repetitions or 1

    if isinstance(target, SavedOutputs):
        if repetitions is None and target.repetitions > 1:
            times = dataset.repetitions or target.repetitions
        target.check(dataset, times, whole=dataset.whole)

    if len(dataset) * times > MOST_EXECUTIONS:
        size = f"{plural(len(dataset), 'sample')} x {plural(times, 'repetition')}"
        raise ConfigurationError(f"A run has at most {MOST_EXECUTIONS:,} executions, not {size}.")
    if asks_models(target) and concurrency == CONCURRENCY:
        # Where nobody says how many of its questions may be under way, the model that it asks does.
        concurrency = max(access.roles[role].bounds[1] for role in target.roles)
    return Plan(dataset, target, metrics, times, thresholds or {}, concurrency, secrets=collect_secrets(target, access))
