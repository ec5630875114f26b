"""Resolves an evaluation: a suite from a file, or the arguments of a program as a suite without one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from deemster.agreement.calibration_result import load_calibration
from deemster.datasets import Dataset
from deemster.datasets.human_labels import SuiteCalibration
from deemster.engine.model_access import (
    NO_LIMITS,
    ModelAccess,
    ModelCalls,
    build_model_access,
    complete_model_access,
    read_model_access,
)
from deemster.engine.run_plan import Plan, Target, collect_secrets
from deemster.errors import ConfigurationError, InputError, Issue, OutputsError, did_you_mean, list_names, plural
from deemster.evaluation.evaluation_settings import USUAL_SETTINGS, EvaluationSettings
from deemster.evaluation.resolved_evaluation import Evaluation
from deemster.evaluation.run_part import find_resumed_run
from deemster.evaluation.suite import CONCURRENCY, SEED, Suite, SuiteFile
from deemster.formats import missing_file
from deemster.formats.schema_validation import shape_issues
from deemster.gate import NONE_UNSCORED, Allowance, Gate, GateRules, read_allowance, read_gate, with_allowance
from deemster.judges import metric_catalog as catalog
from deemster.judges.metric_catalog import metric_spellings, names_of_group, with_group
from deemster.metrics.import_user_code import import_object
from deemster.records import Metric
from deemster.report.corrected_rates import check_corrected_rules
from deemster.results import Aggregator
from deemster.results.aggregator_section import build_aggregator
from deemster.results.metric_aggregators import SubsetAggregator
from deemster.runs.run_storage import NOT_STORED, StoredOrNot
from deemster.targets.python_target import as_target
from deemster.targets.saved_outputs import SavedOutputs
from deemster.targets.target_section import build_target

# The entry points of plug-ins that are targets.
TARGETS = "deemster.targets"
# How an entry of `metrics` names a ready-made group.
GROUP = "group:"
# A run keeps a few bytes of each in memory.
MOST_EXECUTIONS = 100_000_000


class SuiteOverrides(NamedTuple):
    """What is given with a call or as a flag. It wins over what the suite says."""

    outputs: SavedOutputs | Mapping[str, Any] | str | Path | None = None
    repetitions: int | None = None
    metrics: tuple[str, ...] = ()
    thresholds: Mapping[str, float] | None = None
    concurrency: int | None = None
    timeout_s: float | None = None
    max_unscored: int | str | None = None
    redact_warnings: bool = False
    limits: ModelCalls = ModelCalls()
    calls: bool = True
    partial: bool = False
    label: str | None = None
    select: Callable[[Dataset], Dataset] | None = None
    target: Any = None
    dataset: Dataset | None = None


def resolve_arguments(
    dataset: Dataset | Iterable[Any] | str | Path,
    *,
    target: Any = None,
    outputs: SavedOutputs | Mapping[str, Any] | str | Path | None = None,
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
    metrics, group = _take_group(metrics)
    if group is not None:
        metrics, aggregator = with_group(group, metrics, aggregator)
    suite = Suite(
        dataset=dataset,
        metrics=metrics,
        models=models,
        repetitions=repetitions,
        seed=seed,
        concurrency=concurrency,
        gate=gate,
        aggregator=aggregator,
        group=group,
        calibration=settings.calibration,
        strict=settings.strict,
        delta=settings.delta,
    )
    overrides = SuiteOverrides(
        outputs=outputs,
        thresholds=settings.thresholds,
        max_unscored=settings.max_unscored,
        limits=calls,
        partial=settings.only_answered,
        label=name,
        target=target,
    )
    return resolve_evaluation(suite, overrides, storage=storage)


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
    dataset = _with_outputs(parts.dataset, parts.target) if overrides.partial else parts.dataset
    resumed = find_resumed_run(storage, suite=suite.name or None, dataset=dataset)
    plan = _resolve_plan(parts, resumed.order_samples(dataset), suite, overrides)
    return Evaluation(
        plan._replace(metrics=resumed.order_metrics(plan.metrics)),
        gate=parts.gate,
        suite=suite.name or None,
        seed=suite.seed,
        delta=suite.delta,
        strict=suite.strict,
        allowance=parts.allowance,
        redact_warnings=overrides.redact_warnings,
        access=parts.access,
        aggregator=parts.aggregator,
        label=overrides.label,
        calibration=_calibration(suite, parts.metrics, parts.gate),
        origin=suite.origin,
        resumes=resumed.id,
    )


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
    metrics: tuple[Metric, ...] | None = None
    idle: frozenset[str] = frozenset()

    errors: list[InputError] = []
    with _collect(errors):
        _check_numbers(suite, overrides)
    with _collect(errors):
        metrics = _metrics(suite, overrides)
        if overrides.metrics:
            idle = frozenset(metric_spellings(suite_metrics(suite)))
    with _collect(errors):
        aggregator = _aggregator(suite, metrics, idle=idle)
    with _collect(errors):
        target = _target(suite, overrides)
    with _collect(errors):
        gate = None if suite.gate is None else read_gate(suite.gate, document=suite.document)
    with _collect(errors):
        allowance = None if overrides.max_unscored is None else read_allowance(overrides.max_unscored)
    with _collect(errors):
        dataset = _dataset(suite, overrides)
    with _collect(errors):
        access = _model_access(suite, overrides, metrics or ())
    with _collect(errors):
        thresholds = _thresholds(overrides, metrics)
    if errors or metrics is None:
        raise errors[0] if len(errors) == 1 else ConfigurationError(issue for each in errors for issue in each.issues)

    if gate is not None:
        gate = gate._replace(idle=idle).with_cluster(dataset.cluster)
        gate = gate if allowance is None else with_allowance(gate, allowance)
        allowance = gate.allowance
    return _Parts(metrics, aggregator, target, gate, allowance or NONE_UNSCORED, dataset, access, thresholds)


def _resolve_plan(parts: _Parts, dataset: Dataset, suite: Suite, overrides: SuiteOverrides) -> Plan:
    """The plan, with the suite's timeouts, and with where it declares each metric that has a `where`."""
    try:
        plan = build_plan(
            dataset,
            target=parts.target,
            metrics=parts.metrics,
            repetitions=suite.repetitions if overrides.repetitions is None else overrides.repetitions,
            thresholds=parts.thresholds,
            concurrency=suite.concurrency if overrides.concurrency is None else overrides.concurrency,
            access=parts.access,
        )
    except OutputsError as error:
        # Saved outputs that do not fit the dataset know their ids, but not their file.
        file = _outputs_file(suite, overrides)
        raise OutputsError([issue._replace(where=issue.where or file) for issue in error.issues]) from None

    places = {}
    if not overrides.metrics:
        for index, (metric, where) in enumerate(zip(plan.metrics, plan.where, strict=True)):
            if where is not None:
                places[metric.name] = suite.document.where(("metrics", index))
    return plan._replace(
        timeout_s=suite.timeout_s if overrides.timeout_s is None else overrides.timeout_s,
        target_timeout_s=suite.target_timeout_s,
        places=places,
    )


