"""Worker threads for functions that are not coroutines. A stuck thread does not keep the process alive."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

from deemster.errors.user_code_guard import UserCodeGuard

_T = TypeVar("_T")
# A call that never returns holds its thread, and a machine has only so many threads.
MOST_STUCK = 1_000


class _Task(NamedTuple):
    """A call to make, and the future that waits for it."""

    results: _Results
    waiter: asyncio.Future[Any]
    context: Context
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class _Results:
    """Results on their way to an event loop, which is woken once for all that came since it last looked.

    Args:
        loop: The event loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._arrived: deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = deque()
        self._is_waking = False

    def put(self, waiter: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
        """Send the result of a call; in any thread."""
        self._arrived.append((waiter, result, error))
        if not self._is_waking:
            self._is_waking = True
            # The loop may have ended.
            with contextlib.suppress(RuntimeError):
                self.loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        # Before the results are taken: whatever comes later wakes the loop again.
        self._is_waking = False
        while self._arrived:
            _resolve(*self._arrived.popleft())


class _Worker:
    """A thread and its queue."""

    __slots__ = ("tasks", "thread")

    def __init__(self) -> None:
        self.tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self.thread: threading.Thread


class WorkerThreads:
    """Runs functions in daemon threads and awaits them.

    A caller that stops waiting leaves the thread behind. Threads of the standard library's pools would keep the process
    alive until they end.

    Args:
        name: The beginning of the threads' names.
        at_once: How many calls are under way at the same time.
    """

    def __init__(self, name: str, *, at_once: int = 1) -> None:
        self._name = name
        self._most = at_once + MOST_STUCK
        self._idle: deque[_Worker] = deque()
        self._results: _Results | None = None
        self._threads = 0
        self._is_closed = False

    async def call(self, function: Callable[..., _T], *arguments: Any) -> _T:
        """Call a function in a thread, and return its result.

        Args:
            function: The function.
            arguments: Its arguments.

        Raises:
            RuntimeError: Too many earlier calls never came back, or a ``StopIteration`` or ``GeneratorExit`` left the
                function.
        """
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[_T] = loop.create_future()
        try:
            worker = self._idle.pop()
        except IndexError:
            worker = self._start_worker()
        if self._results is None or self._results.loop is not loop:
            self._results = _Results(loop)
        worker.tasks.put(_Task(self._results, waiter, copy_context(), function, arguments))
        return await waiter

    def close(self) -> None:
        """End the idle threads, and let the others end after their call."""
        self._is_closed = True
        with contextlib.suppress(IndexError):
            while True:
                worker = self._idle.pop()
                worker.tasks.put(None)
                worker.thread.join(1)

    def _start_worker(self) -> _Worker:
        if self._threads >= self._most:
            raise RuntimeError(f"{MOST_STUCK:,} calls never came back, so no further one is made.")
        self._threads += 1
        worker = _Worker()
        worker.thread = threading.Thread(
            target=self._work, args=(worker,), name=f"{self._name}-{self._threads}", daemon=True
        )
        worker.thread.start()
        return worker

    def _work(self, worker: _Worker) -> None:
        while (task := worker.tasks.get()) is not None:
            result = None
            with UserCodeGuard(everything=True) as caught:
                result = task.context.run(task.function, *task.arguments)
            # Idle again before the waiter wakes, so that the next call finds this thread.
            self._idle.append(worker)
            task.results.put(task.waiter, result, caught.error)
            if self._is_closed:
                return
            del task, result, caught


def _resolve(waiter: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if waiter.done():
        return
    if error is None:
        waiter.set_result(result)
    elif isinstance(error, (StopIteration, GeneratorExit)):
        # A coroutine that waits would take these for its own end.
        waiter.set_exception(RuntimeError(f"{type(error).__name__} left the function."))
    else:
        waiter.set_exception(error)
