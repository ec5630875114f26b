"""`grade` over a whole dataset: against a server that misbehaves, within a budget, and on to alignment."""

from __future__ import annotations

import asyncio
import json
import re
from decimal import Decimal

import pytest

import deemster as dm
from deemster.agreement import compute_metrics
from deemster.datasets import RubricDataset, Votes, derive
from deemster.engine.model_access import build_model_access
from deemster.engine.stop_request import Stop
from deemster.errors import ConfigurationError
from deemster.grading.grade_dataset import grade, grade_async, run_grading
from deemster.judges.criterion_grader import CriterionGrader
from deemster.judges.judge_panel import Judge
from deemster.models import FakeChat, ModelFailure, Price, Role
from deemster.records import Answer, Usage
from deemster.rubrics import LengthPenalty
from deemster.testing import ModelServer
from tests.builders.arguments import arguments
from tests.judges.make_grader import DEPTH, FACTS, FLUFF, RUBRIC, dataset, finals, grader, reply, subject
from tests.report.runs import CLOCK

GOOD = {"facts": "MET", "fluff": "UNMET", "depth": "fair", "tone": "warm"}
PRICES = {"": Price(Decimal(1), Decimal(2))}


def truthful(ask):
    return reply(ask, GOOD[subject(ask)])


def models(judges, answer=truthful, **more):
    return {name: FakeChat(answer, **more) for name in judges}


def items(count, **more):
    return dataset(*({"id": f"i{number:03d}", "submission": f"Text {number}.", **more} for number in range(count)))


def run(data, judges="a", *, answer=truthful, roles=None, **options):
    keys = ("cache", "budget_usd", "budget_tokens", "offline", "progress")
    given = {key: options.pop(key) for key in keys if key in options}
    return grade(
        data, grader(judges, **options), models=roles or models(judges, answer), clock=CLOCK, **arguments(**given)
    )


def votes(grading, judge=None):
    return [
        vote for item in grading.items for each in item.criteria for vote in each.votes if judge in (None, vote.judge)
    ]


def test_every_item_is_graded_in_the_order_of_the_dataset():
    grading = run(items(30), "abc")
    assert [item.id for item in grading.items] == [f"i{number:03d}" for number in range(30)]
    assert {tuple(finals(item)) for item in grading.items} == {("MET", "UNMET", "fair", "warm")}
    assert [(judge.id, judge.votes, judge.failures) for judge in grading.judges] == [(each, 120, {}) for each in "abc"]
    assert (len(grading), grading.halted, grading.failed_judges) == (30, None, ())
    assert grading.items[-1] == grading.items[29] == grading.items[28:][1]


def test_grade_works_inside_running_loop_and_awaited():
    async def inside():
        first = run(items(2))
        second = await grade_async(items(2), grader(), models=models("a"), clock=CLOCK)
        return list(first.items), list(second.items)

    first, second = asyncio.run(inside())
    assert first == second


def test_dataset_may_be_a_path(tmp_path):
    items(3).save(tmp_path / "d.jsonl")
    assert len(run(tmp_path / "d.jsonl")) == 3


def test_same_grading_twice_gives_equal_results():
    assert list(run(items(20), "ab").items) == list(run(items(20), "ab").items)


def test_missing_role_is_error_before_any_request():
    fake = FakeChat(truthful)
    with pytest.raises(ConfigurationError, match="`b`"):
        grade(items(1), grader("ab"), models={"a": fake})
    assert fake.asked == []


def test_non_grader_is_error():
    with pytest.raises(ConfigurationError, match="is a `CriterionGrader`"):
        grade(items(1), "grader", models={})


# usage, money, budget


def priced(answer=truthful):
    def said(ask):
        found = answer(ask)
        if isinstance(found, ModelFailure):
            return found
        return Answer(text=found.text, usage=Usage(prompt_tokens=100, completion_tokens=50), model="m")

    return FakeChat(said, is_local=False, identity={"model": "m"})


def test_usage_and_cost_sum_by_judge_and_in_total():
    grading = run(items(5), "ab", roles={name: Role(client=priced(), prices=PRICES) for name in "ab"})
    each = Decimal("0.0002")
    assert {vote.cost_usd for vote in votes(grading)} == {each}
    assert [judge.cost_usd for judge in grading.judges] == [20 * each, 20 * each]
    assert grading.cost_usd == 40 * each == sum(item.cost_usd for item in grading.items)
    assert grading.usage.calls == 40


def test_cached_answers_are_free(tmp_path):
    fakes = [FakeChat(truthful, identity={"model": "m"}) for _ in range(2)]
    first, second = (run(items(3), roles={"a": fake}, cache=tmp_path / "cache.db") for fake in fakes)
    assert (len(fakes[0].asked), len(fakes[1].asked)) == (12, 0)
    assert second.usage.cached_calls == 12
    assert second.cost_usd == 0
    assert [finals(item) for item in first.items] == [finals(item) for item in second.items]