@contextmanager
def _collect(errors: list[InputError]) -> Iterator[None]:
    """Collect the error of one part, so that the issues of all parts can be listed at once."""
    try:
        yield
    except InputError as error:
        errors.append(error)


def _check_numbers(suite: Suite, overrides: SuiteOverrides) -> None:
    issues = shape_issues({"seed": suite.seed, "delta": suite.delta}, SuiteFile, document=suite.document)
    for name in ("repetitions", "concurrency"):
        for value in (getattr(suite, name), getattr(overrides, name)):
            if value is not None:
                issues += _count_issues(name, value)
    timeout_s = overrides.timeout_s
    if timeout_s is not None and not 0 < timeout_s < float("inf"):
        issues.append(Issue(f"`--timeout` is a number of seconds above 0, not {timeout_s!r}."))
    if issues:
        raise ConfigurationError(issues)


def _count_issues(name: str, value: Any) -> list[Issue]:
    is_count = type(value) is int and value >= 1
    return [] if is_count else [Issue(f"`{name}` is a whole number of at least 1, not {value!r}.")]


def _metrics(suite: Suite, overrides: SuiteOverrides) -> tuple[Metric, ...]:
    if overrides.metrics:
        return catalog.resolve_all(overrides.metrics, search=suite.folder)
    return catalog.resolve_all(
        suite.metrics, search=suite.folder, place=lambda path: suite.document.where(("metrics", *path))
    )


