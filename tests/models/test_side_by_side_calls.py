"""Gateways of several runs in one process share limits, budget and answers; one that is halted halts no other."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest

from deemster.models import Budget, CallContext, Gateway, Role
from deemster.models.budget import UsageBound
from deemster.models.clock import SystemClock
from deemster.models.side_by_side_calls import SideBySideCalls
from deemster.records import Answer, Ask, Message, NoAnswer, Usage


class Client:
    """Answers when it is let to, and counts."""

    def __init__(self, *, fails=0):
        self.identity = {"model": "m"}
        self.asked, self.under_way, self.most, self.fails = [], 0, 0, fails
        self.go = asyncio.Event()

    async def complete(self, ask):
        self.asked.append(ask.messages[0].content)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await self.go.wait()
        self.under_way -= 1
        if self.fails:
            self.fails -= 1
            raise OSError("down")
        return Answer(text=ask.messages[0].content.upper(), usage=Usage(prompt_tokens=5, completion_tokens=5))


def ask(text):
    return Ask(messages=(Message("user", text),), max_tokens=5)


class Runs:
    """Some gateways side by side, each with a client of its own."""

    def __init__(self, count=2, *, tokens=None, concurrency=2, fails=0, spent=0):
        self.clients = [Client(fails=fails) for _ in range(count)]
        self.roles = [Role(client=client, concurrency=concurrency, retries=0) for client in self.clients]
        budget = None if tokens is None else Budget(tokens=tokens)
        self.shared = SideBySideCalls({"judge": self.roles[0]}, clock=SystemClock(), cache=None, budget=budget)
        self.budgets = [None if tokens is None else Budget(tokens=tokens, spent=UsageBound(spent)) for _ in self.roles]

    async def __aenter__(self):
        self.gateways = []
        for role, budget in zip(self.roles, self.budgets, strict=True):
            context = CallContext(budget=budget, shared=self.shared)
            self.gateways.append(await Gateway({"judge": role}, context).__aenter__())
        return self

    async def __aexit__(self, *_):
        for gateway in self.gateways:
            await gateway.__aexit__(None, None, None)

    def open(self):
        for client in self.clients:
            client.go.set()


async def settle():
    for _ in range(20):
        await asyncio.sleep(0)


async def test_question_of_two_runs_is_asked_once():
    async with Runs() as runs:
        asking = [asyncio.create_task(gateway.answers([ask("a")])) for gateway in runs.gateways]
        await settle()
        runs.open()
        (first,), (second,) = await asyncio.gather(*asking)
        (later,) = await runs.gateways[1].answers([ask("a")])
    assert [client.asked for client in runs.clients] == [["a"], []]
    assert first.text == second.text == later.text == "A"
    assert (first.usage.prompt_tokens, second.usage.prompt_tokens, second.usage.cached_calls) == (5, None, 1)
    # Each run counts what it would have cost alone.
    assert [reply.call.usage.prompt_tokens for reply in (first, second, later)] == [5, 5, 5]


async def test_question_that_brought_no_answer_is_asked_by_the_run_that_waits():
    async with Runs(fails=1) as runs:
        runs.clients[1].fails = 0
        asking = [asyncio.create_task(gateway.answers([ask("a")])) for gateway in runs.gateways]
        await settle()
        runs.open()
        (first,), (second,) = await asyncio.gather(*asking)
    assert isinstance(first, NoAnswer)
    assert second.text == "A"


async def test_concurrency_of_a_role_holds_for_all_runs_together():
    async with Runs(3, concurrency=2) as runs:
        texts = [f"{run}{number}" for run in range(3) for number in range(4)]
        asking = [asyncio.create_task(runs.gateways[int(text[0])].answers([ask(text)])) for text in texts]
        await settle()
        assert sum(client.under_way for client in runs.clients) == 2
        runs.open()
        await asyncio.gather(*asking)
    assert sorted(text for client in runs.clients for text in client.asked) == texts


async def test_budget_holds_for_all_runs_and_each_knows_what_it_spent():
    async with Runs(2, tokens=90) as runs:
        runs.open()
        for number in range(8):
            await runs.gateways[number % 2].answers([ask(f"question {number}")])
        assert all(gateway.exhausted is not None for gateway in runs.gateways)
        spent = [gateway.budget.spent.tokens for gateway in runs.gateways]
    assert sum(spent) == runs.shared.budget.spent.tokens <= 90
    assert min(spent) > 0


async def test_what_resumed_runs_had_spent_counts_for_all():
    async with Runs(2, tokens=90, spent=45) as runs:
        runs.open()
        (reply,) = await runs.gateways[0].answers([ask("a")])
    assert isinstance(reply, NoAnswer)
    assert runs.shared.budget.spent == UsageBound(90, Decimal(0))


async def test_run_that_is_halted_lets_the_others_wait_for_their_limits():
    async with Runs(2, concurrency=1) as runs:
        under_way = asyncio.create_task(runs.gateways[0].answers([ask("a")]))
        await settle()
        waiting = [
            asyncio.create_task(gateway.answers([ask(text)])) for gateway, text in zip(runs.gateways, "bc", strict=True)
        ]
        await settle()
        runs.gateways[0].halt("stopped")
        await settle()
        assert runs.clients[1].asked == []
        runs.open()
        (first,), (refused,), (second,) = await asyncio.gather(under_way, *waiting)
    assert (first.text, refused.cause, second.text) == ("A", "not_run", "C")
    assert runs.clients[0].asked == ["a"]


@pytest.mark.parametrize("closes", [True, False])
async def test_run_that_ends_early_or_is_cancelled_leaves_room_for_the_others(closes):
    async with Runs(2, concurrency=1) as runs:
        first = asyncio.create_task(runs.gateways[0].answers([ask("a")]))
        second = asyncio.create_task(runs.gateways[1].answers([ask("b")]))
        await settle()
        if closes:
            runs.open()
            await first
            await runs.gateways[0].__aexit__(None, None, None)
        else:
            first.cancel()
            await settle()
            runs.open()
        ((reply,),) = await asyncio.gather(second)
    assert reply.text == "B"
