"""`evaluate` with models: every form of client, every caller, every way a run ends."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import threading
from decimal import Decimal

import pytest

import deemster as dm
from deemster.engine.run_sync import run_sync
from deemster.engine.stop_request import Stop
from deemster.evaluation._constant_judge_warning import FEWEST_SAMPLES
from deemster.evaluation.resolve_evaluation import resolve_arguments
from deemster.evaluation.run_evaluation import run_evaluation
from deemster.models import FakeChat, FakeEmbedding, ModelFailure, Price, Role
from deemster.records import Answer, Ask, Embed, Message, MetricScore, Usage
from tests.builders.arguments import arguments
from tests.report.runs import CLOCK

GOOD = {"reason": "It says so.", "score": 0.75}
PRICES = {"": Price(Decimal(1), Decimal(2))}


def options(count=3, **more):
    ids = [f"s{number}" for number in range(count)]
    return {
        "dataset": dm.Dataset([dm.Sample(each, {"question": each}, f"expected {each}") for each in ids], name="d"),
        "outputs": {each: f"output {each}" for each in ids},
        "metrics": ["llm-as-judge"],
        "clock": CLOCK,
        **more,
    }


def evaluated(count=3, **more):
    given = options(count, **more)
    return dm.evaluate(given.pop("dataset"), **arguments(**given))


def judge(**more):
    return FakeChat(lambda ask: GOOD, **more)


def scores(execution):
    (mark,) = execution.marks.values()
    return mark.unscored.cause if hasattr(mark, "unscored") else mark.score


def costly(ask):
    usage = Usage(prompt_tokens=100, completion_tokens=10)
    (sample,) = set(re.findall("expected (s[0-9]+)", ask.messages[-1].content))
    return Answer(text=json.dumps({"reason": f"About {sample}.", "score": 0.75}), usage=usage, model="m")


class AsyncClient:
    async def complete(self, ask):
        await asyncio.sleep(0)
        return Answer(text=json.dumps(GOOD))


class SyncClient:
    def __init__(self):
        self.threads = set()
        self.closed = 0

    def complete(self, ask):
        self.threads.add(threading.current_thread())
        return Answer(text=json.dumps(GOOD))

    def close(self):
        self.closed += 1


@pytest.mark.parametrize(
    "client",
    [judge(), AsyncClient(), SyncClient(), Role(client=judge(), retries=0), {"client": f"{__name__}:AsyncClient"}],
    ids=["fake", "async", "sync", "role", "map"],
)
def test_model_is_accepted_in_every_form(client):
    report = evaluated(models={"judge": client})
    assert report.metrics["llm-as-judge"].mean == 0.75
    assert report.run.status == "complete"


def test_sync_client_runs_in_threads_and_is_closed_once():
    client = SyncClient()
    evaluated(models={"judge": client})
    assert threading.main_thread() not in client.threads
    assert client.closed == 1


class Alike:
    """A user's scorer that asks for vectors."""

    name = "alike"
    roles = ("embedding",)

    def script(self, sample, output):
        (vectors,) = yield [Embed(texts=(str(sample.expected_output), output.text))]
        first, second = vectors.values
        return MetricScore(float(first @ second > 0))


def test_vectors_come_from_the_given_embedding_client():
    fake = FakeEmbedding(lambda text: [1.0, 2.0])
    assert evaluated(metrics=[Alike()], models={"embedding": fake}).metrics["alike"].mean == 1.0
    assert sorted(text for texts in fake.asked for text in texts) == sorted(
        f"{kind} s{number}" for kind in ("expected", "output") for number in range(3)
    )


def test_default_embedding_is_the_embedded_model():
    assert evaluated(metrics=[Alike()]).metrics["alike"].n_scored == 3


def test_model_usage_is_in_the_report():
    report = evaluated(models={"judge": Role(client=FakeChat(costly, is_local=False), prices=PRICES)})
    scoring = json.loads(report.to_json())["usage"]["scoring"]
    assert (scoring["calls"], scoring["prompt_tokens"], scoring["completion_tokens"]) == (3, 300, 30)
    assert report.cost.total_usd == Decimal("0.00036")


class Whole:
    """A user's scorer that asks once about a batch."""

    name = "whole"
    roles = ("judge",)

    def script(self, sample, output):
        raise AssertionError

    def script_many(self, samples, outputs):
        yield [Ask(messages=(Message("user", "expected s0"),))]
        return [MetricScore(1.0)] * len(samples)


