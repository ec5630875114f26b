"""What panels of public judges are worth: against numpy on the raw verdicts, and the answer that a reader gets.

The verdicts are those of LLMBar's authors (`tests/fixtures/published`), with the answers in their first order.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from deemster.agreement import compute_metrics
from deemster.datasets import Votes

DATA = Path(__file__).parent.parent / "fixtures" / "published"


@cache
def verdicts(folder):
    """The judges, and the pairs of answers that every judge could read: the right answer, and what each judge says."""
    with (DATA / folder / "verdicts.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    judges = [name for name in rows[0] if name not in ("id", "label") and not name.endswith(" swapped")]
    return judges, [row for row in rows if all(row[judge] for judge in judges)]


@cache
def panel(folder):
    judges, rows = verdicts(folder)
    options = [{"label": "1", "value": 1}, {"label": "2", "value": 0}]
    criterion = {"name": "answer", "requirement": "Which answer?", "scale_type": "nominal", "options": options}
    value = {
        "schema_version": "deemster.votes.v1",
        "rubric": {"criteria": [criterion | {"weight": 1}]},
        "judges": [{"id": judge} for judge in judges],
        "items": [
            {"id": row["id"], "ground_truth": [row["label"]], "votes": {judge: [row[judge]] for judge in judges}}
            for row in rows
        ],
    }
    return compute_metrics(Votes.parse(value)).panel


@pytest.mark.parametrize("folder", ["llmbar", "mt_bench"])
def test_effective_votes_are_those_of_numpy(folder):
    judges, rows = verdicts(folder)
    errors = np.array([[row[judge] != row["label"] for judge in judges] for row in rows], dtype=float)
    correlations = np.corrcoef(errors.T)
    found = panel(folder)
    assert found.effective_votes == pytest.approx(len(judges) ** 2 / correlations.sum())
    pairs = {(pair.judge_a, pair.judge_b): pair.correlation for pair in found.pairs}
    for (a, b), correlation in pairs.items():
        assert correlation == pytest.approx(correlations[judges.index(a), judges.index(b)])
    assert [member.error for member in found.members] == pytest.approx(errors.mean(axis=0).tolist())


def test_six_judges_of_pairs_that_are_hard_are_worth_two_and_a_majority_is_far_worse_than_the_best():
    found = panel("llmbar")
    assert (round(found.effective_votes, 2), found.n_samples) == (2.13, 414)
    assert (round(found.ci.lower, 1), round(found.ci.upper, 1)) == (2.0, 2.3)
    assert (found.best_judge, round(found.gain, 2)) == ("GPT-4", -0.27)
    assert found.gain_ci.upper < -0.2
    # Two versions of one model err together most, and the panel is better without either.
    first = found.pairs[0]
    assert (first.judge_a, first.judge_b, round(first.correlation, 2)) == ("ChatGPT", "ChatGPT-0301", 0.67)
    losses = {member.judge_id: member.loss_ci for member in found.members}
    assert {name for name, ci in losses.items() if ci.upper < 0} == {"ChatGPT", "ChatGPT-0301"}
    assert {name for name, ci in losses.items() if ci.lower > 0} == {"GPT-4", "PaLM2"}


def test_four_judges_of_mt_bench_are_worth_less_than_two():
    found = panel("mt_bench")
    assert round(found.effective_votes, 2) == 1.57
    assert found.ci.upper < 1.8
    assert found.gain_ci.lower < 0 < found.gain_ci.upper
