"""Checks and names JSON values: what is no JSON, how messages call a value and a path."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from numbers import Real
from typing import Any

import msgspec

from deemster.formats.document import DEPTH
from deemster.formats.plain_floats import SCALARS

ROW_DEPTH = DEPTH - 2
SURROGATE = re.compile("[\ud800-\udfff]")
Path = tuple[str | int, ...]


# A value as JSON: a map of any kind is a map, and what JSON does not have is its text.
json_bytes = msgspec.json.Encoder(
    enc_hook=lambda value: dict(value) if isinstance(value, Mapping) else str(value)
).encode


def is_json_key(key: Any) -> bool:
    """Whether a value can be the key of a JSON map."""
    return isinstance(key, str) and not SURROGATE.search(key)


def value_issues(
    value: Any,
    path: Path,
    *,
    depth: int = ROW_DEPTH,
    shown: Callable[[Path], str] | None = None,
    surrogates: bool = False,
) -> Iterator[tuple[Path, str]]:
    """What in a value is not JSON, each with the path to it.

    Args:
        value: Anything.
        path: Where it stands.
        depth: How deep maps and lists may nest.
        shown: How messages name a path.
        surrogates: Whether text may hold lone surrogates.
    """

    def name(at: Path = path) -> str:
        return (shown or pointer)(at) or "The value"

    if isinstance(value, (dict, list)) and len(path) >= depth:
        yield path, f"{name(path[: len(path) - depth + 5])}...: nesting goes deeper than {DEPTH}."
    elif isinstance(value, dict):
        for key, entry in value.items():
            if is_json_key(key):
                yield from value_issues(entry, (*path, key), depth=depth, shown=shown, surrogates=surrogates)
            else:
                yield path, f"{name()} has the key {key!r}; keys are text."
    elif isinstance(value, list):
        for index, entry in enumerate(value):
            yield from value_issues(entry, (*path, index), depth=depth, shown=shown, surrogates=surrogates)
    elif type(value) is str:
        if not surrogates and SURROGATE.search(value):
            yield path, f"{name()} holds a lone surrogate, which is no character."
    elif type(value) is float and not math.isfinite(value):
        yield path, f"{name()} is {value}, which is not a finite number."
    elif type(value) is not float and type(value) not in SCALARS:
        yield path, f"{name()} is {name_kind(value)}, which is not a JSON value."


def pointer(path: Path) -> str:
    """A path as people write it.

    >>> pointer(("input", "docs", 0))
    'input.docs[0]'
    """
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def name_kind(value: Any) -> str:
    """What a value is called in a message.

    >>> name_kind([]), name_kind(None), name_kind(7)
    ('a list', 'null', 'a number')
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    for types, name in (((int, float), "a number"), (str, "text"), ((list, tuple), "a list"), (Mapping, "a map")):
        if isinstance(value, types):
            return name
    return f"a {type(value).__name__}"


def is_number(value: Any) -> bool:
    """Whether a value is a number that a float can hold; booleans are none."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def to_json_value(value: Any) -> Any:
    """A value with every mapping as a dict and every tuple as a list, as files have them."""
    if type(value) in SCALARS:
        return value
    if isinstance(value, dict) or isinstance(value, Mapping):  # noqa: SIM101 - the first is quick, the second is not
        return {key: entry if type(entry) in SCALARS else to_json_value(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [entry if type(entry) in SCALARS else to_json_value(entry) for entry in value]
    return value
