"""Metric aggregators: from the marks of one execution to one success and one score."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

from deemster.errors import ConfigurationError, did_you_mean
from deemster.records import MetricScore, Unscored


class MetricResult(msgspec.Struct, frozen=True, gc=False):
    """One mark as aggregators see it.

    The result of judge validation has a similar name: ``dm.agreement.MetricsResult``.

    Attributes:
        score: Within [0, 1]; None only beside an error.
        rubric_score: The value on the metric's own scale, if it has one.
        success: Whether the metric passed.
        threshold: The pass mark.
        higher_is_better: Whether a higher score is a better one.
        explanation: The reason a judge gave.
        error: Why there is no score.

    Raises:
        ValueError: There is neither a score nor an error, or the score is outside [0, 1].
    """

    score: float | None = None
    rubric_score: float | None = None
    success: bool = False
    threshold: float | None = None
    higher_is_better: bool = True
    explanation: str | None = None
    error: str | None = None

    def __post_init__(self) -> None:
        if self.score is None:
            if self.error is None:
                raise ValueError("A result has a score, or an error that says why it has none.")
        elif not 0.0 <= self.score <= 1.0:
            raise ValueError(f"A score is a finite number between 0 and 1, not {self.score!r}.")

    @property
    def quality(self) -> float:
        """The score, or 1 minus it if lower is better; 0 if there is none.

        >>> MetricResult(0.25, higher_is_better=False).quality
        0.75
        """
        if self.score is None:
            return 0.0
        return self.score if self.higher_is_better else 1.0 - self.score


NamedResults: TypeAlias = Mapping[str, MetricResult]


def result_from_mark(mark: MetricScore | Unscored) -> MetricResult:
    """A mark as aggregators see it; an unscored mark becomes an error."""
    if isinstance(mark, MetricScore):
        # The judges of this package write `judge_reason`; others often write `reason`.
        reason = mark.details.get("judge_reason", mark.details.get("reason"))
        return MetricResult(
            mark.score,
            mark.rubric_score,
            mark.success,
            mark.threshold,
            mark.higher_is_better,
            reason if isinstance(reason, str) else None,
        )
    return MetricResult(error=f"{mark.cause}: {mark.message}")


class AggregationResult(msgspec.Struct, frozen=True, gc=False):
    """The combined result of one execution.

    Raises:
        ValueError: The score is not finite.
    """

    aggregate_success: bool
    aggregate_score: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.aggregate_score):
            raise ValueError(f"An aggregate score is a finite number, not {self.aggregate_score!r}.")

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data.

        >>> AggregationResult(True, 0.5).to_dict()
        {'aggregate_success': True, 'aggregate_score': 0.5}
        """
        return msgspec.structs.asdict(self)


class Aggregator(Protocol):
    """Combines the results of several metrics into one."""

    def aggregate(self, named_results: NamedResults) -> AggregationResult:
        """The aggregate of results by metric name."""
        ...


class MetricsAggregator:
    """Succeeds if every metric does; the score is the mean quality.

    Quality is the score, or 1 minus it if lower is better. A subclass may replace ``compute_success`` and
    ``compute_score``; ``aggregate`` uses what it replaces.

    >>> results = {"right": MetricResult(1.0, success=True), "wordy": MetricResult(0.25, None, True, 0.5, False)}
    >>> MetricsAggregator().aggregate(results)
    AggregationResult(aggregate_success=True, aggregate_score=0.875)
    """

    # The words of a suite for an aggregator of this package.
    _name = "and"

    def compute_success(self, named_results: NamedResults) -> bool:
        """Whether every metric succeeded; False for none at all."""
        return bool(named_results) and all(result.success for result in named_results.values())

    def compute_score(self, named_results: NamedResults) -> float:
        """The mean quality of the results without an error; 0.0 for none at all."""
        values = result_qualities(named_results)
        return math.fsum(values) / len(values) if values else 0.0

    def aggregate(self, named_results: NamedResults) -> AggregationResult:
        """Success and score together.

        Results with an error are left out of the score and make success False, in every subclass. If nothing is left,
        the result is ``(False, 0.0)``.

        Raises:
            ConfigurationError: The aggregator does not fit the results.
            ValueError: A subclass computes a score that is not finite.
        """
        kept = {name: result for name, result in named_results.items() if result.error is None}
        if not kept:
            return AggregationResult(aggregate_success=False, aggregate_score=0.0)
        whole = len(kept) == len(named_results)
        return AggregationResult(whole and bool(self.compute_success(kept)), float(self.compute_score(kept)))

    def narrow(self, names: Sequence[str]) -> Aggregator | None:
        """The same aggregator for a sample that only these metrics apply to; None where none of them counts.

        Args:
            names: The metrics that apply, at least one.
        """
        del names
        return self

    def __str__(self) -> str:
        # A subclass elsewhere is named by its import path.
        kind = type(self)
        return self._name if kind.__module__.startswith(f"{__package__}.") else import_path(kind)


class MinAggregator(MetricsAggregator):
    """Succeeds if every metric does; the score is the lowest quality.

    >>> MinAggregator().compute_score({"a": MetricResult(0.9), "b": MetricResult(0.75, higher_is_better=False)})
    0.25
    """

    _name = "min"

    def compute_score(self, named_results: NamedResults) -> float:
        """The least quality; 0.0 for none at all."""
        return min(result_qualities(named_results), default=0.0)


