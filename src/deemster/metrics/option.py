"""Checks of option values, so that a wrong one is refused before anything runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from deemster.errors import ConfigurationError, did_you_mean, listing


def one_of(value: Any, known: Sequence[str], *, option: str, metric: str) -> str:
    """The value, where it is one of the known words.

    Raises:
        ConfigurationError: It is another word, or no word.
    """
    if isinstance(value, str):
        if value in known:
            return value
        raise ConfigurationError(f"`{option}` of {metric} knows no `{value}`. {did_you_mean(value, known)}")
    raise ConfigurationError(f"`{option}` of {metric} is one of {listing(known)}, not {value!r}.")


def flag(value: Any, *, option: str, metric: str) -> bool:
    """The value, where it is a boolean.

    Raises:
        ConfigurationError: It is something else.
    """
    if isinstance(value, bool):
        return value
    raise ConfigurationError(f"`{option}` of {metric} is true or false, not {value!r}.")


def amount(value: Any, *, option: str, metric: str) -> float:
    """The value as a float, where it is a finite number of at least 0.

    Raises:
        ConfigurationError: It is something else.
    """
    if not is_amount(value):
        raise ConfigurationError(f"`{option}` of {metric} is a number of at least 0, not {value!r}.")
    return float(value)


def is_amount(value: Any) -> bool:
    """Whether a value is a number of at least 0 that a float can hold.

    >>> is_amount(3), is_amount(-1), is_amount(True), is_amount(10**400)
    (True, False, False, False)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return value >= 0 and math.isfinite(value)
    except OverflowError:
        return False
