"""Printing for people: reports on standard output, everything else on standard error."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from deemster.errors import visible
from deemster.evaluation import Progress
from deemster.records.usage import added
from deemster.report import Report

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 120
_EVERY_S = 5.0


def show_report(report: Report) -> None:
    """Print a report as tables on standard output."""
    from deemster.report.terminal import show  # noqa: PLC0415 - loads rich

    draw(lambda console: show(report, console))


def draw(print_to: Callable[[Console], None]) -> None:
    """Let something print itself on standard output; colour only on a terminal without NO_COLOR."""
    from rich.console import Console  # noqa: PLC0415 - takes a tenth of a second to load

    terminal = sys.stdout.isatty()
    console = Console(file=sys.stdout, width=None if terminal else WIDTH, highlight=False, soft_wrap=False)
    with console.capture() as captured:
        print_to(console)
    say(captured.get())


def say(text: str) -> None:
    """Write text to standard output; a reader such as `head` may stop reading."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # A reader such as `head` has seen enough. The exit code stays the gate's: 1 would say that it failed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def note(message: str) -> None:
    """Say something on standard error."""
    click.echo(message, err=True)


def warn(message: str) -> None:
    """Say a warning on standard error."""
    click.echo(f"warning: {message}", err=True)


@contextmanager
def progress_shown(*, quiet: bool) -> Iterator[Callable[[Progress], None] | None]:
    """Show how far a run is: a bar on a terminal, a line every few seconds elsewhere, nothing if quiet."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with _bar() as update:
            yield update
    else:
        yield _lines()


@contextmanager
def _bar() -> Iterator[Callable[[Progress], None]]:
    from rich.console import Console  # noqa: PLC0415 - takes a tenth of a second to load
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415 - loads rich
    from rich.progress import Progress as Bar  # noqa: PLC0415 - loads rich

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task("evaluating", total=None)

        def update(state: Progress) -> None:
            unscored = f", {state.unscored} unscored" if state.unscored else ""
            asked = "".join(f", {part}" for part in _asked(state))
            bar.update(task, completed=state.done, total=state.total, description=f"evaluating{unscored}{asked}")

        yield update


def _lines() -> Callable[[Progress], None]:
    started = last = time.monotonic()

    def update(state: Progress) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _EVERY_S:
            last = now
            rate = state.done / (now - started)
            left = (state.total - state.done) / rate if rate else 0.0
            pace = f"{rate:.0f}/s, {left:.0f} s left" if rate >= 1 else f"{rate:.2f}/s, {left:.0f} s left"
            parts = [f"{state.done} of {state.total} done", f"{state.unscored} unscored", pace, *_asked(state)]
            note(", ".join(parts))

    return update


def _asked(state: Progress) -> list[str]:
    """What the models have used so far, and how many requests their limits let through at the moment."""
    spent = added(usage for usage in state.spent.values() if usage is not None)
    parts = []
    if spent is not None:
        counts = (spent.prompt_tokens, spent.completion_tokens)
        tokens = spent.total_tokens if counts == (None, None) else sum(count or 0 for count in counts)
        parts = [] if tokens is None else [f"{tokens:,} tokens"]
        parts += [] if spent.cost_usd is None else [f"${spent.cost_usd:.4f}"]
    return parts + [
        f"{visible(role, limit=40)} {live.under_way}/{live.concurrency}" + (f" +{live.waiting}" if live.waiting else "")
        for role, live in state.limits.items()
    ]
