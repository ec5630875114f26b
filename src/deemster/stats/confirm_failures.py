"""Tests whether samples that newly fail really fail more often than before, or are only flaky."""

from __future__ import annotations

from bisect import bisect_left
from math import comb

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from deemster.stats.fisher_exact import whole_counts
from deemster.stats.multiple_testing import holm

# More reruns of one sample are out of the question.
_MOST_RERUNS = 1000


class ConfirmedFailures(msgspec.Struct, frozen=True, kw_only=True):
    """Which of `n` newly failing samples are confirmed, in the order given.

    Attributes:
        p_values: The exact p-value of each sample.
        adjusted: The same after Holm's correction over all of them.
        confirmed: Whether each sample is confirmed; a sample that is not counts as flaky.
        possible: Whether so many reruns could have confirmed the sample, had all of them failed.
        n: How many samples were tested.
        level: The chance of any false confirmation that is accepted.
    """

    p_values: tuple[float, ...]
    adjusted: tuple[float, ...]
    confirmed: tuple[bool, ...]
    possible: tuple[bool, ...]
    n: int
    level: float


def confirm_failures(
    rerun_passed: ArrayLike,
    rerun_n: ArrayLike,
    *,
    earlier_passed: ArrayLike = 0,
    earlier_n: ArrayLike = 0,
    baseline_passed: ArrayLike = 0,
    baseline_n: ArrayLike = 0,
    needed: ArrayLike = 0,
    level: float = 0.05,
) -> ConfirmedFailures:
    """Test of each newly failing sample whether it fails more often than its own history allows, Holm over all.

    The mark of the candidate that made a sample newly failing is no evidence, because it was selected for failing; only
    the reruns count. Given all passes in history and reruns, those of the reruns are hypergeometric, as in Fisher's
    exact test: p is the chance of so few. The passes of the baseline were selected as well (at least ``needed`` of
    them, otherwise the sample would not be *newly* failing), so only tables with at least so many count.

    So a baseline of a single run is no history: its one pass had to be there, and p is 1. A sample that mostly fails
    and passed once by luck looks the same. Two repetitions, or earlier runs, are a history. p is 1 without reruns.

    References: R. A. Fisher, JRSS 98 (1935); W. Fithian, D. Sun, J. Taylor, Optimal inference after model selection,
    arXiv:1410.2597 (2014).

    Args:
        rerun_passed: In how many reruns each sample passed; one number stands for all samples.
        rerun_n: How many reruns there were. They may end early once the sample cannot be confirmed any more.
        earlier_passed: In how many marks of runs before the baseline the sample passed.
        earlier_n: How many marks those were.
        baseline_passed: In how many repetitions of the baseline the sample passed.
        baseline_n: How many repetitions those were.
        needed: With how few passes of those the baseline would still have counted as passing.
        level: The chance of any false confirmation that is accepted.

    Raises:
        ValueError: A count is negative or no whole number, there are more passes than trials, fewer passes of the
            baseline than needed, the arrays do not fit to each other, or the level is outside (0, 1).

    >>> result = confirm_failures([0, 2], 6, earlier_passed=3, earlier_n=3)
    >>> result.confirmed, [round(p, 3) for p in result.adjusted]
    ((True, False), [0.024, 0.119])
    """
    table = _table(rerun_passed, rerun_n, earlier_passed, earlier_n, baseline_passed, baseline_n, needed)
    none = table.copy()
    none[:, 0] = 0
    p_values = tuple(map(_p_value, table.tolist()))
    correction = holm(p_values, level=level)
    return ConfirmedFailures(
        p_values=p_values,
        adjusted=tuple(p for p in correction.adjusted if p is not None),
        confirmed=correction.rejected,
        possible=tuple(_p_value(row) * len(table) <= level for row in none.tolist()),
        n=len(table),
        level=level,
    )


def reruns_to_confirm(
    flipped: int,
    *,
    earlier_passed: int = 0,
    earlier_n: int = 0,
    baseline_passed: int = 0,
    baseline_n: int = 0,
    needed: int = 0,
    level: float = 0.05,
) -> int | None:
    """How many reruns confirm a sample of this history that fails all of them, so many samples being tested.

    Undefined (None) where no number up to 1,000 does: without a history, above all.

    Args:
        flipped: How many samples are tested.
        earlier_passed: As in ``confirm_failures``.
        earlier_n: As in ``confirm_failures``.
        baseline_passed: As in ``confirm_failures``.
        baseline_n: As in ``confirm_failures``.
        needed: As in ``confirm_failures``.
        level: The chance of any false confirmation that is accepted.

    Raises:
        ValueError: There is no sample, the level is outside (0, 1), or a count is impossible.

    >>> [reruns_to_confirm(1, earlier_passed=runs, earlier_n=runs) for runs in (0, 1, 2, 5)]
    [None, 19, 5, 2]
    """
    if flipped < 1 or not 0 < level < 1:
        raise ValueError("There is at least one sample, and the level lies strictly between 0 and 1.")
    history = _table(0, 0, earlier_passed, earlier_n, baseline_passed, baseline_n, needed)[0].tolist()[2:]
    # More reruns without a pass are never weaker evidence.
    found = bisect_left(range(_MOST_RERUNS + 1), True, key=lambda n: _p_value([0, n, *history]) * flipped <= level)
    return found if found <= _MOST_RERUNS else None


def _table(*parts: ArrayLike) -> NDArray[np.int64]:
    """The counts of each sample in a row, checked."""
    columns = np.broadcast_arrays(*(np.atleast_1d(np.asarray(part)) for part in parts))
    table = whole_counts(np.column_stack(columns))
    for passed, trials in ((0, 1), (2, 3), (4, 5)):
        if (table[:, passed] > table[:, trials]).any():
            raise ValueError("No sample passes more often than it was tried.")
    if (table[:, 4] < table[:, 6]).any():
        raise ValueError("A newly failing sample passed the baseline: it has the passes that this needs.")
    return table


def _p_value(counts: list[int]) -> float:
    passed, reruns, earlier, earlier_n, baseline, baseline_n, needed = counts
    if not reruns:
        return 1.0
    total = passed + earlier + baseline
    # Whole numbers: a p-value of exactly the level must not miss it by its last digit.
    ways = [
        comb(reruns, now)
        * sum(
            comb(baseline_n, then) * comb(earlier_n, total - now - then)
            for then in range(needed, min(baseline_n, total - now) + 1)
        )
        for now in range(min(reruns, total) + 1)
    ]
    return sum(ways[: passed + 1]) / sum(ways)
