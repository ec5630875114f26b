"""Whether the audits of gates tell the truth: predicted error rates beside real ones.

Usage: python3 bench/audits.py [--quick]     (200 histories a gate; --quick: 10)

Printed: for three gates, how often an audit of stored runs predicts that the gate fails or passes, and how often it
really does with fresh runs of the same samples, where nothing changed and after drops. Goal: no difference beyond 3
standard errors of the simulation.
"""

import sys
import time
from pathlib import Path

import numpy as np

from deemster.gate.read_gate import BaselineRules, GateRules, Rule

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "results"))

import make_compared_runs as made_runs
from simulated_histories import compare_rates

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


if __name__ == "__main__":
    show_gates()
