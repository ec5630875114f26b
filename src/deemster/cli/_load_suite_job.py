"""From a suite file and flags to a job."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple, TypeVar

from deemster.datasets import Dataset
from deemster.errors import ConfigurationError, InputError, Issue, MissingExtraError, OutputsError
from deemster.models import Role, read_models
from deemster.records import Metric
from deemster.results import NONE_UNSCORED, Aggregator, Allowance, read_aggregator, read_gate, with_allowance
from deemster.runs import metric_catalog as catalog
from deemster.runs.evaluation_job import DELTA, Job, build_plan, group_aggregator, metric_spellings
from deemster.runs.import_user_code import import_object
from deemster.runs.model_access import ModelAccess, budget_issues, complete_model_access
from deemster.runs.run_plan import Target
from deemster.runs.suite import Suite
from deemster.targets.saved_outputs import SavedOutputs
from deemster.targets.target_section import build_target

_T = TypeVar("_T")


class Overrides(NamedTuple):
    """Flags that replace what a suite says."""

    outputs: str | None = None
    repetitions: int | None = None
    delta: float = DELTA
    metrics: tuple[str, ...] = ()
    thresholds: Mapping[str, float] = {}
    concurrency: int | None = None
    timeout_s: float | None = None
    strict: bool = False
    allowance: Allowance | None = None
    discreet: bool = False
    cache: Path | None = None
    budget_usd: float | None = None
    budget_tokens: int | None = None
    offline: bool = False
    calls: bool = True


def build_suite_job(suite: Suite, overrides: Overrides) -> Job:
    """Resolve a suite: load its dataset and target, make its metrics, read its gate.

    Raises:
        InputError: Something in the suite or the flags cannot be used.
    """
    if not 0 < overrides.delta <= 1:
        raise ConfigurationError(f"`--delta` lies in (0, 1], not {overrides.delta!r}.")
    if overrides.timeout_s is not None and not 0 < overrides.timeout_s < float("inf"):
        raise ConfigurationError(f"`--timeout` is a number of seconds above 0, not {overrides.timeout_s!r}.")
    parts = _Parts()
    metrics = parts.made(lambda: _metrics(suite, overrides))
    gate = parts.made(lambda: read_gate(suite.gate, document=suite.document))
    parts.made(lambda: _aggregator(suite))
    dataset = parts.made(lambda: Dataset.load(suite.dataset))
    target = parts.made(lambda: _target(suite, overrides))
    asking = parts.made(lambda: _asking(suite, overrides, metrics or ()))
    if metrics is None or gate is None or dataset is None or target is None or asking is None or parts.failed:
        raise parts.error()
    if overrides.allowance is not None:
        gate = with_allowance(gate, overrides.allowance)
    if overrides.metrics:
        gate = gate._replace(idle=frozenset(metric_spellings(metrics_of_suite(suite))))
    aggregator = _aggregator(suite, metrics=metric_spellings(metrics), idle=gate.idle)
    try:
        plan = build_plan(
            dataset,
            target=target,
            metrics=metrics,
            repetitions=overrides.repetitions if overrides.repetitions is not None else suite.repetitions,
            thresholds=overrides.thresholds,
            concurrency=overrides.concurrency if overrides.concurrency is not None else suite.concurrency,
        )
    except OutputsError as error:
        # Saved outputs that do not fit the dataset know their ids, but not their file.
        file = overrides.outputs or (None if suite.target is None else suite.target.main)
        raise OutputsError([issue._replace(where=issue.where or file) for issue in error.issues]) from None
    plan = plan._replace(
        timeout_s=overrides.timeout_s if overrides.timeout_s is not None else suite.timeout_s,
        target_timeout_s=suite.target_timeout_s,
    )
    return Job(
        plan,
        gate=gate,
        suite=suite.name,
        seed=suite.seed,
        delta=overrides.delta,
        strict=overrides.strict,
        allowance=gate.allowance or NONE_UNSCORED,
        discreet=overrides.discreet,
        access=asking,
        aggregator=aggregator,
        origin={"file": str(Path(suite.document.file).resolve()), "document": suite.document.value},
    )


def _aggregator(
    suite: Suite, *, metrics: Mapping[str, str] | None = None, idle: frozenset[str] = frozenset()
) -> Aggregator | None:
    """The suite's aggregator; whether it fits the metrics is told once these are known."""
    if suite.aggregator is None:
        return None

    def made(metrics: Mapping[str, str] | None) -> Aggregator:
        return read_aggregator(suite.aggregator, document=suite.document, metrics=metrics, idle=idle)

    return made(metrics) if suite.group is None or metrics is None else group_aggregator(made, suite.group, metrics)


