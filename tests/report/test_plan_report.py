"""Plans as text."""

from __future__ import annotations

import pytest

from deemster.report.plan_report import detection_sections, size_sections
from deemster.report.sample_plans import Goal, Noise, plan_dataset, plan_size

NOISE = {
    "stated": (Noise(source="stated", variance=0.16, flip_rate=0.1), "Stated or guessed"),
    "runs": (Noise(source="two runs", variance=0.16, sd=0.2), "Measured on two runs: differences; a spread of 0.2000."),
    "repetitions": (Noise(source="repetitions", variance=0.16, sd=0.2, within=0.1), "noise of the system itself"),
    "one run": (Noise(source="one run", variance=0.16, flip_rate=0.16), "Guessed from the spread"),
}


@pytest.mark.parametrize("name", NOISE)
def test_plan_says_what_its_numbers_rest_on(name):
    noise, words = NOISE[name]
    section, *_ = size_sections(plan_size(0.1, noise, goal=Goal()), goal=Goal())

    assert words in "".join(section.lines[0])


def test_what_cannot_be_shown_is_called_nothing():
    found = list(plan_dataset([()] * 3, NOISE["stated"][0], goal=Goal(power=0.9)))
    (section,) = detection_sections(found, goal=Goal(power=0.9))

    assert section.table.rows[0][5] == "nothing"
    assert "in 90% of comparisons" in "".join(section.after[0])
