"""Catches whatever user code (a target, a custom metric) raises, and holds it as a value."""

from __future__ import annotations

import os
from collections.abc import Callable
from opcode import opmap
from types import TracebackType
from typing import NoReturn, Self

from deemster.errors.message_text import visible

_RAISE = bytes([opmap["RAISE_VARARGS"]])
_PACKAGE = __file__.removesuffix(f"errors{os.sep}user_code_guard.py")
_STANDARD_LIBRARY = os.__file__.removesuffix("os.py")
# The last frames of a traceback that are kept, and how many characters of all of it.
_FRAMES = 20
_TRACEBACK = 8_000


def refuse_exit(complain: Callable[[int], int]) -> None:
    """Let no user code end this process by `os._exit` with an exit code of its own, such as that of success.

    Processes that are forked from this one end as they like.

    Args:
        complain: Says what happened, given the exit code that was asked for; its answer is the exit code.
    """
    process, end = os.getpid(), os._exit

    def exit_process(status: int) -> NoReturn:
        end(complain(status) if os.getpid() == process else status)

    os._exit = exit_process


class UserCodeGuard:
    """Holds what user code raised inside its ``with`` block, whatever it is.

    What comes from outside passes through: the cancellation of the task, Ctrl-C, the closing of a coroutine. User code
    may raise ``SystemExit``, ``KeyboardInterrupt`` or ``CancelledError`` itself; these are held, for user code must not
    end a run.

    Args:
        everything: Whether what comes from outside is held too, as a thread without a caller needs it.

    Attributes:
        error: What was raised, or None.
    """

    __slots__ = ("_everything", "error")

    def __init__(self, *, everything: bool = False) -> None:
        self.error: BaseException | None = None
        self._everything = everything

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is None or not (self._everything or is_raised_by_code(error)):
            return False
        self.error = error
        return True

    @property
    def message(self) -> str:
        """What was raised, in one line: its type and its text."""
        if self.error is None:
            return ""
        text = _text(self.error)
        return visible(f"{type(self.error).__name__}: {text}" if text else type(self.error).__name__, limit=300)

    @property
    def message_with_place(self) -> str:
        """What was raised, with the file and line of the user's code that it came from last."""
        place = None if self.error is None else _user_place(self.error)
        return self.message if place is None else f"{self.message} ({place})"

    @property
    def traceback(self) -> str | None:
        """Where it was raised, from the first frame of the user's code: the last 20 frames, at most 8,000 characters.

        None where the user's code has no frame, as where the message alone says what happened.
        """
        if self.error is None or _user_place(self.error) is None:
            return None
        from traceback import TracebackException  # noqa: PLC0415 - only where something failed

        with UserCodeGuard():
            shown = TracebackException(type(self.error), self.error, _last_frames(self.error), limit=-_FRAMES)
            text = "".join(shown.format()).rstrip()
            half = _TRACEBACK // 2
            return text if len(text) <= _TRACEBACK else f"{text[:half]}\n...\n{text[-half:]}"
        return None


def _last_frames(error: BaseException) -> TracebackType | None:
    """The traceback from the first frame of the user's code, or from a later one where it has too many."""
    trace = error.__traceback__
    frames: list[TracebackType] = []
    while trace is not None:
        if frames or not _is_library(trace):
            frames.append(trace)
        trace = trace.tb_next
    return frames[-min(_FRAMES, len(frames))] if frames else None


def _is_library(trace: TracebackType) -> bool:
    path = trace.tb_frame.f_code.co_filename
    return path.startswith((_PACKAGE, _STANDARD_LIBRARY, "<")) or "site-packages" in path


def _user_place(error: BaseException) -> str | None:
    """The name of the file and the line of the last frame that is neither this package's nor a library's."""
    place, trace = None, error.__traceback__
    while trace is not None:
        if not _is_library(trace):
            path = trace.tb_frame.f_code.co_filename
            place = f"{os.path.basename(path)}:{trace.tb_lineno}"  # noqa: PTH119 - a path is not made for each failure
        trace = trace.tb_next
    return None if place is None else visible(place, limit=120)


def is_raised_by_code(error: BaseException) -> bool:
    """Whether code raised an exception itself; otherwise a cancellation, Ctrl-C or a closed coroutine brought it."""
    if isinstance(error, (Exception, SystemExit)):
        return True
    if isinstance(error, (KeyboardInterrupt, GeneratorExit)):
        return _is_from_raise_statement(error)
    from asyncio import CancelledError, current_task  # noqa: PLC0415 - `import deemster` loads no event loop

    if not isinstance(error, CancelledError):
        return True
    try:
        task = current_task()
    except RuntimeError:
        return True
    return task is None or not task.cancelling()


def _is_from_raise_statement(error: BaseException) -> bool:
    """Whether a ``raise`` raised an exception. A signal and the closing of a coroutine strike at other instructions."""
    trace = error.__traceback__
    if trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    code, module = trace.tb_frame.f_code.co_code, trace.tb_frame.f_globals.get("__name__")
    # This module of the standard library raises a KeyboardInterrupt where a signal came.
    return module != "asyncio.runners" and code[trace.tb_lasti : trace.tb_lasti + 1] == _RAISE


def _text(error: BaseException) -> str:
    with UserCodeGuard() as caught:
        return str(error)
    return f"(its text cannot be shown: {type(caught.error).__name__})"
