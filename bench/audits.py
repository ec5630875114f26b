"""Whether the audits of gates and datasets tell the truth: predicted error rates beside real ones, subsets beside all.

Usage: python3 bench/audits.py [--quick]     (200 histories a gate; --quick: 10)

Printed: for three gates, how often an audit of stored runs predicts that the gate fails or passes, and how often it
really does with fresh runs of the same samples, where nothing changed and after drops. Goal: no difference beyond 3
standard errors of the simulation. Then, for five designs, the part of a dataset that an audit of
stored runs proposes, and how many of the regressions planted in fresh runs it catches, of those that the gate fails on
all samples; beside it a random part of the same size, and the plain gate on the same part. Goals: at most 40 % of the
samples catch at least 95 %, and alarm in at most 5 % of the runs without a change.
"""

import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

from deemster.audit.gate_error_rates import simulated_share
from deemster.audit.sample_subset import (
    FALSE_ALARMS,
    KEPT,
    PlantedRegressions,
    SampleGroups,
    SubsetSettings,
    choose_subset,
)
from deemster.audit.simulated_runs import ExecutionPool
from deemster.gate.read_gate import BaselineRules, GateRules, Rule

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "results"))

import make_compared_runs as made_runs
from simulated_histories import NAMES, PartPool, compare_rates, draw_runs

QUICK = "--quick" in sys.argv
DROPS = (0.05, 0.1)
GATES = {
    "margin 0.05 and at most 9 newly failing; 60 samples, 3 runs": (
        GateRules(baseline=BaselineRules(margin=0.05, max_newly_failing=9), decision="three-way"),
        lambda rng: rng.beta(4, 1, 60),
        {"runs": 3},
    ),
    "margin 0.05; 150 samples that seldom flip, 4 runs": (
        GateRules(baseline=BaselineRules(margin=0.05), decision="three-way"),
        lambda rng: np.where(rng.random(150) < 0.85, 0.99, 0.5),
        {"runs": 4},
    ),
    "margin 0.1 and a pass-rate of 0.75; 60 samples, 2 runs of 3 repetitions": (
        GateRules(rules=(Rule("min_pass_rate", "pass_rate", 0.75, ""),), baseline=BaselineRules(margin=0.1)),
        lambda rng: rng.beta(4, 1, 60),
        {"runs": 2, "repetitions": 3},
    ),
}


def show_gates():
    """Predicted and real rates over histories; the largest difference in standard errors."""
    histories, worst = 10 if QUICK else 200, 0.0
    for name, (gate, draw_chances, shape) in GATES.items():
        began = time.process_time()
        found = compare_rates(made_runs, gate, draw_chances, histories=histories, drops=DROPS, draws=5, real=5, **shape)
        print(f"\n{name}: {histories} histories, % of comparisons")
        print(f"{'':16}{'fails: predicted':>18}{'real':>8}{'passes: predicted':>20}{'real':>8}{'difference in SE':>22}")
        for drop, (predicted, realised) in found.items():
            difference = predicted - realised
            error = difference.std(axis=0, ddof=1) / np.sqrt(histories)
            scaled = np.divide(difference.mean(axis=0), error, out=np.zeros(2), where=error > 0)
            worst = max(worst, float(np.abs(scaled).max()))
            (failed, passed), (fails, passes) = 100 * predicted.mean(axis=0), 100 * realised.mean(axis=0)
            title = f"drop of {100 * drop:.0f}" if drop else "no change"
            print(
                f"{title:16}{failed:18.1f}{fails:8.1f}{passed:20.1f}{passes:8.1f}{scaled[0]:+14.1f}{scaled[1]:+8.1f}",
                flush=True,
            )
        print(f"{time.process_time() - began:.0f} s of CPU")
    print(f"\nlargest difference between predicted and real rates: {worst:.1f} standard errors")


