"""How a command is interrupted: what it did is kept, and it says how to continue."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from deemster.cli._console import complain, note, show_progress, warn
from deemster.cli._process import end_process
from deemster.errors import ExitCode

if TYPE_CHECKING:
    from deemster.engine.watchers import Watchers

# Where a command keeps the sentence that says how to continue what an error ends.
TO_CONTINUE = "deemster.to_continue"
_T = TypeVar("_T")


def leave(code: ExitCode) -> NoReturn:
    """End an interrupted command even where a call of the target never returns: Python would wait for its thread."""
    sys.stdout.flush()
    sys.stderr.flush()
    end_process(code)


def leave_interrupted() -> NoReturn:
    """End a command that reports nothing; a signal handler may call this while something is being printed."""
    try:
        complain("Interrupted; nothing was reported.", hint=click.get_current_context().meta.get(TO_CONTINUE))
        sys.stdout.flush()
    finally:
        end_process(ExitCode.INCOMPLETE)


def run_interruptible(work: Callable[[Watchers], Coroutine[Any, Any, _T]], *, quiet: bool = False) -> _T:
    """Do work that asks models: with its progress, and so that an interruption keeps what is done."""
    from deemster.engine.run_sync import run_sync
    from deemster.engine.stop_request import Stop, interruptible
    from deemster.engine.watchers import Watchers

    stop = Stop()
    with interruptible(stop, tell=note, leave=leave_interrupted), show_progress(quiet=quiet) as progress:
        return run_sync(work(Watchers(warn, progress, stop)))