@pytest.mark.parametrize("limit", [{"budget_usd": 0.05}, {"budget_tokens": 20_000}])
def test_budget_stops_grading_and_unasked_cells_have_no_verdict(limit):
    roles = {"a": Role(client=priced(), prices=PRICES, concurrency=1)}
    with pytest.warns(UserWarning, match="votes of 400 were not asked for: The budget is exhausted"):
        grading = run(items(100), roles=roles, **limit)
    lost = [vote for vote in votes(grading) if vote.failure is not None]
    assert {(vote.failure.category, vote.failure.cause) for vote in lost} == {("infrastructure", "not_run")}
    (judge,) = grading.judges
    assert 0 < judge.not_run == len(lost) < 400 == judge.votes
    assert grading.halted.startswith("The budget is exhausted")
    # A stop at the budget is no failure of the judge, so it is not marked as failed.
    assert not judge.failed
    assert {item.score is None for item in grading.items} == {True, False}
    for item in grading.items:
        assert (item.score is None) == all(each.failed for each in item.criteria)


def test_zero_budget_sends_no_request():
    fake = priced()
    with pytest.warns(UserWarning, match="were not asked for"):
        grading = run(items(3), roles={"a": Role(client=fake, prices=PRICES)}, budget_tokens=0)
    assert fake.asked == []
    assert grading.failed_judges == ()
    assert all(item.error is not None for item in grading.items)


def test_stopped_grading_returns_finished_items():
    stop = Stop()

    def answer(ask):
        if "Text 5." in ask.messages[1].content:
            stop.request("interrupted")
        return truthful(ask)

    said = []
    asking = build_model_access({"a": Role(client=FakeChat(answer), concurrency=1)})
    grading = asyncio.run(run_grading(items(1000), grader(), access=asking, clock=CLOCK, stop=stop, warn=said.append))
    assert len(grading) == 1000
    assert grading.halted == "interrupted"
    assert 0 < sum(item.score is not None for item in grading.items) < 1000
    assert said[0].endswith("were not asked for: interrupted")


class Patient:
    """A model that answers only when enough requests wait."""

    def __init__(self, least):
        self.least, self.waiting, self.enough = least, 0, asyncio.Event()

    async def complete(self, ask):
        self.waiting += 1
        if self.waiting == self.least:
            self.enough.set()
        async with asyncio.timeout(20):
            await self.enough.wait()
        return truthful(ask)


def test_concurrency_of_each_judge_follows_its_limits():
    roles = {name: Role(client=Patient(48), concurrency=48) for name in "abc"}
    grading = run(items(20), "abc", roles=roles)
    assert not [vote for vote in votes(grading) if vote.failure is not None]


def test_progress_counts_items_and_failed_votes():
    told = []
    run(items(4), "ab", roles={"a": FakeChat(truthful), "b": FakeChat(fails_on("Text 1."))}, progress=told.append)
    assert [each.done for each in told] == [1, 2, 3, 4]
    assert told[-1].unscored == 4
    assert set(told[-1].spent) == {"a", "b"}


def fails_on(text):
    return lambda ask: ModelFailure("refused", "No.") if text in ask.messages[1].content else truthful(ask)


# checks


def test_check_criterion_is_answered_by_catalog_metric():
    rubric = {"criteria": [FLUFF, {**FACTS, "check": {"metric": "regex", "args": {"pattern": "^Text [02]"}}}]}
    data = dataset(*(f"Text {number}." for number in range(3)), rubric=rubric)
    grading = run(data, "ab")
    assert [finals(item)[1] for item in grading.items] == ["MET", "UNMET", "MET"]
    assert {vote.judge for vote in votes(grading)} == {"a", "b", "check:regex"}
    assert [judge.votes for judge in grading.judges] == [3, 3]
    (derived,) = derive(grading.votes())
    assert derived.score.tolist() == [item.score for item in grading.items]


def test_unknown_or_invalid_check_metric_is_error_before_any_request():
    first = {**FACTS, "check": {"metric": "regx", "args": {}}}
    second = {**FLUFF, "check": {"metric": "regex", "args": {"patern": "x"}}}
    fake = FakeChat(truthful)
    with pytest.raises(ConfigurationError) as error:
        run(dataset("x", rubric={"criteria": [first, second]}), roles={"a": fake})
    assert "`facts`: No metric is called `regx`. Did you mean `regex`?" in str(error.value)
    assert "`fluff`: `regex` has no option `patern`" in str(error.value)
    assert fake.asked == []


