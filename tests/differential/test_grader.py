"""The grader against autorubric: the same votes give the same verdicts, scores and judge scores."""

from __future__ import annotations

from random import Random

import pytest

from deemster.datasets import RubricDataset
from deemster.judges.criterion_grader import CriterionGrader
from deemster.judges.grading_case import make_case
from deemster.judges.judge_panel import Judge
from deemster.records import NoAnswer
from tests.builders.arguments import grader_arguments
from tests.differential.autorubric.cases import BINARY, NOMINAL, ORDINAL, criterion, item, labels, votes_file
from tests.differential.autorubric.peer import Peer
from tests.differential.peers import approx
from tests.judges.make_grader import options_of, reply
from tests.judges.play import answered

pytestmark = pytest.mark.xdist_group("autorubric")
CAUSES = {"infrastructure": "model_failed", "parse": "unreadable", "unknown": "metric_failed"}


def whole(seed: int) -> dict:
    """A votes file in which every judge was asked about everything, as a grader asks."""
    value = votes_file(seed)
    criteria = value["rubric"]["criteria"]
    items = [each for each in value["items"] if "votes" in each]
    for each in items:
        for judge in value["judges"]:
            cells = each["votes"].setdefault(judge["id"], [None] * len(criteria))
            filled = zip(cells, criteria, strict=True)
            each["votes"][judge["id"]] = [labels(entry)[0] if cell is None else cell for cell, entry in filled]
    return value | {"items": items}


def cast(its: dict, criteria: list[dict]):
    """Judges that reply with the votes of an item."""

    def answer(ask):
        text = ask.messages[1].content
        (place,) = [place for place, entry in enumerate(criteria) if f"\n{entry['requirement']}\n" in text]
        cell = its["votes"][ask.role][place]
        if isinstance(cell, dict):
            return NoAnswer(cause=CAUSES[cell["failure"]], message="No.")
        shown = options_of(ask)
        return reply(ask, shown[-1] if shown and cell == "CANNOT_ASSESS" else cell)

    return answer


@pytest.mark.parametrize("seed", range(29))
def test_grading_verdicts_and_scores_equal_autorubric(peer, seed):
    compare(peer, whole(seed))


@pytest.mark.parametrize("place", range(max(map(len, (BINARY, ORDINAL, NOMINAL)))))
@pytest.mark.parametrize("seed", range(3))
def test_every_rule_on_divided_panel_equals_autorubric(peer, seed, place):
    rules = {
        "aggregation": BINARY[place % len(BINARY)],
        "ordinal_aggregation": ORDINAL[place % len(ORDINAL)],
        "nominal_aggregation": NOMINAL[place % len(NOMINAL)],
    }
    value = divided(seed, **rules)
    panels = [cells for item in value["items"] for cells in zip(*item["votes"].values(), strict=True)]
    assert sum(len({str(cell) for cell in cells}) > 1 for cells in panels) > 20
    compare(peer, value)


def divided(seed: int, **rules: str) -> dict:
    """A votes file of three judges about every kind of criterion, for better and for worse, by the rules given."""
    rng = Random(seed)
    kinds = ("binary", "ordinal", "nominal")
    criteria = [criterion(rng, number, kinds[number % 3]) for number in range(6)]
    for number, entry in enumerate(criteria):
        entry.pop("aggregation", None)
        entry["weight"] = abs(entry["weight"]) * (1 if number < 3 else -1)
    odds = {"abstaining": 0.15, "failed": 0.1, "silent": 0.0, "errored": 0.0, "unlabelled": 0.0}
    return {
        "schema_version": "deemster.votes.v1",
        "rubric": {"criteria": criteria},
        "judges": [{"id": name, "weight": weight} for name, weight in (("a", 1.0), ("b", 1.0), ("c", 2.5))],
        "grading": {**rules, "abstention": ("skip", "zero", "partial")[seed], "partial_credit": 0.5, "normalize": True},
        "items": [item(rng, f"item-{number}", criteria, ["a", "b", "c"], odds) for number in range(12)],
    }


def compare(peer: Peer, value: dict) -> None:
    """Grade by judges that cast these votes, and hold everything against autorubric."""
    judges = [Judge(judge["id"], judge["id"], judge["weight"]) for judge in value["judges"]]
    # autorubric decides by the votes that there are; here that is said by a quorum.
    panel = CriterionGrader(judges, quorum=1, **grader_arguments(**value["grading"]))
    data = RubricDataset(
        [{"id": each["id"], "submission": each["id"]} for each in value["items"]], rubric=value["rubric"]
    )
    for place, theirs in enumerate(peer.answer(value, [])["items"]):
        ours, asks = answered(
            panel.script(make_case(data, place)), cast(value["items"][place], value["rubric"]["criteria"])
        )
        assert len(asks) == len(judges) * len(data.rubrics[0].criteria)
        assert ours.score == approx(theirs["score"])
        assert {name: approx(score) for name, score in theirs["judge_scores"].items()} == ours.judge_scores
        assert [each.failed for each in ours.criteria] == theirs["failed"]
        for each, label, failed in zip(ours.criteria, theirs["final"], theirs["failed"], strict=True):
            assert each.verdict == (None if failed else label)
