"""Runs a coroutine from synchronous code, also inside a running event loop (a notebook), and warns at its caller."""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
import traceback
import warnings
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from deemster.errors import RunCancelledError
from deemster.errors.user_code_guard import is_raised_by_code

_P = ParamSpec("_P")
_T = TypeVar("_T")
# ``asyncio.run`` turns an interrupt into a cancellation, of which a loop that is kept waiting hears nothing.
_LOOKS_EVERY_S = 0.1
_PACKAGE = str(Path(__file__).parents[1])


def run_sync(work: Coroutine[Any, Any, _T]) -> _T:
    """The result of a coroutine, whether or not an event loop is running already.

    Inside a running loop (a notebook) it runs in a thread of its own, so that nothing has to be patched. An interrupt
    of the caller's thread ends it there too, and so does one that its loop turned into a cancellation.

    Raises:
        RunCancelledError: User code cancelled the work from within.
    """
    if not _loop_is_running():
        try:
            return _run(work)
        except asyncio.CancelledError:
            raise _cancelled_from_within() from None
    task, is_submitted = _ThreadTask(), threading.Event()

    def run_once_submitted() -> _T:
        is_submitted.wait()
        return _run(task.done(work))

    with ThreadPoolExecutor(1, thread_name_prefix="deemster-evaluate") as pool:
        try:
            # An interrupt while the pool starts the thread would leave a thread that the pool does not know.
            result = pool.submit(run_once_submitted)
            is_submitted.set()
            while not wait([result], timeout=_LOOKS_EVERY_S).done:
                if _is_cancelled():
                    task.cancel()
            return result.result()
        except asyncio.CancelledError:
            if task.is_cancelled:
                raise
            raise _cancelled_from_within() from None
        finally:
            task.cancel()
            is_submitted.set()


def _run(work: Coroutine[Any, Any, _T]) -> _T:
    """The result of a coroutine in an event loop of its own, which goes on where user code stops it.

    User code stops the loop where it calls `loop.stop()`, and where one of its own tasks or callbacks raises
    ``SystemExit`` or ``KeyboardInterrupt``.

    Raises:
        CancelledError: The work was cancelled.
    """
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        task = loop.create_task(work)
        while not task.done():
            try:
                runner.run(_settle(task))
            except asyncio.CancelledError:
                break
            except (SystemExit, KeyboardInterrupt, RuntimeError) as error:
                if task.done() or loop.is_closed() or not is_raised_by_code(error):
                    raise
        return task.result()


def _cancelled_from_within() -> RunCancelledError:
    return RunCancelledError("The target or a metric cancelled the tasks of the run.")


async def _settle(task: asyncio.Task[Any]) -> None:
    """Wait for a task, whatever comes of it; a cancellation goes on to the task."""
    try:
        await asyncio.wait([task])
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait([task])
        raise


def waits_for(work: Callable[_P, Coroutine[Any, Any, _T]], result: type[_T]) -> Callable[_P, _T]:
    """The function of the same parameters that waits for the work.

    Args:
        work: A function such as ``evaluate_async``, which returns what is to be awaited.
        result: What comes of it, for `inspect` and `help`.
    """

    @functools.wraps(work)
    def wait_for(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        return run_sync(work(*args, **kwargs))

    wait_for.__name__ = wait_for.__qualname__ = work.__name__.removesuffix("_async")
    wait_for.__annotations__["return"] = result.__name__
    wait_for.__signature__ = inspect.signature(work).replace(  # type: ignore[attr-defined]
        return_annotation=result.__name__
    )
    return wait_for


class _ThreadTask:
    """Work in the event loop of another thread, which this one can end.

    Attributes:
        is_cancelled: Whether this thread ended it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._end: Callable[[], object] | None = None
        self.is_cancelled = False

    async def done(self, work: Coroutine[Any, Any, _T]) -> _T:
        """The result of the work; raises where it is cancelled first."""
        task, loop = asyncio.ensure_future(work), asyncio.get_running_loop()
        with self._lock:
            self._end = lambda: loop.call_soon_threadsafe(task.cancel)
            if self.is_cancelled:
                task.cancel()
        try:
            return await task
        finally:
            with self._lock:
                self._end = None

    def cancel(self) -> None:
        """End the work, where it has not ended yet."""
        with self._lock:
            self.is_cancelled = True
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


def warner() -> Callable[[str], None]:
    """A function that warns at the line of the program that called this package.

    The line is looked up now: what warns later may run in another thread, below an event loop.
    """
    callers = ((frame.f_code.co_filename, line) for frame, line in traceback.walk_stack(None))
    file, line = next((caller for caller in callers if not caller[0].startswith(_PACKAGE)), ("deemster", 1))

    def warn(message: str) -> None:
        warnings.warn_explicit(message, UserWarning, file, line)

    return warn