def test_check_metric_may_ask_its_own_model():
    check = {"metric": "cosine-embedding", "threshold": 0.9}
    data = dataset("Paris.", "Rome.", rubric={"criteria": [{**FACTS, "check": check}]}, reference_submission="Paris.")
    grading = grade(data, grader(), models=models("a"), clock=CLOCK)
    assert [finals(item) for item in grading.items] == [["MET"], ["UNMET"]]


class Broken:
    name = "broken"

    def score(self, sample, output):
        raise RuntimeError("Broken.")


def test_failing_check_metric_abstains_and_failing_setup_is_item_error():
    check = {"metric": f"{__name__}:Broken"}
    data = dataset("x", rubric={"criteria": [{**FACTS, "check": check}, FLUFF]})
    (item,) = run(data).items
    assert finals(item) == ["CANNOT_ASSESS", "UNMET"]

    def counts(text):
        return 1 / (len(text) - 1)

    grading = run(dataset("x", "long"), length_penalty=LengthPenalty(count=counts))
    assert [item.error for item in grading.items] == ["ZeroDivisionError: division by zero", None]
    assert grading.items[0].score is None
    assert derive(grading.votes())[0].score[1] == grading.items[1].score


# on to alignment


def labelled(count=12):
    return items(count, ground_truth=["MET", "UNMET", "good", None], tags=["t"], metadata={"author": 1})


def test_metrics_of_a_grading_are_those_of_its_votes():
    data = dataset({"id": "i", "submission": "x", "ground_truth": ["MET", "UNMET", "good", "warm"]})
    grading = run(data, "ab")
    votes = grading.votes()
    assert compute_metrics(
        grading, data, per_judge=True, bootstrap=dm.agreement.BootstrapSettings(seed=3)
    ) == compute_metrics(votes, data, per_judge=True, bootstrap=dm.agreement.BootstrapSettings(seed=3))
    assert compute_metrics(grading) == compute_metrics(votes)


def test_grading_is_accepted_by_compute_metrics(tmp_path):
    data = labelled()
    grading = run(data, "ab")
    cast = grading.votes()
    assert cast.dataset_fingerprint == data.fingerprint == grading.dataset_fingerprint
    result = compute_metrics(cast, data, per_judge=True)
    assert result == compute_metrics(cast, None, per_judge=True)
    assert [criterion.accuracy for criterion in result.per_criterion[:2]] == [1.0, 1.0]
    path = grading.to_votes(tmp_path / "votes.jsonl")
    assert Votes.load(path) == grading.votes(reasons=True)
    assert Votes.load(grading.to_votes(tmp_path / "bare.json", reasons=False)) == cast
    assert "Because." in path.read_text()


def test_item_rubrics_are_kept(tmp_path):
    own = {
        "submission": "Other.",
        "rubric": {"name": "own", "criteria": [FACTS, DEPTH]},
        "ground_truth": ["MET", "good"],
    }
    grading = run(dataset("Text.", own, {**own, "submission": "More."}), repeats=2)
    cast = grading.votes()
    assert [len(block) for block in cast.blocks] == [1, 2]
    assert Votes.load(grading.to_votes(tmp_path / "v.json", reasons=False)) == cast
    assert [score for each in derive(cast) for score in each.score] == [item.score for item in grading.items]


def test_failed_votes_never_count_in_alignment():
    roles = {"a": FakeChat(truthful), "b": FakeChat(lambda _: ModelFailure("refused", "No."))}
    with pytest.warns(UserWarning, match="`b` failed every call"):
        grading = run(labelled(4), "ab", roles=roles)
    result = compute_metrics(grading, None, per_judge=True)
    assert result.per_judge["b"].criterion_accuracy is None
    assert result.per_judge["a"].criterion_accuracy == pytest.approx(2 / 3)


# against a server that misbehaves


def verdicts(chat):
    """A server's answer: MET, or the first option shown."""
    key = "option" if "option" in chat.schema["properties"] else "verdict"
    return json.dumps({"reason": "Seen.", key: 1 if key == "option" else "MET"})


def role(server, **more):
    client = dm.models.OpenAIChat(base_url=server.url, model="m")
    return Role(client=client, **{"retries": 0, "concurrency": 4, **more})


SMALL = {"criteria": [FACTS, DEPTH]}


def against(*servers, count=4, **options):
    roles = dict(zip("abc", (role(server) for server in servers), strict=False))
    data = dataset(*(f"Text {number}." for number in range(count)), rubric=SMALL)
    return grade(data, grader("".join(roles), **options), models=roles, clock=CLOCK)


