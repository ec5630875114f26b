"""An endpoint that does not answer is left alone."""

from __future__ import annotations

import asyncio

import pytest

from deemster.models import CallContext, Gateway, ModelFailure, Role
from deemster.models.circuit_breaker import OPENS_AFTER, PROBES_EVERY_S
from deemster.records import Answer
from tests.models.fake_clock import VirtualClock
from tests.models.make_requests import Remote, gateway, question


class Switch(Remote):
    """Fails while it is off."""

    def __init__(self, failure=None) -> None:
        super().__init__(takes_s=0.0)
        self.failure = failure or ModelFailure("transport", "Connection refused.")

    async def complete(self, ask):
        self.troubles = [] if self.failure is None else [self.failure]
        return await super().complete(ask)


async def one_by_one(opened, count):
    return [(await opened.answers([question(str(n))]))[0] for n in range(count)]


async def test_after_twenty_failed_calls_the_rest_are_not_run():
    client = Switch()
    async with gateway(client, settings={"retries": 0}) as opened:
        replies = await one_by_one(opened, 50)
        sent = len(client.sent)
    assert [reply.cause for reply in replies] == ["model_failed"] * OPENS_AFTER + ["not_run"] * 30
    assert sent == OPENS_AFTER
    assert "https://models.example/v1" in replies[-1].message
    assert "Connection refused." in replies[-1].message


async def test_one_probe_is_sent_every_half_minute():
    client = Switch()
    async with gateway(client, settings={"retries": 3}) as opened:
        await one_by_one(opened, OPENS_AFTER)
        before = len(client.sent)
        await asyncio.sleep(PROBES_EVERY_S)
        replies = await asyncio.gather(*(opened.answers([question(f"probe {n}")]) for n in range(10)))
        causes = [reply.cause for (reply,) in replies]
        sent = len(client.sent) - before
    assert sorted(causes) == ["model_failed"] + ["not_run"] * 9
    assert sent == 1


async def test_probe_that_is_answered_closes_the_circuit():
    client = Switch()
    async with gateway(client, settings={"retries": 0}) as opened:
        await one_by_one(opened, 30)
        await asyncio.sleep(PROBES_EVERY_S + 1)
        client.failure = None
        assert all(isinstance(reply, Answer) for reply in await one_by_one(opened, 5))


async def test_cancelled_probe_lets_another_through():
    client = Switch()
    async with gateway(client, settings={"retries": 0}) as opened:
        await one_by_one(opened, 20)
        await asyncio.sleep(PROBES_EVERY_S)
        client.failure, client.takes_s = None, 10.0
        probe = asyncio.ensure_future(opened.answers([question("first probe")]))
        await asyncio.sleep(1.0)
        probe.cancel()
        await asyncio.gather(probe, return_exceptions=True)
        await asyncio.sleep(PROBES_EVERY_S)
        assert isinstance((await opened.answers([question("second probe")]))[0], Answer)


async def test_answer_in_between_starts_the_count_again():
    client = Switch()
    async with gateway(client, settings={"retries": 0}) as opened:
        await one_by_one(opened, OPENS_AFTER - 1)
        client.failure = None
        await opened.answers([question("a")])
        client.failure = ModelFailure("transport", "again")
        assert [reply.cause for reply in await one_by_one(opened, OPENS_AFTER)] == ["model_failed"] * OPENS_AFTER


@pytest.mark.parametrize(
    "failure",
    [
        ModelFailure("limited", "429", status=429),
        ModelFailure("refused", "too long", status=400),
        ModelFailure("refused", "too long", status=413),
        ModelFailure("refused", "odd", status=422),
    ],
)
async def test_rate_limits_and_bad_requests_do_not_open_circuit(failure):
    client = Switch(failure)
    async with gateway(client, settings={"retries": 0}) as opened:
        await one_by_one(opened, 40)
        assert len(client.sent) == 40


async def test_wrong_key_opens_the_circuit():
    client = Switch(ModelFailure("refused", "HTTP 401.", status=401))
    async with gateway(client) as opened:
        await one_by_one(opened, 40)
        assert len(client.sent) == OPENS_AFTER


async def test_roles_at_one_address_share_a_circuit_and_others_do_not():
    down, same, other = Switch(), Switch(), Switch()
    other.identity = {"base_url": "https://elsewhere.example"}
    same.failure = other.failure = None
    roles = {name: Role(client=client, retries=0) for name, client in (("a", down), ("b", same), ("c", other))}
    async with Gateway(roles, CallContext(VirtualClock())) as opened:
        for n in range(OPENS_AFTER):
            await opened.answers([question(str(n), role="a")])
        of_same, of_other = await opened.answers([question(role="b"), question(role="c")])
    assert of_same.cause == "not_run"
    assert isinstance(of_other, Answer)
