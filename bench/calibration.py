"""How often corrected pass-rates and differences hold the truth, by simulation, the naive ones beside them.

Usage: python3 bench/calibration.py [--quick]     (2,000 simulated runs for each design; with --quick 300 for a few)

A run has N outputs. People would pass a known share of them. The judge finds a part of what they pass (sensitivity) and
of what they fail (specificity). People label n of the outputs. Designs:

- own: n of the run's own outputs, drawn at random;
- own, verdicts: half of the n among those that the judge passes, half among those that it fails, as
  `deemster labels sheet --balance METRIC` draws them, with their inclusion probabilities;
- own, chances: each output with its own chance, four times as great where the judge fails it;
- other: outputs of an earlier run, drawn at random, as a suite names them under `calibration:`;
- other, verdicts: the same, drawn as in the second design;
- scores: people give scores in place of verdicts, and the mean is corrected.

Printed for each design: coverage of 95 % intervals in per cent, of the judge's own rate (naive), of the corrected one
with the Monte Carlo standard error, and the mean width. Goal: 93 to 97 % at the designs' own sizes.

Then two systems with the same judge: coverage of the corrected difference, and how often its sign is right where the
judge errs otherwise on one system than on the other, and how often that is noticed.
"""

import sys
import time

import numpy as np

from deemster.stats import LabelledSide, corrected_difference, corrected_rate, ppi_mean, wilson

QUICK = "--quick" in sys.argv
RUNS = 300 if QUICK else 2_000
# Size of the run, labels, people's pass-rate, sensitivity, specificity.
SETTINGS = [
    (1000, 200, 0.8, 0.90, 0.70),
    (1000, 100, 0.8, 0.90, 0.70),
    (1000, 200, 0.9, 0.95, 0.80),
    (2000, 300, 0.6, 0.85, 0.80),
    (500, 250, 0.7, 0.95, 0.90),
]
GOAL = (0.93, 0.97)


def draw_run(rng, size, rate, sensitivity, specificity):
    """What people would say of each output, and what the judge says."""
    people = rng.random(size) < rate
    chance = np.where(people, sensitivity, 1 - specificity)
    return people, rng.random(size) < chance


