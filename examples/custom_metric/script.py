"""The same evaluation from Python."""

from __future__ import annotations

from pathlib import Path

from app import describe
from scoring import Sober, facts_kept

import deemster as dm

HERE = Path(__file__).parent

report = dm.evaluate(
    dm.Dataset.load(HERE / "golden.yml"),
    target=describe,
    metrics=["token-f1", facts_kept, Sober(penalty=0.25)],
    gate={"max_unscored": 3, "metrics": {"sober": {"min_mean": 0.7}}},
)

for name, figures in report.metrics.items():
    mean = "n/a" if figures.mean is None else f"{figures.mean:.4f}"
    print(f"{name}: mean {mean}, pass-rate {figures.pass_rate:.4f}, {figures.n_unscored} unscored of {figures.n}")
print(f"macro-F1 {report.macro_f1:.4f}; outdoor {report.cohorts['outdoor'].macro_f1:.4f}")
for failure in report.failure_list:
    print(f"{failure.id}: {failure.cause}: {failure.message}")
if report.gate is not None:
    print(f"gate: {report.gate.decision}")
