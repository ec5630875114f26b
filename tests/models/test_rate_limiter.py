"""How many requests are under way, and how many a minute brings."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deemster.models import ModelFailure
from deemster.models.rate_limiter import RateLimiter, TokenBucket
from deemster.records import Answer, Usage
from tests.models.fake_clock import run
from tests.models.make_requests import Remote, gateway, question


def limiter(low=2, high=8, **more) -> RateLimiter:
    loop = asyncio.get_running_loop()
    return RateLimiter(low, high, elapsed_s=loop.time, sleep=asyncio.sleep, **more)


def most_in_a_minute(times):
    return max(sum(start <= time < start + 60 - 1e-6 for time in times) for start in times)


class Crowded(Remote):
    """A chat model whose server refuses what comes while it answers as many as it can bear."""

    def __init__(self, bears):
        super().__init__()
        self.bears = bears
        self.refused = 0

    async def complete(self, ask):
        if self.busy >= self.bears:
            self.sent.append(asyncio.get_running_loop().time())
            self.refused += 1
            raise ModelFailure("limited", "429")
        return await super().complete(ask)


async def asked(client, count, **options):
    async with gateway(client, **options) as opened:
        replies = await asyncio.gather(*(opened.answers([question(str(n))]) for n in range(count)))
        return [reply for (reply,) in replies], opened.limiter_states()["judge"]


async def test_concurrency_starts_low_and_is_four_times_as_much_each_round_up_to_its_bound():
    client = Remote()
    replies, live = await asked(client, 200, settings={"concurrency": "5-64"})
    assert all(isinstance(reply, Answer) for reply in replies)
    rounds = {time: client.sent.count(time) for time in client.sent}
    assert list(rounds.values())[:4] == [5, 20, 64, 64]
    assert client.busiest == 64
    assert live == (64, 0, 0)


@pytest.mark.parametrize("bears", [5, 6, 9, 15, 33, 63])
async def test_server_that_bears_less_than_the_bound_answers_every_call(bears):
    client = Crowded(bears)
    replies, _ = await asked(client, 600, settings={"concurrency": "5-64"})
    assert all(isinstance(reply, Answer) for reply in replies)
    # Growth that goes too far is taken back: at most one request in six is refused.
    assert client.refused < len(client.sent) / 6


async def test_fixed_concurrency_is_never_exceeded():
    client = Remote()
    await asked(client, 50, settings={"concurrency": 3})
    assert client.busiest == 3


async def test_burst_of_429_halves_concurrency_once_then_grows_by_one():
    limits = limiter(2, 64)
    for _ in range(62):
        limits.record_answer()
    marks = [await limits.enter() for _ in range(10)]
    for mark in marks:
        limits.record_limit(mark, wait_s=0.0)
    assert limits.state.concurrency == 32
    limits.record_answer()
    assert limits._limit == pytest.approx(32 + 1 / 32)
    for _ in range(33):
        limits.record_answer()
    assert limits.state.concurrency == 33


async def test_concurrency_never_falls_below_its_low_bound():
    limits = limiter(2, 8)
    for _ in range(10):
        limits.record_limit(await limits.enter(), wait_s=0.0)
        limits.leave()
    assert limits.state.concurrency == 2


async def test_retry_after_pauses_all_requests():
    client = Remote(ModelFailure("limited", "429", retry_after_s=30.0))
    await asked(client, 20, settings={"concurrency": 1})
    assert client.sent[0] == 0.0
    assert client.sent[1] >= 31.0


@pytest.mark.parametrize("rpm", [1, 2, 7, 60, 500, 1500])
async def test_rpm_is_never_exceeded_and_almost_reached(rpm):
    client = Remote(takes_s=0.01)
    count = min(3 * rpm, 400) + 1
    await asked(client, count, settings={"concurrency": 64, "rpm": rpm})
    assert len(client.sent) == count
    assert most_in_a_minute(client.sent) <= rpm
    assert client.sent[-1] <= (count - 1) * 60 / rpm * 1.02 + 1e-6


async def test_tpm_is_never_exceeded():
    client = Remote(takes_s=0.01)  # uses 15 tokens
    await asked(client, 60, settings={"concurrency": 64, "tpm": 300})
    assert most_in_a_minute(client.sent) * 15 <= 300


@given(
    st.integers(10, 5000),
    st.lists(st.tuples(st.floats(0, 20), st.integers(1, 40)), min_size=1, max_size=80),
)
def test_token_bucket_passes_at_most_its_rate_in_any_minute(per_minute, pieces):
    bucket = TokenBucket(per_minute, burst=per_minute / 10, now=0.0)
    now, passed = 0.0, []
    for pause, amount in pieces:
        now += pause
        size = min(amount, per_minute / 10)
        while (wait_s := bucket.wait_s(size, now)) > 0:
            now += wait_s
        bucket.take(size)
        passed.append((now, size))
    for start, _ in passed:
        total = sum(size for time, size in passed if start <= time < start + 60)
        assert total <= per_minute * (1 + 1e-6)


def test_oversized_request_waits_for_full_bucket_and_leaves_debt():
    bucket = TokenBucket(600, burst=60, now=0.0)
    assert bucket.wait_s(100, 0.0) == 0.0
    bucket.take(100)
    assert bucket.wait_s(1, 0.0) == pytest.approx(41 / 9)


async def test_waiting_request_holds_no_slot():
    limits = limiter(1, 1, rpm=1)
    await limits.enter()
    waiting = asyncio.ensure_future(limits.enter())
    await asyncio.sleep(0)
    before = limits.state
    limits.leave()
    between = limits.state
    await waiting
    at = asyncio.get_running_loop().time()
    assert before == (1, 1, 1)
    assert between == (1, 0, 1)
    assert at == pytest.approx(60.0)


async def test_retry_goes_before_new_calls():
    limits = limiter(1, 1)
    order = []

    async def enter(name, first):
        await limits.enter(first=first)
        order.append(name)
        limits.leave()

    await limits.enter()
    tasks = [asyncio.ensure_future(enter(name, name != "again")) for name in ("one", "two", "again")]
    await asyncio.sleep(0)
    limits.leave()
    await asyncio.gather(*tasks)
    assert order == ["again", "one", "two"]


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 11), st.floats(0, 3)), max_size=12), st.sampled_from([None, 30]))
async def test_cancelled_waiter_leaves_limits_unchanged(cancels, rpm):
    limits = limiter(2, 2, rpm=rpm)

    async def hold():
        await limits.enter()
        try:
            await asyncio.sleep(1.0)
        finally:
            limits.leave()

    tasks = [asyncio.ensure_future(hold()) for _ in range(12)]
    for which, after in cancels:
        await asyncio.sleep(after)
        tasks[which].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    after = limits.state
    await asyncio.wait_for(limits.enter(), 60.0)
    assert after == (2, 0, 0)


async def test_slot_granted_during_cancellation_is_returned():
    limits = limiter(1, 1)
    await limits.enter()
    waiting = asyncio.ensure_future(limits.enter())
    await asyncio.sleep(0)
    limits.leave()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert limits.state == (1, 0, 0)


def test_unused_tokens_are_returned_and_unknown_ones_are_not():
    async def level(usage):
        client = Remote(takes_s=0.0, usage=usage)
        async with gateway(client, settings={"tpm": 100_000}) as opened:
            await opened.answers([question("12345678", max_tokens=98)])
            return opened._open_roles["judge"].caller.limiter._tokens.level

    assert run(level(Usage(prompt_tokens=10, completion_tokens=5))) == 10_000 - 15
    assert run(level(Usage())) == 10_000 - 100


async def test_short_wait_is_not_delayed_by_longer_wait():
    limits = limiter(5, 5, tpm=600)
    await limits.enter(60)
    # 9 tokens a second come back: a full bucket of 60 takes more than 6 s, 9 tokens take 1 s.
    large = asyncio.ensure_future(limits.enter(60))
    await asyncio.sleep(0)
    small = asyncio.ensure_future(limits.enter(9, first=False))
    await small
    at = asyncio.get_running_loop().time()
    await large
    assert at == pytest.approx(1.0)