def balanced(rng, judge, n):
    """Places, probabilities and strata of a draw with equally many outputs that the judge passes and fails."""
    places, chances, strata = [], [], []
    for verdict in (False, True):
        group = np.flatnonzero(judge == verdict)
        count = min(len(group), n // 2)
        places.append(rng.choice(group, count, replace=False))
        chances += [count / len(group)] * count
        strata += [verdict] * count
    return np.concatenate(places), chances, strata


def own(rng, people, judge, n, _earlier):
    places = rng.choice(len(judge), n, replace=False)
    others = np.delete(judge, places).astype(float)
    return ppi_mean(people[places], judge[places], others, bounds=(0.0, 1.0))


def own_verdicts(rng, people, judge, n, _earlier):
    places, chances, _ = balanced(rng, judge, n)
    weights = 1 / np.array(chances)
    return ppi_mean(people[places], judge[places], judge.astype(float), weights=weights, bounds=(0.0, 1.0))


def own_chances(rng, people, judge, n, _earlier):
    raw = np.where(judge, 1.0, 4.0)
    chances = np.minimum(1, raw * n / raw.sum())
    drawn = rng.random(len(judge)) < chances
    return ppi_mean(people[drawn], judge[drawn], judge.astype(float), weights=1 / chances[drawn], bounds=(0.0, 1.0))


def other(_rng, _people, judge, n, earlier):
    people, before = earlier
    return corrected_rate(people[:n], before[:n], judge.mean(), n=len(judge))


def other_verdicts(rng, _people, judge, n, earlier):
    people, before = earlier
    places, chances, strata = balanced(rng, before, n)
    known = {"probabilities": chances, "strata": strata}
    return corrected_rate(people[places], before[places], judge.mean(), n=len(judge), **known)


DESIGNS = {
    "own": own,
    "own, verdicts": own_verdicts,
    "own, chances": own_chances,
    "other": other,
    "other, verdicts": other_verdicts,
}


def holds(interval, truth):
    return interval is not None and interval.lower <= truth <= interval.upper


def error(share):
    return (max(share * (1 - share), 1e-9) / RUNS) ** 0.5


def simulate_rates():
    print(f"Corrected pass-rates, {RUNS:,} simulated runs for each line. Coverage of 95 % intervals in per cent.\n")
    print(f"{'labels':16} {'N':>5} {'n':>4} {'people':>6} {'sens.':>5} {'spec.':>5}   naive  corrected (s.e.)  width")
    missed = []
    for name, design in DESIGNS.items():
        for size, n, rate, sensitivity, specificity in SETTINGS[: 2 if QUICK else None]:
            rng = np.random.default_rng((size, n, len(name)))
            naive = hits = refused = 0
            widths = []
            for _ in range(RUNS):
                people, judge = draw_run(rng, size, rate, sensitivity, specificity)
                naive += holds(wilson(int(judge.sum()), size).interval, rate)
                earlier = draw_run(rng, size, rate, sensitivity, specificity)
                found = design(rng, people, judge, n, earlier)
                refused += found.interval is None
                hits += holds(found.interval, rate)
                widths.append(found.interval.width if found.interval is not None else np.nan)
            share = hits / max(1, RUNS - refused)
            line = f"{name:16} {size:5} {n:4} {rate:6} {sensitivity:5} {specificity:5}"
            print(f"{line}  {naive / RUNS:6.1%}  {share:6.1%} ({error(share):.1%})     {np.nanmean(widths):.3f}")
            slack = 3 * error(0.95)
            if not GOAL[0] - slack <= share <= GOAL[1] + slack:
                missed.append(f"{name} {size} {n}: {share:.1%}")
    return missed


def simulate_scores():
    print("\nCorrected mean scores (prediction-powered): the judge is 0.1 too kind.\n")
    print(f"{'labels':16} {'N':>5} {'n':>4}   naive  corrected (s.e.)  width")
    missed = []
    for name in ("own", "own, chances"):
        for size, n in ((1000, 200), (1000, 60))[: 1 if QUICK else None]:
            rng = np.random.default_rng((size, n, len(name)))
            naive = hits = 0
            widths = []
            for _ in range(RUNS):
                people = rng.beta(4, 2, size)
                judge = np.clip(people + 0.1 + rng.normal(0, 0.15, size), 0, 1)
                deviation = 1.96 * judge.std(ddof=1) / size**0.5
                naive += abs(judge.mean() - 4 / 6) <= deviation
                if name == "own":
                    drawn = np.zeros(size, dtype=bool)
                    drawn[rng.choice(size, n, replace=False)] = True
                    found = ppi_mean(people[drawn], judge[drawn], judge[~drawn], bounds=(0, 1))
                else:
                    raw = 1.2 - judge
                    chances = np.minimum(1, raw * n / raw.sum())
                    drawn = rng.random(size) < chances
                    known = {"weights": 1 / chances[drawn], "bounds": (0, 1)}
                    found = ppi_mean(people[drawn], judge[drawn], judge, **known)
                hits += holds(found.interval, 4 / 6)
                widths.append(found.interval.width)
            share = hits / RUNS
            line = f"{name:16} {size:5} {n:4}  {naive / RUNS:6.1%}  {share:6.1%} ({error(share):.1%})"
            print(f"{line}     {np.mean(widths):.3f}")
            slack = 3 * error(0.95)
            if not GOAL[0] - slack <= share <= GOAL[1] + slack:
                missed.append(f"scores {name} {size} {n}: {share:.1%}")
    return missed


def simulate_differences():
    print("\nTwo systems, people pass 70 % and 80 %; labels on both. s.e. of a share of 95 %:", f"{error(0.95):.1%}\n")
    print(f"{'judge':34} {'labels':10} {'N':>5} {'n':>4}  coverage  sign right: naive corrected  error noticed")
    judges = {
        "errs alike (.90/.80, .90/.80)": ((0.9, 0.8), (0.9, 0.8)),
        "kind to the first (.90/.60, .75/.90)": ((0.9, 0.6), (0.75, 0.9)),
    }
    missed = []
    for told, pair in judges.items():
        for same in (True, False):
            size, n = 1000, 200
            rng = np.random.default_rng((size, n, same))
            hits = naive = right = noticed = 0
            for _ in range(RUNS):
                level = rng.random(size)
                truths = level < 0.7, np.where(rng.random(size) < 0.7, level < 0.8, rng.random(size) < 0.8)
                sides = []
                places = rng.choice(size, n, replace=False)
                for truth, (sensitivity, specificity) in zip(truths, pair, strict=True):
                    judge = rng.random(size) < np.where(truth, sensitivity, 1 - specificity)
                    places = places if same else rng.choice(size, n, replace=False)
                    sides.append(LabelledSide(judge, places, truth[places], judge[places]))
                found = corrected_difference(*sides)
                hits += holds(found.interval, 0.1)
                naive += found.naive > 0
                right += found.value > 0
                noticed += found.is_error_different
            shares = [count / RUNS for count in (hits, naive, right, noticed)]
            head = f"{told:36} {'same' if same else 'different':10} {size:4} {n:4}"
            print(
                f"{head}   {shares[0]:6.1%}             {shares[1]:6.1%}    {shares[2]:6.1%}         {shares[3]:6.1%}"
            )
            if shares[0] < GOAL[0] - 3 * error(0.95) or shares[2] < 0.95:
                missed.append(f"difference {told}: {shares[0]:.1%}, sign {shares[2]:.1%}")
    return missed


def main():
    start = time.process_time()
    missed = [*simulate_rates(), *simulate_scores(), *simulate_differences()]
    print(f"\n{time.process_time() - start:.0f} CPU s. Missed goals: {', '.join(missed) or 'none'}.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