class _Parts:
    """Makes the parts of a job one by one, so that the issues of all of them can be told at once."""

    def __init__(self) -> None:
        self._errors: list[InputError] = []

    def made(self, make: Callable[[], _T]) -> _T | None:
        """A part, or None where it cannot be made."""
        try:
            return make()
        except InputError as error:
            self._errors.append(error)
            return None

    @property
    def failed(self) -> bool:
        """Whether a part could not be made."""
        return bool(self._errors)

    def error(self) -> InputError:
        """What to tell: the one error as it is, or the issues of several together."""
        if len(self._errors) == 1:
            return self._errors[0]
        return ConfigurationError(issue for error in self._errors for issue in error.issues)


def _metrics(suite: Suite, overrides: Overrides) -> tuple[Metric, ...]:
    if overrides.metrics:
        return catalog.resolve_all(overrides.metrics, search=suite.folder)
    return metrics_of_suite(suite)


def metrics_of_suite(suite: Suite) -> tuple[Metric, ...]:
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
    try:
        return catalog.resolve_all(found)
    except ConfigurationError as error:
        raise ConfigurationError(_placed(error, suite, ("metrics",))) from None


def _placed(error: ConfigurationError, suite: Suite, path: tuple[str | int, ...]) -> list[Issue]:
    where = suite.document.where(path)
    return [issue._replace(where=issue.where or where) for issue in error.issues]


def roles_of_suite(suite: Suite, *, calls: bool = True) -> dict[str, Role]:
    """The models of a suite.

    Args:
        suite: The suite.
        calls: Whether they are going to be asked; otherwise keys and variables need not be set.

    Raises:
        ConfigurationError: Something in its `models` section cannot be used.
    """
    return read_models(
        suite.models,
        place=suite.document.where,
        environ=os.environ,
        folder=suite.folder,
        load=lambda path: import_object(path, called="The client", search=suite.folder),
        calls=calls,
    )


def _asking(suite: Suite, overrides: Overrides, metrics: tuple[Metric, ...]) -> ModelAccess:
    scorers = [metric for metric in metrics if hasattr(metric, "script")]
    issues = budget_issues(overrides.budget_usd, overrides.budget_tokens)
    if issues:
        raise ConfigurationError(issues)
    if suite.models is None and not scorers:
        return ModelAccess()
    asking = ModelAccess(
        roles_of_suite(suite, calls=overrides.calls),
        overrides.cache,
        None if overrides.budget_usd is None else Decimal(str(overrides.budget_usd)),
        overrides.budget_tokens,
        overrides.offline,
    )
    try:
        return complete_model_access(asking, scorers)
    except ConfigurationError as error:
        raise ConfigurationError(_placed(error, suite, ("metrics",))) from None


def _target(suite: Suite, overrides: Overrides) -> Target:
    if overrides.outputs is not None:
        return SavedOutputs.load(overrides.outputs)
    if suite.target is None:
        raise ConfigurationError(
            Issue("The suite names no `target`. Add one, or give `--outputs FILE`.", suite.document.where(()))
        )
    declared = suite.target
    if overrides.concurrency is not None and declared.kind != "outputs":
        declared = declared._replace(settings={**declared.settings, "concurrency": overrides.concurrency})
    target: Target = build_target(
        declared, load=lambda path: import_object(path, called="The target", search=suite.folder)
    )
    if overrides.offline and not getattr(target, "is_local", True):
        message = "`--offline` asks nothing over the network, and the target is an address elsewhere."
        raise ConfigurationError(Issue(message, declared.locate()))
    return target