DESIGNS = {
    "400 samples: 40 % reliable, 30 % coins, 30 % never pass": lambda rng: rng.permutation(
        np.repeat([0.99, 0.5, 0.01], [160, 120, 120])
    ),
    "400 samples: 70 % reliable, 30 % never pass": lambda rng: rng.permutation(np.repeat([0.99, 0.01], [280, 120])),
    "400 samples, all reliable": lambda _rng: np.full(400, 0.99),
    "400 samples of all kinds": lambda rng: rng.beta(4, 1, 400),
    "100 samples, all reliable": lambda _rng: np.full(100, 0.99),
}


def draw_history(draw_chances, number):
    """A dataset of a design: pools of five stored and of twelve fresh runs, samples that are alike, a random order."""
    rng = np.random.default_rng([7, number])
    chances = draw_chances(rng)
    n = len(chances)
    tags = [[f"cohort {place % 4}"] for place in range(n)]
    topics = [np.flatnonzero(np.arange(n) // 4 % 6 == number) for number in range(6)]
    groups = SampleGroups(topics, [np.flatnonzero(rng.random(n) < 0.3) for _ in range(5)])
    pools = [ExecutionPool(draw_runs(made_runs, rng, chances, count=count, tags=tags)) for count in (5, 12)]
    return *pools, groups, rng.permutation(n)


def show_subsets():
    """The parts that audits of stored runs propose, measured on fresh runs, beside a random part and the plain gate."""
    gate = GateRules(baseline=BaselineRules(margin=0.05), decision="three-way")
    histories, draws = (1, 12) if QUICK else (10, 200)
    print(f"parts of datasets, margin 0.05, {histories} datasets a design, {draws} regressions in each")
    print("% of the regressions that the gate fails on all samples, with 95 % interval, and alarms without a change")
    print(
        f"{'':58}{'part':>6}{'caught':>22}{'false alarms':>22}{'random part':>13}{'alarms':>10}{'gate on the part':>18}"
    )
    worst_caught, worst_alarms = 1.0, 0.0
    for name, draw_chances in DESIGNS.items():
        counts = Counter()
        for number in range(histories):
            stored, fresh, groups, order = draw_history(draw_chances, number)
            found = choose_subset(gate, stored, metrics=NAMES, groups=groups, settings=SubsetSettings(draws=draws))
            places = np.array([int(one[1:]) for one in found.ids])
            most = found.power.max_newly_failing
            settings = SubsetSettings(draws=draws, seed=1)
            regressions = PlantedRegressions(gate, fresh, metrics=NAMES, settings=settings, groups=groups)
            power = regressions.power(places, max_newly_failing=most)
            other = regressions.power(order[: len(places)], max_newly_failing=most)
            part = PartPool(fresh, places)
            plain = PlantedRegressions(gate, part, metrics=NAMES, settings=settings, groups=groups)
            counts["share"] += found.share
            counts["whole"] += power.caught.n
            counts["caught"] += power.caught.count
            counts["alarms"] += power.false_alarms.count
            counts["random"] += other.caught.count
            counts["random alarms"] += other.false_alarms.count
            counts["plain"] += int((regressions.caught & plain.caught).sum())
        caught = simulated_share(counts["caught"], counts["whole"], confidence=0.95)
        alarms = simulated_share(counts["alarms"], histories * draws, confidence=0.95)
        worst_caught, worst_alarms = min(worst_caught, caught.rate), max(worst_alarms, alarms.rate)
        others = [100 * counts[each] / counts["whole"] for each in ("random", "plain")]
        noise = 100 * counts["random alarms"] / (histories * draws)
        print(
            f"{name:58}"[:58] + f"{counts['share'] / histories:6.0%}{_share_text(caught):>22}{_share_text(alarms):>22}"
            f"{others[0]:13.1f}{noise:10.1f}{others[1]:18.1f}", flush=True,
        )  # fmt: skip
    print(f"the design that catches least: {worst_caught:.1%}; the most false alarms: {worst_alarms:.1%}")
    if not QUICK and (worst_caught < KEPT or worst_alarms > FALSE_ALARMS):
        sys.exit("a part misses its goals: 95 % caught, at most 5 % false alarms")


def _share_text(share):
    return f"{100 * share.rate:.1f} ({100 * share.low:.1f} to {100 * share.high:.1f})"


if __name__ == "__main__":
    show_subsets()
    show_gates()
