"""How often a request is made, and when."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.models import ModelFailure
from deemster.models.retry_policy import Attempts, GiveUp, Retry, RetryPolicy
from deemster.records import Answer, NoAnswer, Usage
from tests.models.make_requests import Remote, gateway, question


async def outcome(*troubles, **settings):
    client = Remote(*troubles)
    async with gateway(client, settings=settings) as opened:
        (reply,) = await opened.answers([question()])
        return reply, client


def transport(**more):
    return ModelFailure("transport", "HTTP 503.", **more)


def limited(**more):
    return ModelFailure("limited", "HTTP 429.", status=429, **more)


def shape():
    return ModelFailure("shape", "No choices.", may_cost=True)


@pytest.mark.parametrize("retries", [0, 1, 3, 5])
@pytest.mark.parametrize(("failure", "cause"), [(transport, "model_failed"), (limited, "rate_limited")])
async def test_retries_is_exact_number_of_repeats(failure, cause, retries):
    reply, client = await outcome(*[failure() for _ in range(20)], retries=retries)
    assert len(client.sent) == retries + 1
    assert isinstance(reply, NoAnswer)
    assert reply.cause == cause


async def test_request_that_succeeds_after_retries_is_answered():
    reply, client = await outcome(transport(), limited(), transport())
    assert len(client.sent) == 4
    assert isinstance(reply, Answer)
    assert reply.usage.calls == 1


async def test_wrong_shape_is_requested_once_more():
    reply, client = await outcome(*[shape() for _ in range(9)], retries=5)
    assert len(client.sent) == 2
    assert reply.cause == "unreadable"


async def test_no_retries_means_none_for_a_wrong_shape_too():
    reply, client = await outcome(shape(), retries=0)
    assert len(client.sent) == 1
    assert reply.cause == "unreadable"


async def test_wrong_shape_uses_no_transport_retry():
    reply, client = await outcome(transport(), shape(), transport(), transport(), retries=3)
    assert len(client.sent) == 5
    assert isinstance(reply, Answer)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422, 429])
async def test_refused_request_is_not_repeated(status):
    reply, client = await outcome(ModelFailure("refused", f"HTTP {status}.", status=status), retries=3)
    assert len(client.sent) == 1
    assert reply.cause == "model_failed"
    assert "1 attempt" in reply.message


async def test_retry_after_is_never_shortened():
    reply, client = await outcome(limited(retry_after_s=17.0))
    assert isinstance(reply, Answer)
    first, second = client.sent
    assert second - (first + 1.0) >= 17.0


@pytest.mark.parametrize("failure", [limited, transport])
async def test_retry_after_above_cap_ends_call(failure):
    reply, client = await outcome(failure(retry_after_s=61.0))
    assert client.sent == [0.0]
    assert reply.cause == "rate_limited"
    assert "61 s" in reply.message


async def test_retry_after_beyond_total_timeout_ends_call():
    reply, client = await outcome(*[limited(retry_after_s=40.0) for _ in range(9)], retries=9, total_timeout_s=100.0)
    assert len(client.sent) == 3
    assert client.sent[-1] < 100.0
    assert reply.cause == "rate_limited"


async def test_attempt_ends_at_timeout():
    client = Remote(takes_s=1e6)
    async with gateway(client, settings={"timeout_s": 5.0, "retries": 2}) as opened:
        (reply,) = await opened.answers([question()])
    assert len(client.sent) == 3
    assert reply.cause == "model_failed"
    assert "within 5 s" in reply.message
    assert reply.usage.calls == 3
    assert reply.usage.cost_usd is None


async def test_last_attempt_ends_at_total_timeout():
    client = Remote(takes_s=1e6)
    settings = {"timeout_s": 60.0, "total_timeout_s": 100.0, "retries": 9}
    async with gateway(client, settings=settings) as opened:
        (reply,) = await opened.answers([question()])
        end = opened._context.elapsed_s()
    assert isinstance(reply, NoAnswer)
    assert end == pytest.approx(100.0)


async def test_attempt_that_may_have_cost_is_counted_and_rejected_one_is_not():
    counted = Usage(prompt_tokens=3, completion_tokens=2)
    reply, _ = await outcome(ModelFailure("shape", "No choices.", usage=counted), limited(), transport())
    assert reply.usage.calls == 2
    assert reply.usage.prompt_tokens == 13


@given(st.lists(st.sampled_from(["transport", "limited", "shape", "refused"]), max_size=30), st.integers(0, 6))
def test_attempts_are_always_bounded(kinds, retries):
    tries = Attempts(RetryPolicy(retries=retries, total_timeout_s=1e9), seed=1, key=b"k")
    for kind in [*kinds, *["transport"] * 10]:
        if isinstance(tries.next_step(ModelFailure(kind, "x"), elapsed_s=0.0), GiveUp):
            break
    assert tries.count <= retries + (2 if retries else 1)


@given(st.integers(0, 2**32), st.binary(max_size=8))
def test_wait_is_jittered_within_doubling_bounds_and_repeatable(seed, key):
    def waits():
        tries = Attempts(RetryPolicy(retries=8, total_timeout_s=1e9), seed=seed, key=key)
        steps = [tries.next_step(ModelFailure("transport", "x"), elapsed_s=0.0) for _ in range(8)]
        assert all(isinstance(step, Retry) for step in steps)
        return [step.wait_s for step in steps]

    bounds = [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert all(0 <= wait < bound for wait, bound in zip(waits(), bounds, strict=True))
    assert waits() == waits()
    other = Attempts(RetryPolicy(), seed=seed, key=key + b"!")
    assert other.next_step(ModelFailure("transport", "x"), elapsed_s=0.0).wait_s != waits()[0]


async def test_call_past_total_timeout_in_queue_is_not_sent():
    client = Remote(transport())
    async with gateway(client, settings={"rpm": 1, "total_timeout_s": 30.0}) as opened:
        (reply,) = await opened.answers([question()])
    assert client.sent == [0.0]
    assert reply.cause == "model_failed"
    assert "1 attempt" in reply.message
