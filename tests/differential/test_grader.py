"""The grader against autorubric: judges that cast given votes come to the same verdicts, scores and judge scores."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from deemster.dataset import RubricDataset
from deemster.judges.grading.cases import case_of
from deemster.judges.grading.grader import CriterionGrader
from deemster.judges.grading.jury import Judge
from deemster.records import Silence
from tests.differential.autorubric.cases import labels, votes_file
from tests.differential.autorubric.peer import Peer, autorubric
from tests.judges.grading import options_of, reply
from tests.judges.world import answered

CAUSES = {"infrastructure": "model_failed", "parse": "unreadable", "unknown": "metric_failed"}


@pytest.fixture(scope="module")
def peer() -> Iterator[Peer]:
    with autorubric() as asked:
        yield asked


def whole(seed: int) -> dict:
    """A votes file in which every judge was asked about everything, as a grader asks."""
    value = votes_file(seed)
    criteria = value["rubric"]["criteria"]
    items = [item for item in value["items"] if "votes" in item]
    for item in items:
        for judge in value["judges"]:
            cells = item["votes"].setdefault(judge["id"], [None] * len(criteria))
            filled = zip(cells, criteria, strict=True)
            item["votes"][judge["id"]] = [labels(entry)[0] if cell is None else cell for cell, entry in filled]
    return value | {"items": items}


def cast(item: dict, criteria: list[dict]):
    """Judges that say what the votes of an item say."""

    def answer(ask):
        text = ask.messages[1].content
        (place,) = [place for place, entry in enumerate(criteria) if f"\n{entry['requirement']}\n" in text]
        cell = item["votes"][ask.role][place]
        if isinstance(cell, dict):
            return Silence(cause=CAUSES[cell["failure"]], message="No.")
        shown = options_of(ask)
        return reply(ask, shown[-1] if shown and cell == "CANNOT_ASSESS" else cell)

    return answer


@pytest.mark.parametrize("seed", range(29))
def test_verdicts_scores_and_judge_scores_of_a_grading_are_those_of_autorubric(peer, seed):
    value = whole(seed)
    judges = [Judge(judge["id"], judge["id"], judge["weight"]) for judge in value["judges"]]
    panel = CriterionGrader(judges, **value["grading"])
    data = RubricDataset(
        [{"id": item["id"], "submission": item["id"]} for item in value["items"]], rubric=value["rubric"]
    )
    for place, theirs in enumerate(peer.answer(value, [])["items"]):
        ours, asks = answered(
            panel.script(case_of(data, place)), cast(value["items"][place], value["rubric"]["criteria"])
        )
        assert len(asks) == len(judges) * len(data.rubrics[0].criteria)
        assert ours.score == approx(theirs["score"])
        assert {name: approx(score) for name, score in theirs["judge_scores"].items()} == ours.judge_scores
        assert [each.failed for each in ours.criteria] == theirs["failed"]
        for criterion, label, failed in zip(ours.criteria, theirs["final"], theirs["failed"], strict=True):
            assert criterion.verdict == (None if failed else label)


def approx(value: float | None):
    return value if value is None else pytest.approx(value, abs=1e-12)
