"""The plan of an evaluation: its samples, target, metrics, repetitions and limits."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeGuard

from deemster.datasets import Dataset
from deemster.engine.model_access import ModelAccess
from deemster.judges import metric_catalog as catalog
from deemster.models.secret_redaction import NO_SECRETS, Secrets
from deemster.records import Invocation, Metric, MetricCard, Output, Reply, Request, TargetFailure, Where
from deemster.targets.saved_outputs import SavedOutputs


class CallableTarget(Protocol):
    """A target that is called in a thread."""

    @property
    def is_async(self) -> bool:
        """Whether it is called by ``call_async``."""
        ...

    def call(self, invocation: Invocation) -> Output | TargetFailure | None:
        """What it says, how it failed, or None where it was not called."""
        ...


class AwaitableTarget(Protocol):
    """A target that is called in the event loop."""

    @property
    def is_async(self) -> bool:
        """Whether it is called by ``call_async``."""
        ...

    async def call_async(self, invocation: Invocation) -> Output | TargetFailure | None:
        """What it says, how it failed, or None where it was not called; cancelled where the run stops waiting."""
        ...


class LiveTarget(CallableTarget, AwaitableTarget, Protocol):
    """A target that is called for every sample, in one way or the other.

    It may also have ``concurrency``, how many calls of it may be under way at once, which counts before the plan's;
    ``timeout_s``, after which a call is ended and counts as failed; ``async open(*, clock)``, awaited before its first
    call; ``async close()``, awaited once after its last; ``halt(reason)``, called when the run is asked to stop; and
    ``open_circuit``, why it was not called although it was asked to be, or None.
    """


class AskingTarget(Protocol):
    """A target that asks the models of the run. It may also have ``concurrency``."""

    @property
    def roles(self) -> Sequence[str]:
        """The models that it asks."""
        ...

    def script(
        self, invocation: Invocation
    ) -> Generator[Sequence[Request], Sequence[Reply], Output | TargetFailure | None]:
        """Asks; gives what it says then, how it failed, or None where no model was asked."""
        ...


Target: TypeAlias = LiveTarget | AskingTarget | SavedOutputs


def asks_models(target: Target | None) -> TypeGuard[AskingTarget]:
    """Whether a target asks the models of the run."""
    return hasattr(target, "script") and bool(getattr(target, "roles", ()))


class Plan(NamedTuple):
    """What an evaluation runs.

    Attributes:
        dataset: The samples.
        target: What answers them.
        metrics: What marks the answers.
        repetitions: How often each sample is run.
        thresholds: Pass marks that replace the metrics' own, by metric name.
        concurrency: How many calls of the target may be under way at once.
        timeout_s: How long the run may take; what is not started by then is not run.
        target_timeout_s: How long one call of the target may take.
        secrets: The keys of its models, which nothing may tell that its target or metrics say.
        places: Where a suite declares each metric that has a `where`, by its name.
        most_calls: The most calls of the target that this process may have under way; a cluster gives each worker its
            share. None for as many as the target or `concurrency` allows.
        first_repetition: The number that target and judges know the first repetition by: higher where the samples ran
            before, so that they are asked anew.
    """

    dataset: Dataset
    target: Target
    metrics: tuple[Metric, ...]
    repetitions: int = 1
    thresholds: Mapping[str, float] = {}
    concurrency: int = 16
    timeout_s: float | None = None
    target_timeout_s: float | None = None
    secrets: Secrets = NO_SECRETS
    places: Mapping[str, str | None] = {}
    most_calls: int | None = None
    first_repetition: int = 0

    @property
    def size(self) -> int:
        """How many executions the run has."""
        return len(self.dataset) * self.repetitions

    @property
    def target_concurrency(self) -> int:
        """How many calls of the target may be under way at once in this process."""
        own: int | None = getattr(self.target, "concurrency", None)
        limit = self.concurrency if own is None else own
        return limit if self.most_calls is None else min(limit, self.most_calls)

    @property
    def scorers(self) -> tuple[Any, ...]:
        """The metrics that ask a model."""
        return tuple(metric for metric in self.metrics if hasattr(metric, "script"))

    @property
    def asking(self) -> tuple[Any, ...]:
        """What asks a model: metrics, and the target where it is one."""
        return (*self.scorers, self.target) if asks_models(self.target) else self.scorers

    @property
    def where(self) -> tuple[Where | None, ...]:
        """The samples that each metric applies to; None for all."""
        return tuple(map(catalog.where_of, self.metrics))

    @property
    def varied(self) -> Literal["target", "scoring"] | None:
        """What differs between repetitions: the target's answers, or only the scoring of the same ones."""
        if self.repetitions == 1:
            return None
        return "scoring" if isinstance(self.target, SavedOutputs) and self.target.repetitions == 1 else "target"

    @property
    def cards(self) -> tuple[MetricCard, ...]:
        """What reports say of the metrics beside their numbers."""
        return tuple(catalog.card(metric, threshold=self.thresholds.get(metric.name)) for metric in self.metrics)


def collect_secrets(target: Target, access: ModelAccess) -> Secrets:
    """The keys of a target and of models, which nothing may tell."""
    own = getattr(target, "secrets", NO_SECRETS)
    return reduce(add, (role.secrets for role in access.roles.values()), own)
