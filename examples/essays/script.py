"""Grades the letters by the panel, and compares it with the people."""

from __future__ import annotations

from pathlib import Path

import deemster as dm

HERE = Path(__file__).parent
JUDGES = ("ada", "bert", "cleo")

letters = dm.RubricDataset.load(HERE / "letters.yml")
panel = dm.CriterionGrader([dm.Judge(name, name) for name in JUDGES], calls="per_item", quorum=2)
models = {name: {"replay": str(HERE / "replies" / f"{name}.jsonl")} for name in JUDGES}
grading = dm.grade(letters, panel, models=models, calls=dm.ModelCalls(offline=True))

for item in sorted(grading.items, key=lambda item: (item.score or 0.0, item.id)):
    fatal = f", fails {', '.join(item.failed_fatal)}" if item.failed_fatal else ""
    print(f"{item.id:<14}{item.score:.3f}, judges agree {item.mean_agreement:.3f}{fatal}")

result = dm.compute_metrics(grading.votes(), per_judge=True, bootstrap=dm.agreement.BootstrapSettings(seed=7))
print()
print(result.summary())
