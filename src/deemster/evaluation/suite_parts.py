"""The parts that a suite names, each made and checked for itself: dataset, target, metrics, models, calibration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

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
from deemster.engine.run_plan import Target, asks_models
from deemster.errors import ConfigurationError, Issue, did_you_mean, list_names
from deemster.evaluation.suite import Suite
from deemster.formats import missing_file
from deemster.gate import GateRules
from deemster.judges import metric_catalog as catalog
from deemster.judges.metric_catalog import metric_spellings, names_of_group
from deemster.metrics.import_user_code import import_object
from deemster.records import Metric
from deemster.report.corrected_rates import check_corrected_rules
from deemster.results import Aggregator
from deemster.results.aggregator_section import build_aggregator
from deemster.results.metric_aggregators import SubsetAggregator
from deemster.targets.python_target import as_target
from deemster.targets.saved_outputs import SavedOutputs
from deemster.targets.target_section import build_target

# The entry points of plug-ins that are targets.
TARGETS = "deemster.targets"
GivenOutputs: TypeAlias = SavedOutputs | Mapping[str, Any] | str | Path


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
        return Dataset.load(dataset, columns=suite.columns)
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
    path = suite.document.value.get(key)
    if isinstance(path, Mapping):
        path = path["file"]
    if path is None:
        return
    message = missing_file(path, folder=suite.folder or "")
    if message:
        raise ConfigurationError(Issue(message, suite.document.where((key,))))


def resolve_target(suite: Suite, *, target: Any, outputs: GivenOutputs | None, offline: bool) -> Target:
    """The target or the saved outputs that are given with the call, else what a suite declares.

    Args:
        suite: The suite.
        target: What a program gives.
        outputs: Saved outputs, or their file.
        offline: Whether the network must not be used.

    Raises:
        InputError: There is none or too much, it cannot be made, or it is reached over a network.
    """
    if target is not None and outputs is not None:
        raise ConfigurationError("Give `target` or `outputs`, not both.")
    if outputs is not None:
        return _saved_outputs(outputs)
    if target is not None:
        made: Target = as_target(target)
        return _allowed_target(made, offline=offline)
    if suite.target is None:
        raise ConfigurationError(Issue(suite.missing_target, suite.document.where(())))

    declared = suite.target
    load = partial(import_object, called="The target", search=suite.folder, group=TARGETS)
    target = build_target(declared, load=load)
    if asks_models(target) and suite.target_timeout_s is not None:
        # It would count the time that a question waits for its turn.
        message = (
            "`limits.target_timeout_s` is not for a target that asks a model: the model has its `total_timeout_s`."
        )
        raise ConfigurationError(Issue(message, suite.document.where(("limits", "target_timeout_s"))))
    return _allowed_target(target, offline=offline, locate=declared.locate)


def _allowed_target(target: Target, *, offline: bool, locate: Callable[[], str | None] = lambda: None) -> Target:
    """A target, unless it is reached over a network that must not be used."""
    if offline and not getattr(target, "is_local", True) and not asks_models(target):
        message = "`offline` asks nothing over the network, and the target is an address elsewhere."
        raise ConfigurationError(Issue(message, locate()))
    return target


def _saved_outputs(outputs: GivenOutputs) -> SavedOutputs:
    if isinstance(outputs, SavedOutputs):
        return outputs
    if isinstance(outputs, (str, Path)):
        return SavedOutputs.load(outputs)
    return SavedOutputs(outputs)


def suite_metrics(suite: Suite) -> tuple[Metric, ...]:
    """The metrics of a suite; none where it names none.

    Raises:
        ConfigurationError: An entry names no metric, or one that cannot be made; all issues are listed.
    """
    return resolve_metrics(suite) if suite.metrics else ()


def resolve_metrics(suite: Suite, names: Sequence[str] = ()) -> tuple[Metric, ...]:
    """The metrics that are named with the call, else those of a suite.

    Args:
        suite: The suite.
        names: Names or specs of metrics that take the place of the suite's.

    Raises:
        ConfigurationError: There is none, an entry names no metric, or one that cannot be made; all issues are listed.
    """
    if names:
        return catalog.resolve_all(names, search=suite.folder)
    return catalog.resolve_all(
        suite.metrics, search=suite.folder, place=lambda path: suite.document.where(("metrics", *path))
    )


def resolve_aggregator(suite: Suite, metrics: Sequence[Metric] | None, *, idle: frozenset[str]) -> Aggregator | None:
    """The aggregator of a suite; None where it declares none.

    Args:
        suite: The suite.
        metrics: The metrics of the run; None where they could not be made, and then its fit is not checked.
        idle: Metrics that the suite has and the run was told to leave out.

    Raises:
        ConfigurationError: It cannot be made, or does not fit the metrics.
    """
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


def resolve_thresholds(thresholds: Mapping[str, float], metrics: Sequence[Metric]) -> dict[str, float]:
    """Pass marks by the names of metrics, from pass marks by any of their spellings.

    Raises:
        ConfigurationError: One is for no metric of the run, or is no number between 0 and 1; all issues are listed.
    """
    names = metric_spellings(metrics)
    issues = []
    resolved = {}
    for spelling, value in thresholds.items():
        if spelling not in names:
            suggestion = did_you_mean(spelling, dict.fromkeys(names.values()))
            issues.append(Issue(f"A threshold is given for `{spelling}`, which is no metric of this run. {suggestion}"))
        elif isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
            issues.append(Issue(f"The threshold of `{spelling}` is a number between 0 and 1, not {value!r}."))
        else:
            resolved[names[spelling]] = float(value)

    if issues:
        raise ConfigurationError(issues)
    return resolved


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


def resolve_models(
    suite: Suite, metrics: Sequence[Metric], target: Target | None, limits: ModelCalls, *, calls: bool
) -> ModelAccess:
    """Access to the models that the metrics and the target of a run ask, with the built-in one where a metric needs it.

    Args:
        suite: The suite.
        metrics: The metrics of the run.
        target: The target of the run; None where it could not be made.
        limits: Cache, budget and network.
        calls: Whether models are going to be called.

    Raises:
        ConfigurationError: Something in the section or the budget cannot be used, or a missing model is asked.
    """
    issues = limits.issues()
    if issues:
        raise ConfigurationError(issues)

    scorers = [metric for metric in metrics if hasattr(metric, "script")]
    asking_target = [target] if asks_models(target) else []
    if suite.models is None and not scorers and not asking_target and suite.origin is not None:
        return ModelAccess()

    # Where nothing asks a model, as when saved outputs are given in place of a chat target, no key need be set.
    access = suite_models(suite, limits, calls=calls and bool(scorers or asking_target))
    access = access._replace(roles={**access.roles, **getattr(target, "own_roles", {})})
    for asking, key in ((scorers, "metrics"), (asking_target, "target")):
        try:
            access = complete_model_access(access, asking)
        except ConfigurationError as error:
            issues += [issue._replace(where=issue.where or suite.document.where((key,))) for issue in error.issues]
    if issues:
        raise ConfigurationError(issues)
    return access


def resolve_calibration(suite: Suite, metrics: Sequence[Metric], gate: GateRules | None) -> SuiteCalibration | None:
    """The labels of a calibration file, by which the numbers of a run are corrected; None where none is named.

    Raises:
        InputError: It cannot be read or has no labels of these metrics, or a rule is about numbers that it lacks.
    """
    _check_file(suite, "calibration")
    labels = None if suite.settings.calibration is None else _load_calibration(suite.settings.calibration, metrics)
    if gate is not None and gate.rules:
        corrected = () if labels is None else labels.metrics
        check_corrected_rules(gate, corrected, metric_spellings(metrics))
    return labels


def _load_calibration(path: str | Path, metrics: Sequence[Metric]) -> SuiteCalibration:
    from deemster.agreement.calibration_result import load_calibration  # noqa: PLC0415 - few suites have one

    calibration = load_calibration(path)
    labels = {name: figures.labels for name, figures in calibration.metrics.items() if figures.labels is not None}
    run_labels = {metric.name: labels[metric.name] for metric in metrics if metric.name in labels}
    if not run_labels:
        known = f"It has labels of {list_names(labels)}." if labels else "It has no labels that correct a number."
        raise ConfigurationError(Issue(f"The calibration has no labels of a metric of this run. {known}", str(path)))
    return SuiteCalibration(source=calibration.source, metrics=run_labels)
