"""What a run says on a terminal: one screen, whatever the suite."""

from __future__ import annotations

import random

import pytest
from rich.cells import cell_len

import deemster as dm
from deemster.comparison.comparison_overview import comparison_overview
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


def evaluated(count, target=None, **options):
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


def compared(after):
    """Forty samples of which four fail at first, compared with what they become."""
    expected = {sample["id"]: sample["expected_output"] for sample in samples(40)}
    before = expected | dict.fromkeys(("q5", "q7", "q9", "q12"), "Ask us.")
    return dm.compare(*(evaluated(40, outputs=outputs) for outputs in (before, after(before, expected))))


def worse(before, expected):
    return before | {name: expected[name].replace("working days", "weeks") for name in ("q2", "q10", "q11")}


COMPARISONS = {"worse": worse, "better": lambda before, expected: expected}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparison_is_one_screen_and_matches_golden_file(name, width, golden):
    steps = ["deemster show now q2", "deemster compare before now --full"]
    shown = plain_text(comparison_overview(compared(COMPARISONS[name]), steps=steps), width=width)
    assert len(shown.splitlines()) < 40
    assert max(map(cell_len, shown.splitlines())) <= width
    golden(f"screen/{name}-{width}.txt", shown)


LONG = "A name that is far longer than any line has room for, " * 5


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("repetitions", [1, 3])
def test_screen_holds_whatever_the_suite_is_called_and_however_much_there_is(width, repetitions):
    many = [
        {
            "id": f"{number} {LONG}"[:250],
            "input": {"q": LONG},
            "expected_output": LONG,
            "metadata": {"tags": [f"{number % 30} {LONG}"]},
        }
        for number in range(300)
    ]
    metrics = [{"contains": {"name": f"{number} {LONG}"[:200]}} for number in range(20)]
    report = dm.evaluate(
        many,
        outputs={sample["id"]: LONG.upper() for sample in many},
        metrics=metrics,
        name=LONG,
        repetitions=repetitions,
        gate={
            "min_macro_f1": 0.9,
            "metrics": {f"0 {LONG}"[:200]: {"min_pass_rate": 0.9}},
            "cohorts": {"*": {"min_pass_rate": 1}},
        },
    )
    shown = plain_text(overview_sections(report, NamedRun("latest", has_baseline=True)), width=width)
    assert len(shown.splitlines()) < 40
    assert max(map(cell_len, shown.splitlines())) <= width


def test_sections_that_say_nothing_are_not_printed():
    report = evaluated(3, shop(0))
    assert [section.key for section in overview_sections(report)] == ["headline", "pass-rates"]
    text = plain_text(overview_sections(report))
    assert text.startswith("No gate. All 3 samples passed.")
    for word in ("Cost", "repetition", "scored", "histogram", "unscored", "Next"):
        assert word not in text


@pytest.mark.parametrize(
    ("crashing", "wrong", "sentence"),
    [
        ({1}, set(), "1 of 6 samples crashed; the other 5 passed."),
        ({1}, {2, 3}, "1 of 6 samples crashed; 2 of the other 5 did not pass."),
        ({1, 2, 3, 4, 5}, set(), "5 of 6 samples crashed; the other one passed."),
        ({1, 2, 3, 4, 5}, {6}, "5 of 6 samples crashed; the other one did not pass."),
        ({1, 2, 3, 4, 5, 6}, set(), "6 of 6 samples crashed."),
    ],
)
@pytest.mark.parametrize("repetitions", [1, 2])
@pytest.mark.filterwarnings("ignore:Every sample failed")
def test_sample_that_crashed_is_told_once(crashing, wrong, sentence, repetitions):
    def answer(sample):
        number = int(sample["question"].split("case ")[1].split()[0])
        if number in crashing:
            raise KeyError(number)
        return "Ask us." if number in wrong else shop(0)(sample)

    text = plain_text(overview_sections(evaluated(6, answer, repetitions=repetitions)))
    assert text.startswith(f"Incomplete: {sentence}\n")
    assert text.count("An unscored output counts as not passed, and is in no mean score.") == 1


def test_sample_that_broke_since_the_baseline_stands_before_worse_ones():
    report = failing(40)
    named = NamedRun("latest", broken=(13,))
    assert "\nNext: deemster show latest q14\n" in plain_text(overview_sections(report, named))
    others = plain_text(overview_sections(report, NamedRun("latest")))
    assert "\nNext: deemster show latest q2\n" in others
