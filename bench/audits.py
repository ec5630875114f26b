"""Whether the audits of gates and datasets tell the truth: predicted error rates beside real ones, subsets beside all.

Usage: python3 bench/audits.py [--quick]     (200 histories a gate; --quick: 10)

Printed: for three gates, how often an audit of stored runs predicts that the gate fails or passes, and how often it
really does with fresh runs of the same samples, where nothing changed and after drops. Goal: no difference beyond 3
standard errors of the simulation. Then, for five designs, the part of a dataset that an audit proposes, and what the
gate says on it of regressions planted in fresh runs, beside a random part and one chosen by the true chances of the
samples. Goal: on at most 40 % of the samples, at most 5 % of the regressions that all samples fail pass; the others
fail there, or are inconclusive and lead to a run of all samples. Where the part of known chances does not fail 95 % by
itself, no choice by pass-rates does.
"""

import sys
import time
from pathlib import Path

import numpy as np

from deemster.results.gate_rules import BaselineRules, Gate, Rule
from deemster.results.sample_subset import SampleGroups, SubsetSettings, choose_subset, measure_subset
from deemster.results.simulated_runs import ExecutionPool

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "results"))

import make_compared_runs as made_runs
from simulated_histories import NAMES, compare_rates, draw_runs

QUICK = "--quick" in sys.argv
DROPS = (0.05, 0.1)
GATES = {
    "margin 0.05 and at most 9 newly failing; 60 samples, 3 runs": (
        Gate(baseline=BaselineRules(margin=0.05, max_newly_failing=9), decision="three-way"),
        lambda rng: rng.beta(4, 1, 60),
        {"runs": 3},
    ),
    "margin 0.05; 150 samples that seldom flip, 4 runs": (
        Gate(baseline=BaselineRules(margin=0.05), decision="three-way"),
        lambda rng: np.where(rng.random(150) < 0.85, 0.99, 0.5),
        {"runs": 4},
    ),
    "margin 0.1 and a pass-rate of 0.75; 60 samples, 2 runs of 3 repetitions": (
        Gate(rules=(Rule("min_pass_rate", "pass_rate", 0.75, ""),), baseline=BaselineRules(margin=0.1)),
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


def show_subsets():
    """The part that an audit of five stored runs proposes, measured on twelve fresh runs, beside other choices."""
    gate = Gate(baseline=BaselineRules(margin=0.05), decision="three-way")
    print("\nparts of datasets, margin 0.05; regressions in any samples, a cohort, a topic, or what can have a defect")
    print("regressions that all samples fail, and what the gate says of them on the part, % with 95 % interval")
    print(f"{'':18}{'part':>6}{'fails':>22}{'passes':>22}{'enough alone':>14}{'second step if no change':>26}")
    for name, draw_chances in DESIGNS.items():
        rng = np.random.default_rng(7)
        chances = draw_chances(rng)
        n = len(chances)
        tags = [[f"cohort {place % 4}"] for place in range(n)]
        topics = [np.flatnonzero(np.arange(n) // 4 % 6 == number) for number in range(6)]
        groups = SampleGroups(topics, [np.flatnonzero(rng.random(n) < 0.3) for _ in range(5)])
        stored = ExecutionPool(draw_runs(made_runs, rng, chances, count=5, tags=tags))
        fresh = ExecutionPool(draw_runs(made_runs, rng, chances, count=12, tags=tags))
        found = choose_subset(
            gate, stored, metrics=NAMES, groups=groups, settings=SubsetSettings(draws=12 if QUICK else 60)
        )
        places = np.array([int(one[1:]) for one in found.ids])
        size = round(0.4 * n)
        parts = {
            "proposed": places,
            "random": np.sort(rng.permutation(n)[:size]),
            "chances known": np.sort(np.argsort(-chances, kind="stable")[:size]),
        }
        print(f"{name}; caught 4 times in 5: {found.detects:.0%} broken, by all samples {found.detects_whole:.0%}")
        for choice, own in parts.items():
            settings = SubsetSettings(draws=12 if QUICK else 200, seed=1)
            power = measure_subset(gate, fresh, own, metrics=NAMES, settings=settings, groups=groups)
            cells = [_share_text(one) for one in (power.caught.failed, power.caught.passed)]
            alone = "" if choice != "proposed" else f"{found.enough_share:.0%}" if found.enough_share else "none"
            unclear = _share_text(power.unchanged.inconclusive)
            print(
                f"  {choice:16}{len(own) / n:6.0%}" + "".join(f"{cell:>22}" for cell in cells)
                + f"{alone:>14}{unclear:>26}", flush=True,
            )  # fmt: skip


def _share_text(share):
    return f"{100 * share.rate:.1f} ({100 * share.low:.1f} to {100 * share.high:.1f})"


if __name__ == "__main__":
    show_subsets()
    show_gates()
