"""From a suite file and flags to a job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from deemster.dataset import Dataset
from deemster.errors import ConfigurationError, Fault
from deemster.evaluation import DELTA, Job, planned
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
    metrics = catalog.resolve_all(overrides.metrics or suite.metrics, search=suite.folder)
    dataset = Dataset.load(suite.dataset)
    plan = planned(
        dataset,
        target=_target(suite, overrides),
        metrics=metrics,
        repetitions=overrides.repetitions if overrides.repetitions is not None else suite.repetitions,
        thresholds=overrides.thresholds,
        concurrency=overrides.concurrency if overrides.concurrency is not None else suite.concurrency,
    )
    return Job(plan, gate=gate, suite=suite.name, seed=suite.seed, delta=overrides.delta, strict=overrides.strict)


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
    return PythonTarget(_function(value, suite))


def _function(path: str, suite: Suite) -> Any:
    where = suite.document.where(("target", "python"))
    try:
        return imported(path, called="The target", search=suite.folder)
    except ConfigurationError as error:
        raise ConfigurationError(Fault(error.faults[0].message, where)) from None
