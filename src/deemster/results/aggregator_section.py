"""The `aggregator` section of a suite: its declared shapes, and the aggregator it is read into."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from deemster.errors import ConfigurationError, Issue, did_you_mean, list_names
from deemster.errors.user_code_guard import UserCodeGuard
from deemster.formats import NO_DOCUMENT
from deemster.formats.json_values import Path, name_kind, pointer, to_json_value
from deemster.formats.schema_validation import Located, NonBlank, Share, shape_issues
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

PlainKind = Literal["and", "min", "geometric"]
# User code, such as `aggs:Forgiving`.
ImportPath = Annotated[str, Meta(pattern=r"^[^:]+:[^:]+$")]
_PLAIN: dict[str, Callable[[], MetricsAggregator]] = {
    "and": MetricsAggregator,
    "min": MinAggregator,
    "geometric": GeometricAggregator,
}
_KEYS = ("kind", "weights", "score_mapping", "at-least", "critical")
_SHAPES = (
    "An aggregator is `and`, `min`, `geometric`, `{kind: weighted, weights: ..., score_mapping: ...}`, "
    "`{at-least: 2}`, `{critical: [names]}`, or an import path such as `aggs:Forgiving`"
)


class PlainSection(msgspec.Struct, forbid_unknown_fields=True):
    """An aggregator without settings."""

    kind: PlainKind


class WeightedSection(msgspec.Struct, forbid_unknown_fields=True):
    """A weighted aggregator."""

    kind: Literal["weighted"]
    weights: dict[str, Annotated[float, Meta(ge=0)]]
    score_mapping: dict[str, Annotated[dict[str, Share], Meta(min_length=1)] | str]


class AtLeastSection(msgspec.Struct, forbid_unknown_fields=True, rename={"at_least": "at-least"}):
    """An aggregator that counts successes."""

    at_least: Annotated[int, Meta(ge=1)]


class CriticalSection(msgspec.Struct, forbid_unknown_fields=True):
    """An aggregator of critical metrics."""

    critical: Annotated[list[NonBlank], Meta(min_length=1)]


# What the section may be: a name, or one of these maps.
AGGREGATOR_SHAPES = (PlainKind, ImportPath, PlainSection, WeightedSection, AtLeastSection, CriticalSection)


def _section_issues(value: Any, document: Located) -> list[Issue]:
    """What is wrong with the shape of a section."""
    shape: Any = None
    if isinstance(value, str):
        shape = ImportPath if ":" in value else PlainKind
    elif isinstance(value, dict) and "kind" in value:
        shape = WeightedSection if value["kind"] == "weighted" else PlainSection
    elif isinstance(value, dict) and len(value) == 1:
        shape = {"at-least": AtLeastSection, "critical": CriticalSection}.get(next(iter(value)))
    if shape is not None:
        return shape_issues(value, shape, document=document, path=("aggregator",))
    unknown = [key for key in value if key not in _KEYS] if isinstance(value, dict) else []
    found = [
        AggregatorIssue((key,), f"`{key}` is no key of `aggregator`. {did_you_mean(str(key), _KEYS)}")
        for key in unknown
    ]
    given = f"a map with {list_names(value) or 'no keys'}" if isinstance(value, dict) else name_kind(value)
    return list(_placed(found or [AggregatorIssue((), f"{_SHAPES}, not {given}.")], document))


def _placed(issues: Sequence[AggregatorIssue], document: Located) -> Iterator[Issue]:
    for issue in issues:
        path = ("aggregator", *issue.path)
        yield Issue(issue.message, document.where(path) or pointer(path))


def _with_text_keys(value: Any) -> Any:
    """A section with the keys of its mappings as text, as files have them; Python may give numbers."""
    mappings = value.get("score_mapping") if isinstance(value, dict) else None
    if not isinstance(mappings, dict):
        return value
    spelt = {
        name: {key if isinstance(key, str) else str(key): entry for key, entry in mapping.items()}
        if isinstance(mapping, dict)
        else mapping
        for name, mapping in mappings.items()
    }
    return {**value, "score_mapping": spelt}


def build_aggregator(
    given: Any,
    *,
    document: Located = NO_DOCUMENT,
    metrics: Mapping[str, str] | None = None,
    idle: frozenset[str] = frozenset(),
    load: Callable[[str], Any] | None = None,
) -> Aggregator:
    """An aggregator from what a suite says, or from what Python was given: an object with `aggregate`, or the same.

    Args:
        given: Either.
        document: The suite, for the lines of issues.
        metrics: Names of the run's metrics, and other spellings of them, by name; without them only the section itself
            is looked at.
        idle: Names of metrics that the suite has and this run leaves out: what is said of them does not count.
        load: Imports what an import path names; without it, import paths are refused.

    Raises:
        ConfigurationError: It is neither, or it does not fit the metrics; all issues are listed.
    """
    found: list[AggregatorIssue] = []
    if given is None or isinstance(given, (str, Mapping, list, int, float)):
        value = _with_text_keys(to_json_value(given))
        if issues := _section_issues(value, document):
            raise ConfigurationError(issues)
        reader = _Reader(metrics, idle, load)
        aggregator, found = reader.aggregator(value), reader.issues
    elif isinstance(given, type) or not callable(getattr(given, "aggregate", None)):
        kind = f"the class `{given.__name__}`" if isinstance(given, type) else type(given).__name__
        raise ConfigurationError(f"An aggregator is an object with `aggregate`, or what a suite would say; not {kind}.")
    else:
        aggregator = given

    if not found and aggregator is not None and metrics is not None:
        found = list(misfits(aggregator, list(dict.fromkeys(metrics.values()))))
    if found or aggregator is None:
        raise ConfigurationError(dict.fromkeys(_placed(found, document)))
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

    def __init__(
        self, metrics: Mapping[str, str] | None, idle: frozenset[str], load: Callable[[str], Any] | None
    ) -> None:
        self.metrics = metrics
        self.idle = idle
        self.load = load
        self.issues: list[AggregatorIssue] = []

    def aggregator(self, value: Any) -> Aggregator | None:
        """The aggregator of a section that has one of the declared shapes."""
        if isinstance(value, str):
            return self._custom(value) if ":" in value else _PLAIN[value]()
        if "at-least" in value:
            return AtLeast(value["at-least"])
        if "critical" in value:
            return self._critical(value["critical"])
        return self._weighted(value) if value["kind"] == "weighted" else _PLAIN[value["kind"]]()

    def _imported(self, path: Path, name: str) -> Any:
        """What an import path names; None where that cannot be had."""
        if self.load is None:
            self._issue(path, f"`{name}` is an import path, and nothing is imported here.")
            return None
        try:
            return self.load(name)
        except ConfigurationError as error:
            self.issues += [AggregatorIssue(path, issue.message) for issue in error.issues]
            return None

    def _custom(self, name: str) -> Aggregator | None:
        """The aggregator of user code: an object with `aggregate`, or a class that makes one without arguments."""
        found = self._imported((), name)
        if isinstance(found, type):
            with UserCodeGuard() as caught:
                found = found()
            if caught.error is not None:
                self._issue((), f"`{name}` cannot be made without arguments: {caught.message}")
        if not self.issues and not callable(getattr(found, "aggregate", None)):
            self._issue((), f"`{name}` is no aggregator: it needs `aggregate(named_results)`.")
        return None if self.issues else found

    def _weighted(self, value: Mapping[str, Any]) -> Aggregator | None:
        mappings = {
            name: self._imported(("score_mapping", name), entry)
            if isinstance(entry, str)
            else self._mapping(name, entry)
            for name, entry in value["score_mapping"].items()
        }
        if any(mapping is None for mapping in mappings.values()):
            return None
        found = list(weighted_issues(value["weights"], mappings))
        self.issues += found
        if found:
            return None
        weights = self._called(value["weights"], lambda name: ("weights", name))
        mapped = {self._name(name): mapping for name, mapping in mappings.items() if self._counts(name)}
        return None if self.issues else WeightedMetricsAggregator(weights, mapped)

    def _mapping(self, name: str, entry: Mapping[str, float]) -> dict[Any, float]:
        """A mapping with its keys as numbers; keys in files are text."""
        mapping: dict[Any, float] = {}
        for key, value in entry.items():
            number = _number(key)
            if number in mapping:
                self._issue(("score_mapping", name, key), f"The mapping of `{name}` has the key {number:g} twice.")
            mapping[key if number is None else number] = value
        return mapping

    def _critical(self, value: Sequence[str]) -> Aggregator | None:
        names = self._called(dict.fromkeys(value, 1.0), lambda name: ("critical", value.index(name)))
        if not names and not self.issues:
            self._issue(("critical",), "None of the critical metrics is part of this run.")
            return None
        return None if self.issues else Critical(names)

    def _called(self, given: Mapping[str, float], path: Callable[[str], Path]) -> dict[str, float]:
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

    def _issue(self, path: Path, message: str) -> None:
        self.issues.append(AggregatorIssue(path, message))


def _number(key: Any) -> float | None:
    try:
        number = float(key)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and not isinstance(key, bool) else None
