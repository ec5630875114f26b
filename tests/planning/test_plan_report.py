"""Plans as text."""

from __future__ import annotations

import json

import msgspec
import pytest

from deemster.planning.plan_report import DetectionPlan, LabelPlan, SizePlan
from deemster.planning.sample_plans import Goal, Noise, plan_dataset, plan_size
from deemster.stats.power_analysis import LabelSize, label_size

NOISE = {
    "stated": (Noise(source="stated", variance=0.16, flip_rate=0.1), "Stated or guessed"),
    "runs": (Noise(source="two runs", variance=0.16, sd=0.2), "Measured on two runs: differences; a spread of 0.2000."),
    "repetitions": (Noise(source="repetitions", variance=0.16, sd=0.2, within=0.1), "noise of the system itself"),
    "one run": (Noise(source="one run", variance=0.16, flip_rate=0.16), "Guessed from the spread"),
}


@pytest.mark.parametrize("name", NOISE)
def test_plan_says_what_its_numbers_rest_on(name):
    noise, words = NOISE[name]
    plan = SizePlan(confidence=0.95, power=0.8, size=plan_size(0.1, noise, goal=Goal()))
    section, *_ = plan.sections()

    assert words in "".join(section.lines[0])


def test_what_cannot_be_shown_is_called_nothing():
    detections = tuple(plan_dataset([()] * 3, NOISE["stated"][0], goal=Goal(power=0.9)))
    (section,) = DetectionPlan(confidence=0.95, power=0.9, detect=detections).sections()

    assert section.table.rows[0][5] == "nothing"
    assert "in 90% of comparisons" in "".join(section.after[0])


def test_plan_is_saved_as_every_result_is(tmp_path):
    plan = LabelPlan(confidence=0.9, labels=label_size(0.03, correlation=0.7, samples=5000))
    plan.save(tmp_path / "plan.json")
    plan.save(tmp_path / "plan.md")

    saved = json.loads((tmp_path / "plan.json").read_text())
    assert saved["confidence"] == 0.9
    assert msgspec.convert(saved["labels"], LabelSize) == plan.labels
    assert "For a 90% interval of ±0.03; the judge scores 5,000 samples." in (tmp_path / "plan.md").read_text()
