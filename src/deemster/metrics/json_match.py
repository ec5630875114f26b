"""The metric `json-match`: compares expected and actual JSON leaf by leaf."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, ClassVar, Literal

import msgspec

from deemster.errors import ConfigurationError, show_value
from deemster.metrics._text_normalization import normalize_text, parse_normalize_option
from deemster.metrics.builtin_metric import (
    BuiltinMetric,
    invalid_sample,
    json_pointer,
    list_detail,
    no_expected,
    unscorable_sample,
)
from deemster.metrics.json_validity import DEEPEST, InvalidJson, ParsedJson, invalid_json_mark, read_json
from deemster.metrics.option_checks import Amount
from deemster.records import MetricScore, Output, Sample

_GONE = object()
_Path = tuple[str | int, ...]


class JsonMatch(BuiltinMetric, frozen=True, kw_only=True):
    """The share of the expected JSON leaves that the output has, at the same place and with the same value.

    Reads `expected_output`: a JSON value, or JSON text. A leaf is a scalar or an empty container; 1 equals 1.0, not
    true. An output that is not JSON scores 0 with `valid: false`.
    Options: `mode`, `subset` (leaves beyond the expected ones cost nothing) or `exact` (they count in the denominator);
    `lists`, `ordered` or `set` (scalars of a list as a multiset, containers among themselves in order); `rel_tol`, how
    far numbers may lie apart, relative to the larger one; `ignore`, a list of JSON pointers (`/a/b`, `*` for any key or
    place) or of keys to leave out at any depth; `normalize`, true or a list of `nfc`, `casefold`, `strip`, for text;
    `fenced`, true to take one code fence off first.
    Details: valid, expected, matched, wrong, missing, extra, paths (wrong, missing and, in `exact`, extra).
    Example: `{"city": "Rome", "pop": 2.8, "tags": ["eu", "it"]}` expected, `{"city": "Rome", "pop": 3, "tags": ["eu"],
    "x": 1}` given: 2/4 = 0.5, exact 2/5 = 0.4.

    Worked examples:
        - expected:
            city: Rome
            pop: 2.8
            tags: [eu, it]
          output: '{"city": "Rome", "pop": 3, "tags": ["eu"], "x": 1}'
        - expected:
            city: Rome
            pop: 2.8
            tags: [eu, it]
          output: '{"city": "Rome", "pop": 3, "tags": ["eu"], "x": 1}'
          options: {mode: exact}
    """

    alias: ClassVar[str] = "json-match"
    family: ClassVar[str] = "lexical"
    quotes: ClassVar[frozenset[str]] = frozenset({"paths"})

    mode: Literal["subset", "exact"] = "subset"
    lists: Literal["ordered", "set"] = "ordered"
    rel_tol: Amount = 0.0
    ignore: Sequence[str] = ()
    normalize: Sequence[str] | bool | None = ()
    fenced: bool = False

    def validate(self) -> None:
        """Refuse tolerances of 1 and more, and places that are none.

        Raises:
            ConfigurationError: An option is not what it should be.
        """
        if self.rel_tol >= 1:
            raise ConfigurationError(f"`rel_tol` of {self.alias} is below 1, not {self.rel_tol!r}.")
        ignore = (self.ignore,) if isinstance(self.ignore, str) else self.ignore
        if not isinstance(ignore, (list, tuple)) or not all(isinstance(place, str) and place for place in ignore):
            raise ConfigurationError(
                f"`ignore` of {self.alias} is a list of JSON pointers or keys, not {show_value(self.ignore)}."
            )
        msgspec.structs.force_setattr(self, "ignore", tuple(ignore))
        msgspec.structs.force_setattr(self, "normalize", parse_normalize_option(self.normalize))

    def expect(self, sample: Sample) -> Any:
        """The expected JSON value, without what is ignored.

        Raises:
            UnscoredError: There is none, it is not JSON, or nothing of it is left to compare.
        """
        value = sample.expected_output
        if value is None:
            raise no_expected()
        if isinstance(value, str):
            read = read_json(value)
            if isinstance(read, InvalidJson):
                place = f"line {read.line}, column {read.column}"
                raise unscorable_sample(
                    f"`expected_output` is a JSON value or JSON text here; this text is not JSON at {place}."
                )
            value = read.value
        else:
            value = _plain(value)
        value = self._kept(value)
        if next(_leaves(value, ()), None) is None:
            raise unscorable_sample("`ignore` leaves nothing of `expected_output` to compare.")
        return value

    def read(self, output: Output) -> ParsedJson | InvalidJson:
        """The JSON value of the output's text, or where it stops being one.

        Raises:
            UnscoredError: The text is not valid Unicode.
        """
        return read_json(BuiltinMetric.read(self, output), fenced=self.fenced)

    def grade(self, expected: Any, actual: ParsedJson | InvalidJson) -> MetricScore:
        """Count leaves: as expected, wrong, missing, extra."""
        if isinstance(actual, InvalidJson):
            return invalid_json_mark(self, actual)
        count = _Count(by_set=self.lists == "set", rel_tol=self.rel_tol, steps=self.normalize)  # type: ignore[arg-type]
        count.compare(expected, self._kept(actual.value), ())
        wanted = count.matched + len(count.wrong) + len(count.missing)
        exact = self.mode == "exact"
        places = [*count.wrong, *count.missing, *(count.extra if exact else ())]
        details = {
            "valid": True,
            "expected": wanted,
            "matched": count.matched,
            "wrong": len(count.wrong),
            "missing": len(count.missing),
            "extra": len(count.extra),
            **list_detail("paths", map(json_pointer, places)),
        }
        return self.mark(count.matched / (wanted + len(count.extra) if exact else wanted), details)

    def _kept(self, value: Any) -> Any:
        if not self.ignore:
            return value
        pointers = [_steps(place) for place in self.ignore if place.startswith("/")]
        keys = frozenset(place for place in self.ignore if not place.startswith("/"))
        return _without(value, pointers, keys)


class _Count:
    """The leaves of two values, sorted into as expected, wrong, missing and extra."""

    def __init__(self, *, by_set: bool, rel_tol: float, steps: tuple[str, ...]) -> None:
        self.matched = 0
        self.wrong: list[_Path] = []
        self.missing: list[_Path] = []
        self.extra: list[_Path] = []
        self._by_set = by_set
        self._rel_tol = rel_tol
        self._steps = steps

    def compare(self, expected: Any, actual: Any, path: _Path) -> None:
        if expected is _GONE or actual is _GONE:
            self.missing += _leaves(expected, path)
            self.extra += _leaves(actual, path)
        elif isinstance(expected, dict) and isinstance(actual, dict) and expected and actual:
            for key, value in expected.items():
                if key in actual:
                    self.compare(value, actual[key], (*path, key))
                else:
                    self.missing += _leaves(value, (*path, key))
            for key, value in actual.items():
                if key not in expected:
                    self.extra += _leaves(value, (*path, key))
        elif isinstance(expected, list) and isinstance(actual, list) and expected and actual:
            if self._by_set:
                self._compare_sets(expected, actual, path)
            else:
                self._compare_lists(list(enumerate(expected)), list(enumerate(actual)), path)
        elif _is_leaf(expected):
            if _is_leaf(actual):
                if self.same(expected, actual):
                    self.matched += 1
                else:
                    self.wrong.append(path)
            else:
                self.wrong.append(path)
                self.extra += _leaves(actual, path)
        else:
            self.missing += _leaves(expected, path)
            self.extra += _leaves(actual, path)

    def same(self, expected: Any, actual: Any) -> bool:
        if isinstance(expected, bool) or isinstance(actual, bool):
            return expected is actual
        if isinstance(expected, str) and isinstance(actual, str):
            return expected == actual or (
                bool(self._steps) and normalize_text(expected, self._steps) == normalize_text(actual, self._steps)
            )
        if _is_number(expected) and _is_number(actual):
            return bool(expected == actual) or _near(expected, actual, rel_tol=self._rel_tol)
        if expected is None or actual is None:
            return expected is actual
        return type(expected) is type(actual) and isinstance(expected, (dict, list))

    def _compare_lists(self, expected: list[tuple[int, Any]], actual: list[tuple[int, Any]], path: _Path) -> None:
        for (place, value), (_, other) in zip(expected, actual, strict=False):
            self.compare(value, other, (*path, place))
        for place, value in expected[len(actual) :]:
            self.missing += _leaves(value, (*path, place))
        for place, value in actual[len(expected) :]:
            self.extra += _leaves(value, (*path, place))

    def _compare_sets(self, expected: Sequence[Any], actual: Sequence[Any], path: _Path) -> None:
        wanted, given = _sorted_scalars(expected, self._steps), _sorted_scalars(actual, self._steps)
        first = second = 0
        lost: list[int] = []
        spare: list[int] = []
        while first < len(wanted) and second < len(given):
            order, place = wanted[first]
            other, other_place = given[second]
            if self.same(expected[place], actual[other_place]):
                self.matched += 1
                first += 1
                second += 1
            elif order < other:
                lost.append(place)
                first += 1
            else:
                spare.append(other_place)
                second += 1
        lost += [place for _, place in wanted[first:]]
        spare += [place for _, place in given[second:]]
        self.missing += [(*path, place) for place in sorted(lost)]
        self.extra += [(*path, place) for place in sorted(spare)]
        self._compare_lists(_containers(expected), _containers(actual), path)


def _sorted_scalars(values: Sequence[Any], steps: tuple[str, ...]) -> list[tuple[tuple[int, Any], int]]:
    scalars = [
        (_order(value, steps), place)
        for place, value in enumerate(values)
        if value is not _GONE and not isinstance(value, (dict, list))
    ]
    return sorted(scalars)


def _order(value: Any, steps: tuple[str, ...]) -> tuple[int, Any]:
    if isinstance(value, str):
        return 2, normalize_text(value, steps)
    if isinstance(value, bool) or value is None:
        return 0, -1 if value is None else int(value)
    return 1, value


def _containers(values: Sequence[Any]) -> list[tuple[int, Any]]:
    return [(place, value) for place, value in enumerate(values) if isinstance(value, (dict, list))]


def _near(expected: Any, actual: Any, *, rel_tol: float) -> bool:
    if not rel_tol:
        return False
    try:
        first, second = float(expected), float(actual)
    except OverflowError:
        return False
    if math.isinf(first) or math.isinf(second):
        return False
    return abs(first - second) <= rel_tol * max(abs(first), abs(second))


def _leaves(value: Any, path: _Path) -> Iterator[_Path]:
    if value is _GONE:
        return
    if _is_leaf(value):
        yield path
    elif isinstance(value, dict):
        for key, entry in value.items():
            yield from _leaves(entry, (*path, key))
    else:
        for place, entry in enumerate(value):
            yield from _leaves(entry, (*path, place))


def _without(value: Any, pointers: Sequence[Sequence[str]], keys: frozenset[str]) -> Any:
    if isinstance(value, dict):
        kept = {}
        for key, entry in value.items():
            rest = _following(pointers, key)
            if key not in keys and () not in rest:
                left = _without(entry, rest, keys)
                if left is not _GONE:
                    kept[key] = left
        # An empty map would be a leaf, so a map of which all is ignored is removed.
        return kept if kept or not value else _GONE
    if isinstance(value, list):
        # An ignored entry of a list keeps its place, so that the other entries keep theirs.
        following = [_following(pointers, str(place)) for place in range(len(value))]
        left = [
            _GONE if () in rest else _without(entry, rest, keys) for entry, rest in zip(value, following, strict=True)
        ]
        return _GONE if left and all(entry is _GONE for entry in left) else left
    return value


def _following(pointers: Sequence[Sequence[str]], step: str) -> list[Sequence[str]]:
    return [rest[1:] for rest in pointers if rest[0] in (step, "*")]


def _steps(place: str) -> tuple[str, ...]:
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in place[1:].split("/"))


def _plain(value: Any, depth: int = 0) -> Any:
    if isinstance(value, (str, bool)) or value is None or (_is_number(value) and _is_finite(value)):
        return value
    if not isinstance(value, (Mapping, list, tuple)):
        found = value if isinstance(value, float) else type(value).__name__
        raise unscorable_sample(f"`expected_output` is JSON here, which cannot hold {found}.")
    if depth == DEEPEST:
        raise invalid_sample(f"`expected_output` is nested more than {DEEPEST} deep.")
    if not isinstance(value, Mapping):
        return [_plain(entry, depth + 1) for entry in value]
    if not all(isinstance(key, str) for key in value):
        raise unscorable_sample("`expected_output` is JSON here, so its keys are text.")
    return {key: _plain(entry, depth + 1) for key, entry in value.items()}


def _is_leaf(value: Any) -> bool:
    return not (value and isinstance(value, (dict, list)))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def _is_finite(value: Any) -> bool:
    # No float holds an integer of 400 digits, and JSON has no limit.
    return isinstance(value, int) or (value.is_finite() if isinstance(value, Decimal) else math.isfinite(value))
