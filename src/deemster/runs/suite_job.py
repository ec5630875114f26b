"""Builds the job of a suite: its dataset, target, metrics, gate and models, with what flags replace."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from deemster.datasets import Dataset
from deemster.datasets.human_labels import SuiteCalibration
from deemster.errors import ConfigurationError, InputError, Issue, MissingExtraError, OutputsError
from deemster.formats import missing_file
from deemster.records import Metric
from deemster.results import NONE_UNSCORED, Aggregator, Allowance, Gate, read_aggregator, read_gate, with_allowance
from deemster.runs import metric_catalog as catalog
from deemster.runs.evaluation_job import Job, build_plan, group_aggregator, load_suite_calibration
from deemster.runs.import_user_code import import_object
from deemster.runs.model_access import ModelAccess, ModelLimits, complete_model_access, read_model_access
from deemster.runs.run_plan import Plan, Target
from deemster.runs.suite import Suite
from deemster.targets.saved_outputs import SavedOutputs
from deemster.targets.target_section import build_target

# The entry points of plug-ins that are targets.
TARGETS = "deemster.targets"


class SuiteOverrides(NamedTuple):
    """Flags that replace what a suite says."""

    outputs: str | None = None
    repetitions: int | None = None
    metrics: tuple[str, ...] = ()
    thresholds: Mapping[str, float] = {}
    concurrency: int | None = None
    timeout_s: float | None = None
    allowance: Allowance | None = None
    redact_warnings: bool = False
    limits: ModelLimits = ModelLimits()
    calls: bool = True
    partial: bool = False
    label: str | None = None
    confirm: int | None = None
    select: Callable[[Dataset], Dataset] | None = None
    target: Target | None = None
    dataset: Dataset | None = None


def build_suite_job(suite: Suite, overrides: SuiteOverrides) -> Job:
    """Resolve a suite: load its dataset and target, make its metrics, read its gate.

    Raises:
        InputError: Something in the suite or the flags cannot be used; the issues of all parts are listed.
    """
    _check_numbers(overrides)
    errors: list[InputError] = []
    metrics: tuple[Metric, ...] = ()
    with _collect(errors):
        metrics = _metrics(suite, overrides)
    with _collect(errors):
        # Whether it fits the metrics is checked below.
        _aggregator(suite)
    with _collect(errors):
        target = _target(suite, overrides)
    with _collect(errors):
        gate = read_gate(suite.gate, document=suite.document)
    with _collect(errors):
        dataset = _dataset(suite, overrides)
    with _collect(errors):
        access = _model_access(suite, overrides, metrics)
    if errors:
        raise errors[0] if len(errors) == 1 else ConfigurationError(issue for each in errors for issue in each.issues)
    gate = gate.with_cluster(dataset.cluster)
    if overrides.allowance is not None:
        gate = with_allowance(gate, overrides.allowance)
    if overrides.metrics:
        gate = gate._replace(idle=frozenset(catalog.metric_spellings(suite_metrics(suite))))
    aggregator = _aggregator(suite, metrics=metrics, idle=gate.idle)
    try:
        plan = build_plan(
            dataset,
            target=target,
            metrics=metrics,
            repetitions=overrides.repetitions if overrides.repetitions is not None else suite.repetitions,
            thresholds=overrides.thresholds,
            concurrency=overrides.concurrency if overrides.concurrency is not None else suite.concurrency,
            partial=overrides.partial,
        )
    except OutputsError as error:
        # Saved outputs that do not fit the dataset know their ids, but not their file.
        file = overrides.outputs or (None if suite.target is None else suite.target.main)
        raise OutputsError([issue._replace(where=issue.where or file) for issue in error.issues]) from None
    return Job(
        _with_suite(plan, suite, overrides),
        gate=gate,
        suite=suite.name,
        seed=suite.seed,
        delta=suite.delta,
        strict=suite.strict,
        allowance=gate.allowance or NONE_UNSCORED,
        redact_warnings=overrides.redact_warnings,
        access=access,
        aggregator=aggregator,
        label=overrides.label,
        confirm=overrides.confirm or 0,
        calibration=_calibration(suite, metrics, gate),
        origin={"file": str(Path(suite.document.file).resolve()), "document": suite.document.value},
    )


def _dataset(suite: Suite, overrides: SuiteOverrides) -> Dataset:
    dataset = suite_dataset(suite) if overrides.dataset is None else overrides.dataset
    dataset = dataset if suite.cluster is None else dataset.clustered(suite.cluster)
    return dataset if overrides.select is None else overrides.select(dataset)


def suite_dataset(suite: Suite) -> Dataset:
    """The dataset of a suite that names one.

    Raises:
        InputError: It cannot be read.
    """
    if message := missing_file(suite.document.value["dataset"], folder=suite.folder):
        raise ConfigurationError(Issue(message, suite.document.where(("dataset",))))
    return Dataset.load(suite.dataset)


def _calibration(suite: Suite, metrics: tuple[Metric, ...], gate: Gate) -> SuiteCalibration | None:
    if suite.calibration is not None and (
        message := missing_file(suite.document.value["calibration"], folder=suite.folder)
    ):
        raise ConfigurationError(Issue(message, suite.document.where(("calibration",))))
    return load_suite_calibration(suite.calibration, metrics, gate)


def _with_suite(plan: Plan, suite: Suite, overrides: SuiteOverrides) -> Plan:
    """The plan with the suite's timeouts, and with where the suite declares each metric that has a `where`."""
    places = {
        metric.name: suite.document.where(("metrics", place))
        for place, (metric, where) in enumerate(zip(plan.metrics, plan.where, strict=True))
        if where is not None
    }
    return plan._replace(
        timeout_s=overrides.timeout_s if overrides.timeout_s is not None else suite.timeout_s,
        target_timeout_s=suite.target_timeout_s,
        places={} if overrides.metrics else places,
    )


