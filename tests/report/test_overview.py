"""What a run says on a terminal: one screen, whatever the suite."""

from __future__ import annotations

import random

import pytest
from rich.cells import cell_len

import deemster as dm
from deemster.report.overview import NamedRun, overview_sections
from deemster.text.terminal_layout import plain_text
from tests.report.runs import full_report

TOPICS = ("returns", "delivery", "payment", "warranty", "account")
WIDTHS = (80, 120)


@pytest.fixture(autouse=True)
def at_one_moment(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1750000000")


def samples(count):
    return [
        {
            "id": f"q{number}",
            "input": {"question": f"What does the {TOPICS[number % 5]} page say about case {number} of a long list?"},
            "expected_output": f"Case {number} takes {number % 7 + 2} working days after the parcel has reached us.",
            "metadata": {"tags": [TOPICS[number % 5]]},
        }
        for number in range(1, count + 1)
    ]


def evaluated(count, target, **options):
    return dm.evaluate(
        samples(count), target=target, metrics=["exact-match", "rouge-l", "token-f1"], name="shop", **options
    )


def shop(count):
    """A target that answers a quarter of the cases wrong, some of them entirely."""
    chance = random.Random(7)
    wrong = {
        number: chance.choice(["Ask us.", "It takes 30 working days after the parcel has reached us."])
        for number in range(1, count + 1)
        if chance.random() < 0.25
    }

    def answer(sample):
        number = int(sample["question"].split("case ")[1].split()[0])
        return wrong.get(number, f"Case {number} takes {number % 7 + 2} working days after the parcel has reached us.")

    return answer


def failing(count):
    rules = {
        "min_macro_f1": 0.95,
        "metrics": {"rouge-l": {"min_pass_rate": 0.95}},
        "cohorts": {"*": {"min_pass_rate": 0.7}},
    }
    return evaluated(count, shop(count), gate=rules)


def crashing():
    def answer(sample):
        if "delivery" in sample["question"]:
            return {"tent": "3 days"}["tents"]
        return shop(40)(sample)

    return evaluated(40, answer, gate={"min_macro_f1": 0.5})


def quickstart():
    folder = "examples/quickstart"
    return dm.evaluate(f"{folder}/golden.yml", outputs=f"{folder}/answers.yml", metrics=["exact-match", "rouge-l"])


REPORTS = {
    "quickstart": quickstart,
    "failing-40": lambda: failing(40),
    "failing-400": lambda: failing(400),
    "crash": crashing,
    "everything": full_report,
}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", REPORTS)
def test_overview_is_one_screen_and_matches_golden_file(name, width, golden):
    shown = plain_text(overview_sections(REPORTS[name](), NamedRun("latest", has_baseline=True)), width=width)
    assert len(shown.splitlines()) < 40
    assert max(map(cell_len, shown.splitlines())) <= width
    golden(f"screen/{name}-{width}.txt", shown)
