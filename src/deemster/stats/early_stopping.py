"""Stops a comparison early: anytime-valid evidence about a margin, by betting on bounded differences."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from deemster.stats._number_arrays import finite_vector
from deemster.stats.confidence_interval import ConfidenceInterval, check_confidence
from deemster.stats.nan_arithmetic import Floats
from deemster.stats.paired_difference import check_margin

Settled: TypeAlias = Literal["pass", "fail"]

# The shares of the capital that are staked on each sample, all at once. The last one stakes everything.
STAKES: Floats = np.geomspace(0.01, 1.0, 14)
# The largest logarithm whose exponential is a float.
_CERTAIN = 700.0
# What a bettor wins against a null that a unit contradicts.
_SURE_GAIN = 1e200


class MarginEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """What the samples so far say about a margin, however often somebody looked.

    Attributes:
        n: How many units were seen.
        settled: Whether the drop is settled to be within the margin ("pass") or beyond it ("fail"); None for neither.
        at: After how many units it was settled; None where it is not.
        p_within: Against a drop of the margin or more, valid at every look: 1 over the largest capital so far.
        p_beyond: Against a drop of at most the margin, in the same way.
    """

    n: int
    settled: Settled | None
    at: int | None
    p_within: float
    p_beyond: float


class EarlyStopping:
    """Watches the differences of a comparison, and says when the question of a margin is settled.

    Against "the drop is m or more" stands a bettor. With capital 1 it stakes a share ρ on each unit, which multiplies
    the capital by 1 - ρ + ρ(1 + x)/(1 - m) for a difference x. If the drop is m or more, the capital does not grow on
    average, so by Ville's inequality it ever passes 1/α with probability α at most. The capital is the mean over 14
    shares ρ from 0.01 to 1. A second bettor stands against "the drop is at most m". Both may be asked after every unit.
    If nothing flips, a margin of 0.05 is settled after 104 samples, where 71 were enough for ``paired_difference``.

    The mean in question is that of the population which the samples come from, as in ``paired_difference``. With
    ``dataset_size`` it is the mean of this dataset, of which units are drawn at random without replacement. That is
    settled sooner, but says nothing about samples beyond the dataset. A comparison that ends unsettled may still be
    decided by ``paired_difference`` if both share the α, half and half.

    References: J. Ville, Étude critique de la notion de collectif (1939); I. Waudby-Smith, A. Ramdas, Estimating means
    of bounded random variables by betting, JRSS B 86 (2024), sections 4 and 5.

    Args:
        margin: m, the drop that would still be acceptable.
        confidence: 1 - α. Each of the two answers is wrong with probability α at most.
        checks: Over how many checks the chance of any false "fail" is kept: each has α/checks. All must pass, so
            passing needs no correction.
        largest_size: The size of the largest unit, where units are clusters of samples.
        dataset_size: How many units the dataset has, if its own mean is the question. Units then have one size.

    Raises:
        ValueError: The margin is outside [0, 1), the confidence outside (0, 1), there is no check, a size is below 1,
            or both sizes are given.

    >>> watch = EarlyStopping(0.05)
    >>> watch.add([0.0] * 60).settled is None, watch.add([0.0] * 60).settled
    (True, 'pass')
    """

    def __init__(
        self,
        margin: float,
        *,
        confidence: float = 0.95,
        checks: int = 1,
        largest_size: float = 1.0,
        dataset_size: int | None = None,
    ) -> None:
        check_margin(margin)
        if checks < 1 or largest_size < 1 or (dataset_size is not None and (dataset_size < 1 or largest_size != 1)):
            raise ValueError(
                "There is at least one check, sizes are 1 or more, and a finite dataset has units of size 1."
            )
        self.margin = margin
        self._size, self._population = largest_size, dataset_size
        alpha = 1 - check_confidence(confidence)
        # One bettor for each side: on larger differences against -m, and on smaller ones.
        self._sides: tuple[tuple[Settled, float, float], ...] = (
            ("pass", 1.0, math.log(1 / alpha)),
            ("fail", -1.0, math.log(checks / alpha)),
        )
        self._capital = np.zeros((2, len(STAKES)))
        self._largest = [0.0, 0.0]
        self._n, self._sum = 0, 0.0
        self._settled: Settled | None = None
        self._at: int | None = None

    def add(self, totals: ArrayLike, sizes: ArrayLike | None = None) -> MarginEvidence:
        """Add units in the order in which they were drawn, and tell what all units so far say.

        Args:
            totals: The sum of the differences of each unit.
            sizes: How many samples each unit has; 1 where not given.

        Raises:
            ValueError: A difference lies outside [-1, 1], totals and sizes differ in number, or there are more units or
                larger ones than the dataset has.
        """
        u = finite_vector(totals, name="differences")
        s = np.ones(len(u)) if sizes is None else finite_vector(sizes, name="sizes")
        if len(s) != len(u) or (len(s) and (s.min() <= 0 or s.max() > self._size)):
            raise ValueError(f"Each unit has a size above 0 and up to {self._size:g}.")
        if (np.abs(u) > s + 1e-9).any():
            raise ValueError("A difference lies outside [-1, 1].")
        if self._population is not None and self._n + len(u) > self._population:
            raise ValueError(f"The dataset has {self._population} units, and more than that were drawn.")
        paths = [self._bet(place, u, s) for place in range(2)]
        for place, path in enumerate(paths):
            self._largest[place] = max(self._largest[place], float(path.max(initial=0.0)))
        if self._settled is None:
            self._settle(paths)
        self._n, self._sum = self._n + len(u), self._sum + float(u.sum())
        return MarginEvidence(
            n=self._n,
            settled=self._settled,
            at=self._at,
            p_within=math.exp(-min(self._largest[0], _CERTAIN)),
            p_beyond=math.exp(-min(self._largest[1], _CERTAIN)),
        )

    def _settle(self, paths: list[Floats]) -> None:
        """Find the first unit after which a capital passes its limit."""
        found = []
        for (word, _, limit), path in zip(self._sides, paths, strict=True):
            reached = np.flatnonzero(path >= limit)
            if reached.size:
                found.append((int(reached[0]), word))
        if found:
            first, self._settled = min(found)
            self._at = self._n + first + 1

    def _bet(self, place: int, u: Floats, s: Floats) -> Floats:
        """The log-capital of one bettor after each unit."""
        _, sign, _ = self._sides[place]
        # The bettor on smaller differences sees the mirror image: differences and margin change their signs.
        null = np.full(len(u), -sign * self.margin)
        if self._population is not None and len(u):
            # What the mean of the units not yet drawn would have to be.
            before = sign * (self._sum + np.concatenate([[0.0], np.cumsum(u)[:-1]]))
            left = self._population - self._n - np.arange(len(u))
            null = (-sign * self.margin * self._population - before) / left
        with np.errstate(divide="ignore"):
            logs = np.log(_factors(sign * u, s, null, self._size))
        steps = self._capital[place] + np.cumsum(logs, axis=0)
        if len(u):
            self._capital[place] = steps[-1]
        return np.asarray(np.logaddexp.reduce(steps, axis=1) - math.log(len(STAKES)), dtype=np.float64)


def _factors(u: Floats, s: Floats, null: Floats, largest: float) -> Floats:
    """By what each unit multiplies the capital of each stake, if the mean is at most ``null``; units x stakes."""
    room = 1 + null
    with np.errstate(divide="ignore", invalid="ignore"):
        gains = (u - s * null) / (largest * room)
    # The null says that all units left lie at -1, or even below: any other unit contradicts it.
    gains = np.where(room > 1e-12, gains, np.where(u > -s + 1e-12, _SURE_GAIN, 0.0))
    return np.maximum(0.0, 1 + STAKES * gains[:, None])


def confidence_sequence(
    differences: ArrayLike, *, confidence: float = 0.95, dataset_size: int | None = None
) -> ConfidenceInterval | None:
    """The interval of a mean difference that holds at every look at once: it may be computed after each sample.

    Its ends are the means that neither bettor of ``EarlyStopping`` refutes with 2/α. It is wider than the interval of
    ``paired_difference``, which holds only if the number of samples was fixed before. Undefined (None) without a
    difference.

    Reference: I. Waudby-Smith, A. Ramdas, Estimating means of bounded random variables by betting, JRSS B 86 (2024).

    Args:
        differences: The differences so far, from -1 to 1, in the order in which they were drawn.
        confidence: The level at which all intervals hold together.
        dataset_size: How many samples the dataset has, if its own mean is the question.

    Raises:
        ValueError: A difference is outside [-1, 1], there are more of them than the dataset has, or the level is
            outside (0, 1).

    >>> interval = confidence_sequence([0.0] * 100)
    >>> round(interval.lower, 3), round(interval.upper, 3)
    (-0.059, 0.059)
    """
    x = finite_vector(differences, name="differences")
    limit = math.log(2 / (1 - check_confidence(confidence)))
    if (np.abs(x) > 1 + 1e-9).any() or (dataset_size is not None and len(x) > dataset_size):
        raise ValueError("Differences lie in [-1, 1], and are no more than the dataset has.")
    if not len(x):
        return None
    lower = _refuted_up_to(x, limit, dataset_size)
    upper = -_refuted_up_to(-x, limit, dataset_size)
    return ConfidenceInterval(lower, upper, confidence, method="betting")


def _refuted_up_to(x: Floats, limit: float, population: int | None) -> float:
    """The largest mean that the bettor on larger differences refutes; its capital falls with the mean."""
    before = np.concatenate([[0.0], np.cumsum(x)[:-1]])
    low, high = -1.0, float(x.mean())
    if population is not None:
        # Whatever is left, the mean of the dataset lies between these.
        left = population - len(x)
        low, high = (x.sum() - left) / population, (x.sum() + left) / population
    while high - low > 1e-7:
        middle = (low + high) / 2
        null = np.full(len(x), middle)
        if population is not None:
            null = (middle * population - before) / (population - np.arange(len(x)))
        with np.errstate(divide="ignore"):
            capital = np.log(_factors(x, np.ones(len(x)), null, 1.0)).sum(axis=0)
        refuted = float(np.logaddexp.reduce(capital)) - math.log(len(STAKES)) >= limit
        low, high = (middle, high) if refuted else (low, middle)
    return low