@pytest.mark.parametrize("fault", ["500", "reset", "half", "not-json", "429=120"])
def test_one_dead_judge_of_three_is_named_and_changes_no_verdict(fault):
    with ModelServer(answer=verdicts) as well, ModelServer(faults={fault: 1.0}) as dead:
        with pytest.warns(UserWarning, match="The judge `c` failed every call: "):
            grading = against(well, well, dead, quorum=2)
        alone = against(well, well)
    assert grading.failed_judges == ("c",)
    assert [finals(item) for item in grading.items] == [finals(item) for item in alone.items]
    assert [item.score for item in grading.items] == [item.score for item in alone.items]
    assert {item.judge_scores["c"] for item in grading.items} == {None}
    assert {vote.failure.category for vote in votes(grading, "c")} == {"infrastructure"}
    assert all(vote.verdict is None for vote in votes(grading, "c"))


def test_open_circuit_is_reported_and_unasked_cells_are_counted():
    matching = pytest.warns(UserWarning, match="not asked for|failed every call")
    with ModelServer(answer=verdicts) as well, ModelServer(faults={"reset": 1.0}) as dead, matching as told:
        grading = against(well, dead, count=60, quorum=1)
    assert len(told) == 2
    assert "votes of 240 were not asked for: " in str(told[0].message)
    assert "The judge `b` failed every call: " in str(told[1].message)
    judge = grading.judges[1]
    assert 0 < judge.not_run < judge.votes == judge.failures["infrastructure"] == 120
    assert all(item.score is not None for item in grading.items)


def test_panel_of_dead_judges_gives_no_score():
    with ModelServer(faults={"500": 1.0}) as dead, pytest.warns(UserWarning, match="failed every call"):
        grading = against(dead, dead, dead, count=3)
    assert grading.failed_judges == ("a", "b", "c")
    for item in grading.items:
        assert (item.score, item.raw_score, item.mean_agreement) == (None, None, None)
        assert finals(item) == [None, None]
        assert "Every call failed" in item.error
    (derived,) = derive(grading.votes())
    assert not (derived.score == derived.score).any()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"reason": "Half a rep', "not one JSON object"),
        ('{"reason": "r", "verdict": "MET"}\n{"reason": "r", "verdict": "UNMET"}', "not one JSON object"),
        ('{"reason": "r", "verdict": "MET", "verdict": "UNMET"}', "not one JSON object"),
        ('{"reason": "r", "verdict": "MOSTLY"}', "is one of"),
        ("The answer is MET.", "begins with"),
    ],
)
def test_unreadable_verdict_is_retried_once_then_failed(text, message):
    data = dataset("x", rubric={"criteria": [FACTS]})
    with ModelServer(answer=lambda _: text) as server:
        with pytest.warns(UserWarning, match="failed every call"):
            grading = grade(data, grader(), models={"a": role(server)}, clock=CLOCK)
        assert len(server.requests) == 2
    (vote,) = votes(grading)
    assert (vote.verdict, vote.failure.category) == (None, "parse")
    assert re.search(message, vote.failure.message)
    assert grading.items[0].score is None


def test_option_number_off_scale_is_failed_vote():
    with ModelServer(answer=lambda _: '{"reason": "r", "option": 7}') as server:
        data = dataset("x", rubric={"criteria": [DEPTH]})
        with pytest.warns(UserWarning, match="from 1 to 4, not 7"):
            grading = grade(data, grader(), models={"a": role(server)}, clock=CLOCK)
    assert [vote.failure.category for vote in votes(grading)] == ["parse"]


def test_refusal_is_failed_vote():
    with ModelServer(faults={"refusal": 1.0}) as server, pytest.warns(UserWarning, match="I cannot judge this"):
        grading = against(server, count=1)
    assert {vote.failure.category for vote in votes(grading)} == {"parse"}
    assert finals(grading.items[0]) == [None, None]


def test_temporary_failure_leaves_no_trace():
    with ModelServer(answer=verdicts, faults={"500": 0.2, "half": 0.1}) as server:
        data = dataset(*(f"Text {number}." for number in range(4)), rubric=SMALL)
        grading = grade(data, grader("ab"), models={name: role(server, retries=8) for name in "ab"})
    assert not [vote for vote in votes(grading) if vote.failure is not None]


def test_judges_of_a_panel_may_share_a_model():
    with ModelServer(answer=verdicts) as server:
        panel = CriterionGrader([Judge("strict", "m"), Judge("kind", "m")])
        data = dataset("x", rubric=SMALL)
        grading = grade(data, panel, models={"m": role(server)}, clock=CLOCK)
        assert len(server.requests) == 4
    assert grading.items[0].judge_scores.keys() == {"strict", "kind"}


def test_fixture_rubric_has_all_criteria():
    assert list(GOOD) == [each["name"] for each in RUBRIC["criteria"]]
    assert isinstance(items(1), RubricDataset)
