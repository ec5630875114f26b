"""The weighted aggregator: the weighted mean of rubric values that are mapped to [0, 1]."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from deemster.errors import ConfigurationError, Issue, did_you_mean
from deemster.formats.json_values import is_number, name_kind
from deemster.results.metric_aggregators import Aggregator, MetricResult, MetricsAggregator, NamedResults, import_path

ScoreMapping: TypeAlias = Mapping[float, float] | Callable[[float], float]


class AggregatorIssue(NamedTuple):
    """What is wrong with a declared aggregator, and the path of it in its section."""

    path: tuple[str | int, ...]
    message: str


class WeightedMetricsAggregator(MetricsAggregator):
    """Succeeds if every metric does; the score is a weighted mean of mapped rubric values.

    The score is ``sum(w * mapped) / sum(w)`` over the metrics present, 0.0 if their weights are 0. The rubric score is
    mapped: the value before it is brought to [0, 1]. The mapping decides which direction is better; polarity is not
    applied again.

    Args:
        weights: By metric name, finite and not negative.
        score_mapping: By metric name, a map of rubric values to [0, 1], or a function from one to the other.

    Raises:
        ConfigurationError: A weight or a mapping cannot be used, or one is there without the other; all are listed.

    >>> mapping = {1: 0.0, 2: 0.5, 3: 1.0}
    >>> aggregator = WeightedMetricsAggregator({"c": 2, "r": 1}, {"c": mapping, "r": mapping})
    >>> round(aggregator.compute_score({"c": MetricResult(1.0, 3), "r": MetricResult(0.5, 2)}), 4)
    0.8333
    """

    def __init__(self, weights: Mapping[str, float], score_mapping: Mapping[str, ScoreMapping]) -> None:
        if issues := list(weighted_issues(weights, score_mapping)):
            raise ConfigurationError(Issue(issue.message) for issue in issues)
        self.weights = {name: float(weight) for name, weight in weights.items()}
        self.score_mapping: dict[str, ScoreMapping] = {
            name: dict(mapping) if isinstance(mapping, Mapping) else mapping for name, mapping in score_mapping.items()
        }
        parts = (
            f"{name} {weight:g} ({_format_mapping(self.score_mapping[name])})" for name, weight in self.weights.items()
        )
        self._name = f"weighted {', '.join(parts)}"

    def compute_score(self, named_results: NamedResults) -> float:
        """The weighted mean of the mapped rubric values.

        Raises:
            ConfigurationError: A metric has no weight, or its mapping does not hold its rubric value.
        """
        weights, parts = [], []
        for name, result in named_results.items():
            if result.error is None:
                mapped = self._mapped(name, result)
                weights.append(self.weights[name])
                parts.append(self.weights[name] * mapped)
        total = math.fsum(weights)
        return min(1.0, math.fsum(parts) / total) if total else 0.0

    def narrow(self, names: Sequence[str]) -> Aggregator | None:
        """Without a metric that has a weight there is nothing to say."""
        return self if any(self.weights.get(name, 1.0) for name in names) else None

    def _mapped(self, name: str, result: MetricResult) -> float:
        if name not in self.weights:
            raise ConfigurationError(missing_weight_message(name, self.weights))
        rubric_score = result.rubric_score
        if rubric_score is None:
            raise ConfigurationError(f"`{name}` gives no rubric score, which a weighted aggregator maps.")
        mapping = self.score_mapping[name]
        if not isinstance(mapping, Mapping):
            value = mapping(rubric_score)
            if not _is_share(value):
                raise ConfigurationError(
                    f"The mapping of `{name}` gives {rubric_score:g} the value {value!r}; it lies between 0 and 1."
                )
            return float(value)
        if rubric_score not in mapping:
            known = ", ".join(f"{key:g}" for key in sorted(mapping))
            raise ConfigurationError(
                f"The mapping of `{name}` does not hold the rubric score {rubric_score:g}, but {known}."
            )
        return float(mapping[rubric_score])


def missing_weight_message(name: str, weights: Mapping[str, float]) -> str:
    """The message about a metric that has no weight."""
    return f"The metric `{name}` has no weight in the aggregator. {did_you_mean(name, weights)}"


def weighted_issues(weights: Any, score_mapping: Any) -> Iterator[AggregatorIssue]:
    """What is wrong with weights and mappings."""
    for key, value in (("weights", weights), ("score_mapping", score_mapping)):
        if not isinstance(value, Mapping):
            yield AggregatorIssue((key,), f"`{key}` is a map by metric name, not {name_kind(value)}.")
            return
    for name, weight in weights.items():
        if not is_number(weight) or weight < 0:
            yield AggregatorIssue(
                ("weights", name), f"The weight of `{name}` is a finite number of at least 0, not {weight!r}."
            )
        if name not in score_mapping:
            yield AggregatorIssue(
                ("weights", name), f"`{name}` has a weight and no mapping: add it to `score_mapping`."
            )
    for name, mapping in score_mapping.items():
        if name not in weights:
            yield AggregatorIssue(
                ("score_mapping", name), f"`{name}` has a mapping and no weight: add it to `weights`."
            )
        yield from _mapping_issues(name, mapping)
    if not _has_sum(weights.values()):
        yield AggregatorIssue(("weights",), "The weights are too large to be added.")


def _mapping_issues(name: str, mapping: Any) -> Iterator[AggregatorIssue]:
    path = ("score_mapping", name)
    if callable(mapping):
        return
    if not isinstance(mapping, Mapping) or not mapping:
        found = "an empty one" if isinstance(mapping, Mapping) else name_kind(mapping)
        yield AggregatorIssue(
            path, f"The mapping of `{name}` is a map of rubric values to numbers from 0 to 1, not {found}."
        )
        return
    for key, value in mapping.items():
        if not is_number(key):
            yield AggregatorIssue(
                (*path, key), f"The mapping of `{name}` has the key {key!r}, which is no rubric value."
            )
        elif not _is_share(value):
            message = f"The mapping of `{name}` gives {key:g} the value {value!r}; it lies between 0 and 1."
            yield AggregatorIssue((*path, key), message)


def _is_share(value: Any) -> bool:
    return is_number(value) and 0 <= value <= 1


def _has_sum(weights: Any) -> bool:
    try:
        return math.isfinite(math.fsum(weight for weight in weights if is_number(weight)))
    except OverflowError:
        return False


def _format_mapping(mapping: ScoreMapping) -> str:
    if not isinstance(mapping, Mapping):
        return import_path(mapping)
    return ", ".join(f"{key:g}: {mapping[key]:g}" for key in sorted(mapping))
