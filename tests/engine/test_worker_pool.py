"""The worker pool: how many work at once, what a stop cancels, and what it leaves to finish."""

from __future__ import annotations

import asyncio

import pytest

from deemster.engine.stop_request import Stop
from deemster.engine.worker_pool import worker_pool


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr("deemster.engine.worker_pool.DRAIN_S", 0.0)


async def test_concurrency_is_bounded_by_workers():
    under_way, most, done = 0, 0, []

    async def work(entry):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        done.append(entry)

    async with worker_pool(Stop()) as pool:
        await pool.for_each(range(20), work, workers=3)
    assert most == 3
    assert sorted(done) == list(range(20))


async def test_stop_cancels_what_is_under_way_and_nothing_more_is_begun():
    stop, begun, finished = Stop(), [], []

    async def work(entry):
        begun.append(entry)
        if entry >= 3:
            stop.request("enough")
            await asyncio.Event().wait()
        finished.append(entry)

    async with worker_pool(stop) as pool:
        await pool.for_each(range(50), work, workers=2)
    assert finished == [0, 1, 2]
    assert len(begun) <= 5


async def test_error_of_one_worker_ends_others_and_is_raised():
    async def work(entry):
        if entry:
            raise LookupError(entry)
        await asyncio.Event().wait()

    with pytest.raises(LookupError, match="1"):
        async with worker_pool(Stop()) as pool:
            await pool.for_each(range(2), work, workers=2)


async def test_cancelled_work_frees_its_slot():
    stop = Stop()

    async with worker_pool(stop, limit=1) as pool:
        await pool.reserve()
        pool.start(asyncio.Event().wait(), reserved=True)
        stop.request("enough")
        await pool.reserve()
        assert pool.is_drained
