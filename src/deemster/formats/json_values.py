"""JSON values in messages and in memory: what is wrong with them, what they are called, how files have them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from deemster.formats.canonical_json import SCALARS
from deemster.formats.document import DEPTH

ROW_DEPTH = DEPTH - 2
SURROGATE = re.compile("[\ud800-\udfff]")
Path = tuple[str | int, ...]


def value_issues(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """What in a value is not JSON, each with the path to it."""
    shown = pointer(path)
    if isinstance(value, (dict, list)) and len(path) >= ROW_DEPTH:
        yield path, f"{pointer(path[:3])}...: nesting goes deeper than {DEPTH}."
    elif isinstance(value, dict):
        for key, entry in value.items():
            if isinstance(key, str) and not SURROGATE.search(key):
                yield from value_issues(entry, (*path, key))
            else:
                yield path, f"{shown} has the key {key!r}; keys are text."
    elif isinstance(value, list):
        for index, entry in enumerate(value):
            yield from value_issues(entry, (*path, index))
    elif isinstance(value, str):
        if SURROGATE.search(value):
            yield path, f"{shown} holds a lone surrogate, which is no character."
    elif isinstance(value, float) and not math.isfinite(value):
        yield path, f"{shown} is {value}, which is not a finite number."
    elif type(value) is not float and type(value) not in SCALARS:
        yield path, f"{shown} is {kind_of(value)}, which is not a JSON value."


def pointer(path: Path) -> str:
    """A path as people write it.

    >>> pointer(("input", "docs", 0))
    'input.docs[0]'
    """
    first, *rest = path
    return str(first) + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in rest)


def kind_of(value: Any) -> str:
    """What a value is called in a message.

    >>> kind_of([]), kind_of(None), kind_of(7)
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


def thawed(value: Any) -> Any:
    """A value with every mapping as a dict and every tuple as a list, as files have them."""
    if type(value) in SCALARS:
        return value
    if isinstance(value, dict) or isinstance(value, Mapping):  # noqa: SIM101 - the first is quick, the second is not
        return {key: entry if type(entry) in SCALARS else thawed(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [entry if type(entry) in SCALARS else thawed(entry) for entry in value]
    return value
