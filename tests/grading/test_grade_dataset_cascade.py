"""Cascades end to end: a labelled pilot is graded by both sides, calibrated, and the cascade run on fresh items."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from deemster.agreement import compute_metrics
from deemster.datasets import RubricDataset, Votes, derive
from deemster.grading.grade_dataset import grade
from deemster.judges.criterion_grader import CriterionGrader
from deemster.judges.judge_cascade import Cascade
from deemster.judges.judge_panel import Judge
from deemster.models import FakeChat
from deemster.records import Answer, Token
from tests.report.runs import CLOCK

CHEAP, STRONG = Judge("cheap", "cheap"), Judge("strong", "strong")
RUBRIC = {"criteria": [{"name": f"c{at}", "requirement": f"Point {at} is met."} for at in range(3)]}
WORDS = ("UNMET", "MET")


class World:
    """Items with a truth, a cheap judge that is less sure when it errs, and a strong judge that seldom errs."""

    def __init__(self, seed, count):
        rng = np.random.default_rng(seed)
        shape = (count, 3)
        hard = (rng.random((count, 1)) + rng.random(shape)) / 2
        self.truth = rng.random(shape) < 0.6
        skill = 0.99 - 0.5 * hard
        self.cheap = self.truth == (rng.random(shape) < skill)
        self.strong = self.truth == (rng.random(shape) < 0.97 - 0.1 * hard)
        self.surety = np.clip(skill + rng.normal(0, 0.05, shape), 0.5, 0.99).round(2)
        self.count = count

    def dataset(self):
        rows = [
            {"id": f"i{at:04d}", "submission": f"Item {at};", "ground_truth": [WORDS[int(cell)] for cell in row]}
            for at, row in enumerate(self.truth)
        ]
        return RubricDataset(rows, rubric=RUBRIC)

    def models(self):
        return {"cheap": FakeChat(self._cheap), "strong": FakeChat(self._strong)}

    def _place(self, ask):
        text = ask.messages[1].content
        item = int(text.split("Item ")[1].split(";")[0])
        return item, next(at for at in range(3) if f"Point {at} " in text)

    def _cheap(self, ask):
        at = self._place(ask)
        said, other = WORDS[int(self.cheap[at])], WORDS[1 - int(self.cheap[at])]
        p = float(self.surety[at])
        text = json.dumps({"reason": "r", "verdict": said})
        head = text[: text.rindex(said)]
        likely = ((said, math.log(p)), (other, math.log(1 - p)))
        tokens = (Token(head, 0.0), Token(said, math.log(p), likely), Token('"}', 0.0))
        return Answer(text=text, tokens=tokens, model="m")

    def _strong(self, ask):
        return json.dumps({"reason": "r", "verdict": WORDS[int(self.strong[self._place(ask)])]})


def accuracy(grading, world):
    finals = [[each.verdict == "MET" for each in item.criteria] for item in grading.items]
    return float((np.array(finals) == world.truth).mean())


def test_lower_threshold_asks_the_strong_judge_less_often_and_is_right_less_often():
    world = World(2, 200)
    asked, right = [], []
    for unsure_below in (0.95, 0.8, 0.6):
        models = world.models()
        panel = CriterionGrader(Cascade(CHEAP, STRONG, unsure_below=unsure_below))
        grading = grade(world.dataset(), panel, models=models, clock=CLOCK)
        asked.append(len(models["strong"].asked))
        right.append(accuracy(grading, world))
        assert len(models["cheap"].asked) == 600
        assert asked[-1] == int((world.surety < unsure_below).sum())
    assert asked == sorted(asked, reverse=True)
    assert right == sorted(right, reverse=True)


def test_cascade_votes_file_keeps_final_verdicts(tmp_path):
    world = World(5, 60)
    grading = grade(
        world.dataset(), CriterionGrader(Cascade(CHEAP, STRONG, unsure_below=0.8)), models=world.models(), clock=CLOCK
    )
    votes = Votes.load(grading.to_votes(tmp_path / "v.json"))
    assert votes == grading.votes(reasons=True)
    (derived,) = derive(votes)
    assert derived.score.tolist() == [item.score for item in grading.items]
    result = compute_metrics(votes, None)
    assert result.criterion_accuracy == pytest.approx(accuracy(grading, world))
    # A strong judge was asked where the cheap one was unsure, and nowhere else.
    asked = (votes.blocks[0].votes.codes[:, :, 1] != -1).sum()
    assert asked == (world.surety < 0.8).sum()


def test_failed_strong_judge_leaves_no_verdict_in_any_alignment_mode(tmp_path):
    world = World(5, 60)
    models = {**world.models(), "strong": FakeChat(lambda _: "Well.")}
    with pytest.warns(UserWarning, match="failed every call"):
        grading = grade(
            world.dataset(), CriterionGrader(Cascade(CHEAP, STRONG, unsure_below=0.8)), models=models, clock=CLOCK
        )
    failed = [each for item in grading.items for each in item.criteria if each.failed]
    assert len(failed) == (world.surety < 0.8).sum() > 0
    # The cheap judge voted, and its vote decided nothing.
    assert {(each.agreement, each.votes[0].failure) for each in failed} == {(None, None)}
    written = grading.to_votes(tmp_path / "v.json")
    votes = Votes.load(written)
    votes.save(tmp_path / "again.json")
    assert Votes.load(tmp_path / "again.json") == votes
    for mode in ("exclude", "as_unmet", "as_category"):
        found = compute_metrics(votes, None, cannot_assess=mode)
        judged = sum(each.n_samples for each in found.per_criterion)
        assert judged == world.surety.size - len(failed), mode
