"""Two public judges of the same pairs of answers: what the numbers of the one are worth under the other.

The verdicts are those of LLMBar's authors (`tests/fixtures/published/llmbar`). A judge's score of a pair is how often
it prefers the first answer, over both orders; half of the time or more is a pass.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from deemster.comparison.judge_change import JudgedOutputs, compare_judges
from deemster.comparison.judged_outputs import hold_against_people

VERDICTS = Path(__file__).parent.parent / "fixtures" / "published" / "llmbar" / "verdicts.csv"


def judged(old, new):
    """What two judges say of the pairs that both could read, and what people say."""
    with VERDICTS.open(encoding="utf-8", newline="") as file:
        rows = [
            row
            for row in csv.DictReader(file)
            if all(row[f"{judge}{order}"] for judge in (old, new) for order in ORDERS)
        ]
    scores = {
        judge: np.array([np.mean([row[f"{judge}{order}"] == "1" for order in ORDERS]) for row in rows])
        for judge in (old, new)
    }
    sets = np.array([row["id"].rpartition("-")[0] for row in rows])
    cohorts = {name: np.flatnonzero(sets == name) for name in sorted(set(sets))}
    passed = {judge: score >= 0.5 for judge, score in scores.items()}
    outputs = JudgedOutputs(scores[old], scores[new], passed[old], passed[new], np.arange(len(rows)), cohorts, 0.5)
    truth = np.array([float(row["label"] == "1") for row in rows])
    people = hold_against_people(
        passed[old].astype(float),
        passed[new].astype(float),
        truth,
        units=np.arange(len(rows)),
        weights=np.ones(len(rows)),
        confidence=0.95,
    )
    return compare_judges(outputs, confidence=0.95, seed=0), people


ORDERS = ("", " swapped")


def test_better_model_is_another_ruler_and_is_named_the_better_one():
    found, people = judged("ChatGPT", "GPT-4")
    assert found.answer == "not-comparable"
    assert "do not rise and fall together" in found.because
    assert found.agreement.kappa == pytest.approx(0.086, abs=0.001)
    assert (people.closer, round(people.before, 2), round(people.now, 2)) == ("now", 0.59, 0.17)


def test_silent_update_of_one_model_is_neither_shown_to_be_the_same_ruler_nor_another():
    found, people = judged("ChatGPT-0301", "ChatGPT")
    assert found.answer == "not-enough-data"
    assert found.agreement.kappa == pytest.approx(0.657, abs=0.001)
    assert people.closer == "before"
    assert found.needed > found.outputs == 419


def test_judges_of_two_vendors_flip_both_ways():
    found, people = judged("PaLM2", "GPT-4")
    assert found.answer == "not-comparable"
    assert min(found.only_before, found.only_now) > 20
    assert people.closer == "now"
