"""How often 95 % intervals of `align` hold the truth, by simulation, the older methods beside the default.

Usage: python3 bench/coverage.py [runs] [method ...]     (400 simulated datasets for each design, all methods)

Truth and three judges answer yes or no on three criteria of equal weight; the panel's verdict is the majority. A judge
says yes as often as the truth does, and its kappa is set. All numbers of the population are exact: from the
probabilities of all answers. In clustered designs an item copies the answers of its cluster with chance sqrt(0.3), so
that every answer has an intra-cluster correlation of 0.3 and the same frequencies as in the plain design.

Printed for each design: coverage in per cent of the default (smoothed), percentile and BCa intervals, and how many of
the intervals have width zero. Goal: 92 to 99 % for the default, and none of width zero.
"""

import itertools
import math
import sys
import time

import numpy as np

import deemster as dm

LEVEL = 0.95
CORRELATION = 0.3
METHODS = tuple(sys.argv[2:]) or ("smoothed", "percentile", "bca")
ITEMS, PREVALENCES, KAPPAS = (20, 50, 200), (0.05, 0.1, 0.5), (0.5, 0.9)
CRITERIA, JUDGES = 3, 3
# Answers on one criterion: truth, then the judges; 1 is yes.
PATTERNS = np.array(list(itertools.product((0, 1), repeat=1 + JUDGES)))
FINAL = (PATTERNS[:, 1:].sum(axis=1) > JUDGES / 2).astype(int)
RUBRIC = {"name": "simulated", "criteria": [{"name": f"c{place}", "requirement": "?", "weight": 1} for place in "123"]}


def chances(prevalence, kappa):
    """The probability of each pattern: judges are independent given the truth."""
    yes = np.array([1 - prevalence, prevalence])
    says = kappa * np.eye(2) + (1 - kappa) * yes[None, :]
    found = yes[PATTERNS[:, 0]]
    for judge in range(JUDGES):
        found = found * says[PATTERNS[:, 0], PATTERNS[:, 1 + judge]]
    return found


def table_numbers(table):
    """Numbers of a table truth × verdict of probabilities, yes at place 1."""
    (tn, fp), (fn, tp) = table
    by_chance = (tp + fn) * (tp + fp) + (tn + fp) * (tn + fn)
    return {
        "accuracy": tp + tn,
        "kappa": (tp + tn - by_chance) / (1 - by_chance),
        "precision": tp / (tp + fp),
        "recall": tp / (tp + fn),
        "F1": 2 * tp / (2 * tp + fp + fn),
        "phi": (tp * tn - fp * fn) / math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)),
        "false positive rate": fp / (fp + tn),
    }


def score_numbers(table):
    """Numbers of item scores, from the joint distribution of true and predicted shares of yes."""
    joint = np.array([[1.0]])
    for _ in range(CRITERIA):
        wider = np.zeros((len(joint) + 1, len(joint) + 1))
        for truth, verdict in itertools.product((0, 1), repeat=2):
            wider[truth : truth + len(joint), verdict : verdict + len(joint)] += joint * table[truth, verdict]
        joint = wider
    values = np.arange(CRITERIA + 1) / CRITERIA
    apart = values[None, :] - values[:, None]
    sides = joint.sum(axis=1), joint.sum(axis=0)
    spreads = [side @ np.square(values - side @ values) for side in sides]
    covariance = values @ joint @ values - (sides[0] @ values) * (sides[1] @ values)
    ranks = [np.cumsum(side) - side / 2 for side in sides]
    middles = [side @ rank for side, rank in zip(sides, ranks, strict=True)]
    rank_spreads = [side @ np.square(rank - middle) for side, rank, middle in zip(sides, ranks, middles, strict=True)]
    signs = np.sign(values[:, None] - values[None, :])
    ties = [1 - np.square(side).sum() for side in sides]
    return {
        "RMSE": math.sqrt((joint * np.square(apart)).sum()),
        "MAE": (joint * np.abs(apart)).sum(),
        "bias": (joint * apart).sum(),
        "Pearson": covariance / math.sqrt(math.prod(spreads)),
        "Spearman": (ranks[0] @ joint @ ranks[1] - math.prod(middles)) / math.sqrt(math.prod(rank_spreads)),
        "Kendall": np.einsum("ab,cd,ac,bd", joint, joint, signs, signs) / math.sqrt(math.prod(ties)),
    }


