"""The worker pool: how many work at once, what a stop cancels, and what it leaves to finish."""

from __future__ import annotations

import asyncio

import pytest

from deemster.runs._worker_pool import worker_pool
from deemster.runs.stop_request import Stop


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr("deemster.runs._worker_pool.DRAIN_S", 0.0)


def test_concurrency_is_bounded_by_workers():
    under_way, most, done = 0, 0, []

    async def work(entry):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return entry * 2

    async def finish(entry, result):
        done.append((entry, result))

    async def run():
        async with worker_pool(Stop()) as pool:
            await pool.for_each(range(20), work, workers=3, finish=finish)

    asyncio.run(run())
    assert most == 3
    assert sorted(done) == [(entry, entry * 2) for entry in range(20)]


def test_after_a_stop_every_entry_is_finished_or_skipped_once():
    stop, finished, skipped = Stop(), [], []

    async def work(entry):
        if entry >= 3:
            stop.request("enough")
            await asyncio.Event().wait()

    async def finish(entry, _):
        await asyncio.sleep(0)
        finished.append(entry)

    async def run():
        async with worker_pool(stop) as pool:
            await pool.for_each(range(50), work, workers=2, finish=finish, skip=skipped.append)

    asyncio.run(run())
    assert finished == [0, 1, 2]
    assert sorted(skipped) == list(range(3, 50))


def test_stop_does_not_cancel_finishing_entry():
    stop, finished = Stop(), []

    async def work(entry):
        return entry

    async def finish(entry, _):
        stop.request("enough")
        await asyncio.sleep(0.02)
        finished.append(entry)

    async def run():
        async with worker_pool(stop) as pool:
            await pool.for_each(range(5), work, workers=1, finish=finish)

    asyncio.run(run())
    assert finished == [0]


def test_error_of_one_worker_ends_others_and_is_raised():
    async def work(entry):
        if entry:
            raise LookupError(entry)
        await asyncio.Event().wait()

    async def run():
        async with worker_pool(Stop()) as pool:
            await pool.for_each(range(2), work, workers=2)

    with pytest.raises(LookupError, match="1"):
        asyncio.run(run())


def test_cancelled_work_frees_its_slot():
    stop = Stop()

    async def run():
        async with worker_pool(stop, limit=1) as pool:
            await pool.reserve()
            pool.start(asyncio.Event().wait(), reserved=True)
            stop.request("enough")
            await pool.reserve()
            return pool.is_drained

    assert asyncio.run(run())
