"""The metrics `json-valid` and `json-schema`: is the output JSON, and does it fit a schema?"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, NoReturn

import jsonschema_rs
import msgspec

from deemster.errors import ConfigurationError
from deemster.formats.json_values import name_kind
from deemster.metrics.builtin_metric import BuiltinMetric, invalid_sample, json_pointer, list_detail, unscorable_sample
from deemster.records import MetricScore, Output, Sample, freeze

DEEPEST = 200
# Python refuses longer integers, as their conversion takes quadratic time.
_LONGEST_INTEGER = 4300
_SHORT = Context(prec=60, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
_FENCES = ("```", "~~~")
# An unclosed string runs to the end, so that no text is scanned twice.
_STRING = r'"(?:[^"\\]+|\\.)*"?'
_BRACKETS = re.compile(_STRING + r"|([\[{])|([\]}])", re.DOTALL)
_BESIDE_BRACKETS = re.compile(_STRING + r'|[^][{}"]+', re.DOTALL)
_CONSTANTS = re.compile(_STRING + r"|(NaN|-?Infinity)", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_RESOURCE = re.compile("Resource '(.*?)' is not present")


class InvalidJson(NamedTuple):
    """Where a text stops being one JSON value."""

    line: int
    column: int


class ParsedJson(NamedTuple):
    """A JSON value that was read from text."""

    value: Any


class _Constant(ValueError):  # noqa: N818 - it never leaves this file
    """NaN or Infinity, which Python's parser would take."""


def read_json(text: str, *, fenced: bool = False) -> ParsedJson | InvalidJson:
    r"""The one RFC 8259 value a text holds, at most 200 containers deep, or the place where it is none.

    Numbers beyond a float's range come back as decimals, so that nothing turns into infinity.

    Args:
        text: Any text; a byte order mark is not JSON.
        fenced: Whether one Markdown code fence around the value is taken off first.

    >>> read_json("[1, 2]")
    ParsedJson(value=[1, 2])
    >>> read_json("[1,\n 2,\n x]")
    InvalidJson(line=3, column=2)
    """
    start, body = _unfenced(text) if fenced else (0, text)
    at = _too_deep(body)
    if at is None:
        try:
            return ParsedJson(_value(body))
        except json.JSONDecodeError as error:
            at = error.pos
        except _Constant:
            at = next(match.start() for match in _CONSTANTS.finditer(body) if match[1])
    at += start
    line_start = text.rfind("\n", 0, at) + 1
    return InvalidJson(text.count("\n", 0, at) + 1, at - line_start + 1)


def _value(text: str) -> Any:
    try:
        return _FAST.decode(text)
    except (json.JSONDecodeError, _Constant):
        raise
    except ValueError:
        # An integer is too long for Python. Only now is a function called for every integer.
        return _CAREFUL.decode(text)


def _too_deep(text: str) -> int | None:
    if text.count("[") + text.count("{") <= DEEPEST:
        return None
    depth = 0
    for bracket in _BESIDE_BRACKETS.sub("", text):
        depth += 1 if bracket in "[{" else -1
        if depth > DEEPEST:
            return _opening(text, number=DEEPEST + 1)
    return None


def _opening(text: str, *, number: int) -> int:
    depth = 0
    for match in _BRACKETS.finditer(text):
        if match[1]:
            depth += 1
            if depth == number:
                return match.start()
        elif match[2]:
            depth -= 1
    raise AssertionError("The text is less deep than its brackets.")


def _unfenced(text: str) -> tuple[int, str]:
    trimmed = text.strip()
    fence = trimmed[:3]
    opening, newline, _ = trimmed.partition("\n")
    width = len(opening) - len(opening.lstrip(fence[:1]))
    closing = fence[:1] * width
    if fence not in _FENCES or not newline or len(trimmed) < len(opening) + 1 + width or not trimmed.endswith(closing):
        return 0, text
    start = text.index(fence) + len(opening) + 1
    return start, text[start : text.rindex(closing)]


def _integer(digits: str) -> int | Decimal:
    return int(digits) if len(digits) <= _LONGEST_INTEGER else Decimal(digits)