def _check_numbers(overrides: SuiteOverrides) -> None:
    if overrides.timeout_s is not None and not 0 < overrides.timeout_s < float("inf"):
        raise ConfigurationError(f"`--timeout` is a number of seconds above 0, not {overrides.timeout_s!r}.")


@contextmanager
def _collect(errors: list[InputError]) -> Iterator[None]:
    """Collect the error of one part, so that the issues of all parts can be listed at once."""
    try:
        yield
    except InputError as error:
        errors.append(error)


def _aggregator(
    suite: Suite, *, metrics: tuple[Metric, ...] | None = None, idle: frozenset[str] = frozenset()
) -> Aggregator | None:
    """The suite's aggregator; without metrics, whether it fits them is not checked."""
    if suite.aggregator is None:
        return None
    load = partial(import_object, called="The aggregator", search=suite.folder)
    read = partial(read_aggregator, suite.aggregator, document=suite.document, idle=idle, load=load)
    if metrics is None:
        return read(metrics=None)
    spellings = catalog.metric_spellings(metrics)
    if suite.group is None:
        return read(metrics=spellings)
    return group_aggregator(lambda own: read(metrics=own), suite.group, spellings)


def _metrics(suite: Suite, overrides: SuiteOverrides) -> tuple[Metric, ...]:
    if overrides.metrics:
        return catalog.resolve_all(overrides.metrics, search=suite.folder)
    return suite_metrics(suite)


def suite_metrics(suite: Suite) -> tuple[Metric, ...]:
    """The metrics of a suite.

    Raises:
        ConfigurationError: An entry names no metric, or one that cannot be made; all issues are listed.
    """
    issues: list[Issue] = []
    found: list[Metric] = []
    for position, entry in enumerate(suite.metrics):
        try:
            found.append(catalog.resolve(entry, search=suite.folder))
        except ConfigurationError as error:
            issues += _placed(error, suite, ("metrics", position))
        except MissingExtraError as error:
            issues.append(Issue(f"{error}.", suite.document.where(("metrics", position))))
    if issues:
        raise ConfigurationError(issues)
    if twice := catalog.name_issues(found):
        raise ConfigurationError(_placed(ConfigurationError(twice), suite, ("metrics",)))
    return tuple(found)


def _placed(error: ConfigurationError, suite: Suite, path: tuple[str | int, ...]) -> list[Issue]:
    where = suite.document.where(path)
    return [issue._replace(where=issue.where or where) for issue in error.issues]


def _model_access(suite: Suite, overrides: SuiteOverrides, metrics: tuple[Metric, ...]) -> ModelAccess:
    scorers = [metric for metric in metrics if hasattr(metric, "script")]
    if issues := overrides.limits.issues():
        raise ConfigurationError(issues)
    if suite.models is None and not scorers:
        return ModelAccess()
    access = read_model_access(
        suite.models, overrides.limits, place=suite.document.where, folder=suite.folder, calls=overrides.calls
    )
    try:
        return complete_model_access(access, scorers)
    except ConfigurationError as error:
        raise ConfigurationError(_placed(error, suite, ("metrics",))) from None


def _target(suite: Suite, overrides: SuiteOverrides) -> Target:
    if overrides.target is not None:
        return overrides.target
    if overrides.outputs is not None:
        return SavedOutputs.load(overrides.outputs)
    if suite.target is None:
        raise ConfigurationError(
            Issue("The suite names no `target`. Add one, or give `--outputs FILE`.", suite.document.where(()))
        )
    declared = suite.target
    if overrides.concurrency is not None and declared.kind != "outputs":
        declared = declared._replace(settings={**declared.settings, "concurrency": overrides.concurrency})
    load = partial(import_object, called="The target", search=suite.folder, group=TARGETS)
    target: Target = build_target(declared, load=load)
    if overrides.limits.offline and not getattr(target, "is_local", True):
        message = "`--offline` asks nothing over the network, and the target is an address elsewhere."
        raise ConfigurationError(Issue(message, declared.locate()))
    return target
