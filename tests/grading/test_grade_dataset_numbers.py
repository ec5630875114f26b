"""Numeric criteria end to end: a real server answers with numbers, votes and store keep them, alignment reads them."""

from __future__ import annotations

import json

import pytest

import deemster as dm
from deemster.datasets import Votes, derive
from deemster.grading.grade_dataset import grade
from deemster.judges.few_shot import FewShot
from deemster.models import Role
from deemster.testing import ModelServer
from tests.builders.arguments import arguments
from tests.judges.make_grader import FACTS, dataset, grader
from tests.report.runs import CLOCK

GRADE = {"name": "grade", "weight": 6, "requirement": "How good is it?", "minimum": 1, "maximum": 5, "step": 0.5}
SHARE = {"name": "share", "weight": -2, "requirement": "Which share is fluff?", "minimum": 0, "maximum": 1}
RUBRIC = {"criteria": [GRADE, FACTS, SHARE]}
ANSWERS = {"grade": 3.5, "share": 0.25}


def about(chat):
    """The name of the criterion that a question is about."""
    return named(chat[-1]["content"])


def named(text):
    return next(each["name"] for each in RUBRIC["criteria"] if f"\n{each['requirement']}\n" in text)


def questions(server):
    """What the server was asked about each criterion: the text and the JSON schema."""
    found = {}
    for request in server.requests:
        body = json.loads(request.body)
        text = body["messages"][-1]["content"]
        found[named(text)] = text, body["response_format"]["json_schema"]["schema"]
    return found


def answer(chat, numbers=ANSWERS):
    if "verdicts" in chat.schema["properties"]:
        entries = [{"criterion": name, "reason": "r", "number": number} for name, number in numbers.items()]
        return json.dumps({"verdicts": [*entries, {"criterion": "facts", "reason": "r", "verdict": "MET"}]})
    if "number" in chat.schema["properties"]:
        return json.dumps({"reason": "r", "number": numbers[about(chat)]})
    return json.dumps({"reason": "r", "verdict": "MET"})


def run(servers, *items, **options):
    keys = ("where", "resume")
    given = {key: options.pop(key) for key in keys if key in options}
    roles = {
        name: Role(client=dm.models.OpenAIChat(base_url=server.url, model="m"), retries=0)
        for name, server in zip("abc", servers, strict=False)
    }
    data = dataset(*items or ("Paris.",), rubric=RUBRIC)
    return grade(data, grader("".join(roles), **options), models=roles, clock=CLOCK, **arguments(**given))


@pytest.mark.parametrize("calls", ["per_criterion", "per_item"])
def test_numbers_of_a_server_become_verdicts_and_scores(calls):
    with ModelServer(answer=answer) as server:
        (item,) = run([server], calls=calls).items
    first, _, last = item.criteria
    assert (first.verdict, first.option_index, first.value, first.code) == ("3.5", None, 0.625, 3.5)
    assert (last.verdict, last.value, last.agreement) == ("0.25", 0.25, 1.0)
    assert item.score == pytest.approx((6 * 0.625 + 10 - 2 * 0.25) / 16)


def test_question_names_range_and_schema_limits_it():
    with ModelServer(answer=answer) as server:
        run([server])
        asked = questions(server)
    text, schema = asked["grade"]
    assert "from 1 to 5, in steps of 0.5" in text
    assert "from 0 to 1; decimals are allowed" in asked["share"][0]
    number = {"type": "number", "minimum": 1.0, "maximum": 5.0}
    assert schema["properties"]["number"] == {"anyOf": [number, {"type": "null"}]}


def test_panel_takes_the_mean_and_each_judge_has_a_score():
    numbers = ({"grade": 2, "share": 0}, {"grade": 3, "share": 0.5}, {"grade": 5, "share": None})
    servers = [ModelServer(answer=lambda chat, own=own: answer(chat, own)) for own in numbers]
    with servers[0], servers[1], servers[2]:
        (item,) = run(servers).items
        (median,) = run(servers, numeric_aggregation="median").items
    first, _, last = item.criteria
    assert (first.code, last.code) == (pytest.approx(10 / 3), 0.25)
    assert [median.criteria[place].code for place in (0, 2)] == [3.0, 0.25]
    assert item.judge_scores["b"] == pytest.approx((6 * 0.5 + 10 - 1) / 16)
    assert item.judge_scores["c"] == pytest.approx((6 * 1.0 + 10) / 16)
    assert first.agreement == pytest.approx(1 - (4 / 3 + 1 / 3 + 5 / 3) / 3 / 4)


@pytest.mark.parametrize("wrong", [0.5, 6, "3", True, 3.25, None])
def test_reply_that_is_no_number_of_the_range_is_unreadable(wrong):
    options = {"auto_na": False} if wrong is None else {}
    with ModelServer(answer=lambda chat: answer(chat, ANSWERS | {"grade": wrong})) as server:
        (item,) = run([server], **options).items
    first, *others = item.criteria
    assert first.failed
    assert first.votes[0].failure.category == "parse"
    assert not any(each.failed for each in others)


def test_null_is_an_abstention():
    with ModelServer(answer=lambda chat: answer(chat, ANSWERS | {"grade": None})) as server:
        (item,) = run([server]).items
    assert (item.criteria[0].verdict, item.criteria[0].abstained, item.criteria[0].value) == (
        "CANNOT_ASSESS",
        True,
        None,
    )
    assert item.score == pytest.approx((10 - 0.5) / 10)


def test_repeats_are_averaged():
    turns = iter([2, 3, 4] * 3)
    with ModelServer(answer=lambda chat: answer(chat, {"grade": next(turns), "share": 0.5})) as server:
        (item,) = run([server], repeats=3).items
    assert item.criteria[0].code == 3.0
    assert [vote.code for vote in item.criteria[0].votes] == [2.0, 3.0, 4.0]


LABELLED = [
    {"id": f"i{at}", "submission": f"Text {at}.", "ground_truth": [at % 5 + 1, "yes", 0.25]} for at in range(12)
]


def by_text(chat):
    at = int(chat[-1]["content"].rpartition("Text ")[2].partition(".")[0])
    return answer(chat, {"grade": min(5, at % 5 + 1.5), "share": 0.3})


def test_votes_of_a_grading_carry_numbers_to_alignment(tmp_path):
    with ModelServer(answer=by_text) as server:
        grading = run([server], *LABELLED)
    votes = Votes.load(grading.to_votes(tmp_path / "votes.json", reasons=False))
    assert votes == grading.votes()
    (facts,) = derive(votes)
    assert facts.score.tolist() == pytest.approx([item.score for item in grading.items])
    result = dm.compute_metrics(grading)
    found = result.per_criterion[0]
    assert (found.criterion_type, found.n_samples) == ("numeric", 12)
    assert found.bias.mean_bias == pytest.approx(5 / 12)
    assert result.n_numeric_criteria == 2


def test_stored_grading_resumes_with_its_numbers(tmp_path):
    place = tmp_path / "runs.db"
    with ModelServer(answer=by_text) as server:
        first = run([server], *LABELLED, where=place)
        before = len(server.requests)
        again = run([server], *LABELLED, where=place, resume=first.run)
        assert len(server.requests) == before
    assert list(again.items) == list(first.items)
    assert again.items[0].criteria[0].code == 1.5


def test_examples_show_numbers():
    train = dataset(*LABELLED, rubric=RUBRIC)
    with ModelServer(answer=answer) as server:
        run([server], "Other.", few_shot=FewShot(train, n=2))
        text, _ = questions(server)["share"]
    assert "number 0.25" in text