def suite_metrics(suite: Suite) -> tuple[Metric, ...]:
    """The metrics of a suite; none where it names none.

    Raises:
        ConfigurationError: An entry names no metric, or one that cannot be made; all issues are listed.
    """
    return _metrics(suite, SuiteOverrides()) if suite.metrics else ()


def suite_models(suite: Suite, limits: ModelCalls = NO_LIMITS, *, calls: bool = True) -> ModelAccess:
    """Access to the models of a suite. A program may give clients.

    Args:
        suite: The suite.
        limits: Cache, budget and network.
        calls: Whether models are going to be called; otherwise keys and variables need not be set.

    Raises:
        ConfigurationError: Something in the section or the budget cannot be used.
    """
    if suite.origin is None:
        return build_model_access(suite.models, limits)
    return read_model_access(suite.models, limits, place=suite.document.where, folder=suite.folder, calls=calls)


def _aggregator(suite: Suite, metrics: Sequence[Metric] | None, *, idle: frozenset[str]) -> Aggregator | None:
    """The suite's aggregator; without metrics, whether it fits them is not checked."""
    if suite.aggregator is None:
        return None
    load = partial(import_object, called="The aggregator", search=suite.folder)
    build = partial(build_aggregator, suite.aggregator, document=suite.document, idle=idle, load=load)
    if metrics is None:
        return build(metrics=None)

    spellings = metric_spellings(metrics)
    if suite.group is None:
        return build(metrics=spellings)

    # The aggregator of a group looks at the group's own metrics.
    names = names_of_group(suite.group)
    group_spellings = {spelling: name for spelling, name in spellings.items() if name in names}
    if not group_spellings:
        return None
    aggregator = build(metrics=group_spellings)
    if len(group_spellings) == len(spellings):
        return aggregator
    return SubsetAggregator(aggregator, [name for name in names if name in group_spellings])


def _target(suite: Suite, overrides: SuiteOverrides) -> Target:
    if overrides.target is not None and overrides.outputs is not None:
        raise ConfigurationError("Give `target` or `outputs`, not both.")
    if overrides.outputs is not None:
        return _saved_outputs(overrides.outputs)
    if overrides.target is not None:
        target: Target = as_target(overrides.target)
        return _allowed_target(target, overrides)
    if suite.target is None:
        message = "There is no `target`. Name one, or give saved `outputs` (`--outputs FILE`)."
        raise ConfigurationError(Issue(message, suite.document.where(())))

    declared = suite.target
    if overrides.concurrency is not None and declared.kind != "outputs":
        declared = declared._replace(settings={**declared.settings, "concurrency": overrides.concurrency})
    load = partial(import_object, called="The target", search=suite.folder, group=TARGETS)
    return _allowed_target(build_target(declared, load=load), overrides, locate=declared.locate)


def _allowed_target(
    target: Target, overrides: SuiteOverrides, *, locate: Callable[[], str | None] = lambda: None
) -> Target:
    """A target, unless it is reached over a network that must not be used."""
    if overrides.limits.offline and not getattr(target, "is_local", True):
        message = "`offline` asks nothing over the network, and the target is an address elsewhere."
        raise ConfigurationError(Issue(message, locate()))
    return target


def _saved_outputs(outputs: SavedOutputs | Mapping[str, Any] | str | Path) -> SavedOutputs:
    if isinstance(outputs, SavedOutputs):
        return outputs
    return SavedOutputs.load(outputs) if isinstance(outputs, (str, Path)) else SavedOutputs(outputs)


def _outputs_file(suite: Suite, overrides: SuiteOverrides) -> str | None:
    """The file of the saved outputs; None where they come from memory."""
    if overrides.outputs is not None:
        return str(overrides.outputs) if isinstance(overrides.outputs, (str, Path)) else None
    return None if suite.target is None else suite.target.main


def _dataset(suite: Suite, overrides: SuiteOverrides) -> Dataset:
    dataset = suite_dataset(suite) if overrides.dataset is None else overrides.dataset
    dataset = dataset if suite.cluster is None else dataset.clustered(suite.cluster)
    return dataset if overrides.select is None else overrides.select(dataset)


