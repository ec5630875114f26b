"""Threads for what is no coroutine. They end with the process, whatever they are stuck in."""

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
# Each that never came back holds its thread: enough of them, and the machine has no more.
MOST_STUCK = 1_000


class _Piece(NamedTuple):
    """A call to be made, and who waits for it."""

    loop: asyncio.AbstractEventLoop
    waiter: asyncio.Future[Any]
    context: Context
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class _Worker:
    """A thread, and where it finds what to do."""

    __slots__ = ("pieces", "thread")

    def __init__(self) -> None:
        self.pieces: SimpleQueue[_Piece | None] = SimpleQueue()
        self.thread: threading.Thread


class WorkerThreads:
    """Runs functions in threads and awaits them; how many at once is the caller's to say.

    Whoever stops waiting leaves the thread behind with what it does. Those of the standard library's pools would keep
    the process from ending until they are through.

    Args:
        name: What the threads are called.
        at_once: How many calls are under way at the same time.
    """

    def __init__(self, name: str, *, at_once: int = 1) -> None:
        self._name = name
        self._most = at_once + MOST_STUCK
        self._idle: deque[_Worker] = deque()
        self._threads = 0
        self._is_closed = False

    async def call(self, function: Callable[..., _T], *arguments: Any) -> _T:
        """What a function returns, called in a thread.

        Args:
            function: What to call.
            arguments: What it is given.

        Raises:
            RuntimeError: Too many earlier calls never came back, or a ``StopIteration`` left the function.
        """
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[_T] = loop.create_future()
        try:
            worker = self._idle.pop()
        except IndexError:
            worker = self._started()
        worker.pieces.put(_Piece(loop, waiter, copy_context(), function, arguments))
        return await waiter

    def close(self) -> None:
        """End the threads that are free, and let the others end as they come free."""
        self._is_closed = True
        with contextlib.suppress(IndexError):
            while True:
                worker = self._idle.pop()
                worker.pieces.put(None)
                worker.thread.join(1)

    def _started(self) -> _Worker:
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
        while (piece := worker.pieces.get()) is not None:
            result = None
            with UserCodeGuard(everything=True) as caught:
                result = piece.context.run(piece.function, *piece.arguments)
            # Free again before anybody is told, so that the next call finds this thread.
            self._idle.append(worker)
            # A loop that has ended waits for nothing.
            with contextlib.suppress(RuntimeError):
                piece.loop.call_soon_threadsafe(_tell, piece.waiter, result, caught.error)
            if self._is_closed:
                return
            del piece, result, caught


def _tell(waiter: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if waiter.done():
        return
    if error is None:
        waiter.set_result(result)
    elif isinstance(error, StopIteration):
        waiter.set_exception(RuntimeError(f"{type(error).__name__} left the function."))
    else:
        waiter.set_exception(error)
