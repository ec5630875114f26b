"""Krippendorff's alpha of people who answered one question, with its smoothed bootstrap interval."""

from __future__ import annotations

import numpy as np

from deemster.agreement._bootstrap_replicates import BootstrapSettings, smoothed_results
from deemster.agreement._criterion_columns import Floats
from deemster.agreement._imagined_units import imagined_votes, vote_shapes
from deemster.agreement.result_models import BootstrapResult
from deemster.stats.agreement_from_sums import alpha_from_coincidences, coincidence_shares
from deemster.stats.bootstrap_resampling import imagined_weights
from deemster.stats.fleiss_gwet import Ratings, encode_ratings, vote_counts


def annotator_alpha(answers: Ratings, *, replicates: int, seed: int) -> BootstrapResult:
    """The nominal alpha of people, resampled as `compute_metrics` resamples the agreement of annotators.

    Undefined (None) below two items that two people answered, and where all answers are one.

    Args:
        answers: A row for each person with a place for each item; None is missing.
        replicates: How many times weights are drawn.
        seed: The seed of the draws.

    Raises:
        ValueError: The rows differ in length, or there is no item.

    Reference: K. Krippendorff, Computing Krippendorff's Alpha-Reliability (2011).

    >>> ada, bert, cleo = ["y", "n", "y", "y", "n"], ["y", "n", "y", "n", "n"], ["y", "n", "y", "y", "n"]
    >>> found = annotator_alpha([ada, bert, cleo], replicates=200, seed=0)
    >>> round(found.estimate, 4), found.ci.method
    (0.75, 'smoothed')
    """
    codes, classes = encode_ratings(answers)
    people, size = len(codes), len(classes)
    counts = vote_counts(codes, size)
    pairs = coincidence_shares(counts).reshape(len(counts), size**2)
    imagined = coincidence_shares(imagined_votes(people, size)).reshape(2 * size, size**2)
    paired = (counts.sum(axis=1) >= 2).astype(np.float64)

    def alpha(weights: Floats, rng: np.random.Generator | None) -> Floats:
        summed = weights.T @ pairs
        if rng is not None:
            summed = summed + imagined_weights(vote_shapes(size), weights.shape[1], rng).T @ imagined
        return alpha_from_coincidences(summed.reshape(-1, size, size), units=weights.T @ paired)[None]

    drawing = BootstrapSettings(replicates=replicates, seed=seed)
    (found,) = smoothed_results(alpha, units=len(counts), drawing=drawing)
    return found