def suite_dataset(suite: Suite) -> Dataset:
    """The dataset of a suite that names one.

    Raises:
        InputError: It cannot be read, or it is none.
    """
    dataset = suite.dataset
    _check_file(suite, "dataset")
    if isinstance(dataset, Dataset):
        return dataset
    if isinstance(dataset, (str, Path)):
        return Dataset.load(dataset)
    if hasattr(dataset, "columns") and hasattr(dataset, "iloc"):
        return Dataset.from_dataframe(dataset)
    if isinstance(dataset, (bytes, Mapping)) or not isinstance(dataset, Iterable):
        raise ConfigurationError(
            f"A dataset is a Dataset, a path, a list of samples or a data frame, not {type(dataset).__name__}."
        )
    samples: Any = dataset
    return Dataset(samples, name="samples")


def _check_file(suite: Suite, key: str) -> None:
    """Refuse a suite whose file names another one that is missing."""
    written = suite.document.value.get(key)
    if written is not None and (message := missing_file(written, folder=suite.folder or "")):
        raise ConfigurationError(Issue(message, suite.document.where((key,))))


def _model_access(suite: Suite, overrides: SuiteOverrides, metrics: Sequence[Metric]) -> ModelAccess:
    scorers = [metric for metric in metrics if hasattr(metric, "script")]
    limits = overrides.limits
    if issues := limits.issues():
        raise ConfigurationError(issues)
    if suite.models is None and not scorers and suite.origin is not None:
        return ModelAccess()
    access = suite_models(suite, limits, calls=overrides.calls)
    try:
        return complete_model_access(access, scorers)
    except ConfigurationError as error:
        where = suite.document.where(("metrics",))
        raise ConfigurationError([issue._replace(where=issue.where or where) for issue in error.issues]) from None


def _thresholds(overrides: SuiteOverrides, metrics: Sequence[Metric] | None) -> dict[str, float]:
    """Pass marks by the names of metrics; without metrics, their names are not checked."""
    if not overrides.thresholds or metrics is None:
        return {}
    names = metric_spellings(metrics)
    issues = []
    resolved = {}
    for name, value in overrides.thresholds.items():
        if name not in names:
            suggestion = did_you_mean(name, dict.fromkeys(names.values()))
            issues.append(Issue(f"A threshold is given for `{name}`, which is no metric of this run. {suggestion}"))
        elif isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
            issues.append(Issue(f"The threshold of `{name}` is a number between 0 and 1, not {value!r}."))
        else:
            resolved[names[name]] = float(value)
    if issues:
        raise ConfigurationError(issues)
    return resolved


def _calibration(suite: Suite, metrics: Sequence[Metric], gate: GateRules | None) -> SuiteCalibration | None:
    """The labels of a calibration file, by which the numbers of a run are corrected; None where none is named."""
    _check_file(suite, "calibration")
    labels = None if suite.calibration is None else _load_calibration(suite.calibration, metrics)
    if gate is not None and gate.rules:
        check_corrected_rules(gate, () if labels is None else labels.metrics, metric_spellings(metrics))
    return labels


def _load_calibration(path: str | Path, metrics: Sequence[Metric]) -> SuiteCalibration:
    calibration = load_calibration(path)
    labels = {name: figures.labels for name, figures in calibration.metrics.items() if figures.labels is not None}
    run_labels = {metric.name: labels[metric.name] for metric in metrics if metric.name in labels}
    if not run_labels:
        known = f"It has labels of {list_names(labels)}." if labels else "It has no labels that correct a number."
        raise ConfigurationError(Issue(f"The calibration has no labels of a metric of this run. {known}", str(path)))
    return SuiteCalibration(source=calibration.source, metrics=run_labels)


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
        sized = f"{plural(len(dataset), 'sample')} x {plural(times, 'repetition')}"
        raise ConfigurationError(f"A run has at most {MOST_EXECUTIONS:,} executions, not {sized}.")
    return Plan(dataset, target, metrics, times, thresholds or {}, concurrency, secrets=collect_secrets(target, access))


def _with_outputs(dataset: Dataset, target: Target) -> Dataset:
    """The samples that have a saved output."""
    if not isinstance(target, SavedOutputs):
        raise ConfigurationError("`--only answered` is for saved outputs, and this run has a live target.")
    missing = frozenset(target.missing(dataset))
    if not missing:
        return dataset
    return dataset.keep({sample.id for sample in dataset} - missing, selection="--only answered")
