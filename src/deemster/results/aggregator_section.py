"""Reading the `aggregator` section of a suite."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from deemster.errors import ConfigurationError, Issue, did_you_mean
from deemster.formats.json_values import kind_of
from deemster.results.gate_rules import Place
from deemster.results.metric_aggregators import (
    Aggregator,
    AtLeast,
    Critical,
    GeometricAggregator,
    MetricsAggregator,
    MinAggregator,
)
from deemster.results.weighted_aggregator import (
    AggregatorIssue,
    WeightedMetricsAggregator,
    missing_weight_message,
    weighted_issues,
)

PLAIN: dict[str, Callable[[], MetricsAggregator]] = {
    "and": MetricsAggregator,
    "min": MinAggregator,
    "geometric": GeometricAggregator,
}
WEIGHTED = ("kind", "weights", "score_mapping")
KINDS = (*PLAIN, "weighted", "at-least", "critical")
_KEYS = ("kind", "weights", "score_mapping", "at-least", "critical")
_SHAPES = (
    "An aggregator is `and`, `min`, `geometric`, `{kind: weighted, weights: ..., score_mapping: ...}`, "
    "`{at-least: 2}` or `{critical: [names]}`"
)


def read_aggregator(
    value: Any, *, place: Place, metrics: Mapping[str, str] | None = None, idle: frozenset[str] = frozenset()
) -> MetricsAggregator:
    """Read the `aggregator` section of a suite.

    Args:
        value: The section as plain data.
        place: Says where a path inside the section stands, as `file:line`.
        metrics: Names of the run's metrics, and other spellings of them, by name; without them only the section itself
            is looked at.
        idle: Names of metrics that the suite has and this run leaves out: what is said of them does not count.

    Raises:
        ConfigurationError: It cannot be used, or it does not fit the metrics; all issues are listed.
    """
    reader = _Reader(metrics, idle)
    aggregator = reader.aggregator(value)
    issues = reader.issues
    if not issues and aggregator is not None and metrics is not None:
        issues = list(misfits(aggregator, list(dict.fromkeys(metrics.values()))))
    if issues or aggregator is None:
        raise ConfigurationError(dict.fromkeys(Issue(issue.message, place(issue.path)) for issue in issues))
    return aggregator


def aggregator_of(given: Any, *, metrics: Mapping[str, str]) -> Aggregator:
    """An aggregator from what Python was given: an object with `aggregate`, or what a suite would say.

    Args:
        given: Either.
        metrics: Names of the run's metrics, and other spellings of them, by name.

    Raises:
        ConfigurationError: It is neither, or it does not fit the metrics; all issues are listed.
    """

    def place(path: tuple[str | int, ...]) -> str:
        return ".".join(("aggregator", *map(str, path)))

    if isinstance(given, (str, Mapping)):
        return read_aggregator(given, place=place, metrics=metrics)
    if isinstance(given, type) or not callable(getattr(given, "aggregate", None)):
        kind = f"the class `{given.__name__}`" if isinstance(given, type) else type(given).__name__
        raise ConfigurationError(f"An aggregator is an object with `aggregate`, or what a suite would say; not {kind}.")
    aggregator: Aggregator = given
    if issues := list(misfits(aggregator, list(dict.fromkeys(metrics.values())))):
        raise ConfigurationError(Issue(issue.message, place(issue.path)) for issue in issues)
    return aggregator


def misfits(aggregator: Aggregator, names: Sequence[str]) -> Iterator[AggregatorIssue]:
    """Why an aggregator cannot be used with the metrics of a run.

    Args:
        aggregator: Of the house; of others nothing is known.
        names: The run's metrics.
    """
    if isinstance(aggregator, WeightedMetricsAggregator):
        for name in aggregator.weights:
            if name not in names:
                yield AggregatorIssue(("weights", name), _unknown(name, names))
        for name in names:
            if name not in aggregator.weights:
                yield AggregatorIssue(("weights",), missing_weight_message(name, aggregator.weights))
    elif isinstance(aggregator, Critical):
        for place, name in enumerate(aggregator.names):
            if name not in names:
                yield AggregatorIssue(("critical", place), _unknown(name, names))
    elif isinstance(aggregator, AtLeast) and aggregator.k > len(names):
        message = f"`at-least` asks for {aggregator.k} metrics, and this run has {len(names)}: it could never succeed."
        yield AggregatorIssue(("at-least",), message)


def _unknown(name: str, names: Sequence[str]) -> str:
    known = did_you_mean(name, names)
    return f"The aggregator names the metric `{name}`, which this run does not have. {known}"


class _Reader:
    """Reads the section, and collects what is wrong with it."""

    def __init__(self, metrics: Mapping[str, str] | None, idle: frozenset[str]) -> None:
        self.metrics = metrics
        self.idle = idle
        self.issues: list[AggregatorIssue] = []

    def aggregator(self, value: Any) -> MetricsAggregator | None:
        if isinstance(value, str):
            return self._plain(value, ())
        if not isinstance(value, Mapping) or not value:
            found = "an empty map" if isinstance(value, Mapping) else kind_of(value)
            self._issue((), f"{_SHAPES}, not {found}.")
            return None
        if "kind" in value:
            return self._of_kind(value)
        unknown = [key for key in value if key not in _KEYS]
        for key in unknown:
            self._issue((key,), f"`{key}` is no key of `aggregator`. {did_you_mean(str(key), _KEYS)}")
        if unknown:
            return None
        if set(value) == {"at-least"}:
            return self._at_least(value["at-least"])
        if set(value) == {"critical"}:
            return self._critical(value["critical"])
        if "weights" in value or "score_mapping" in value:
            self._issue((), "An aggregator with weights says `kind: weighted`.")
            return None
        self._issue((), f"{_SHAPES}, one of them.")
        return None

    def _plain(self, name: Any, path: tuple[str, ...]) -> MetricsAggregator | None:
        if isinstance(name, str) and name in PLAIN:
            return PLAIN[name]()
        if name in ("weighted", "at-least", "critical"):
            self._issue(path, f"{_SHAPES}; `{name}` alone does not say enough.")
            return None
        if isinstance(name, str):
            self._issue(path, f"No aggregator is called `{name}`. {did_you_mean(name, KINDS)}")
            return None
        self._issue(path, f"`kind` is one of the names of aggregators, not {kind_of(name)}.")
        return None

    def _of_kind(self, value: Mapping[str, Any]) -> MetricsAggregator | None:
        is_weighted = value["kind"] == "weighted"
        known = WEIGHTED if is_weighted else ("kind",)
        aggregator = None if is_weighted else self._plain(value["kind"], ("kind",))
        if aggregator is None and not is_weighted:
            return None
        for key in value:
            if key not in known:
                named = f"`aggregator` of the kind `{value['kind']}`"
                self._issue((key,), f"`{key}` is no key of an {named}. {did_you_mean(str(key), known)}")
        return self._weighted(value) if is_weighted else aggregator

    def _weighted(self, value: Mapping[str, Any]) -> MetricsAggregator | None:
        missing = [key for key in WEIGHTED if key not in value]
        for key in missing:
            self._issue((), f"A weighted aggregator has `{key}`, and it is missing.")
        if missing:
            return None
        given = value["score_mapping"]
        mappings = {name: self._mapping(name, entry) for name, entry in given.items()} if _is_map(given) else given
        before = len(self.issues)
        self.issues += (self._spelt(issue, given) for issue in weighted_issues(value["weights"], mappings))
        if len(self.issues) > before:
            return None
        weights = self._called(value["weights"], lambda name: ("weights", name))
        mapped = {self._name(name): mapping for name, mapping in mappings.items() if self._counts(name)}
        return None if self.issues else WeightedMetricsAggregator(weights, mapped)

    def _mapping(self, name: str, entry: Any) -> Any:
        """A mapping with its keys as numbers; keys in files are text."""
        if not _is_map(entry):
            return entry
        mapping: dict[Any, Any] = {}
        for key, value in entry.items():
            number = _number(key)
            if number in mapping:
                self._issue(("score_mapping", name, key), f"The mapping of `{name}` has the key {number:g} twice.")
            mapping[key if number is None else number] = value
        return mapping

    def _spelt(self, issue: AggregatorIssue, given: Any) -> AggregatorIssue:
        """A issue at the key as the file spells it."""
        if len(issue.path) < 3:
            return issue
        *path, number = issue.path
        key = next((key for key in given[path[-1]] if _number(key) == number), number)
        return issue._replace(path=(*path, key))

    def _at_least(self, value: Any) -> MetricsAggregator | None:
        try:
            return AtLeast(value)
        except ConfigurationError as error:
            self._issue(("at-least",), error.issues[0].message)
            return None

    def _critical(self, value: Any) -> MetricsAggregator | None:
        if not isinstance(value, list) or not value or not all(isinstance(name, str) and name for name in value):
            self._issue(("critical",), "`critical` is a list of at least one metric name.")
            return None
        names = self._called(dict.fromkeys(value, 1.0), lambda name: ("critical", value.index(name)))
        if not names and not self.issues:
            self._issue(("critical",), "None of the critical metrics is part of this run.")
            return None
        return None if self.issues else Critical(names)

    def _called(self, given: Mapping[str, float], path: Callable[[str], tuple[str | int, ...]]) -> dict[str, float]:
        """What is said of metrics, by the names of the run."""
        found: dict[str, float] = {}
        for name, value in given.items():
            if not self._counts(name):
                continue
            if self.metrics is not None and name not in self.metrics:
                self._issue(path(name), _unknown(name, list(dict.fromkeys(self.metrics.values()))))
            elif self._name(name) in found:
                self._issue(path(name), f"The aggregator names the metric `{self._name(name)}` twice.")
            else:
                found[self._name(name)] = value
        return found

    def _counts(self, name: str) -> bool:
        return self.metrics is None or name in self.metrics or name not in self.idle

    def _name(self, name: str) -> str:
        return name if self.metrics is None else self.metrics.get(name, name)

    def _issue(self, path: tuple[str | int, ...], message: str) -> None:
        self.issues.append(AggregatorIssue(path, message))


def _is_map(value: Any) -> bool:
    return isinstance(value, Mapping)


def _number(key: Any) -> float | None:
    try:
        number = float(key)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and not isinstance(key, bool) else None
