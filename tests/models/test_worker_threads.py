"""WorkerThreads that can be left behind: reused while they answer, never waited for when they do not."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading

import pytest

from deemster.models import worker_threads as module
from deemster.models.worker_threads import WorkerThreads

STUCK = """
import asyncio, threading
from deemster.models.worker_threads import WorkerThreads

async def work():
    threads = WorkerThreads("stuck")
    try:
        async with asyncio.timeout(0.01):
            await threads.call(threading.Event().wait)
    except TimeoutError:
        print("left")

asyncio.run(work())
"""


def called(*functions, at_once=1):
    async def work():
        threads = WorkerThreads("test", at_once=at_once)
        try:
            return [await threads.call(function) for function in functions]
        finally:
            threads.close()

    return asyncio.run(work())


def test_sequential_calls_share_a_thread():
    assert len(set(called(*[threading.get_ident] * 50))) == 1


def test_concurrent_calls_use_one_thread_each():
    barrier = threading.Barrier(5, timeout=30)

    async def work():
        threads = WorkerThreads("test", at_once=5)
        await asyncio.gather(*(threads.call(barrier.wait) for _ in range(5)))
        threads.close()

    asyncio.run(work())


def test_function_sees_the_context_it_was_called_in():
    variable = contextvars.ContextVar("variable", default="none")
    variable.set("seen")
    assert called(variable.get) == ["seen"]


@pytest.mark.parametrize("raised", [ValueError("v"), SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()])
def test_exception_is_raised_to_awaiter_and_thread_survives(raised):
    def fail():
        raise raised

    async def work():
        threads = WorkerThreads("test")
        before = await threads.call(threading.get_ident)
        task = asyncio.ensure_future(asyncio.wait_for(threads.call(fail), None))
        with pytest.raises(type(raised)):
            await task
        assert await threads.call(threading.get_ident) == before
        threads.close()

    if isinstance(raised, (SystemExit, KeyboardInterrupt)):
        # A loop raises these out of itself as well.
        with pytest.raises(type(raised)):
            asyncio.run(work())
    else:
        asyncio.run(work())


def test_stop_iteration_reaches_awaiter_as_error():
    def fail():
        raise StopIteration(1)

    with pytest.raises(RuntimeError, match="StopIteration left the function"):
        called(fail)


def test_stuck_thread_does_not_block_exit():
    done = subprocess.run([sys.executable, "-c", STUCK], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "left\n"


def test_too_many_stuck_calls_stop_further_calls(monkeypatch):
    monkeypatch.setattr(module, "MOST_STUCK", 2)
    release = threading.Event()

    async def work():
        threads = WorkerThreads("test", at_once=1)
        for _ in range(3):
            waiting = asyncio.ensure_future(threads.call(release.wait))
            await asyncio.sleep(0)
            waiting.cancel()
        with pytest.raises(RuntimeError, match="2 calls never came back"):
            await threads.call(threading.get_ident)
        release.set()
        threads.close()

    asyncio.run(work())
