"""CPU time of agreement statistics, against the calls of scikit-learn and krippendorff that they replace.

Pair statistics: six binary criteria and four of five levels. deemster counts all pairs in one pass and computes
every statistic from the tables; scikit-learn is called once for each statistic of each criterion. Krippendorff's
alpha: several levels from one count of the ratings, against one call for each level. Both sides start from the same
arrays, take turns, and must give the same numbers.

Usage: .venv/bin/python bench/agreement.py [items]
"""

import sys
import time

import krippendorff
import numpy as np
from sklearn import metrics

from deemster.stats import confusion_tables as tables
from deemster.stats import krippendorff_alpha

BINARY, GRADED, CLASSES = 6, 4, 5
LEVELS = ("nominal", "ordinal", "interval", "ratio")
TURNS = 5
GOALS = {"pair statistics": 50, "alpha": 3}


def pairs(items):
    """Truth and verdict of ten criteria as codes, [criteria, items]; 0 is MET in the first six."""
    rng = np.random.default_rng(7)
    truth = np.concatenate([rng.integers(0, 2, (BINARY, items)), rng.integers(0, CLASSES, (GRADED, items))])
    other = np.concatenate([rng.integers(0, 2, (BINARY, items)), rng.integers(0, CLASSES, (GRADED, items))])
    return truth, np.where(rng.random(truth.shape) < 0.7, truth, other)


def counted(truth, said):
    """All tables in one pass, [criteria, classes, classes]."""
    size = CLASSES * CLASSES
    cells = truth * CLASSES + said + np.arange(len(truth))[:, None] * size
    return np.bincount(cells.ravel(), minlength=len(truth) * size).reshape(-1, CLASSES, CLASSES).astype(float)


def ours(truth, said):
    stack = counted(truth, said)
    met, graded = stack[:BINARY, :2, :2], stack[BINARY:]
    nominal = [tables.disagreement(size, "nominal") for size in (2, CLASSES)]
    return {
        "met": [
            tables.accuracy(met),
            tables.precision(met),
            tables.recall(met),
            tables.f1(met),
            tables.weighted_kappa(met, nominal[0]),
            tables.phi(met),
            tables.balanced_accuracy(met),
            met,
        ],
        "graded": [
            tables.accuracy(graded),
            tables.weighted_kappa(graded, nominal[1]),
            tables.weighted_kappa(graded, tables.disagreement(CLASSES, "quadratic")),
            tables.balanced_accuracy(graded),
            graded,
        ],
    }


def theirs(truth, said):
    def quadratic(true, one):
        return metrics.cohen_kappa_score(true, one, weights="quadratic")

    def positive(score):
        return lambda true, one: score(true, one, pos_label=0)

    met = (
        metrics.accuracy_score,
        positive(metrics.precision_score),
        positive(metrics.recall_score),
        positive(metrics.f1_score),
        metrics.cohen_kappa_score,
        metrics.matthews_corrcoef,
        metrics.balanced_accuracy_score,
        metrics.confusion_matrix,
    )
    graded = (
        metrics.accuracy_score,
        metrics.cohen_kappa_score,
        quadratic,
        metrics.balanced_accuracy_score,
        metrics.confusion_matrix,
    )
    columns = list(zip(truth, said, strict=True))
    return {
        "met": [[score(*column) for column in columns[:BINARY]] for score in met],
        "graded": [[score(*column) for column in columns[BINARY:]] for score in graded],
    }


def ratings(items):
    """Three raters by items, from 1 to 5, one in ten missing."""
    rng = np.random.default_rng(8)
    held = np.clip(rng.integers(1, 6, items) + rng.integers(-1, 2, (3, items)), 1, 5).astype(float)
    held[rng.random(held.shape) < 0.1] = np.nan
    return held


def alphas(data):
    return [result.value for result in krippendorff_alpha(data, level=LEVELS).values()]


def their_alphas(data):
    return [krippendorff.alpha(reliability_data=data, level_of_measurement=level) for level in LEVELS]


def cpu(function, *arguments, times=1):
    """CPU seconds of a call and its result."""
    start = time.process_time()
    for _ in range(times):
        result = function(*arguments)
    return (time.process_time() - start) / times, result


def race(mine, peer, *arguments):
    """The least CPU seconds of each side over some turns, and both results; ours repeats, since it is short."""
    mine(*arguments)
    peer(*arguments)
    turns = [(cpu(mine, *arguments, times=20), cpu(peer, *arguments)) for _ in range(TURNS)]
    return min(ours[0] for ours, _ in turns), min(theirs[0] for _, theirs in turns), turns[0][0][1], turns[0][1][1]


def apart(mine, peer):
    """The largest difference of a number."""
    if isinstance(mine, dict):
        return max(apart(mine[key], peer[key]) for key in peer)
    return max(float(np.abs(np.asarray(a) - np.asarray(b)).max()) for a, b in zip(mine, peer, strict=True))


def line(name, peer, ours_s, theirs_s, difference, goal):
    if difference > 1e-9:
        sys.exit(f"{name}: the numbers differ by {difference:.1e}")
    print(
        f"{name}: deemster {ours_s * 1e3:.2f} ms, {peer} {theirs_s * 1e3:.1f} ms, {theirs_s / ours_s:.1f} times "
        f"(goal {goal}); largest difference {difference:.1e}",
        flush=True,
    )


def main():
    sizes = [int(sys.argv[1])] if len(sys.argv) > 1 else [1_000, 10_000]
    for items in sizes:
        mine_s, peer_s, mine, peer = race(ours, theirs, *pairs(items))
        case = f"pair statistics of 10 criteria x {items:,}"
        line(case, "scikit-learn", mine_s, peer_s, apart(mine, peer), GOALS["pair statistics"])
        mine_s, peer_s, mine, peer = race(alphas, their_alphas, ratings(items))
        case = f"alpha of {len(LEVELS)} levels, 3 x {items:,}"
        line(case, "krippendorff", mine_s, peer_s, apart(mine, peer), GOALS["alpha"])


if __name__ == "__main__":
    main()
