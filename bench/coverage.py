"""How often 95 % intervals contain the true value, by simulation of 200 labelled items.

Usage: python3 bench/coverage.py [runs]     (default: 2,000 simulated datasets for each design)

Truth and three judges answer yes or no. In clustered designs an item copies its cluster's answers with chance
sqrt(0.3), so that every answer has an intra-cluster correlation of exactly 0.3 and the same frequencies as in the
plain design.
"""

import itertools
import math
import sys
import time

import numpy as np

from deemster.stats import (
    bca_interval,
    clustered_mean,
    clustered_wilson,
    percentile_interval,
    ppi_mean,
    resample_counts,
    rogan_gladen,
    wilson,
)
from deemster.stats import confusion_tables as tables
from deemster.stats.agreement_from_sums import alpha_from_coincidences, coincidence_shares

ITEMS = 200
UNLABELLED = 2000
REPLICATES = 1000
CORRELATION = 0.3
LEVEL = 0.95
PREVALENCE, SENSITIVITY, SPECIFICITY = 0.6, 0.85, 0.8
# The answers of truth and three judges; 0 is yes.
PATTERNS = list(itertools.product((0, 1), repeat=4))
CELLS = np.zeros((16, 2, 2))
for place, (truth, first, _, _) in enumerate(PATTERNS):
    CELLS[place, truth, first] = 1
VOTES = np.array([[votes.count(0), votes.count(1)] for _, *votes in PATTERNS])
COINCIDENCES = coincidence_shares(VOTES)
NOMINAL = tables.disagreement(2, "nominal")


def chance(pattern):
    truth, *votes = pattern
    answer = PREVALENCE if truth == 0 else 1 - PREVALENCE
    for vote in votes:
        right = SENSITIVITY if truth == 0 else SPECIFICITY
        answer *= right if vote == truth else 1 - right
    return answer


CHANCES = np.array([chance(pattern) for pattern in PATTERNS])


def truths():
    """The statistics of the population, from its frequencies."""
    tp, fn = PREVALENCE * SENSITIVITY, PREVALENCE * (1 - SENSITIVITY)
    fp, tn = (1 - PREVALENCE) * (1 - SPECIFICITY), (1 - PREVALENCE) * SPECIFICITY
    yes = tp + fp
    by_chance = PREVALENCE * yes + (1 - PREVALENCE) * (1 - yes)
    differ = 2 * (PREVALENCE * SENSITIVITY * (1 - SENSITIVITY) + (1 - PREVALENCE) * SPECIFICITY * (1 - SPECIFICITY))
    return {
        "accuracy": tp + tn,
        "kappa": (tp + tn - by_chance) / (1 - by_chance),
        "F1": 2 * tp / (2 * tp + fp + fn),
        "alpha": 1 - differ / (2 * yes * (1 - yes)),
    }


def statistics(counts):
    """Each statistic of stacks [..., 16] of pattern counts."""
    pairs = np.tensordot(counts, CELLS, axes=1)
    return {
        "accuracy": tables.accuracy(pairs),
        "kappa": tables.weighted_kappa(pairs, NOMINAL),
        "F1": tables.f1(pairs),
        "alpha": alpha_from_coincidences(np.tensordot(counts, COINCIDENCES, axes=1), "nominal"),
    }


def answers(rng, runs, clusters, size):
    """Patterns [runs, clusters, size]."""
    own = rng.choice(16, (runs, clusters, size), p=CHANCES)
    if size == 1:
        return own
    leader = rng.choice(16, (runs, clusters, 1), p=CHANCES)
    return np.where(rng.random(own.shape) < math.sqrt(CORRELATION), leader, own)


def bootstrapped(runs, clusters, size):
    """Hits of the bootstrap intervals of all four statistics."""
    goals = truths()
    hits = dict.fromkeys(itertools.product(goals, ("percentile", "bca")), 0)
    drawn = answers(np.random.default_rng(clusters), runs, clusters, size)
    for run, patterns in enumerate(drawn):
        rows = np.eye(16)[patterns].sum(axis=1)
        counts = resample_counts(clusters, REPLICATES, run, dtype=np.float64)
        estimates, replicates = statistics(rows.sum(axis=0)), statistics(counts.T @ rows)
        left_out = statistics(rows.sum(axis=0) - rows)
        names = list(goals)
        stacks = [np.stack([part[name] for name in names]) for part in (estimates, replicates, left_out)]
        for method, ends in (
            ("percentile", percentile_interval(stacks[1], LEVEL)),
            ("bca", bca_interval(*stacks, LEVEL)),
        ):
            for name, low, high in zip(names, ends.lower, ends.upper, strict=True):
                hits[name, method] += low <= goals[name] <= high
    return {f"{name}, bootstrap {method}": count / runs for (name, method), count in hits.items()}


