"""Ending what takes too long."""

from __future__ import annotations

import asyncio

import pytest

from deemster.models._call_deadline import Deadlines, Limit
from tests.models.fake_clock import run


async def ended(deadlines, seconds, work):
    """What became of some work within a limit: its result, or the type of what it raised; and the limit."""
    limit = Limit(deadlines, seconds)
    try:
        with limit:
            return await work, limit
    except (TimeoutError, asyncio.CancelledError, KeyError) as error:
        return type(error), limit


async def forever():
    await asyncio.get_running_loop().create_future()


async def swallowing():
    try:
        await forever()
    except asyncio.CancelledError:
        return "late"


async def converting():
    try:
        await forever()
    except asyncio.CancelledError:
        raise KeyError from None


def test_what_ends_in_time_is_left_alone():
    async def work():
        deadlines = Deadlines()
        found, limit = await ended(deadlines, 60, asyncio.sleep(0, "done"))
        return found, limit.expired, deadlines.watched, asyncio.current_task().cancelling()

    assert run(work()) == ("done", False, {}, 0)


@pytest.mark.parametrize(("work", "outcome"), [(forever, TimeoutError), (swallowing, "late"), (converting, KeyError)])
def test_what_takes_too_long_is_cancelled_and_the_task_goes_on(work, outcome):
    async def tried():
        deadlines = Deadlines()
        found, limit = await ended(deadlines, 0.001, work())
        await asyncio.sleep(0)
        return found, limit.expired, deadlines.watched, asyncio.current_task().cancelling()

    assert run(tried()) == (outcome, True, {}, 0)


def test_each_ends_at_its_own_time_whatever_order_they_began_in():
    async def work():
        deadlines, order = Deadlines(), []

        async def one(name, seconds):
            found, _ = await ended(deadlines, seconds, forever())
            order.append((name, found))

        await asyncio.gather(one("third", 0.03), one("first", 0.001), one("second", 0.01))
        return order, deadlines.rings_at

    order, rings_at = run(work())
    assert order == [("first", TimeoutError), ("second", TimeoutError), ("third", TimeoutError)]
    assert rings_at == float("inf")


def test_one_timer_serves_all():
    async def work():
        deadlines = Deadlines()
        loop = asyncio.get_running_loop()
        before = len(loop._scheduled)
        tasks = [asyncio.ensure_future(ended(deadlines, 60 + n, forever())) for n in range(50)]
        await asyncio.sleep(0)
        found = len(deadlines.watched), len(loop._scheduled) - before
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks)
        deadlines.close()
        return found

    assert run(work()) == (50, 1)


def test_a_task_that_somebody_else_ends_is_cancelled_and_not_late():
    async def work():
        deadlines = Deadlines()
        task = asyncio.ensure_future(ended(deadlines, 60, forever()))
        await asyncio.sleep(0)
        task.cancel()
        found, limit = await task
        deadlines.close()
        return found, limit.expired

    assert run(work()) == (asyncio.CancelledError, False)


def test_where_both_end_it_the_cancellation_counts():
    async def work():
        deadlines = Deadlines()
        task = asyncio.ensure_future(ended(deadlines, 60, forever()))
        await asyncio.sleep(0)
        (limit,) = deadlines.watched
        deadlines.watched.clear()
        limit.expire()
        task.cancel()
        found, limit = await task
        deadlines.close()
        return found, limit.expired, task.cancelling()

    assert run(work()) == (asyncio.CancelledError, True, 1)


def test_only_a_task_can_be_given_a_time():
    async def work():
        told = asyncio.get_running_loop().create_future()

        def outside():
            try:
                with Limit(Deadlines(), 1):
                    told.set_result(None)
            except RuntimeError as error:
                told.set_result(str(error))

        asyncio.get_running_loop().call_soon(outside)
        return await told

    assert run(work()) == "Only a task can be given a time."