def test_usage_shared_by_a_batch_counts_once():
    role = Role(client=FakeChat(costly, is_local=False), prices=PRICES)
    report = evaluated(7, metrics=[Whole()], models={"judge": role})
    scoring, (model,) = report.usage.scoring, report.cost.models
    assert (scoring.calls, scoring.prompt_tokens, scoring.completion_tokens) == (1, 100, 10)
    assert (model.calls, model.prompt_tokens, model.completion_tokens) == (1, 100, 10)
    assert report.cost.total_usd == Decimal("0.00012")


@pytest.mark.parametrize(
    ("models", "said"),
    [
        ({}, "judge"),
        (None, "models: {judge:"),
        ({"jugde": judge()}, "Did you mean `jugde`?"),
        ({"judge": FakeEmbedding()}, "`judge` embeds"),
        ({"judge": object()}, "`complete` or `embed_many`"),
        ({"judge": {"base_url": "http://x/v1"}}, "needs `model`"),
        ({"judge": {"base_url": "http://x/v1", "model": "m", "api_key": "k"}}, "api_key_env"),
        ({"judge": {"base_url": "http://x/v1", "model": "m", "api_key_env": "NO_SUCH_KEY"}}, "NO_SUCH_KEY"),
    ],
)
def test_missing_or_unusable_model_is_error_before_the_run(models, said):
    with pytest.raises(dm.ConfigurationError, match=said.replace("{", r"\{").replace("?", r"\?")):
        evaluated(models=models)


@pytest.mark.parametrize("budget", [{"budget_usd": -1}, {"budget_usd": "much"}, {"budget_tokens": 1.5}])
def test_invalid_budget_is_error(budget):
    with pytest.raises(dm.ConfigurationError, match="budget"):
        evaluated(models={"judge": judge()}, **budget)


def test_run_stops_before_budget_is_exceeded():
    client = FakeChat(costly, is_local=False)
    report = evaluated(40, models={"judge": Role(client=client, concurrency=1)}, budget_tokens=6_000)
    spent = json.loads(report.to_json())["usage"]["scoring"]
    assert report.run.status == "incomplete"
    assert "6,000 tokens" in report.run.reason
    assert 0 < len(client.asked) < 40
    assert spent["prompt_tokens"] + spent["completion_tokens"] <= 6_000
    assert report.metrics["llm-as-judge"].n_scored == len(client.asked)
    told = report.budget
    assert (told.limit_tokens, told.limit_usd, told.halted) == (6_000, None, True)
    assert told.spent_tokens == spent["prompt_tokens"] + spent["completion_tokens"]
    assert (told.completed, told.remaining) == (len(client.asked), 40 - len(client.asked))


def test_unreached_budget_is_reported():
    report = evaluated(models={"judge": FakeChat(costly, is_local=False)}, budget_tokens=10**6)
    assert report.run.status == "complete"
    assert (report.budget.spent_tokens, report.budget.halted, report.budget.reason) == (330, False, None)
    assert (report.budget.completed, report.budget.remaining) == (3, 0)


def test_run_stops_before_budget_in_usd_is_exceeded():
    role = Role(client=FakeChat(costly, is_local=False), prices=PRICES, concurrency=2)
    report = evaluated(40, models={"judge": role}, budget_usd=0.005)
    assert report.run.status == "incomplete"
    assert 0 < report.cost.total_usd <= Decimal("0.005")
    assert (report.budget.spent_usd, report.budget.halted) == (report.cost.total_usd, True)


def test_offline_run_asks_only_local_models():
    assert evaluated(models={"judge": judge()}, offline=True).run.status == "complete"
    far = judge(is_local=False)
    with pytest.raises(dm.ConfigurationError, match="needs the network"):
        evaluated(models={"judge": far}, offline=True)
    assert far.asked == []


def test_cached_answer_is_free_and_not_requested_again(tmp_path):
    def role():
        return Role(client=FakeChat(costly, identity={"model": "m"}, is_local=False), prices=PRICES)

    first, second = role(), role()
    before = evaluated(models={"judge": first}, cache=tmp_path / "answers.jsonl")
    after = evaluated(models={"judge": second}, cache=tmp_path / "answers.jsonl")
    assert (len(first.client.asked), len(second.client.asked)) == (3, 0)
    scoring = json.loads(after.to_json())["usage"]["scoring"]
    assert (scoring["calls"], scoring["cached_calls"]) == (0, 3)
    assert after.cost is None
    assert [scores(each) for each in after.executions] == [scores(each) for each in before.executions]
    offline = evaluated(models={"judge": role()}, cache=tmp_path / "answers.jsonl", offline=True)
    assert offline.run.status == "complete"


