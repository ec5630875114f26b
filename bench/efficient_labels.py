"""What labels of the queue `efficient` buy, beside as many of the queue `random`, for judges of seven kinds.

Usage: .venv/bin/python bench/efficient_labels.py [RUNS]     (2,000 simulated runs a row, three minutes)

A run has 1,000 samples, and people label n of them. Printed for each kind of judge and each n: how often the 95 %
interval of the corrected pass-rate holds the true one with each queue; how many labels at random give the precision of
n efficient ones, by the mean squared errors, in per cent of n (100 is no gain, standard error 2/√RUNS); and what the
report says of it, on average. Goals: coverage of 92 to 99 %, and never more than 10 % of the labels lost.

The judges: one whose probabilities are true; one that is too sure of itself; one that is rightly sure of nine outputs
in ten; one that repeats itself three times; a panel of three that share errors; one whose doubts say nothing of its
errors; and one without any doubt.
"""

import sys

import numpy as np

from deemster.stats import ppi_mean
from deemster.stats.unequal_sampling import (
    equal_sample_size,
    inclusion_probabilities,
    pivotal_sample,
    sampling_sizes,
)

SAMPLES = 1000
LABELS = (30, 100, 300)


def spread_of(chances):
    return np.sqrt(chances * (1 - chances))


def true_probabilities(rng):
    chances = rng.beta(0.6, 0.25, SAMPLES)
    return rng.random(SAMPLES) < chances, chances > 0.5, spread_of(chances)


def too_sure(rng):
    chances = rng.beta(0.6, 0.25, SAMPLES)
    stated = chances**3 / (chances**3 + (1 - chances) ** 3)
    return rng.random(SAMPLES) < chances, chances > 0.5, spread_of(stated)


def sure_of_most(rng):
    unsure = rng.random(SAMPLES) < 0.1
    chances = np.where(unsure, 0.5, np.where(rng.random(SAMPLES) < 0.7, 0.98, 0.02))
    return rng.random(SAMPLES) < chances, chances > 0.5, spread_of(chances)


def repeats(rng):
    truth, hard = rng.random(SAMPLES) < 0.75, rng.random(SAMPLES) < 0.25
    wrong = rng.random((3, SAMPLES)) < np.where(hard, 0.4, 0.03)
    share = np.where(wrong, ~truth, truth).mean(axis=0)
    return truth, share, spread_of(share)


def panel(rng):
    truth, hard = rng.random(SAMPLES) < 0.75, rng.random(SAMPLES) < 0.3
    shared = hard & (rng.random(SAMPLES) < 0.3)
    wrong = (rng.random((3, SAMPLES)) < np.where(hard, 0.3, 0.05)) | (shared & (rng.random((3, SAMPLES)) < 0.7))
    share = np.where(wrong, ~truth, truth).mean(axis=0)
    return truth, share > 0.5, spread_of(share)


def doubts_that_say_nothing(rng):
    truth = rng.random(SAMPLES) < 0.75
    judged = np.where(rng.random(SAMPLES) < 0.15, ~truth, truth)
    return truth, judged, spread_of(rng.random(SAMPLES))


def without_doubt(rng):
    truth = rng.random(SAMPLES) < 0.75
    return truth, np.where(rng.random(SAMPLES) < 0.15, ~truth, truth), np.zeros(SAMPLES)


JUDGES = {
    "true probabilities": true_probabilities,
    "too sure of itself": too_sure,
    "rightly sure of most": sure_of_most,
    "three repetitions": repeats,
    "panel of three": panel,
    "doubts that say nothing": doubts_that_say_nothing,
    "no doubts": without_doubt,
}


def one_run(make, n, seed):
    """The errors of both estimates, whether their intervals hold the truth, and the labels at random by the report."""
    rng = np.random.default_rng((n, seed))
    truth, judged, spreads = (np.asarray(column, dtype=float) for column in make(rng))
    goal = truth.mean()

    chosen = rng.permutation(SAMPLES)[:n]
    others = np.delete(judged, chosen)
    plain = ppi_mean(truth[chosen], judged[chosen], others, bounds=(0.0, 1.0))

    chances = inclusion_probabilities(sampling_sizes(spreads), n)
    drawn = pivotal_sample(chances, seed=seed)
    weights = 1 / chances[drawn]
    found = ppi_mean(truth[drawn], judged[drawn], judged, weights=weights, bounds=(0.0, 1.0))
    told = equal_sample_size(truth[drawn] - (found.lam or 0.0) * judged[drawn], weights)
    held = [one.interval.lower <= goal <= one.interval.upper for one in (plain, found)]
    return plain.value - goal, found.value - goal, *held, np.nan if told is None else told


def main(runs):
    print(f"{'judge':24} {'labels':>6} {'random':>7} {'efficient':>9} {'worth':>7} {'told':>7}")
    failed = 0
    for name, make in JUDGES.items():
        for n in LABELS:
            plain, found, random_holds, holds, told = np.array([one_run(make, n, seed) for seed in range(runs)]).T
            worth = np.mean(plain**2) / np.mean(found**2)
            # What chance makes of the goals in so many runs.
            failed += holds.mean() < 0.92 - 0.44 / runs**0.5 or worth < 0.9 - 2 / runs**0.5
            print(
                f"{name:24} {n:6} {random_holds.mean():7.1%} {holds.mean():9.1%} {worth:7.0%}"
                f" {np.nanmean(told) / n:7.0%}",
                flush=True,
            )
    return failed


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000) > 0)
