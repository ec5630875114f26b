"""Reads what a sample or an option expects of a trajectory: tools, order, arguments, limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from deemster.errors import ConfigurationError, did_you_mean, show_value
from deemster.formats.json_values import name_kind
from deemster.metrics.builtin_metric import BuiltinMetric, UnscoredError, invalid_sample, unscorable_sample
from deemster.metrics.numeric_close import parse_number
from deemster.records import Output, Sample, Trajectory

KEYS = ("tools", "forbidden_tools", "tool_arguments", "order", "max_steps", "requires_approval")
_ARGUMENT_KEYS = ("tool", "arguments")


class ExpectedCall(NamedTuple):
    """A call that is expected: a tool, and some of its arguments."""

    tool: str
    arguments: Mapping[str, Any]


def output_trajectory(output: Output) -> Trajectory:
    """The output's trajectory.

    Raises:
        UnscoredError: None was recorded.
    """
    if output.trajectory is None:
        raise UnscoredError("no_trajectory", "The output has no trajectory.")
    return output.trajectory


def argument_matches(expected: Any, actual: Any, *, coerce_numbers: bool = False) -> bool:
    """Whether an argument meets an expectation: maps by subset, lists by length and element, numbers by value.

    >>> argument_matches({"n": 5}, {"n": 5.0, "q": "rome"}), argument_matches([1], [1, 2])
    (True, False)
    >>> argument_matches({"n": 5}, {"n": "5"})
    False
    >>> argument_matches({"n": 5}, {"n": "5"}, coerce_numbers=True)
    True
    """
    if isinstance(expected, Mapping):
        return isinstance(actual, Mapping) and all(
            key in actual and argument_matches(value, actual[key], coerce_numbers=coerce_numbers)
            for key, value in expected.items()
        )
    if isinstance(expected, (list, tuple)):
        return (
            isinstance(actual, (list, tuple))
            and len(expected) == len(actual)
            and all(
                argument_matches(*pair, coerce_numbers=coerce_numbers) for pair in zip(expected, actual, strict=True)
            )
        )
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    if _is_number(expected) or _is_number(actual):
        if _is_number(expected) and _is_number(actual):
            return bool(expected == actual)
        if not coerce_numbers:
            return False
        number = parse_number(expected)
        return number is not None and number == parse_number(actual)
    return bool(expected == actual)


def tools_called(trajectory: Trajectory) -> frozenset[str]:
    """The names of the tools that were called, failed calls too."""
    return frozenset(call.name for call in trajectory.tool_calls)


def fraction_met(part: int, whole: int) -> float:
    """The part of an expectation that was met; an explicit empty one is."""
    return part / whole if whole else 1.0


def sample_expectations(sample: Sample) -> Mapping[str, Any]:
    """All expectations of a sample, empty where it has none.

    Raises:
        UnscoredError: `metadata.trajectory` is no map, or has an unknown key.
    """
    given = sample.metadata.get("trajectory")
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise invalid_sample(f"`metadata.trajectory` is a map, not {name_kind(given)}.")
    for key in given:
        if key not in KEYS:
            raise invalid_sample(f"`metadata.trajectory` has the unknown key `{_name(key)}`. {_nearest(_name(key))}")
    return given


def _name(key: Any) -> str:
    return key if isinstance(key, str) else show_value(key)


def _nearest(key: str) -> str:
    # `forbidden` is closer to `order` by letters than to what it abbreviates.
    whole = [known for known in KEYS if key and key in known]
    return did_you_mean(key, whole[:1] if whole else KEYS)


def find_expectation(sample: Sample, key: str, *, given: Any) -> tuple[Any, str]:
    """One expectation, the sample's or else the given one, and how messages name it.

    Raises:
        UnscoredError: There is neither, or `metadata.trajectory` cannot be read.
    """
    value = sample_expectations(sample).get(key)
    if value is not None:
        return value, f"metadata.trajectory.{key}"
    if given is None:
        raise unscorable_sample(f"The sample has no `metadata.trajectory.{key}`, and the metric was given no `{key}`.")
    return given, key


def expected_names(sample: Sample, key: str, *, given: Any, distinct: bool = True) -> tuple[str, ...]:
    """The names of tools that a sample, or else the metric, expects.

    Raises:
        UnscoredError: There are none, or they are no names.
    """
    value, where = find_expectation(sample, key, given=given)
    try:
        return _names(value, distinct=distinct)
    except ValueError as error:
        raise invalid_sample(f"`{where}` {error}.") from None


def check_names_option(metric: BuiltinMetric, option: str, *, distinct: bool = True) -> None:
    """Check an option that holds names of tools, and keep it as a tuple.

    Raises:
        ConfigurationError: It holds something else.
    """
    value = getattr(metric, option)
    if value is not None:
        try:
            settled = _names(value, distinct=distinct)
        except ValueError as error:
            raise ConfigurationError(f"`{option}` of {metric.alias} {error}.") from None
        msgspec.structs.force_setattr(metric, option, settled)


def _names(value: Any, *, distinct: bool) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, (list, tuple)):
        raise ValueError(f"is a tool's name or a list of them, not {name_kind(value)}")  # noqa: TRY004 - becomes a error
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise ValueError(
                f"holds {name_kind(name) if not isinstance(name, str) else 'a blank'} in place of a tool's name"
            )
    if distinct and len(set(names)) < len(names):
        repeated = next(name for index, name in enumerate(names) if name in names[:index])
        raise ValueError(f"names `{repeated}` twice; names repeat only in `order`")
    return tuple(names)


def parse_expected_calls(value: Any) -> tuple[ExpectedCall, ...]:
    """The calls that a list of `{tool, arguments}` expects.

    Raises:
        ValueError: It is something else; the message completes a sentence about it.
    """
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"is a list of `{{tool, arguments}}`, not {name_kind(value)}")  # noqa: TRY004 - becomes a error
    calls = []
    for entry in value:
        if not isinstance(entry, Mapping):
            raise ValueError(f"holds {name_kind(entry)} in place of `{{tool, arguments}}`")  # noqa: TRY004 - becomes a error
        for key in entry:
            if key not in _ARGUMENT_KEYS:
                raise ValueError(
                    f"has the unknown key `{_name(key)}`: {did_you_mean(_name(key), _ARGUMENT_KEYS).rstrip('.')}"
                )
        tool, arguments = entry.get("tool"), entry.get("arguments")
        if not isinstance(tool, str) or not tool.strip():
            raise ValueError("has an entry without the name of a `tool`")
        if not isinstance(arguments, Mapping):
            raise ValueError(f"wants `arguments` of `{tool}` as a map, not {name_kind(arguments)}")  # noqa: TRY004 - as above
        calls.append(ExpectedCall(tool, arguments))
    return tuple(calls)


def is_limit(value: Any) -> bool:
    """Whether a value is a whole number of at least 1."""
    return type(value) is int and 1 <= value < 2**63


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
