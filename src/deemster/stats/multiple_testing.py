"""Corrections of p-values for multiple testing: Holm, Benjamini-Hochberg, Benjamini-Yekutieli."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray


class Adjusted(msgspec.Struct, frozen=True, kw_only=True):
    """Adjusted p-values, in the order of the raw ones.

    Attributes:
        adjusted: The p-values to hold against `level`; None where the raw one is undefined.
        rejected: Which hypotheses are rejected at `level`.
        n: How many hypotheses the family has; undefined p-values are not in it.
        level: The rate of errors that is kept.
        method: The correction.
    """

    adjusted: tuple[float | None, ...]
    rejected: tuple[bool, ...]
    n: int
    level: float
    method: str


def holm(p_values: Sequence[float | None], *, level: float = 0.05) -> Adjusted:
    """Holm's step-down correction: the chance of any false rejection is at most ``level``, with any dependence.

    For sorted p: the running maximum of min(1, (m - i + 1)·p_(i)). A single p-value stays as it is. Undefined
    p-values (None or NaN) are None in what comes out, and do not count.

    Reference: S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6
    (1979).

    Raises:
        ValueError: A p-value is outside [0, 1], or the level outside (0, 1).

    >>> [round(p, 9) for p in holm([0.01, 0.04, 0.03]).adjusted]
    [0.03, 0.06, 0.06]
    """
    return _adjust(p_values, level, "holm", lambda p: np.maximum.accumulate(p * np.arange(p.size, 0, -1)))


def benjamini_hochberg(p_values: Sequence[float | None], *, level: float = 0.05) -> Adjusted:
    """Benjamini and Hochberg's step-up correction: of the rejections, at most a share ``level`` is false on average.

    For sorted p: the running minimum from the end of m·p_(i)/i. It holds for independent or positively dependent tests.
    Undefined p-values (None or NaN) are None in what comes out, and do not count.

    Reference: Y. Benjamini, Y. Hochberg, Controlling the false discovery rate, JRSS B 57 (1995).

    Raises:
        ValueError: A p-value is outside [0, 1], or the level outside (0, 1).

    >>> [round(p, 9) for p in benjamini_hochberg([0.01, 0.04, 0.03]).adjusted]
    [0.03, 0.04, 0.04]
    """
    return _adjust(p_values, level, "benjamini-hochberg", _step_up)


def benjamini_yekutieli(p_values: Sequence[float | None], *, level: float = 0.05) -> Adjusted:
    """Benjamini and Yekutieli's correction: as Benjamini and Hochberg's, but for any dependence.

    The adjusted values are those of ``benjamini_hochberg`` times 1 + 1/2 + ... + 1/m, at most 1. Undefined
    p-values (None or NaN) are None in what comes out, and do not count.

    Reference: Y. Benjamini, D. Yekutieli, The control of the false discovery rate in multiple testing under dependency,
    Annals of Statistics 29 (2001).

    Raises:
        ValueError: A p-value is outside [0, 1], or the level outside (0, 1).

    >>> [round(p, 6) for p in benjamini_yekutieli([0.01, 0.04, 0.03]).adjusted]
    [0.055, 0.073333, 0.073333]
    """
    return _adjust(p_values, level, "benjamini-yekutieli", lambda p: _step_up(p) * (1 / np.arange(1, p.size + 1)).sum())


def _step_up(ascending: NDArray[np.float64]) -> NDArray[np.float64]:
    scaled = ascending * ascending.size / np.arange(1, ascending.size + 1)
    return np.minimum.accumulate(scaled[::-1])[::-1]


def _adjust(
    p_values: Sequence[float | None],
    level: float,
    method: str,
    step: Callable[[NDArray[np.float64]], NDArray[np.float64]],
) -> Adjusted:
    if not 0 < level < 1:
        raise ValueError(f"A level lies strictly between 0 and 1, not {level!r}.")
    places = [place for place, p in enumerate(p_values) if p is not None and not math.isnan(p)]
    raw = np.array([p_values[place] for place in places], dtype=np.float64)
    for place, p in zip(places, raw.tolist(), strict=True):
        if not 0 <= p <= 1:
            raise ValueError(f"A p-value lies in [0, 1]; place {place} holds {p}.")
    order = np.argsort(raw, kind="stable")
    values = np.empty(raw.size)
    values[order] = np.minimum(1.0, step(raw[order]))
    adjusted: list[float | None] = [None] * len(p_values)
    for place, value in zip(places, values.tolist(), strict=True):
        adjusted[place] = value
    return Adjusted(
        adjusted=tuple(adjusted),
        rejected=tuple(value is not None and value <= level for value in adjusted),
        n=len(places),
        level=level,
        method=method,
    )
