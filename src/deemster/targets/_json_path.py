"""Parses paths into JSON, such as `choices.0.message.content`, and looks values up by them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from deemster.formats.json_values import name_kind

# A path as users give it.
GivenPath: TypeAlias = str | Sequence[str | int]

WHOLE = "$"
_INDEX = re.compile(r"-?(?:0|[1-9][0-9]{0,8})")


def parse_path(path: GivenPath) -> list[str | int]:
    """The steps of a path; a number is a place in a list, from 0, or from the end below 0.

    Args:
        path: Keys and numbers separated by dots, `$` for the complete value; or a list of them, where keys hold dots.

    Raises:
        ValueError: It is no path.

    >>> parse_path("choices.0.message.content"), parse_path("$"), parse_path(["a.b", -1])
    (['choices', 0, 'message', 'content'], [], ['a.b', -1])
    """
    if not isinstance(path, str):
        if isinstance(path, (list, tuple)) and path and all(type(step) in (str, int) for step in path):
            return list(path)
        raise ValueError(f"a path is text such as `choices.0.message.content`, not {name_kind(path)}.")
    if path == WHOLE:
        return []
    steps = path.removeprefix("$.").split(".")
    if not all(step.strip() == step != "" for step in steps):
        raise ValueError("a path is keys and numbers separated by dots, such as `choices.0.message.content`.")
    return [int(step) if _INDEX.fullmatch(step) else step for step in steps]


def value_at(value: Any, steps: Sequence[str | int]) -> Any:
    """What stands at a path.

    Raises:
        LookupError: Nothing does.

    >>> value_at({"choices": [{"text": "Paris"}]}, ["choices", -1, "text"])
    'Paris'
    """
    for step in steps:
        if isinstance(value, Mapping):
            value = value[str(step)]
        elif isinstance(value, (list, tuple)) and isinstance(step, int):
            value = value[step]
        else:
            raise LookupError(step)  # noqa: TRY004 - the reply is wrong, not the call
    return value
