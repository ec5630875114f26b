"""Runs a coroutine from synchronous code, also inside a running event loop (a notebook)."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")
# ``asyncio.run`` turns an interrupt into a cancellation, of which a loop that is kept waiting hears nothing.
_LOOKS_EVERY_S = 0.1


def run_sync(work: Coroutine[Any, Any, _T]) -> _T:
    """The result of a coroutine, whether or not an event loop is running already.

    Inside a running loop (a notebook) it runs in a thread of its own, so that nothing has to be patched. An interrupt
    of the caller's thread ends it there too, and so does one that its loop turned into a cancellation.
    """
    if not _loop_is_running():
        return asyncio.run(work)
    with ThreadPoolExecutor(1, thread_name_prefix="deemster-evaluate") as pool:
        task = _ThreadTask()
        result = pool.submit(asyncio.run, task.done(work))
        try:
            while not wait([result], timeout=_LOOKS_EVERY_S).done:
                if _is_cancelled():
                    task.cancel()
            return result.result()
        finally:
            task.cancel()


def with_parameters_of(
    blocking: Callable[_P, _T],
) -> Callable[[Callable[..., Coroutine[Any, Any, _T]]], Callable[_P, Coroutine[Any, Any, _T]]]:
    """Give a coroutine function the parameters of its blocking twin, for `inspect`, `help` and type checkers.

    Args:
        blocking: The function that waits.
    """

    def decorate(function: Callable[..., Coroutine[Any, Any, _T]]) -> Callable[_P, Coroutine[Any, Any, _T]]:
        function.__signature__ = inspect.signature(blocking)  # type: ignore[attr-defined]
        return function

    return decorate


class _ThreadTask:
    """Work in the event loop of another thread, which this one can end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._end: Callable[[], object] | None = None
        self._is_cancelled = False

    async def done(self, work: Coroutine[Any, Any, _T]) -> _T:
        """The result of the work; raises where it is cancelled first."""
        task, loop = asyncio.ensure_future(work), asyncio.get_running_loop()
        with self._lock:
            self._end = lambda: loop.call_soon_threadsafe(task.cancel)
            if self._is_cancelled:
                task.cancel()
        try:
            return await task
        finally:
            with self._lock:
                self._end = None

    def cancel(self) -> None:
        """End the work, where it has not ended yet."""
        with self._lock:
            self._is_cancelled = True
            if self._end is not None:
                self._end()


def _is_cancelled() -> bool:
    """Whether the task that waits here was cancelled, which it cannot see while it waits."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
