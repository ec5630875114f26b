"""Numbers in text for people: decimals, percentages, differences, intervals, p-values, counts of criteria."""

from __future__ import annotations

import math


def supported_places(interval: tuple[float, float] | None) -> int:
    """How many decimals a number in [0, 1] deserves: its last digit is as coarse as half of its interval, two at least.

    >>> supported_places((0.32, 0.81)), supported_places((0.811, 0.823)), supported_places((0.5, 0.5))
    (2, 3, 4)
    """
    if interval is None:
        return 2
    reach = (interval[1] - interval[0]) / 2
    return min(4, max(2, math.ceil(-math.log10(reach)))) if reach > 0 else 4


def format_number(value: float | None, *, places: int = 4) -> str:
    """A number with so many decimals, or `n/a`.

    >>> format_number(0.5), format_number(None), format_number(-0.00001)
    ('0.5000', 'n/a', '0.0000')
    """
    if value is None:
        return "n/a"
    text = f"{value:.{places}f}"
    return text.removeprefix("-") if not text.strip("-0.") else text


def format_percent(value: float | None) -> str:
    """A share as a percentage, or `n/a`.

    >>> format_percent(0.8182), format_percent(None)
    ('81.8 %', 'n/a')
    """
    return "n/a" if value is None else f"{format_number(value * 100, places=1)} %"


def format_change(value: float | None, *, places: int = 4) -> str:
    """A difference with its sign and so many decimals, or `n/a` where it is undefined.

    >>> format_change(0.25), format_change(-0.00004), format_change(0.0, places=2)
    ('+0.2500', '-0.0000', '0.00')
    """
    if value is None:
        return "n/a"
    return f"{value:{'+' if value else ''}.{places}f}"


def format_interval(interval: tuple[float, float] | None, *, places: int = 4) -> str:
    """An interval as its two ends, or `n/a`."""
    return "n/a" if interval is None else f"{interval[0]:.{places}f} - {interval[1]:.{places}f}"


def format_change_interval(interval: tuple[float, float] | None, *, places: int = 4) -> str:
    """The interval of a difference, so that two negative ends can be read, or `n/a`.

    >>> format_change_interval((-0.0046, -0.0035))
    '-0.0046 to -0.0035'
    """
    return "n/a" if interval is None else " to ".join(format_change(end, places=places) for end in interval)


def format_p_value(value: float | None) -> str:
    """A p-value with four decimals, never as a bare zero, or `n/a`.

    >>> format_p_value(0.03), format_p_value(0.00001)
    ('0.0300', '<0.0001')
    """
    return "n/a" if value is None else "<0.0001" if value < 0.0001 else f"{value:.4f}"


def state_p_value(value: float) -> str:
    """A p-value in a sentence.

    >>> state_p_value(0.0133), state_p_value(1e-9)
    ('p = 0.0133', 'p < 0.0001')
    """
    return "p < 0.0001" if value < 0.0001 else f"p = {format_number(value)}"


def count_criteria(count: int) -> str:
    """A number of criteria in words.

    >>> count_criteria(1), count_criteria(3)
    ('1 criterion', '3 criteria')
    """
    return "1 criterion" if count == 1 else f"{count:,} criteria"
