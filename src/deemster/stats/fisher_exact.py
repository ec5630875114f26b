"""Fisher's exact test of two pass counts, for many samples at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deemster.stats.nan_arithmetic import Floats
from deemster.stats.paired_tests import Alternative

# Tables of nearly the same probability count as equally likely.
_ROUNDING = 1e-12


def fisher_exact(
    passed_before: ArrayLike,
    n_before: ArrayLike,
    passed_after: ArrayLike,
    n_after: ArrayLike,
    *,
    alternative: Alternative = "two-sided",
) -> Floats:
    """P-values of Fisher's exact test that a sample passes as often after as before, one for each sample.

    Given the passes on both sides together, the passes after are hypergeometric. "less" adds the probabilities of as
    few or fewer, "greater" of as many or more, "two-sided" of all counts that are no likelier than the observed one. p
    is 1 where everything passed, nothing did, or one side has no trial.

    Reference: R. A. Fisher, The logic of inductive inference, JRSS 98 (1935).

    Args:
        passed_before: In how many of its trials before each sample passed; one number stands for all samples.
        n_before: How many trials those were.
        passed_after: The same, after.
        n_after: How many trials those were.
        alternative: "two-sided", or that a sample passes "less" or more ("greater") often after than before.

    Raises:
        ValueError: A count is negative or no whole number, there are more passes than trials, the arrays do not fit to
            each other, or the alternative is unknown.

    >>> fisher_exact([5, 3], 5, [0, 3], 5).round(4)
    array([0.0079, 1.    ])
    """
    if alternative not in ("two-sided", "less", "greater"):
        raise ValueError(f'The alternative is "two-sided", "less" or "greater", not {alternative!r}.')
    columns = [np.atleast_1d(np.asarray(part)) for part in (passed_before, n_before, passed_after, n_after)]
    table = np.column_stack(np.broadcast_arrays(*columns))
    if not len(table):
        return np.zeros(0)
    counts = whole_counts(table)
    if (counts[:, 0] > counts[:, 1]).any() or (counts[:, 2] > counts[:, 3]).any():
        raise ValueError("No sample passes more often than it was tried.")
    # Few tables are distinct, however many samples there are.
    kinds, places = np.unique(counts, axis=0, return_inverse=True)
    p_values = np.array([_p_value(*row, alternative=alternative) for row in kinds.tolist()])
    return p_values[places.ravel()]


def whole_counts(values: ArrayLike) -> NDArray[np.int64]:
    """Counts as whole numbers.

    Raises:
        ValueError: One is negative or no whole number.
    """
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all() or (array < 0).any() or (array != np.rint(array)).any():
        raise ValueError("Passes and trials are counted in whole numbers from 0 on.")
    return array.astype(np.int64)


def log_choose(n: ArrayLike, k: ArrayLike) -> Floats:
    """The logarithm of how many choices of k out of n there are."""
    from scipy.special import betaln  # noqa: PLC0415 - scipy takes a tenth of a second to load

    top, chosen = np.asarray(n, dtype=np.float64), np.asarray(k, dtype=np.float64)
    return np.asarray(-betaln(top - chosen + 1, chosen + 1) - np.log1p(top), dtype=np.float64)


def _p_value(before: int, n_before: int, after: int, n_after: int, *, alternative: Alternative) -> float:
    passed = before + after
    possible = np.arange(max(0, passed - n_before), min(passed, n_after) + 1)
    logs = log_choose(n_after, possible) + log_choose(n_before, passed - possible)
    chances = np.exp(logs - logs.max())
    own = chances[after - possible[0]]
    if alternative == "two-sided":
        extreme = chances <= own * (1 + _ROUNDING)
    else:
        extreme = possible <= after if alternative == "less" else possible >= after
    return min(1.0, float(chances[extreme].sum() / chances.sum()))
