"""A budget is never passed."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deemster.errors import ConfigurationError
from deemster.models import Budget, CallContext, FakeChat, Gateway, ModelFailure, Price, Role
from deemster.models._chat_role import UNLIMITED_TOKENS, request_size
from deemster.models.budget import UsageBound
from deemster.models.openai_client import OpenAIChat
from deemster.records import Answer, NoAnswer, Usage
from tests.models.fake_clock import VirtualClock
from tests.models.make_requests import Remote, gateway, question

PRICE = Price(Decimal("1.00"), Decimal("4.00"))


class Spender:
    """Answers with the given usage after the given delay."""

    def __init__(self, plan) -> None:
        self.plan = plan
        self.used = 0

    async def complete(self, ask):
        share, takes_s, fails = self.plan[int(ask.messages[0].content)]
        size = request_size(ask, ask.max_tokens)
        sent, received = int(size.most * share), int(size.completion * share)
        await asyncio.sleep(takes_s)
        if fails:
            self.used += sent + received
            raise ModelFailure("shape", "half an answer", may_cost=True)
        self.used += sent + received
        return Answer(text="x", usage=Usage(prompt_tokens=sent, completion_tokens=received), model="m")


calls = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 5), st.booleans()), min_size=1, max_size=40)


@settings(deadline=None)
@given(calls, st.integers(0, 3000), st.integers(1, 100), st.integers(1, 16))
async def test_tokens_never_exceed_budget_under_concurrency(plan, tokens, max_tokens, concurrency):
    client, budget = Spender(plan), Budget(tokens=tokens)
    async with gateway(client, settings={"concurrency": concurrency}, budget=budget) as opened:
        asks = [question(str(n), max_tokens=max_tokens) for n in range(len(plan))]
        replies = await asyncio.gather(*(opened.answers([ask]) for ask in asks))
    replies = [reply for (reply,) in replies]
    assert client.used <= tokens
    assert budget.spent.tokens <= tokens
    assert budget.reserved == UsageBound()
    not_run = [reply for reply in replies if isinstance(reply, NoAnswer) and reply.cause == "not_run"]
    assert bool(not_run) == (budget.exhausted is not None)
    assert len(replies) == len(plan)


@settings(deadline=None)
@given(calls, st.decimals(0, "0.01", places=6), st.integers(1, 16))
async def test_cost_never_exceeds_budget_under_concurrency(plan, usd, concurrency):
    budget = Budget(usd=usd)
    made = {"concurrency": concurrency, "prices": {"": PRICE}}
    async with gateway(Spender(plan), settings=made, budget=budget) as opened:
        asks = [question(str(n), max_tokens=50) for n in range(len(plan))]
        await asyncio.gather(*(opened.answers([ask]) for ask in asks))
    assert budget.spent.usd <= usd
    assert budget.reserved == UsageBound()


async def test_calls_wait_for_open_calls_before_budget_is_exhausted():
    # Each may take 1,028 tokens and takes 15: one at a time, the budget is enough for all.
    budget = Budget(tokens=1_400)
    async with gateway(Remote(), settings={"concurrency": 64}, budget=budget) as opened:
        replies = await asyncio.gather(*(opened.answers([question(f"{n:02}")]) for n in range(20)))
    replies = [reply for (reply,) in replies]
    assert all(isinstance(reply, Answer) for reply in replies)
    assert budget.spent.tokens == 20 * 15
    assert budget.exhausted is None


async def test_exhausted_budget_is_reported_once_and_later_calls_are_not_run():
    reasons = []
    client = Remote()
    async with gateway(client, budget=Budget(tokens=1_050), on_stop=reasons.append) as opened:
        replies = [(await opened.answers([question(str(n))]))[0] for n in range(6)]
        small = (await opened.answers([question("", max_tokens=1)]))[0]
        exhausted = opened.exhausted
        sent = len(client.sent)
    # 1,041 may be taken by each call, and each takes 15: the first fits, the second (15 + 1,041) does not.
    assert sent == 1
    assert [type(reply) for reply in replies] == [Answer] + [NoAnswer] * 5
    assert {reply.cause for reply in replies[1:]} == {"not_run"}
    assert small.cause == "not_run"
    assert reasons == [exhausted]
    assert exhausted == "The budget is exhausted: 15 of 1,050 tokens are spent, and the next call may take 1,041."


async def test_attempt_of_unknown_cost_counts_highest_cost():
    budget = Budget(tokens=5_000)
    client = Remote(ModelFailure("transport", "cut off", may_cost=True))
    async with gateway(client, budget=budget) as opened:
        await opened.answers([question("1")])
    assert budget.spent.tokens == 1_041 + 15


async def test_rejected_attempt_uses_no_budget():
    budget = Budget(tokens=5_000)
    async with gateway(Remote(ModelFailure("limited", "429")), budget=budget) as opened:
        await opened.answers([question("1")])
    assert budget.spent.tokens == 15


async def test_cancelled_waiting_call_returns_reservation():
    budget = Budget(tokens=10_000)
    async with gateway(Remote(), settings={"concurrency": 1}, budget=budget) as opened:
        tasks = [asyncio.ensure_future(opened.answers([question(str(n))])) for n in range(3)]
        await asyncio.sleep(0.5)
        held = budget.reserved.tokens
        tasks[1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert held == 3 * 1_041
    assert budget.reserved == UsageBound()
    assert budget.spent.tokens == 2 * 15


async def test_cancelled_open_call_counts_highest_cost():
    budget = Budget(tokens=10_000)
    async with gateway(Remote(), budget=budget) as opened:
        task = asyncio.ensure_future(opened.answers([question("1")]))
        await asyncio.sleep(0.5)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        live = opened.limiter_states()["judge"]
    assert budget.reserved == UsageBound()
    assert budget.spent.tokens == 1_041
    assert live.under_way == 0


async def test_cancelled_budget_waiter_wakes_next():
    budget = Budget(tokens=1_050)
    assert await budget.reserve(UsageBound(1_000))
    large = asyncio.ensure_future(budget.reserve(UsageBound(1_000)))
    small = asyncio.ensure_future(budget.reserve(UsageBound(50)))
    await asyncio.sleep(0)
    large.cancel()
    await asyncio.gather(large, return_exceptions=True)
    assert (await small, budget.reserved.tokens) == (True, 1_050)


async def test_budget_in_usd_needs_price_for_every_paid_model():
    roles = {"judge": Role(client=Remote()), "free": Role(client=FakeChat(["x"]))}
    with pytest.raises(ConfigurationError, match=r"`models\.judge`: write `price:") as raised:
        Gateway(roles, CallContext(VirtualClock(), budget=Budget(usd=Decimal(1))))
    assert len(raised.value.issues) == 1


@pytest.mark.parametrize(
    ("extra", "most"),
    [
        ({}, 1_024),
        ({"max_tokens": 9_000}, 9_000),
        ({"max_completion_tokens": 300}, 300),
        ({"max_tokens": None, "max_completion_tokens": 7}, 7),
        ({"max_tokens": None}, None),
        ({"n": 3}, 3 * 1_024),
    ],
)
async def test_extra_parameters_that_lengthen_an_answer_count_for_the_budget(extra, most):
    client = OpenAIChat("https://models.example/v1", "m", extra=extra)
    assert client.most_tokens(question()) == most

    async with gateway(client, dry_run=True) as opened:
        await opened.answers([question()])
        assert opened.planned["judge"].completion_tokens == (most or UNLIMITED_TOKENS)


@pytest.mark.parametrize(("text", "tokens"), [("a" * 400, 100), ("\u0436" * 400, 200), ("\u4e2d" * 400, 300)])
def test_letters_that_take_more_bytes_are_estimated_at_more_tokens(text, tokens):
    assert request_size(question(text), 1).prompt == tokens


class Zero:
    """Reports that it used nothing."""

    async def complete(self, ask):
        return Answer(text="x", usage=Usage(prompt_tokens=0, completion_tokens=0, cost_usd=Decimal(0)), model="m")


@pytest.mark.parametrize("limit", [{"tokens": 9_000}, {"usd": Decimal("0.02")}], ids=["tokens", "usd"])
async def test_client_that_reports_no_tokens_does_not_lift_the_budget(limit):
    budget = Budget(**limit)
    async with gateway(Zero(), settings={"prices": {"": PRICE}}, budget=budget) as opened:
        replies = [(await opened.answers([question(str(n))]))[0] for n in range(40)]
    kinds = [type(reply) for reply in replies]
    assert 0 < kinds.count(Answer) < 10
    assert budget.exhausted is not None
    assert budget.spent.estimated_tokens == budget.spent.tokens > 0