def _real(digits: str) -> float | Decimal:
    value = float(digits)
    if math.isinf(value):
        try:
            return Decimal(digits)
        except InvalidOperation:
            return Decimal("-1e999999999" if value < 0 else "1e999999999")
    return value


def _constant(name: str) -> NoReturn:
    raise _Constant(name)


_FAST = json.JSONDecoder(parse_float=_real, parse_constant=_constant)
_CAREFUL = json.JSONDecoder(parse_int=_integer, parse_float=_real, parse_constant=_constant)


class JsonValid(BuiltinMetric, frozen=True, kw_only=True):
    """1 if the output is one JSON value (RFC 8259), at most 200 containers deep, else 0.

    It does not read `expected_output`. NaN and Infinity are not JSON.
    Options: `fenced`, true to take one Markdown code fence off first.
    Details: valid, and line and column of the error.
    Example: `{"a": 1}` scores 1; `{a: 1}` scores 0 at line 1, column 2.

    Worked examples:
        - {output: '{"a": 1}'}
        - {output: '{a: 1}'}
    """

    alias: ClassVar[str] = "json-valid"
    family: ClassVar[str] = "lexical"
    reads_expected: ClassVar[bool] = False

    fenced: bool = False

    def expect(self, sample: Sample) -> None:
        """Nothing: every sample will do."""

    def read(self, output: Output) -> ParsedJson | InvalidJson:
        """The JSON value of the output's text, or where it stops being one.

        Raises:
            UnscoredError: The text is not valid Unicode.
        """
        return read_json(BuiltinMetric.read(self, output), fenced=self.fenced)

    def grade(self, expected: None, actual: ParsedJson | InvalidJson) -> MetricScore:  # noqa: ARG002 - nothing is expected
        """1 for JSON, else 0."""
        if isinstance(actual, InvalidJson):
            return invalid_json_mark(self, actual)
        return self.mark(1.0, {"valid": True, "line": None, "column": None})


class JsonSchema(BuiltinMetric, frozen=True, kw_only=True):
    """1 if the output is JSON that fits a JSON Schema, else 0.

    Reads `metadata.json_schema`, else the option `schema`; `$schema` chooses the draft, 2020-12 by default. Nothing is
    fetched: a `$ref` outside the schema is an error before the run. Patterns run in linear time, so they have no
    look-around and no back-references. It does not read `expected_output`.
    Options: `schema`; `formats`, true to check `format` too; `fenced`, true to take one code fence off first.
    Details: valid (is it JSON), errors (how many), paths (where); line and column where it is not JSON.
    Example: `{"n": "1"}` against `{"properties": {"n": {"type": "integer"}}}` scores 0, errors 1, paths `/n`.

    Worked examples:
        - {output: '{"n": 1}', metadata: {json_schema: {properties: {n: {type: integer}}}}}
        - {output: '{"n": "1"}', metadata: {json_schema: {properties: {n: {type: integer}}}}}
    """

    alias: ClassVar[str] = "json-schema"
    family: ClassVar[str] = "lexical"
    quotes: ClassVar[frozenset[str]] = frozenset({"paths"})
    reads: ClassVar[frozenset[str]] = frozenset({"json_schema"})
    reads_expected: ClassVar[bool] = False

    schema: Mapping[str, Any] | bool | None = None
    formats: bool = False
    fenced: bool = False

    def validate(self) -> None:
        """Refuse a schema that is none, or that refers to another.

        Raises:
            ConfigurationError: `schema` is not what it should be.
        """
        if self.schema is not None:
            try:
                _validator_of(self.schema, formats=self.formats)
                msgspec.structs.force_setattr(self, "schema", freeze(self.schema, path="schema"))
            except ValueError as error:
                raise ConfigurationError(f"`schema` of {self.alias} {error}.") from None

    @property
    def needs(self) -> tuple[str, ...]:
        """The schema, where the metric has none."""
        return ("json_schema",) if self.schema is None else ()

    def expect(self, sample: Sample) -> jsonschema_rs.Validator:
        """The compiled schema.

        Raises:
            UnscoredError: There is none, or it cannot be used.
        """
        given = sample.metadata.get("json_schema")
        if given is None:
            if self.schema is None:
                raise unscorable_sample(
                    "The sample has no `metadata.json_schema`, and the metric was given no `schema`."
                )
            return _validator_of(self.schema, formats=self.formats)
        try:
            return _validator_of(given, formats=self.formats)
        except ValueError as error:
            raise invalid_sample(f"`metadata.json_schema` {error}.") from None

    def read(self, output: Output) -> ParsedJson | InvalidJson:
        """The JSON value of the output's text, or where it stops being one.

        Raises:
            UnscoredError: The text is not valid Unicode.
        """
        return read_json(BuiltinMetric.read(self, output), fenced=self.fenced)

    def grade(self, expected: jsonschema_rs.Validator, actual: ParsedJson | InvalidJson) -> MetricScore:
        """1 without errors, else 0 and where they are."""
        if isinstance(actual, InvalidJson):
            return invalid_json_mark(self, actual)
        try:
            fits = expected.is_valid(actual.value)
            value = actual.value
        except UnicodeEncodeError:
            # JSON may escape half a surrogate pair; the validator takes whole characters only.
            value = _whole(actual.value)
            fits = expected.is_valid(value)
        if fits:
            return self.mark(1.0, {"valid": True, "errors": 0, "paths": []})
        places = _places(expected, value)
        return self.mark(0.0, {"valid": True, "errors": len(places), **list_detail("paths", dict.fromkeys(places))})