def test_failed_model_leaves_marks_unscored():
    client = FakeChat(lambda ask: ModelFailure("refused", "no") if "s1" in ask.messages[-1].content else GOOD)
    report = evaluated(models={"judge": client}, max_unscored=1)
    assert [scores(each) for each in report.executions] == [0.75, "model_failed", 0.75]


def bytes_at(concurrency):
    """The report of a run whose models answer in any order."""
    steps = iter(range(10**6))

    async def said(ask):
        for _ in range(next(steps) * 7919 % 5):
            await asyncio.sleep(0)
        return costly(ask)

    role = Role(client=FakeChat(said, is_local=False), prices=PRICES, concurrency=concurrency)
    metrics = ["llm-as-judge", "contains", {"llm-as-judge": {"name": "panel", "samples": 3}}, Alike()]
    return evaluated(
        30,
        metrics=metrics,
        models={"judge": role, "embedding": FakeEmbedding()},
        repetitions=2,
        concurrency=concurrency,
    ).to_json()


def test_report_bytes_are_the_same_for_any_concurrency():
    assert bytes_at(1) == bytes_at(7) == bytes_at(64)


def test_evaluate_gives_same_report_in_script_loop_and_thread():
    def report():
        return evaluated(models={"judge": judge(), "embedding": FakeEmbedding()}, metrics=["llm-as-judge", Alike()])

    async def notebook():
        return report().to_json()

    async def awaited():
        given = options(models={"judge": judge(), "embedding": FakeEmbedding()}, metrics=["llm-as-judge", Alike()])
        return (await dm.evaluate_async(given.pop("dataset"), **arguments(**given))).to_json()

    found = []
    thread = threading.Thread(target=lambda: found.append(report().to_json()))
    thread.start()
    thread.join(timeout=60)
    assert found == [report().to_json()]
    assert asyncio.run(notebook()) == asyncio.run(awaited()) == found[0]


class Stuck:
    """A client that reports its first request, and then never answers."""

    def __init__(self, when):
        self.when = when
        self.loop = None
        self.cancelled = 0

    async def complete(self, ask):
        first, self.loop = self.loop is None, asyncio.get_running_loop()
        if first:
            self.when()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    async def embed_many(self, texts):
        return await self.complete(None)


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


def threads():
    return [each.name for each in threading.enumerate() if each.name.startswith("deemster")]


def both(client):
    return {"metrics": ["llm-as-judge", Alike()], "models": {"judge": client, "embedding": client}}


def test_cancelled_evaluate_leaves_no_task():
    async def cancelled():
        asked = asyncio.Event()
        client = Stuck(asked.set)
        before = asyncio.all_tasks()
        given = options(**both(client))
        task = asyncio.create_task(dm.evaluate_async(given.pop("dataset"), **arguments(**given)))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return asyncio.all_tasks() - before, client.cancelled

    left, ended = asyncio.run(cancelled())
    assert left == set()
    assert ended >= 1


def test_interrupt_in_script_leaves_no_task():
    client = Stuck(interrupt)
    with pytest.raises(KeyboardInterrupt):
        evaluated(models={"judge": client})
    assert asyncio.all_tasks(client.loop) == set()
    assert client.loop.is_closed()
    assert client.cancelled >= 1


def test_interrupt_in_notebook_ends_run_and_thread():
    client = Stuck(interrupt)

    async def cell():
        return evaluated(models={"judge": client})

    # A notebook's loop does not turn an interrupt into a cancellation, as `asyncio.run` does.
    loop = asyncio.new_event_loop()
    try:
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(cell())
        assert asyncio.all_tasks(client.loop) == set()
        assert client.loop.is_closed()
        assert client.cancelled >= 1
        assert threads() == []
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


def test_interrupt_delivered_as_cancellation_ends_run_at_once():
    client = Stuck(interrupt)

    async def main():
        return evaluated(models={"judge": client})

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    assert client.loop.is_closed()
    assert client.cancelled >= 1
    assert threads() == []


