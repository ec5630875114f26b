"""pass@k and pass^k: the chance that at least one of k attempts succeeds, and that all do."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from deemster.stats.confidence_interval import ConfidenceInterval
from deemster.stats.means import student
from deemster.stats.nan_arithmetic import Floats


class PassAtK(msgspec.Struct, frozen=True, kw_only=True):
    """The chance that at least one of `k` attempts succeeds, or that all do, averaged over `n` tasks."""

    value: float | None
    n: int
    k: int
    interval: ConfidenceInterval | None


def pass_at_k(correct: ArrayLike, *, attempts: ArrayLike, k: int, confidence: float = 0.95) -> PassAtK:
    """The unbiased estimate of the chance that at least one of k attempts succeeds.

    For one task with c of n attempts correct: 1 - C(n-c, k)/C(n, k); for several the mean, with a t interval over tasks
    cut to [0, 1]. 0 where nothing succeeded, 1 where fewer than k attempts failed. Undefined: the value without tasks,
    the interval below two tasks or without spread.

    Reference: M. Chen et al., Evaluating large language models trained on code, arXiv:2107.03374 (2021).

    Args:
        correct: How many attempts succeeded, for one task or for each of several.
        attempts: How many there were, for all tasks or for each.
        k: How many attempts count together.
        confidence: The level of the interval.

    Raises:
        ValueError: A count is negative or no whole number, more attempts succeeded than there were, a task has fewer
            than k attempts, or the level is not in (0, 1).

    >>> round(pass_at_k(3, attempts=10, k=2).value, 4)
    0.5333
    """
    right, every = _counted(correct, attempts, k)
    return _averaged(1 - chances_of_all(every - right, every, k), k=k, confidence=confidence)


def pass_hat_k(correct: ArrayLike, *, attempts: ArrayLike, k: int, confidence: float = 0.95) -> PassAtK:
    """pass^k, the unbiased estimate of the chance that all of k attempts succeed: how reliable something is.

    For one task with c of n attempts correct: C(c, k)/C(n, k); for several the mean, with an interval as that of
    ``pass_at_k``. 0 where fewer than k attempts succeeded. Undefined: the value without tasks, the interval below two
    tasks or without spread.

    Reference: S. Yao et al., τ-bench: a benchmark for tool-agent-user interaction in real-world domains,
    arXiv:2406.12045 (2024).

    Args:
        correct: How many attempts succeeded, for one task or for each of several.
        attempts: How many there were, for all tasks or for each.
        k: How many attempts count together.
        confidence: The level of the interval.

    Raises:
        ValueError: A count is negative or no whole number, more attempts succeeded than there were, a task has fewer
            than k attempts, or the level is not in (0, 1).

    >>> round(pass_hat_k(3, attempts=10, k=2).value, 4)
    0.0667
    """
    right, every = _counted(correct, attempts, k)
    return _averaged(chances_of_all(right, every, k), k=k, confidence=confidence)


def chances_of_all(chosen: NDArray[np.int64], every: ArrayLike, k: int) -> Floats:
    """The chance that k attempts, drawn without putting back, are all among the chosen ones: C(chosen, k)/C(every, k).

    Args:
        chosen: How many attempts of each task are chosen.
        every: How many there are.
        k: How many are drawn.

    >>> chances_of_all(np.array([1, 3, 5]), 5, 3)
    array([0. , 0.1, 1. ])
    """
    chances = np.ones(len(chosen))
    for drawn in range(k):
        # A factor of 0 ends it.
        chances *= np.maximum(chosen - drawn, 0.0) / (np.asarray(every) - drawn)
    return chances


def _counted(correct: ArrayLike, attempts: ArrayLike, k: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many attempts of each task succeeded, and how many there were; checked."""
    right, every = (np.atleast_1d(counts) for counts in (correct, attempts))
    for name, counts in (("correct", right), ("attempts", every)):
        if counts.size and (counts.dtype.kind not in "iuf" or not np.array_equal(counts, np.floor(counts))):
            raise ValueError(f"Attempts are counted in whole numbers; {name} holds others.")
    if every.size not in (1, right.size) and right.size != 1:
        raise ValueError(f"Each task has its attempts; there are {right.size} tasks and {every.size} attempts.")
    right, every = np.broadcast_arrays(right, every)
    if k < 1 or k != int(k):
        raise ValueError(f"A whole number of attempts counts, at least one, not k = {k!r}.")
    if (right < 0).any() or (right > every).any():
        raise ValueError("Between none and all attempts of a task are correct.")
    if (every < k).any():
        raise ValueError(f"pass@{k} needs {k} attempts for each task; one has {int(every.min())}.")
    return right.astype(np.int64), every.astype(np.int64)


def _averaged(chances: Floats, *, k: int, confidence: float) -> PassAtK:
    mean = student(chances, confidence=confidence)
    interval = mean.interval and ConfidenceInterval(
        max(0.0, mean.interval.lower), min(1.0, mean.interval.upper), confidence, method="student"
    )
    return PassAtK(value=mean.value, n=chances.size, k=k, interval=interval)