def invalid_json_mark(metric: BuiltinMetric, actual: InvalidJson) -> MetricScore:
    """A score of 0 for an output that should have been JSON."""
    return metric.mark(0.0, {"valid": False, "line": actual.line, "column": actual.column})


def _validator_of(schema: Any, *, formats: bool) -> jsonschema_rs.Validator:
    if not isinstance(schema, (bool, Mapping)):
        raise ValueError(f"is a map or a boolean, not {name_kind(schema)}")  # noqa: TRY004 - becomes a error
    try:
        text = json.dumps(schema, sort_keys=True, allow_nan=False, default=_as_dict)
    except (TypeError, ValueError, RecursionError):
        raise ValueError("is not JSON") from None
    return _compiled(text, formats)


@lru_cache(maxsize=256)
def _compiled(text: str, formats: bool) -> jsonschema_rs.Validator:  # noqa: FBT001 - a cache key
    try:
        return jsonschema_rs.validator_for(
            text, offline=True, validate_formats=formats, pattern_options=jsonschema_rs.RegexOptions()
        )
    except jsonschema_rs.ValidationError as error:
        remote = _RESOURCE.search(error.message)
        if remote is not None:
            raise ValueError(f"refers to `{remote[1]}`, which is outside the schema; nothing is fetched") from None
        place = json_pointer(error.instance_path)
        raise ValueError(f"is no JSON Schema{f' at `{place}`' if place else ''}: {error.message}") from None
    except ValueError as error:
        raise ValueError(f"is no JSON Schema: {error}") from None


def _as_dict(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(type(value).__name__)


def _places(validator: jsonschema_rs.Validator, value: Any) -> list[str]:
    try:
        return [json_pointer(error.instance_path) for error in validator.iter_errors(value)]
    except ValueError:
        # An error message repeats the value, and it cannot hold a lone surrogate or an integer of over 4,300 digits.
        # Such an integer is rounded to a float, so the validator may find fewer faults.
        plain = _rounded(_whole(value))
        return [json_pointer(error.instance_path) for error in validator.iter_errors(plain)] or [""]


def _rounded(value: Any) -> Any:
    if isinstance(value, Decimal):
        return _SHORT.plus(value)
    if isinstance(value, dict):
        return {key: _rounded(entry) for key, entry in value.items()}
    return [_rounded(entry) for entry in value] if isinstance(value, list) else value


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_whole(key): _whole(entry) for key, entry in value.items()}
    return [_whole(entry) for entry in value] if isinstance(value, list) else value