def corrected(runs):
    """Hits of the closed forms: 200 labelled items, 2,000 more with the judge's answer only."""
    rng = np.random.default_rng(1)
    labelled, others = answers(rng, runs, ITEMS, 1)[:, :, 0], answers(rng, runs, UNLABELLED, 1)[:, :, 0]
    hits = {"ppi_mean": 0, "rogan_gladen": 0}
    for run in range(runs):
        truth, judged = labelled[run] < 8, (labelled[run] // 4) % 2 == 0
        more = (others[run] // 4) % 2 == 0
        powered = ppi_mean(truth, judged, more).interval
        hits["ppi_mean"] += powered.lower <= PREVALENCE <= powered.upper
        rate = rogan_gladen(
            more.mean(),
            n=UNLABELLED,
            sensitivity=judged[truth].mean(),
            positives=int(truth.sum()),
            specificity=1 - judged[~truth].mean(),
            negatives=int((~truth).sum()),
        ).interval
        hits["rogan_gladen"] += rate is not None and rate.lower <= PREVALENCE <= rate.upper
    return {name: count / runs for name, count in hits.items()}


def powered_of(sums):
    """PPI++ and Rogan-Gladen of sums: n, Y, Ŷ, YŶ, N, Û (all answers are 0 or 1)."""
    n, y, known, both, more, other = np.moveaxis(sums, -1, 0)
    pooled = (known + other) / (n + more)
    weight = (both / n - y / n * known / n) / ((1 + n / more) * pooled * (1 - pooled))
    theta = y / n + np.clip(weight, 0, 1) * (other / more - known / n)
    sensitivity, specificity = both / y, 1 - (known - both) / (n - y)
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = (other / more + specificity - 1) / (sensitivity + specificity - 1)
    return np.stack([theta, np.clip(rate, 0, 1)])


def clustered_corrected(runs, clusters, size):
    """Hits of cluster bootstraps of both corrected means, with five times as many clusters without labels."""
    rng = np.random.default_rng(2)
    every = answers(rng, runs, 6 * clusters, size)
    hits = np.zeros((2, 2))
    for run, patterns in enumerate(every):
        truth, judged = patterns < 8, (patterns // 4) % 2 == 0
        parts = [np.ones_like(truth), truth, judged, truth & judged]
        rows = np.zeros((6 * clusters, 6))
        rows[:clusters, :4] = np.stack([part[:clusters].sum(axis=1) for part in parts], axis=1)
        rows[clusters:, 4] = size
        rows[clusters:, 5] = judged[clusters:].sum(axis=1)
        # Labelled and unlabelled clusters are two samples, and each is drawn from by itself.
        ours = resample_counts(clusters, REPLICATES, 2 * run, dtype=np.float64).T @ rows[:clusters]
        theirs = resample_counts(5 * clusters, REPLICATES, 2 * run + 1, dtype=np.float64).T @ rows[clusters:]
        estimates, replicates = powered_of(rows.sum(axis=0)), powered_of(ours + theirs)
        left_out = powered_of(rows.sum(axis=0) - rows)
        for place, ends in enumerate(
            (percentile_interval(replicates, LEVEL), bca_interval(estimates, replicates, left_out, LEVEL))
        ):
            hits[place] += (ends.lower <= PREVALENCE) & (ends.upper >= PREVALENCE)
    names = itertools.product(("percentile", "bca"), ("ppi_mean", "rogan_gladen"))
    shares = (hits / runs).ravel().tolist()
    return {f"{name}, bootstrap {method}": share for (method, name), share in zip(names, shares, strict=True)}


def means(runs, clusters, size):
    """Hits of the closed forms for an accuracy: Wilson's, and those that know clusters."""
    goal = truths()["accuracy"]
    right = np.array([truth == first for truth, first, _, _ in PATTERNS])
    hits = {"accuracy, wilson (clusters ignored)": 0, "accuracy, clustered_wilson": 0, "accuracy, clustered_mean": 0}
    names = np.repeat(np.arange(clusters), size)
    for patterns in answers(np.random.default_rng(3), runs, clusters, size):
        marks = right[patterns]
        for name, result in zip(
            hits,
            (
                wilson(int(marks.sum()), marks.size),
                clustered_wilson(marks.sum(axis=1), marks=size),
                clustered_mean(marks.ravel(), names),
            ),
            strict=True,
        ):
            hits[name] += result.interval.lower <= goal <= result.interval.upper
    return {name: count / runs for name, count in hits.items()}


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    started = time.process_time()
    print(f"coverage of 95 % intervals, {ITEMS} labelled items, {runs} datasets each, {REPLICATES} replicates")
    print(f"Monte Carlo standard error {100 * math.sqrt(LEVEL * (1 - LEVEL) / runs):.2f} points; target 93 to 97 %")
    sections = [("independent items", lambda: bootstrapped(runs, ITEMS, 1) | corrected(runs))]
    for clusters, size in ((200, 5), (100, 2), (50, 4), (40, 5), (20, 10)):
        sections.append(
            (
                f"{clusters} clusters of {size}, intra-cluster correlation {CORRELATION}",
                lambda clusters=clusters, size=size: (
                    bootstrapped(runs, clusters, size)
                    | clustered_corrected(runs, clusters, size)
                    | means(runs, clusters, size)
                ),
            )
        )
    for title, section in sections:
        print(f"\n{title}")
        for name, share in section().items():
            print(f"  {name:38} {100 * share:6.2f} %{'' if 0.93 <= share <= 0.97 else '   outside'}", flush=True)
    print(f"\n{time.process_time() - started:.0f} CPU seconds")


if __name__ == "__main__":
    main()
