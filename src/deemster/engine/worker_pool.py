"""The worker pool of every run: bounded concurrency, back-pressure, and a stop that lets work finish."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from deemster.engine.stop_request import Stop

DRAIN_S = 2.0
_Entry = TypeVar("_Entry")
_Result = TypeVar("_Result")


class WorkerPool:
    """Runs work side by side until it is done, or until the run is asked to stop.

    Once the run is asked to stop, the pool gives the work under way `DRAIN_S` seconds and then cancels it.

    Args:
        tasks: The group of the pool's tasks: an error in one of them ends all.
        stop: Asks the run to stop.
        limit: How many places there are to reserve.

    Attributes:
        is_drained: Whether the work under way was cancelled.
    """

    def __init__(self, tasks: asyncio.TaskGroup, stop: Stop, *, limit: int) -> None:
        self._tasks, self._stop = tasks, stop
        self._running: set[asyncio.Task[Any]] = set()
        self._places = asyncio.Semaphore(limit)
        self.is_drained = False

    def serve(self, service: Coroutine[Any, Any, _Result]) -> asyncio.Task[_Result]:
        """Run a service of the pool, which a stop does not cancel; it ends by itself, or its owner cancels it."""
        return self._tasks.create_task(service)

    def start(self, work: Coroutine[Any, Any, _Result], *, reserved: bool = False) -> asyncio.Task[_Result]:
        """Start work.

        Args:
            work: What to do.
            reserved: Whether a place was reserved for it; it is free again where the work is cancelled.
        """
        task = self._tasks.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        if reserved:
            task.add_done_callback(lambda done: self._places.release() if done.cancelled() else None)
        return task

    async def reserve(self) -> None:
        """Wait for a place; a slow consumer, which frees places late, slows the run down."""
        await self._places.acquire()

    def release(self, places: int = 1) -> None:
        """Free reserved places."""
        for _ in range(places):
            self._places.release()

    async def for_each(
        self, entries: Iterable[_Entry], work: Callable[[_Entry], Coroutine[Any, Any, None]], *, workers: int
    ) -> None:
        """Work on entries, each worker on one at a time; what a stop left undone is not begun.

        Args:
            entries: Taken one by one, as workers become free.
            work: Works on one entry; cancelled where the run stops and it takes too long.
            workers: How many work side by side.
        """
        left = iter(entries)
        await asyncio.wait([self.serve(self._worker(left, work)) for _ in range(max(workers, 1))])

    async def _worker(self, left: Iterable[_Entry], work: Callable[[_Entry], Coroutine[Any, Any, None]]) -> None:
        me: Any = asyncio.current_task()
        for entry in left:
            if self._stop.requested:
                return
            self._running.add(me)
            try:
                await work(entry)
            finally:
                self._running.discard(me)

    async def join(self) -> None:
        """Wait until no work is under way."""
        while self._running:
            await asyncio.wait(self._running)

    async def drain_on_stop(self) -> None:
        """Once the run is asked to stop, wait a little and cancel the work under way."""
        await self._stop.wait()
        await asyncio.sleep(DRAIN_S)
        self.is_drained = True
        for task in tuple(self._running):
            task.cancel()


@asynccontextmanager
async def worker_pool(stop: Stop, *, limit: int = 1) -> AsyncIterator[WorkerPool]:
    """A worker pool; at the end of the block it waits for the work under way.

    Raises:
        BaseException: What the first task that failed raised.
    """
    try:
        async with asyncio.TaskGroup() as tasks:
            pool = WorkerPool(tasks, stop, limit=limit)
            draining = pool.serve(pool.drain_on_stop())
            yield pool
            await pool.join()
            draining.cancel()
    except BaseExceptionGroup as group:
        # A program expects the error itself, not a group of one.
        raise _first_error(group) from None


def _first_error(group: BaseExceptionGroup) -> BaseException:
    error = group.exceptions[0]
    return _first_error(error) if isinstance(error, BaseExceptionGroup) else error
