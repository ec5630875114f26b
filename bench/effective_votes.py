"""Whether the independent votes of a panel are told right, for simulated panels whose errors have a known correlation.

Usage: .venv/bin/python bench/effective_votes.py [DATASETS]     (400 datasets a row, a minute; fewer for a quick look)

Every judge errs at the same rate, and each two of them with the same correlation, so that n judges are worth
n/(1 + (n - 1)·correlation) votes (Kish). Printed for each row: that number, the mean estimate, how often the 95 %
interval holds it, and in how many datasets it is unknown, since a judge did not err at all. Goal: 92 to 99 %.
"""

import sys
from itertools import product

import numpy as np

from deemster.agreement import BootstrapSettings, compute_metrics
from deemster.datasets import Votes

GOAL = 0.92


def panel(rng, n, *, judges, rate, correlation):
    """A votes file of people who say MET and UNMET in turn, and of judges whose errors go together."""
    shared, alone = rng.random((n, 1)) < rate, rng.random((n, judges)) < rate
    errors = np.where(rng.random((n, judges)) < correlation**0.5, shared, alone)
    words, names = ("MET", "UNMET"), [f"j{number}" for number in range(judges)]
    items = [
        {
            "id": f"{item:05}",
            "ground_truth": [words[item % 2]],
            "votes": {name: [words[(item + wrong) % 2]] for name, wrong in zip(names, row, strict=True)},
        }
        for item, row in enumerate(errors.astype(int).tolist())
    ]
    rubric = {"criteria": [{"name": "facts", "weight": 1, "requirement": "Every claim is supported."}]}
    judge_entries = [{"id": name} for name in names]
    return Votes.parse(
        {"schema_version": "deemster.votes.v1", "rubric": rubric, "judges": judge_entries, "items": items}
    )


def main(datasets):
    print(f"{'judges':>6} {'labels':>6} {'errs':>5} {'corr':>5} {'worth':>6} {'mean':>6} {'holds':>7} {'unknown':>8}")
    missed = 0
    for judges, n, rate, correlation in product((3, 9), (50, 200), (0.1, 0.3), (0.0, 0.3, 0.7)):
        worth = judges / (1 + (judges - 1) * correlation)
        estimates, held = [], []
        for seed in range(datasets):
            rng = np.random.default_rng((judges, n, seed))
            votes = panel(rng, n, judges=judges, rate=rate, correlation=correlation)
            found = compute_metrics(votes, bootstrap=BootstrapSettings(replicates=400, seed=seed)).panel
            if found.ci is not None:
                estimates.append(found.effective_votes)
                held.append(found.ci.lower <= worth <= found.ci.upper)
        share = np.mean(held)
        # What chance makes of the goal in so many datasets.
        missed += share < GOAL - 0.44 / datasets**0.5
        print(
            f"{judges:6} {n:6} {rate:5} {correlation:5} {worth:6.2f} {np.mean(estimates):6.2f} {share:7.1%}"
            f" {datasets - len(held):8}",
            flush=True,
        )
    return missed


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 400) > 0)
