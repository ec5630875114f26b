"""Calls are shared within a run, across its processes, and never between runs."""

from __future__ import annotations

from decimal import Decimal

import pytest

from deemster.models import Budget, Cache, FakeEmbedding, ModelFailure, Price
from deemster.models.budget import UsageBound
from deemster.models.call_log import RestoredCalls
from deemster.records import NoAnswer, Usage, Vectors
from deemster.records.usage import sum_usage
from tests.models.fake_clock import run
from tests.models.make_requests import Remote, embedded, gateway, question

PRICED = {"prices": {"": Price(Decimal(1), Decimal(1))}}


async def asked(client, requests, *, cache=None, together=False, **options):
    async with gateway(client, cache=cache, settings=PRICED, **options) as opened:
        if together:
            return await opened.answers(requests)
        return [(await opened.answers([each]))[0] for each in requests]


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("keeps", [True, False])
async def test_same_question_shares_one_call(together, keeps, tmp_path):
    cache = Cache(tmp_path / "c") if keeps else None
    client = Remote()
    replies = await asked(client, [question("a"), question("b"), question("a")], cache=cache, together=together)
    assert len(client.sent) == 2
    first, other, again = [reply.call for reply in replies]
    assert first == again != other
    assert first.usage == replies[0].usage
    assert (first.usage.calls, first.usage.latency_ms) == (1, 1000.0)
    assert first.usage.cost_usd > 0
    assert (replies[2].usage.calls, replies[2].usage.cached_calls) == (0, 1)
    if cache is not None:
        cache.close()


async def test_failed_call_is_not_shared():
    replies = await asked(
        Remote(ModelFailure("refused", "400", may_cost=True)), [question("a"), question("a")], together=True
    )
    assert [isinstance(reply, NoAnswer) for reply in replies] == [True, True]
    assert [reply.usage is None for reply in replies] == [False, True]


@pytest.mark.parametrize(("run_", "is_shared"), [("r1", True), ("r2", False), (None, False)])
async def test_cached_answer_names_run_that_paid(tmp_path, run_, is_shared):
    replies = []
    for name in ("r1", run_):
        cache = Cache(tmp_path / "c")
        replies += await asked(Remote(), [question("a")], cache=cache, run=name)
        cache.close()
    first, second = replies
    assert second.call == (first.call if is_shared else None)
    assert (second.usage.calls, second.usage.cached_calls, second.usage.cost_usd) == (0, 1, 0)


async def test_calls_of_two_processes_of_run_are_distinguished(tmp_path):
    calls = []
    for text in "ab":
        cache = Cache(tmp_path / "c")
        calls += [reply.call.id for reply in await asked(Remote(), [question(text)], cache=cache, run="r")]
        cache.close()
    assert len(set(calls)) == 2


@pytest.mark.parametrize("counted", [True, False])
async def test_budget_of_resumed_run_counts_payments_once(tmp_path, counted):
    cache = Cache(tmp_path / "c")
    (first,) = await asked(Remote(), [question("a")], cache=cache, run="r")
    cost = first.call.usage.cost_usd
    spent = UsageBound(15, cost) if counted else UsageBound()
    budget = Budget(usd=Decimal(1), spent=spent)
    restored = RestoredCalls(ids=frozenset([first.call.id] if counted else []))
    await asked(Remote(), [question("a"), question("a")], cache=cache, run="r", restored=restored, budget=budget)
    assert budget.spent == UsageBound(15, cost)
    cache.close()


async def test_answers_of_other_runs_use_no_budget(tmp_path):
    cache = Cache(tmp_path / "c")
    await asked(Remote(), [question("a")], cache=cache, run="r")
    budget = Budget(tokens=1_000)
    await asked(Remote(), [question("a")], cache=cache, run="other", budget=budget)
    assert budget.spent == UsageBound()
    cache.close()


class Far(FakeEmbedding):
    """A paid embedding model."""

    async def embed_many(self, texts):
        found = await super().embed_many(texts)
        usage = Usage(prompt_tokens=10 * len(texts) + 1, cost_usd=Decimal("0.01"), model="far")
        return Vectors(values=found, usage=usage, model="far")


def far():
    return Far(identity={"m": 1}, is_local=False)


GROUPS = [("a", "b"), ("b", "c", "d"), ("a",), ("e", "b")]


async def test_shares_of_embedding_call_sum_to_total():
    client = far()
    replies, _ = await embedded(client, *GROUPS, settings={"batch": 2})
    distinct = {call.id: call.usage for reply in replies for call in reply.calls}
    assert len(distinct) == 5
    total = sum_usage(distinct.values())
    assert (total.calls, total.prompt_tokens) == (len(client.asked), 10 * 5 + len(client.asked))
    assert total.cost_usd == Decimal("0.01") * len(client.asked)
    # Texts that several ask for are the same part for each of them.
    assert replies[0].calls[0] == replies[2].calls[0]
    assert replies[0].calls[1] in replies[1].calls
    assert replies[0].calls[1] in replies[3].calls


@pytest.mark.parametrize(("run_", "is_shared"), [("r1", True), ("r2", False)])
async def test_cached_vectors_name_run_that_paid(tmp_path, run_, is_shared):
    found = []
    for name in ("r1", run_):
        cache = Cache(tmp_path / "c")
        (answer,), _ = await embedded(far(), ("a", "b"), cache=cache, run=name)
        found.append(answer)
        cache.close()
    assert found[1].calls == (found[0].calls if is_shared else ())
    assert found[1].usage.cached_calls == 1


async def test_local_model_has_no_cost_and_no_calls():
    (reply,), _ = await embedded(FakeEmbedding(), ("a", "b"))
    assert (reply.usage, reply.calls) == (None, ())


def test_only_remote_embedding_role_prevents_batching():
    class Scorer:
        roles = ("embedding",)

    async def work(client):
        async with gateway(client, role="embedding", kind="embedding") as opened:
            return opened.may_batch(Scorer()), opened.may_batch(object())

    assert run(work(far())) == (False, True)
    assert run(work(FakeEmbedding())) == (True, True)
