"""Numbers in text for people: decimals, percentages, p-values, counts of criteria."""

from __future__ import annotations


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


def format_p_value(value: float) -> str:
    """A p value with four decimals, never as a bare zero.

    >>> format_p_value(0.0133), format_p_value(1e-9)
    ('p = 0.0133', 'p < 0.0001')
    """
    return "p < 0.0001" if value < 0.0001 else f"p = {format_number(value)}"


def count_criteria(count: int) -> str:
    """A number of criteria in words.

    >>> count_criteria(1), count_criteria(3)
    ('1 criterion', '3 criteria')
    """
    return "1 criterion" if count == 1 else f"{count:,} criteria"
