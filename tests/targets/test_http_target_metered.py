"""HTTP targets with a price or a cache: the gateway of the run asks them, so budget, cache and log hold for them."""

from __future__ import annotations

from decimal import Decimal

import pytest

import deemster as dm
from deemster.engine.run_sync import run_sync
from deemster.errors import ConfigurationError, InputError
from deemster.evaluation.dry_run import plan_job_calls
from deemster.evaluation.resolve_evaluation import resolve_arguments
from deemster.models.price import Price
from deemster.targets import HttpLimits, ReplyPaths
from deemster.targets.http_target import HttpTarget
from deemster.targets.target_section import build_target, read_target
from deemster.testing import ModelServer

SAMPLES = [dm.Sample(f"q{number}", {"q": f"{number}?"}, f"{number}?") for number in range(6)]
PRICE = Price(Decimal(1_000_000), Decimal(0))
REPLY = ReplyPaths(output="choices.0.message.content", usage="usage", model="model")


@pytest.fixture
def server():
    with ModelServer(answer=lambda messages: messages[-1]["content"].upper()) as running:
        yield running


def target(server, *, reply=REPLY, **more):
    return HttpTarget(
        f"{server.url}/chat/completions",
        body={"model": "m", "messages": [{"role": "user", "content": "{{input.q}}"}]},
        reply=reply,
        **more,
    )


def evaluated(tested, **more):
    return dm.evaluate(dm.Dataset(SAMPLES, name="d"), target=tested, metrics=["exact-match"], **more)


def test_price_makes_the_cost_of_an_application_known(server):
    plain, priced = evaluated(target(server)), evaluated(target(server, price=PRICE))
    assert plain.cost.unpriced_calls == 6
    assert priced.cost.total_usd == sum(line.cost_usd for line in priced.cost.models) > 0
    assert (priced.cost.complete, priced.usage.target.calls) == (True, 6)
    assert priced.usage.target.total_tokens == plain.usage.target.total_tokens


def test_budget_counts_the_calls_of_an_application_with_a_price(server):
    report = evaluated(target(server, price=PRICE), calls=dm.ModelCalls(budget_usd=75))
    assert report.run.status == "incomplete"
    assert 0 < len(server.requests) < 6


def test_run_that_its_budget_stopped_is_resumed_and_pays_for_nothing_twice(server, tmp_path):
    storage = dm.Storage(tmp_path / "runs.db")
    evaluated(target(server, price=PRICE), storage=storage, calls=dm.ModelCalls(budget_usd=75))
    asked = len(server.requests)
    report = evaluated(target(server, price=PRICE), storage=storage._replace(resume=True))
    assert 0 < asked < len(server.requests) == 6
    assert (report.run.status, report.usage.target.calls) == ("complete", 6)


def test_rule_about_the_cost_of_a_run_can_be_decided_with_a_price(server):
    gate = {"budget": {"max_cost_usd": 0.5}}
    assert evaluated(target(server, price=PRICE), gate=gate).gate.decision == "fail"


def test_second_run_asks_nothing_where_answers_are_cached(server, tmp_path):
    calls = dm.ModelCalls(cache=tmp_path / "answers.jsonl")
    first = evaluated(target(server, cache=True), calls=calls, repetitions=2)
    assert len(server.requests) == 12
    second = evaluated(target(server, cache=True), calls=calls, repetitions=2)
    assert len(server.requests) == 12
    assert second.metrics["exact-match"].mean == first.metrics["exact-match"].mean == 1.0
    assert (second.usage.target.calls, second.usage.target.cached_calls) == (0, 12)


def test_answers_are_not_cached_unless_asked_for(server, tmp_path):
    calls = dm.ModelCalls(cache=tmp_path / "answers.jsonl")
    for _ in range(2):
        evaluated(target(server, price=PRICE), calls=calls)
    assert len(server.requests) == 12


def test_application_elsewhere_answers_offline_from_the_cache_alone(tmp_path):
    tested = HttpTarget("http://192.0.2.1/ask", cache=True, limits=HttpLimits(retries=0))
    with pytest.raises(InputError, match="`http target` needs the network"):
        evaluated(tested, calls=dm.ModelCalls(offline=True, cache=tmp_path / "answers.jsonl"))


def test_dry_run_counts_the_calls_of_an_application_with_a_price(server):
    job = resolve_arguments(dm.Dataset(SAMPLES, name="d"), target=target(server, price=PRICE), metrics=["exact-match"])
    assert run_sync(plan_job_calls(job)).roles["http target"].most.calls == 6
    assert server.requests == []


def test_same_answers_with_and_without_a_price(server):
    plain, priced = evaluated(target(server)), evaluated(target(server, price=PRICE))
    assert plain.metrics == priced.metrics


def test_price_without_the_tokens_is_an_error(server):
    with pytest.raises(ConfigurationError, match="`price` needs `usage`"):
        target(server, price=PRICE, reply=ReplyPaths(output="choices.0.message.content"))


def test_suite_says_price_and_cache(tmp_path):
    section = {"http": {"url": "http://h/", "usage": "usage", "price": {"input": 0.25, "output": 2}, "cache": True}}
    declared, issues = read_target(section, place=str, environ={}, folder=tmp_path)
    assert issues == []
    role = build_target(declared, load=None).own_roles["http target"]
    assert role.prices == {"": Price(Decimal("0.25"), Decimal(2))}
    assert role.identity["client"] == "http-target"
    assert (
        build_target(read_target({"http": "http://h/"}, place=str, environ={}, folder=tmp_path)[0], load=None).roles
        == ()
    )