class GeometricAggregator(MetricsAggregator):
    """Succeeds if every metric does; the score is the geometric mean of the qualities, 0 if one of them is.

    >>> GeometricAggregator().compute_score({"a": MetricResult(1.0), "b": MetricResult(0.25)})
    0.5
    """

    _name = "geometric"

    def compute_score(self, named_results: NamedResults) -> float:
        """The geometric mean of the qualities; 0.0 for none at all."""
        values = result_qualities(named_results)
        low = min(values, default=0.0)
        if low == 0.0:
            return 0.0
        # A product of many small numbers would be 0, so logarithms are added; rounding must not leave the range.
        mean = math.exp(math.fsum(map(math.log, values)) / len(values))
        return min(max(mean, low), max(values))


class AtLeast(MetricsAggregator):
    """Succeeds if at least `k` metrics do; the score is the mean quality.

    Args:
        k: How many must succeed.

    Raises:
        ConfigurationError: That is no whole number of at least 1.

    >>> AtLeast(1).compute_success({"a": MetricResult(1.0, success=True), "b": MetricResult(0.0)})
    True
    """

    def __init__(self, k: int) -> None:
        if type(k) is not int or k < 1:
            raise ConfigurationError(f"`at-least` is a whole number of at least 1, not {k!r}.")
        self.k = k
        self._name = f"at-least {k}"

    def compute_success(self, named_results: NamedResults) -> bool:
        """Whether enough metrics succeeded."""
        return sum(result.success for result in named_results.values()) >= self.k

    def narrow(self, names: Sequence[str]) -> Aggregator | None:
        """Where fewer than `k` metrics apply, all of them must succeed."""
        return self if len(names) >= self.k else AtLeast(len(names))


class Critical(MetricsAggregator):
    """Succeeds if every critical metric does; the score is the mean quality of all.

    Args:
        names: The critical metrics.

    Raises:
        ConfigurationError: There is none, or a name is no text.

    >>> Critical(["a"]).compute_success({"a": MetricResult(1.0, success=True), "b": MetricResult(0.0)})
    True
    """

    def __init__(self, names: Iterable[str]) -> None:
        given: list[Any] = [] if isinstance(names, str) else list(names)
        if not given or not all(isinstance(name, str) and name for name in given):
            raise ConfigurationError(f"`critical` is a list of metric names, not {names!r}.")
        self.names = tuple(dict.fromkeys(given))
        self._name = f"critical {', '.join(self.names)}"

    def compute_success(self, named_results: NamedResults) -> bool:
        """Whether every critical metric succeeded; False for no results at all.

        Raises:
            ConfigurationError: A critical metric is not among the results.
        """
        if not named_results:
            return False
        for name in self.names:
            if name not in named_results:
                known = did_you_mean(name, named_results)
                raise ConfigurationError(f"The critical metric `{name}` is not among the results. {known}")
        return all(named_results[name].success for name in self.names)

    def narrow(self, names: Sequence[str]) -> Aggregator | None:
        """Those critical metrics that apply must succeed; without one of them there is nothing to say."""
        own = [name for name in self.names if name in names]
        return Critical(own) if own else None


class SubsetAggregator(MetricsAggregator):
    """Another aggregator over some of the metrics, such as those of a ready-made group.

    Args:
        aggregator: What makes one result of them.
        names: The metrics it looks at.

    >>> results = {"a": MetricResult(1.0, success=True), "b": MetricResult(0.0)}
    >>> SubsetAggregator(MetricsAggregator(), ["a"]).aggregate(results)
    AggregationResult(aggregate_success=True, aggregate_score=1.0)
    """

    def __init__(self, aggregator: Aggregator, names: Iterable[str]) -> None:
        self.aggregator = aggregator
        self.names = tuple(names)

    def aggregate(self, named_results: NamedResults) -> AggregationResult:
        """Success and score of the metrics it looks at.

        Raises:
            ConfigurationError: The aggregator does not fit the results.
        """
        return self.aggregator.aggregate({name: named_results[name] for name in self.names if name in named_results})

    def narrow(self, names: Sequence[str]) -> Aggregator | None:
        """The other aggregator, narrowed to those of its metrics that apply."""
        own = tuple(name for name in self.names if name in names)
        inner = narrow_aggregator(self.aggregator, own)
        return None if inner is None else SubsetAggregator(inner, own)

    def __str__(self) -> str:
        return f"{aggregator_name(self.aggregator)} over {', '.join(self.names)}"


def narrow_aggregator(aggregator: Aggregator, names: Sequence[str]) -> Aggregator | None:
    """An aggregator for a sample that only some metrics apply to; None where no metric that counts for it does.

    An aggregator of a user's own gets the results of those metrics alone.

    Args:
        aggregator: The aggregator.
        names: The metrics that apply.
    """
    if not names:
        return None
    return aggregator.narrow(names) if isinstance(aggregator, MetricsAggregator) else aggregator


def result_qualities(named_results: NamedResults) -> list[float]:
    """The quality of every result without an error."""
    return [result.quality for result in named_results.values() if result.error is None]


def aggregator_name(aggregator: Aggregator) -> str:
    """The name of an aggregator in reports: its words in a suite, or the import path of user code."""
    return str(aggregator) if isinstance(aggregator, MetricsAggregator) else import_path(type(aggregator))


def import_path(thing: Any) -> str:
    """The import path of a class or function, as `module:name`."""
    return f"{getattr(thing, '__module__', '?')}:{getattr(thing, '__qualname__', type(thing).__qualname__)}"
