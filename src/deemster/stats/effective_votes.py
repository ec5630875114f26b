"""How many independent votes a panel is worth, from the correlations of its members' errors."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from deemster.stats.nan_arithmetic import DUST, Floats, quotient


def effective_votes(correlations: ArrayLike, weights: ArrayLike) -> Floats:
    """The number of independent votes whose mean would err as little as that of the panel (Kish).

    n_eff = (Σw)²/Σᵢⱼ wᵢwⱼρᵢⱼ with ρ the correlations of the errors: as many as there are votes where errors are
    independent and weights alike, one where all err together, and more than there are votes where errors cancel out.
    NaN where a correlation is, and where the sum is not above 0.

    Reference: L. Kish, Survey Sampling (1965).

    Args:
        correlations: The correlations, ``[voters, voters, ...]``.
        weights: What each vote counts.

    >>> effective_votes([[1, 0.5, 0.5], [0.5, 1, 0.5], [0.5, 0.5, 1]], [1, 1, 1]).tolist()
    1.5
    """
    w = np.asarray(weights, dtype=np.float64)
    shared = np.einsum("i,j,ij...->...", w, w, np.asarray(correlations, dtype=np.float64))
    return quotient(w.sum() ** 2, np.where(shared <= DUST, 0.0, shared))


def error_correlations(products: ArrayLike) -> Floats:
    """The correlations of errors from sums of products of centred errors, ``[voters, voters, ...]``.

    NaN for voters whose errors are all alike: nobody knows with whom they would err.

    Args:
        products: The sums.

    >>> error_correlations([[4, 1, 0], [1, 1, 0], [0, 0, 0]])[:, :2].tolist()
    [[1.0, 0.5], [0.5, 1.0], [nan, nan]]
    """
    sums = np.asarray(products, dtype=np.float64)
    spread = np.sqrt(np.einsum("ii...->i...", sums).clip(0))
    return quotient(sums, spread[:, None] * spread[None, :])
