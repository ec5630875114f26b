"""The draws of a bootstrap: how often each unit is drawn, or which weight it has, in each replicate; seeds."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

BLOCK_BYTES = 64 * 2**20
# Replicates that are counted together and then turned round: their counts stay in the processor's cache.
_STRIP = 64
_DRAWS = 2**15
# A unit is drawn once on average; the chance of 256 draws is below 1e-500.
_SMALL = np.uint8


def drawn_seed(seed: int | None = None) -> int:
    """The seed itself, or a fresh one of 32 bits where none is given, so that every result can tell its seed.

    Raises:
        ValueError: The seed is negative or no whole number.

    >>> drawn_seed(7)
    7
    """
    if seed is None:
        return secrets.randbits(32)
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"A seed is a whole number from 0 on, not {seed!r}.")
    return int(seed)


def resample_blocks(
    units: int, replicates: int, seed: int, *, dtype: DTypeLike = np.float32, block_bytes: int = BLOCK_BYTES
) -> Iterator[NDArray[Any]]:
    """How often each unit is drawn, in blocks [units, replicates] of at most ``block_bytes`` (but at least one column).

    Replicate after replicate takes ``default_rng(seed).integers(0, units, units)`` from one generator. The columns sum
    to ``units``. Counts are small whole numbers, exact in every dtype that holds 255.

    Args:
        units: How many items, or clusters, there are to draw from, and to draw.
        replicates: How many times they are drawn.
        seed: The seed of the generator.
        dtype: The type of the counts.
        block_bytes: The most that one block takes. It changes no count.

    Raises:
        ValueError: There is no unit or no replicate.

    >>> [block.tolist() for block in resample_blocks(4, 3, 0, dtype=np.uint8, block_bytes=8)]
    [[[0, 3], [1, 1], [2, 0], [1, 0]], [[1], [0], [1], [2]]]
    """
    _check(units, replicates)
    rng = np.random.default_rng(seed)
    width = max(1, block_bytes // (units * np.dtype(dtype).itemsize))
    for start in range(0, replicates, width):
        block = np.empty((units, min(width, replicates - start)), dtype=dtype)
        _fill(block, rng)
        yield block


def bayesian_weight_blocks(
    units: int, replicates: int, seed: int, *, dtype: DTypeLike = np.float64, block_bytes: int = BLOCK_BYTES
) -> Iterator[NDArray[Any]]:
    """The weights of the Bayesian bootstrap in blocks ``[units, replicates]``; each column has the mean 1.

    A column is a draw from the flat Dirichlet distribution, times the number of units. So every unit keeps some weight
    in every replicate, and no replicate loses a rare class.

    Reference: D. B. Rubin, The Bayesian bootstrap, Annals of Statistics 9 (1981).

    Args:
        units: How many items, or clusters, there are.
        replicates: How many times weights are drawn.
        seed: The seed of the generator.
        dtype: The type of the weights.
        block_bytes: The most that one block takes. It changes no weight.

    Raises:
        ValueError: There is no unit or no replicate.

    >>> [block.round(2).tolist() for block in bayesian_weight_blocks(3, 2, 0)]
    [[[1.19, 0.0], [1.78, 0.76], [0.03, 2.24]]]
    """
    _check(units, replicates)
    rng = np.random.default_rng(seed)
    width = max(1, block_bytes // (units * np.dtype(dtype).itemsize))
    for start in range(0, replicates, width):
        yield _bayesian_weights(units, min(width, replicates - start), rng, dtype)


def _bayesian_weights(units: int, replicates: int, rng: np.random.Generator, dtype: DTypeLike) -> NDArray[Any]:
    weights = np.empty((units, replicates), dtype=dtype)
    for start in range(0, replicates, _STRIP):
        strip = weights[:, start : start + _STRIP]
        drawn: NDArray[Any] = rng.standard_exponential(strip.shape[::-1], dtype=dtype)  # type: ignore[arg-type]
        strip[:] = (drawn / drawn.mean(axis=1, dtype=np.float64, keepdims=True).astype(dtype)).T
    return weights


def imagined_weights(shapes: NDArray[np.float64], replicates: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """The weights of imagined units in each replicate, ``[units, replicates]``: gamma draws with the given means.

    Beside the weights of real units, whose mean is 1, a gamma draw of shape a is a Dirichlet part of parameter a.

    Args:
        shapes: The parameter of each imagined unit.
        replicates: How many times weights are drawn.
        rng: The generator; each replicate takes its draws in turn.

    >>> imagined_weights(np.array([0.5, 0.25]), 2, np.random.default_rng(0)).shape
    (2, 2)
    """
    return np.ascontiguousarray(rng.standard_gamma(shapes, (replicates, len(shapes))).T)


def _check(units: int, replicates: int) -> None:
    if units < 1 or replicates < 1:
        raise ValueError(f"A bootstrap needs a unit and a replicate; there are {units} and {replicates}.")


def _fill(counts: NDArray[Any], rng: np.random.Generator) -> None:
    units, replicates = counts.shape
    strip = np.empty((min(_STRIP, replicates), units), dtype=_SMALL)
    # One call for several replicates draws the same numbers as one call for each, and is faster for few units.
    together = max(1, min(_STRIP, _DRAWS // units))
    offsets = units * np.arange(together)[:, None]
    for start in range(0, replicates, _STRIP):
        height = min(_STRIP, replicates - start)
        for row in range(0, height, together):
            rows = min(together, height - row)
            drawn = rng.integers(0, units, (rows, units)) + offsets[:rows]
            strip[row : row + rows] = np.bincount(drawn.ravel(), minlength=rows * units).reshape(rows, units)
        counts[:, start : start + height] = strip[:height].T
