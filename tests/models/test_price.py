"""What calls cost."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.models import FakeChat, Price
from deemster.models.price import PriceTable
from deemster.records import Answer, Usage
from tests.models.make_requests import Remote, gateway, question

TABLE = {"far": Price(Decimal(9), Decimal(9)), "far-1-20": Price(Decimal("0.15"), Decimal("0.60"))}


async def usage_of(client, **settings):
    async with gateway(client, settings=settings) as opened:
        (reply,) = await opened.answers([question()])
        return reply.usage


async def test_longest_prefix_of_the_model_that_answered_gives_the_price():
    usage = await usage_of(Remote(), prices=TABLE)
    assert usage.cost_usd == Decimal("0.0000045")
    assert usage.cost_source == "derived"
    assert usage.model == "far-1-2026"


async def test_cost_from_provider_overrides_price_table():
    reported = Usage(prompt_tokens=1, completion_tokens=1, cost_usd=Decimal("0.5"))
    usage = await usage_of(Remote(usage=reported), prices=TABLE)
    assert usage.cost_usd == Decimal("0.5")
    assert usage.cost_source == "reported"


async def test_without_a_price_the_cost_is_unknown_and_not_zero():
    assert (await usage_of(Remote())).cost_usd is None
    assert (await usage_of(Remote(), prices={"near": Price(Decimal(1))})).cost_usd is None


async def test_without_tokens_the_cost_is_unknown_and_not_zero():
    assert (await usage_of(Remote(usage=Usage()), prices=TABLE)).cost_usd is None


async def test_model_that_reaches_no_network_is_free():
    usage = await usage_of(FakeChat(["yes"]))
    assert usage.cost_usd == 0
    assert usage.prompt_tokens is None


async def test_latency_is_measured_by_the_clock():
    assert (await usage_of(Remote(takes_s=1.5))).latency_ms == pytest.approx(1500)


async def test_latency_a_client_reports_is_kept():
    assert (await usage_of(Remote(usage=Usage(latency_ms=7.0)))).latency_ms == 7.0


@given(st.dictionaries(st.text("ab", max_size=4), st.integers(0, 9)), st.text("ab", max_size=6))
def test_no_longer_prefix_fits(table, model):
    prices = PriceTable({prefix: Price(Decimal(cost)) for prefix, cost in table.items()})
    found = prices.find(model)
    fitting = sorted((prefix for prefix in table if model.startswith(prefix)), key=len)
    assert found == (Price(Decimal(table[fitting[-1]])) if fitting else None)


async def test_gateway_sums_spending_of_role():
    async with gateway(Remote(), settings={"prices": TABLE}) as opened:
        for n in range(3):
            await opened.answers([question(str(n))])
        spent = opened.spent["judge"]
    assert (spent.calls, spent.prompt_tokens, spent.cost_usd) == (3, 30, Decimal("0.0000135"))


async def test_answer_without_usage_counts_as_one_call():
    usage = await usage_of(FakeChat([Answer(text="a")], is_local=False))
    assert (usage.calls, usage.cost_usd) == (1, None)
