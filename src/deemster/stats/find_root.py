"""Finds where a function of one number is 0: `scipy.optimize` would take a fifth of a second to load."""

from __future__ import annotations

import math
from collections.abc import Callable


def find_root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a continuous function that changes its sign between two points is 0, to the last digits.

    Reference: T. Chandrupatla, A new hybrid quadratic/bisection algorithm for finding the zero of a nonlinear function
    without using derivatives, Advances in Engineering Software 28 (1997).

    Args:
        function: The function.
        low: A point on one side of the root.
        high: A point on the other side.

    Raises:
        ValueError: The function has the same sign at both points.

    >>> round(find_root(lambda x: x * x - 2, 0.0, 2.0), 12)
    1.414213562373
    """
    # The root lies between the newest point, a, and b; c is the point before.
    a, b, at_a, at_b = high, low, function(high), function(low)
    if at_a * at_b > 0:
        raise ValueError("The function has the same sign at both points.")
    if at_a == 0 or at_b == 0:
        return a if at_a == 0 else b
    share = 0.5
    while True:
        point = a + share * (b - a)
        value = function(point)
        if (value > 0) == (at_a > 0):
            c, at_c = a, at_a
        else:
            c, at_c, b, at_b = b, at_b, a, at_a
        a, at_a = point, value
        best, at_best = (a, at_a) if abs(at_a) < abs(at_b) else (b, at_b)
        least = (4 * math.ulp(1.0) * abs(best) + math.ulp(1.0)) / abs(b - c)
        if at_best == 0 or least > 0.5:
            return best
        place, height = (a - b) / (c - b), (at_a - at_b) / (at_c - at_b)
        share = 0.5
        if height * height < place and (1 - height) ** 2 < 1 - place:
            # Inverse quadratic interpolation is safe here.
            share = at_a / (at_b - at_a) * at_c / (at_b - at_c)
            share += (c - a) / (b - a) * at_a / (at_c - at_a) * at_b / (at_c - at_b)
        share = min(1 - least, max(least, share))
