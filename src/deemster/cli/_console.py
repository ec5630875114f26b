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
from deemster.records.usage import added
from deemster.report import Report
from deemster.runs.progress import Progress

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 120
_EVERY_S = 5.0


def show_report(report: Report) -> None:
    """Print a report as tables on standard output."""
    from deemster.report.terminal_report import print_report  # noqa: PLC0415 - loads rich

    draw(lambda console: print_report(report, console))


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
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn  # noqa: PLC0415 - loads rich
    from rich.progress import Progress as Bar  # noqa: PLC0415 - loads rich

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    said = TextColumn("{task.fields[said]}", markup=False)
    with Bar(*columns, said, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task("evaluating", total=None, said="")
        pace = _Pace()

        def update(state: Progress) -> None:
            told = ", ".join(pace.told(state, time.monotonic()))
            bar.update(task, completed=state.done, total=state.total, said=told)

        yield update


def _lines() -> Callable[[Progress], None]:
    pace = _Pace()
    last = time.monotonic()

    def update(state: Progress) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _EVERY_S:
            last = now
            note(", ".join([f"{state.done:,} of {state.total:,} done", *pace.told(state, now)]))

    return update


class _Pace:
    """How fast a run goes, since it was started or resumed."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    def told(self, state: Progress, now: float) -> list[str]:
        """What to say beside how much is done."""
        rate = (state.done - state.before) / max(now - self._started, 1e-3)
        pace = [f"{rate:.0f}/s" if rate >= 1 else f"{rate:.2f}/s"] if rate else []
        pace += [f"{_span((state.total - state.done) / rate)} left"] if rate else []
        return [f"{state.unscored:,} unscored", *pace, *_asked(state)]


def _span(seconds: float) -> str:
    """A time as people say it.

    >>> _span(59), _span(61), _span(7300)
    ('59 s', '1 min 1 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


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