def population(prevalence, kappa):
    """Every number that the simulation looks at, by name, as (path in the result, value)."""
    odds = chances(prevalence, kappa)
    panel, judge = np.zeros((2, 2)), np.zeros((2, 2))
    np.add.at(panel, (PATTERNS[:, 0], FINAL), odds)
    np.add.at(judge, (PATTERNS[:, 0], PATTERNS[:, 1]), odds)
    own, one = table_numbers(panel), table_numbers(judge)
    votes = PATTERNS[:, 1:].sum(axis=1)
    share = odds @ votes / JUDGES
    same = odds @ (votes * (votes - 1) + (JUDGES - votes) * (JUDGES - votes - 1)) / (JUDGES * (JUDGES - 1))
    by_chance = share**2 + (1 - share) ** 2
    among = (same - by_chance) / (1 - by_chance)
    gwet = 2 * share * (1 - share)
    fields = {"F1": "f1", "false positive rate": "fpr"}
    goals = {name: ("criterion", fields.get(name, name), value) for name, value in own.items()}
    goals |= {
        "alpha": ("criterion", "krippendorff_alpha", among),
        "Fleiss' kappa": ("criterion", "fleiss_kappa", among),
        "Gwet's AC1": ("criterion", "panel_gwet_ac", (same - gwet) / (1 - gwet)),
        "mean kappa": ("all", "mean_kappa", own["kappa"]),
        "all accuracy": ("all", "criterion_accuracy", own["accuracy"]),
        "all precision": ("all", "criterion_precision", own["precision"]),
        "judge's kappa": ("judge", "mean_kappa", one["kappa"]),
        "judge's accuracy": ("judge", "criterion_accuracy", one["accuracy"]),
    }
    paths = {"RMSE": "score_rmse", "MAE": "score_mae", "bias": "bias", "Pearson": "score_pearson"}
    for name, value in score_numbers(panel).items():
        goals[name] = ("all", paths.get(name, f"score_{name.lower()}"), value)
    return goals


def simulated_votes(rng, odds, items, clusters):
    """A votes file as a plain value, and the cluster of each item."""
    size = items // clusters
    drawn = rng.choice(len(odds), (CRITERIA, clusters, size), p=odds)
    if size > 1:
        leader = rng.choice(len(odds), (CRITERIA, clusters, 1), p=odds)
        drawn = np.where(rng.random((1, clusters, size)) < math.sqrt(CORRELATION), leader, drawn)
    words = np.array(["UNMET", "MET"], dtype=object)[PATTERNS[drawn.reshape(CRITERIA, items)]]
    made = [
        {
            "id": f"i{number}",
            "ground_truth": words[:, number, 0].tolist(),
            "votes": {f"j{judge}": words[:, number, judge].tolist() for judge in range(1, 1 + JUDGES)},
        }
        for number in range(items)
    ]
    value = {
        "schema_version": "deemster.votes.v1",
        "name": "simulated",
        "rubric": RUBRIC,
        "judges": [{"id": f"j{judge}"} for judge in range(1, 1 + JUDGES)],
        "items": made,
    }
    return value, {f"i{number}": f"c{number // size}" for number in range(items)}


def interval(result, scope, name):
    part = {"all": result, "criterion": result.per_criterion[0], "judge": result.per_judge["j1"]}[scope]
    found = part.intervals.get(name)
    return None if found is None else found.ci


def design(runs, items, clusters, prevalence, kappa):
    """For each number and method: intervals, hits, widths of zero."""
    goals, odds = population(prevalence, kappa), chances(prevalence, kappa)
    counts = {(name, method): [0, 0, 0] for name in goals for method in METHODS}
    for run in range(runs):
        rng = np.random.default_rng((run, items, clusters, int(100 * prevalence), int(100 * kappa)))
        value, cluster = simulated_votes(rng, odds, items, clusters)
        votes = dm.Votes.parse(value)
        for method in METHODS:
            result = dm.compute_metrics(
                votes,
                bootstrap=dm.agreement.BootstrapSettings(method=method, seed=run),
                per_judge=True,
                cluster=cluster if clusters < items else None,
            )
            for name, (scope, field, goal) in goals.items():
                ends = interval(result, scope, field)
                if ends is None:
                    continue
                count = counts[name, method]
                count[0] += 1
                count[1] += ends.lower - 1e-12 <= goal <= ends.upper + 1e-12
                count[2] += ends.upper - ends.lower < 1e-12
    return counts


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    started = time.process_time()
    print(f"coverage of 95 % intervals, {runs} datasets a design, 1,000 replicates; goal 92 to 99 % for the default")
    print(f"Monte Carlo standard error {100 * math.sqrt(LEVEL * (1 - LEVEL) / runs):.1f} points")
    designs = [(items, items) for items in ITEMS] + [(200, 20)]
    worst = {}
    for (items, clusters), prevalence, kappa in itertools.product(designs, PREVALENCES, KAPPAS):
        shape = f"{clusters} clusters of {items // clusters}" if clusters < items else "independent"
        print(f"\n{items} items, {shape}, prevalence {prevalence}, judge's kappa {kappa}")
        counts = design(runs, items, clusters, prevalence, kappa)
        for name in dict.fromkeys(name for name, _ in counts):
            parts = []
            for method in METHODS:
                printed, hits, flat = counts[name, method]
                share = f"{100 * hits / printed:5.1f}" if printed else "    -"
                parts.append(f"{method} {share} ({100 * flat / max(printed, 1):3.0f} % flat)")
                if method == "smoothed" and printed >= runs / 4:
                    low, high = worst.get(name, (1.0, 0.0))
                    worst[name] = min(low, hits / printed), max(high, hits / printed)
            print(f"  {name:20} " + "   ".join(parts), flush=True)
    print("\nthe default over all designs with an interval in a quarter of the datasets or more")
    for name, (low, high) in worst.items():
        print(f"  {name:20} {100 * low:5.1f} to {100 * high:5.1f} %{'' if low >= 0.92 else '   below the goal'}")
    print(f"\n{time.process_time() - started:.0f} CPU seconds")


if __name__ == "__main__":
    main()
