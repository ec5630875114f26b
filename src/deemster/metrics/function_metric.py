"""The decorator `metric`, which makes a metric of a plain function."""

from __future__ import annotations

import functools
import inspect
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, SupportsFloat, TypeAlias

import msgspec

from deemster.datasets.where_condition import GivenWhere, parse_condition
from deemster.errors import ConfigurationError, list_names, nearest, show_value
from deemster.metrics._expected_trajectory import output_trajectory
from deemster.metrics.builtin_metric import UnscoredError, no_expected, output_text
from deemster.metrics.metric_signature import TEXT_NAMES, is_annotated_as_text, resolved_signature
from deemster.records import Mark, MetricScore, Output, Sample, Unscored, Where

ARGUMENTS = ("expected", "actual", "input", "metadata", "trajectory", "sample", "output")
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_THRESHOLD = 0.5
_WANTED = "A metric returns a number between 0 and 1, a boolean or a score"


# What a function returns that marks outputs: a number in [0, 1], numpy's too, a boolean, or a mark.
MarkingFunction: TypeAlias = Callable[..., SupportsFloat | Mark]


class FunctionMetric:
    """A function that marks outputs, still callable as the function it is.

    Attributes:
        name: How reports call it.
        threshold: The pass mark.
        higher_is_better: Whether a higher score is a better one.
        quotes: Names of details that may repeat text of a sample or output; None where the author does not say.
        version: Part of its identity.
        where: The samples that it applies to; None for all.
    """

    family: ClassVar[str] = "custom"

    def __init__(
        self,
        function: MarkingFunction,
        *,
        name: str,
        threshold: float,
        higher_is_better: bool,
        quotes: frozenset[str] | None,
        version: str,
        where: GivenWhere | None,
    ) -> None:
        self.name = name
        self.threshold = threshold
        self.higher_is_better = higher_is_better
        self.quotes = quotes
        self.version = version
        self.where = where
        self._function = function
        self._positional, self._named = _parameters(function, metric=name)
        self._reads = frozenset((*self._positional, *self._named.values()))
        # Not the function's own attributes: one called `name` would rename the metric.
        functools.update_wrapper(self, function, updated=())

    @property
    def needs(self) -> tuple[str, ...]:
        """The expected output, where the function reads it."""
        return ("expected_output",) if "expected" in self._reads else ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the plain function."""
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<metric {self.name}>"

    def score(self, sample: Sample, output: Output) -> Mark:
        """Mark one output.

        Raises:
            ValueError: The function returned something else than a number in [0, 1], a boolean or a score.
        """
        try:
            values = {key: _READERS[key](sample, output) for key in self._reads}
        except UnscoredError as error:
            return Unscored(error.cause, error.message)
        positional = [values[key] for key in self._positional]
        value = self._function(*positional, **{name: values[key] for name, key in self._named.items()})
        return mark_from(value, threshold=self.threshold, higher_is_better=self.higher_is_better)


def metric(
    name: str,
    *,
    threshold: float = 0.5,
    higher_is_better: bool = True,
    quotes: Iterable[str] | None = None,
    version: str = "1",
    where: Where | Mapping[str, Any] | str | None = None,
) -> Callable[[MarkingFunction], FunctionMetric]:
    """Make a metric of a plain function.

    The function names what it reads: `expected`, `actual` (the output's text), `input`, `metadata`, `trajectory`,
    `sample`, `output` (its text too if it is annotated as `str`). It returns a number in [0, 1], a boolean or a score.

    Args:
        name: How reports call it.
        threshold: The pass mark.
        higher_is_better: Whether a higher score is a better one.
        quotes: Names of details that may repeat text of a sample or output; without them every string, list and map
            counts as a quotation.
        version: Part of the metric's identity; change it when the function changes its mind.
        where: The samples that it applies to, as in a suite: a map with `tags`, `has` or `metadata`; or `auto`, which
            for a function that reads `expected` means those with an expected output. All unless given.

    Raises:
        ConfigurationError: The name, threshold or `where` cannot be used, or the function is `async` or has other
            parameters.

    >>> @metric("same-length")
    ... def same_length(expected: str, actual: str) -> bool:
    ...     return len(expected) == len(actual)
    >>> same_length("ab", "cd")
    True
    >>> same_length.score(Sample("s", {}, "ab"), Output("abc")).score
    0.0
    """
    if not isinstance(name, str) or not name.strip():
        raise ConfigurationError(
            f'A metric\'s name is non-blank text, not {show_value(name)}: write @metric("my-metric").'
        )
    if isinstance(threshold, bool) or not isinstance(threshold, (int, float)) or not 0 <= threshold <= 1:
        raise ConfigurationError(f"`threshold` of {name} is a number between 0 and 1, not {show_value(threshold)}.")

    def decorate(function: MarkingFunction) -> FunctionMetric:
        return FunctionMetric(
            function,
            name=name,
            threshold=float(threshold),
            higher_is_better=bool(higher_is_better),
            quotes=None if quotes is None else frozenset((quotes,) if isinstance(quotes, str) else quotes),
            version=str(version),
            where=None if where is None else parse_condition(where, called=name),
        )

    return decorate


def mark_from(value: Any, *, threshold: float = 0.5, higher_is_better: bool = True) -> Mark:
    """The mark that the return value of a custom metric stands for.

    Args:
        value: A number in [0, 1] (numpy's too), a boolean, or a mark.
        threshold: The pass mark where the value has none of its own.
        higher_is_better: Whether a higher number is a better one, unless a mark says that it is not.

    Raises:
        ValueError: The value is anything else, such as None, text, 1.5 or NaN, or a mark that no report can hold.

    >>> mark_from(True).score
    1.0
    """
    if isinstance(value, Unscored):
        return value
    if isinstance(value, MetricScore):
        declared = _as_declared(value, threshold=threshold, higher_is_better=higher_is_better)
        _refuse_odd_parts(declared)
        return declared
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()
    if not isinstance(value, (bool, int, float, Decimal, Fraction)):
        raise ValueError(f"{_WANTED}, not {_shown(value)}.")  # noqa: TRY004 - a wrong value, not a wrong call
    try:
        score = float(value)
    except (OverflowError, ValueError):
        score = math.inf
    if not 0 <= score <= 1:
        raise ValueError(f"{_WANTED}, not {_shown(value)}.")
    mark = MetricScore(score, {}, None, threshold, higher_is_better)
    _refuse_odd_parts(mark)
    return mark


def _as_declared(mark: MetricScore, *, threshold: float, higher_is_better: bool) -> MetricScore:
    """The mark with the pass mark and the direction that its metric declares, where it has those of any mark."""
    if mark.threshold == _THRESHOLD and threshold != _THRESHOLD:
        mark = msgspec.structs.replace(mark, threshold=threshold)
    if mark.higher_is_better is True and higher_is_better is not True:
        mark = msgspec.structs.replace(mark, higher_is_better=higher_is_better)
    return mark


def _refuse_odd_parts(mark: MetricScore) -> None:
    """Refuse what a mark takes as it is and no summary or report can use.

    Raises:
        ValueError: The threshold, the direction, the score on the metric's own scale or the details are at error.
    """
    threshold, own = mark.threshold, mark.rubric_score
    if isinstance(threshold, bool) or not isinstance(threshold, (int, float)) or not 0 <= threshold <= 1:
        raise ValueError(f"The threshold of a score is a number between 0 and 1, not {_shown(threshold)}.")
    if not isinstance(mark.higher_is_better, bool):
        raise ValueError(f"`higher_is_better` of a score is true or false, not {_shown(mark.higher_is_better)}.")  # noqa: TRY004 - a wrong value, not a wrong call
    if own is not None and not (isinstance(own, (int, float)) and abs(own) <= sys.float_info.max):
        raise ValueError(f"The `rubric_score` of a score is a finite number, not {_shown(own)}.")
    if not mark.details and isinstance(mark.details, dict):
        return
    if not isinstance(mark.details, dict):
        raise ValueError(f"The details of a score are a map, not {_shown(mark.details)}.")  # noqa: TRY004 - as above
    try:
        # A mark does not check a FrozenDict, and user code may have made this one.
        json.dumps(mark.details, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError):
        raise ValueError("The details of a score are finite JSON values in valid Unicode.") from None


def _shown(value: Any) -> str:
    # Text may quote a sample, so only its type is named.
    return repr(value)[:40] if isinstance(value, float) or value is None else f"a value of type {type(value).__name__}"


def _expected(sample: Sample, _: Output) -> Any:
    if sample.expected_output is None:
        raise no_expected()
    return sample.expected_output


_READERS: dict[str, Callable[[Sample, Output], Any]] = {
    "expected": _expected,
    "actual": lambda _, output: output_text(output),
    "input": lambda sample, _: sample.input,
    "metadata": lambda sample, _: sample.metadata,
    "trajectory": lambda _, output: output_trajectory(output),
    "sample": lambda sample, _: sample,
    "output": lambda _, output: output,
}


def _parameters(function: Callable[..., Any], *, metric: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """What is read for the positional parameters, and for the named ones by name."""
    if not callable(function) or isinstance(function, type):
        raise ConfigurationError(f'@metric("{metric}") makes a metric of a function, not of {function!r}.')
    call = type(function).__call__
    if any(inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each) for each in (function, call)):
        raise ConfigurationError(f"The function of metric `{metric}` is `async`; metrics are plain functions.")
    try:
        parameters = resolved_signature(function).parameters.values()
    except ValueError:
        raise ConfigurationError(
            f"The function of metric `{metric}` does not tell its parameters. Wrap it: lambda actual: ..."
        ) from None
    for parameter in parameters:
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            raise ConfigurationError(
                f"The function of metric `{metric}` takes `{parameter}`; it may take {list_names(ARGUMENTS)}."
            )
        if parameter.name not in ARGUMENTS:
            meant = "actual" if parameter.name in TEXT_NAMES else nearest(parameter.name, ARGUMENTS)
            raise ConfigurationError(
                f"The function of metric `{metric}` has the parameter `{parameter.name}`, which nothing is bound to. "
                f"{f'Did you mean `{meant}`? ' if meant else ''}Allowed: {list_names(ARGUMENTS)}; "
                "`actual` is the output's text."
            )
    read = {parameter.name: _value_read(parameter) for parameter in parameters}
    positional = [parameter.name for parameter in parameters if parameter.kind in _POSITIONAL]
    named = {name: value for name, value in read.items() if name not in positional}
    return tuple(read[name] for name in positional), named


def _value_read(parameter: inspect.Parameter) -> str:
    return "actual" if parameter.name == "output" and is_annotated_as_text(parameter) else parameter.name
