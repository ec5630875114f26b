"""Random samples in which items have unequal, known probabilities: more of the items about which less is known."""

from __future__ import annotations

import random

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deemster.stats._number_arrays import finite_vector
from deemster.stats.find_root import find_root
from deemster.stats.nan_arithmetic import Floats

# No item counts less than this share of the mean: what looks certain may be wrong.
FLOOR = 0.2
# The most labels, as a share, that the draw may cost where the stated spreads say nothing.
MOST_LOST = 0.1


def sampling_sizes(spreads: ArrayLike) -> Floats:
    """What each item counts in a draw, with a mean of 1, from the estimated spread of its error.

    Sizes follow the spreads, with a floor of a fifth of their mean. They are moved towards their mean so far that a
    draw costs at most a tenth more labels where the spreads say nothing of the errors: mean(size)·mean(1/size) ≤ 1.1,
    the variance of the weighted mean as a multiple of the plain one (Kish).

    References: J. Neyman, Journal of the Royal Statistical Society 97 (1934); L. Kish, Survey Sampling (1965).

    Args:
        spreads: The estimated standard deviations of what a person says minus what the judge says.

    >>> sampling_sizes([0.5, 0.5, 0.5]).tolist(), sampling_sizes([0.0, 0.0, 0.6]).round(2).tolist()
    ([1.0, 1.0, 1.0], [0.76, 0.76, 1.47])
    """
    given = finite_vector(spreads, name="spreads")
    mean = float(given.mean()) if given.size else 0.0
    if mean <= 0:
        return np.ones(given.size)

    floored = np.maximum(given, FLOOR * mean)
    apart = floored / floored.mean() - 1.0

    def excess(share: float) -> float:
        return float(np.mean(1 / (1 + share * apart))) - 1 - MOST_LOST

    share = 1.0 if excess(1.0) <= 0 else find_root(excess, 0.0, 1.0)
    return np.asarray(1.0 + share * apart)


def inclusion_probabilities(sizes: ArrayLike, n: int) -> Floats:
    """Probabilities in proportion to sizes that sum to n; an item that would have more than 1 is certain.

    Args:
        sizes: What each item counts, above 0.
        n: How many items are drawn; all where there are no more.

    >>> inclusion_probabilities([1, 1, 2, 8], 2).tolist()
    [0.25, 0.25, 0.5, 1.0]
    """
    given = finite_vector(sizes, name="sizes")
    chances = np.ones(given.size)
    open_items = np.arange(given.size)
    while (left := n - (given.size - open_items.size)) < open_items.size:
        share = left * given[open_items] / given[open_items].sum()
        if share.max() <= 1:
            chances[open_items] = share
            break
        open_items = open_items[share <= 1]
    return chances


def pivotal_sample(probabilities: ArrayLike, *, seed: int) -> list[int]:
    """Draw items without replacement, each with just its probability, in random order.

    Items meet in random order, two at a time; one of them takes over the probability of both until it is drawn, or is
    left out. So the number of items is fixed where the probabilities sum to a whole number, at any share of all items,
    where the rejections of Sampford's scheme are too many.

    Reference: J.-C. Deville, Y. Tillé, Unequal probability sampling without replacement through a splitting method,
    Biometrika 85 (1998).

    Args:
        probabilities: The probability of each item.
        seed: The seed of the draw.

    >>> pivotal_sample([0.5, 0.25, 0.25, 1.0], seed=1)
    [0, 3]
    """
    shares = finite_vector(probabilities, name="probabilities").tolist()
    chance = random.Random(seed)  # noqa: S311 - a draw of samples, not a secret
    order = list(range(len(shares)))
    chance.shuffle(order)
    drawn: list[int] = []
    holder, held = -1, 0.0
    for item in order:
        total = held + shares[item]
        if total <= 1.0:
            holder = item if chance.random() * total < shares[item] else holder
            held = total
        else:
            keeps = chance.random() * (2.0 - total) < 1.0 - shares[item]
            drawn.append(holder if keeps else item)
            holder = item if keeps else holder
            held = total - 1.0
    # A sum of probabilities that is whole but for rounding.
    if chance.random() < round(held, 9):
        drawn.append(holder)
    chance.shuffle(drawn)
    return drawn


def equal_sample_size(errors: NDArray[np.float64], weights: NDArray[np.float64]) -> float | None:
    """How many items drawn with equal probabilities would give the weighted mean of errors the same precision.

    Args:
        errors: What is averaged, for each item.
        weights: 1/probability of each item, on any scale.

    Returns:
        None without spread.

    >>> equal_sample_size(np.array([0.0, 1.0, 1.0, 0.0]), np.ones(4))
    4.0
    """
    if not errors.size:
        return None
    away = errors - np.average(errors, weights=weights)
    variance = float(np.square(weights * away).sum()) / float(weights.sum()) ** 2
    return float(np.average(np.square(away), weights=weights)) / variance if variance > 0 else None