def test_all_repetitions_share_generated_steps():
    def said(ask):
        if "steps" in ask.schema["properties"]:
            written.append(ask)
            return json.dumps({"steps": [f"Step {len(written)}."]})
        return json.dumps({"reason": "r", "score": 5})

    written = []
    client = FakeChat(said)
    given = options(4, metrics=[{"g-eval": {"name": "polite", "criteria": "How polite?"}}], models={"judge": client})
    report = dm.evaluate(given.pop("dataset"), **arguments(**given), repetitions=3)
    assert len(written) == 1
    assert len(client.asked) == 1 + 4 * 3
    assert {each.marks["polite"].details["steps"] for each in report.executions} == {("Step 1.",)}


def test_after_stop_no_request_is_sent_and_answers_are_kept():
    stop = Stop()

    async def said(ask):
        if len(client.asked) == 4:
            stop.request("enough")
        await asyncio.sleep(0)
        return costly(ask)

    client = FakeChat(said, is_local=False)
    given = options(50, models={"judge": Role(client=client, concurrency=1)})
    given.pop("clock")
    report = run_sync(
        run_evaluation(
            resolve_arguments(given.pop("dataset"), **arguments(**given)), clock=CLOCK, stop=stop, warn=pytest.fail
        )
    )
    assert len(client.asked) <= 5
    assert report.metrics["llm-as-judge"].n_scored == len(client.asked)
    assert report.run.status == "incomplete"
    assert "enough" in report.run.reason


def warned(count, client, **more):
    said = []
    given = options(count, models={"judge": client}, **more)
    given.pop("clock")
    run_sync(
        run_evaluation(resolve_arguments(given.pop("dataset"), **arguments(**given)), clock=CLOCK, warn=said.append)
    )
    return said


def test_constant_judge_over_ten_samples_is_warning():
    assert warned(FEWEST_SAMPLES - 1, judge()) == []
    (warning,) = warned(FEWEST_SAMPLES, judge())
    assert warning.startswith("llm-as-judge: the judge gave the same score and the same reason for all of 10 samples.")
    assert warned(FEWEST_SAMPLES - 1, judge(), repetitions=3) == []


@pytest.mark.parametrize("other", [{"reason": "Else.", "score": 0.75}, {"reason": "It says so.", "score": 0.5}])
def test_one_different_reason_or_score_is_no_warning(other):
    assert warned(30, FakeChat(lambda ask: other if "s17" in ask.messages[-1].content else GOOD)) == []


def test_constant_scorer_without_reasons_is_no_warning():
    class Plain:
        name = "plain"

        def script(self, sample, output):
            yield []
            return MetricScore(1.0, {"model": "m"})

    assert warned(30, judge(), metrics=[Plain()]) == []


def test_progress_shows_tokens_cost_and_limits():
    told = []
    role = Role(client=FakeChat(costly, is_local=False), prices=PRICES, concurrency=3)
    given = options(models={"judge": role})
    given.pop("clock")
    run_sync(
        run_evaluation(
            resolve_arguments(given.pop("dataset"), **arguments(**given)),
            clock=CLOCK,
            warn=pytest.fail,
            progress=told.append,
        )
    )
    last = told[-1]
    assert (last.done, last.total, last.unscored) == (3, 3, 0)
    assert (last.spent["judge"].prompt_tokens, last.spent["judge"].cost_usd) == (300, Decimal("0.00036"))
    assert last.limits["judge"].concurrency == 3


def test_progress_of_a_run_without_models_names_none():
    told = []
    given = options(metrics=["contains"])
    given.pop("clock")
    run_sync(
        run_evaluation(
            resolve_arguments(given.pop("dataset"), **arguments(**given)),
            clock=CLOCK,
            warn=pytest.fail,
            progress=told.append,
        )
    )
    assert (told[-1].spent, told[-1].limits) == ({}, {})


def test_run_stopped_by_endpoint_names_the_reason():
    judge = FakeChat(lambda _: ModelFailure("refused", "Wrong key.", status=401))
    report = evaluated(30, models={"judge": Role(client=judge, concurrency=1)}, max_unscored=30)
    assert report.run.status == "incomplete"
    assert re.fullmatch(
        r"10 of 30 scores were not computed "
        r"\(`judge` is not asked: 20 calls in a row failed, the last with: Wrong key\)",
        report.run.reason,
    )


@pytest.mark.parametrize("usd", [Decimal("nan"), float("nan"), Decimal("inf"), -1, True, "2"])
def test_invalid_budget_amount_is_configuration_error(usd):
    with pytest.raises(dm.ConfigurationError, match="A budget in USD is a number of at least 0"):
        evaluated(1, models={"judge": FakeChat([GOOD])}, budget_usd=usd)
