"""Checks the values of options of metrics and judges, before anything runs."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

from deemster.errors import ConfigurationError, did_you_mean, list_names, show_value

# The largest number after `@` in a spec. It fits into an integer of 64 bits.
LARGEST = 10**18 - 1


def check_choice(value: Any, known: Sequence[str], *, option: str, metric: str) -> str:
    """The value, where it is one of the known words.

    Raises:
        ConfigurationError: It is another word, or no word.
    """
    if isinstance(value, str):
        if value in known:
            return value
        raise ConfigurationError(f"`{option}` of {metric} knows no `{value}`. {did_you_mean(value, known)}")
    raise ConfigurationError(f"`{option}` of {metric} is one of {list_names(known)}, not {show_value(value)}.")


def check_flag(value: Any, *, option: str, metric: str) -> bool:
    """The value, where it is a boolean.

    Raises:
        ConfigurationError: It is something else.
    """
    if isinstance(value, bool):
        return value
    raise ConfigurationError(f"`{option}` of {metric} is true or false, not {show_value(value)}.")


def check_whole_number(value: Any, *, least: int, most: int | None = None, option: str, metric: str) -> int:
    """The value, where it is a whole number within the limits.

    Raises:
        ConfigurationError: It is smaller, larger, or no whole number.
    """
    if type(value) is int and least <= value <= (LARGEST if most is None else most):
        return value
    limits = f"of at least {least}" if most is None else f"from {least} to {most}"
    if most is None and type(value) is int and value > LARGEST:
        limits += f" and at most {LARGEST}"
    raise ConfigurationError(f"`{option}` of {metric} is a whole number {limits}, not {show_value(value)}.")


def check_positive(value: Any, *, option: str, metric: str) -> float:
    """The value as a float, where it is a finite number above 0.

    Raises:
        ConfigurationError: It is 0, negative, infinite, or no number.
    """
    if type(value) in (int, float) and 0 < value <= sys.float_info.max:
        return float(value)
    raise ConfigurationError(f"`{option}` of {metric} is a number above 0, not {show_value(value)}.")


def check_amount(value: Any, *, option: str, metric: str) -> float:
    """The value as a float, where it is a finite number of at least 0.

    Raises:
        ConfigurationError: It is something else.
    """
    if not is_amount(value):
        raise ConfigurationError(f"`{option}` of {metric} is a number of at least 0, not {show_value(value)}.")
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
