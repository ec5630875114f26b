"""Arguments that every call of alignment takes, checked before anything is read."""

from __future__ import annotations

import operator
from typing import NamedTuple

from deemster.errors import InputError
from deemster.stats.intervals import checked_level
from deemster.stats.resampling import drawn_seed


class Draws(NamedTuple):
    """How replicates are drawn, and what they say.

    Attributes:
        replicates: How many.
        confidence: The level of intervals.
        seed: Of the draws.
    """

    replicates: int
    confidence: float
    seed: int


def checked_draws(*, n_bootstrap: int, confidence_level: float, seed: int | None) -> Draws:
    """The draws that arguments ask for; a seed is drawn where none is given.

    Raises:
        InputError: One of them is not as described.

    >>> checked_draws(n_bootstrap=1000, confidence_level=0.95, seed=7)
    Draws(replicates=1000, confidence=0.95, seed=7)
    """
    replicates = _whole(n_bootstrap)
    if replicates is None or replicates < 1:
        raise InputError(f"`n_bootstrap` is a whole number from 1 on, not {n_bootstrap!r:.60}.")
    try:
        confidence = checked_level(confidence_level)
    except (ValueError, TypeError):
        message = f"`confidence_level` lies strictly between 0 and 1, not {confidence_level!r:.60}."
        raise InputError(message) from None
    given = None if seed is None else _whole(seed)
    if seed is not None and (given is None or given < 0):
        raise InputError(f"`seed` is a whole number from 0 on, not {seed!r:.60}.")
    return Draws(replicates, confidence, drawn_seed(given))


def _whole(value: object) -> int | None:
    """A whole number of any type; None for everything else, True and False included."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None
