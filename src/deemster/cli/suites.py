"""From a suite file and flags to a job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from deemster.dataset import Dataset
from deemster.errors import ConfigurationError, Fault, OutputsError
from deemster.evaluation import DELTA, Job, planned
from deemster.records import Metric
from deemster.run import catalog
from deemster.run.importing import imported
from deemster.run.plan import Target
from deemster.run.suite import Suite
from deemster.summary import read_gate
from deemster.target.python import PythonTarget
from deemster.target.saved import SavedOutputs


class Overrides(NamedTuple):
    """Flags that replace what a suite says."""

    outputs: str | None = None
    repetitions: int | None = None
    delta: float = DELTA
    metrics: tuple[str, ...] = ()
    thresholds: Mapping[str, float] = {}
    concurrency: int | None = None
    strict: bool = False


def job_of_suite(suite: Suite, overrides: Overrides) -> Job:
    """Resolve a suite: load its dataset and target, make its metrics, read its gate.

    Raises:
        InputError: Something in the suite or the flags cannot be used.
    """
    if not 0 < overrides.delta <= 1:
        raise ConfigurationError(f"`--delta` lies in (0, 1], not {overrides.delta!r}.")
    gate = read_gate(suite.gate, place=lambda path: suite.document.where(("gate", *path)))
    metrics = _metrics(suite, overrides)
    dataset = Dataset.load(suite.dataset)
    target = _target(suite, overrides)
    try:
        plan = planned(
            dataset,
            target=target,
            metrics=metrics,
            repetitions=overrides.repetitions if overrides.repetitions is not None else suite.repetitions,
            thresholds=overrides.thresholds,
            concurrency=overrides.concurrency if overrides.concurrency is not None else suite.concurrency,
        )
    except OutputsError as error:
        # Saved outputs that do not fit the dataset know their ids, but not their file.
        file = overrides.outputs or (suite.target or ("", ""))[1]
        raise OutputsError([fault._replace(where=fault.where or file) for fault in error.faults]) from None
    return Job(plan, gate=gate, suite=suite.name, seed=suite.seed, delta=overrides.delta, strict=overrides.strict)


def _metrics(suite: Suite, overrides: Overrides) -> tuple[Metric, ...]:
    if overrides.metrics:
        return catalog.resolve_all(overrides.metrics, search=suite.folder)
    faults: list[Fault] = []
    found: list[Metric] = []
    for position, entry in enumerate(suite.metrics):
        try:
            found.append(catalog.resolve(entry, search=suite.folder))
        except ConfigurationError as error:
            faults += _placed(error, suite, ("metrics", position))
    if faults:
        raise ConfigurationError(faults)
    try:
        return catalog.resolve_all(found)
    except ConfigurationError as error:
        raise ConfigurationError(_placed(error, suite, ("metrics",))) from None


def _placed(error: ConfigurationError, suite: Suite, path: tuple[str | int, ...]) -> list[Fault]:
    where = suite.document.where(path)
    return [fault._replace(where=fault.where or where) for fault in error.faults]


def _target(suite: Suite, overrides: Overrides) -> Target:
    if overrides.outputs is not None:
        return SavedOutputs.load(overrides.outputs)
    if suite.target is None:
        raise ConfigurationError(
            Fault("The suite names no `target`. Add one, or give `--outputs FILE`.", suite.document.where(()))
        )
    kind, value = suite.target
    if kind == "outputs":
        return SavedOutputs.load(value)
    try:
        return PythonTarget(imported(value, called="The target", search=suite.folder))
    except ConfigurationError as error:
        raise ConfigurationError(_placed(error, suite, ("target", "python"))) from None
