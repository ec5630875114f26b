"""Finds the floats in plain JSON: only they can make the fast encoder differ from the canonical form."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from deemster.records import FrozenDict

SCALARS = frozenset({str, int, bool, type(None)})


def has_exponent(number: float) -> bool:
    """Whether a float is written with an exponent, where the fast encoder and the canonical form differ."""
    return not (number == 0 or 1e-4 <= abs(number) < 1e16)


def plain_floats(value: Any, depth: int) -> list[float] | None:
    """The floats in a value; None where it is not JSON of at most so much depth."""
    floats: list[float] = []
    return floats if _is_plain(value, depth, floats) else None


def _is_plain(value: Any, depth: int, floats: list[float]) -> bool:
    """Whether a value is JSON of at most so much depth; the floats it holds are added to a list."""
    kind = type(value)
    if kind in SCALARS:
        return True
    if kind is float and math.isfinite(value):
        floats.append(value)
        return True

    entries: Iterable[Any]
    if kind is dict or kind is FrozenDict:
        for key in value:
            if type(key) is not str:
                return False
        entries = value.values()
    elif kind is list:
        entries = value
    else:
        return False

    if not depth:
        return False
    for entry in entries:  # noqa: SIM110 - half the time of `all`
        if type(entry) not in SCALARS and not _is_plain(entry, depth - 1, floats):
            return False
    return True
