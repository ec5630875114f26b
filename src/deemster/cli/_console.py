"""Printing for people: results on standard output, everything else on standard error."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import click

from deemster.errors import break_ci_commands, visible

if TYPE_CHECKING:
    from rich.console import Console

    from deemster.engine.progress import Progress
    from deemster.evaluation.dry_run import CallRange, DryRun
    from deemster.text.destination import Destination
    from deemster.text.text_sections import TextSection

WIDTH = 120
_SECONDS_BETWEEN_LINES = 5.0


class _SafeOutput(io.BufferedIOBase):
    """Passes on what is printed, line by line, without commands for the agent of a CI service.

    Args:
        below: Where it goes.
    """

    def __init__(self, below: BinaryIO) -> None:
        self._below, self._line = below, b""

    def writable(self) -> bool:
        """It can be written to."""
        return True

    def isatty(self) -> bool:
        """Whether a person reads it on a terminal."""
        return self._below.isatty()

    def fileno(self) -> int:
        """The file descriptor below."""
        return self._below.fileno()

    def write(self, data: Any) -> int:
        """Pass on whole lines; the last one waits for its end."""
        lines, newline, self._line = (self._line + bytes(data)).rpartition(b"\n")
        if newline:
            self._below.write(_break_commands(lines + newline))
        return len(data)

    def flush(self) -> None:
        """Pass on everything."""
        if self._line:
            begun, self._line = self._line, b""
            self._below.write(_break_commands(begun))
        self._below.flush()


def _break_commands(lines: bytes) -> bytes:
    return break_ci_commands(lines.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


@contextmanager
def safe_streams() -> Iterator[None]:
    """Let nothing that is printed while the block runs be a command for the agent of a CI service.

    A terminal that cannot show a character gets its escape.
    """
    before = {
        name: stream for name in ("stdout", "stderr") if isinstance(stream := getattr(sys, name), io.TextIOWrapper)
    }
    safe = [
        io.TextIOWrapper(
            cast(BinaryIO, _SafeOutput(stream.buffer)),
            stream.encoding,
            "backslashreplace",
            line_buffering=stream.line_buffering,
        )
        for stream in before.values()
    ]
    for name, stream in zip(before, safe, strict=True):
        setattr(sys, name, stream)
    try:
        yield
    finally:
        for (name, old), stream in zip(before.items(), safe, strict=True):
            setattr(sys, name, old)
            with suppress(OSError, ValueError):
                stream.flush()
            with suppress(OSError, ValueError):
                # Otherwise the stream below would be closed with this one.
                stream.detach()


def print_sections(sections: Sequence[TextSection]) -> None:
    """Print the sections of a report as text and tables on standard output."""
    from deemster.text import terminal_layout

    print_rich(lambda console: terminal_layout.print_sections(sections, console))


def print_rich(print_to: Callable[[Console], None]) -> None:
    """Let a function print on standard output; colour only on a terminal without NO_COLOR."""
    from rich.console import Console

    terminal = sys.stdout.isatty()
    console = Console(file=sys.stdout, width=None if terminal else WIDTH, highlight=False, soft_wrap=False)
    with console.capture() as captured:
        print_to(console)
    write_out(captured.get())


def terminal_width() -> int | None:
    """How wide the terminal is that standard output goes to; None where it goes elsewhere."""
    import shutil

    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def write_out(text: str) -> None:
    """Write text to standard output; a reader such as `head` may stop reading."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        from deemster.text.destination import drop_output

        drop_output()


def note(message: str) -> None:
    """Print a message on standard error."""
    click.echo(message, err=True)


def warn(message: str) -> None:
    """Print a warning on standard error."""
    click.echo(f"warning: {message}", err=True)


def complain(message: str, *, hint: str | None = None) -> None:
    """Print an error; text from data never begins a line.

    Args:
        message: What went wrong.
        hint: A line after it that says what to do.
    """
    first, *rest = message.split("\n")
    # A standard error that is closed must not change the exit code.
    with suppress(OSError, ValueError):
        click.echo("\n".join([f"error: {first}", *(f"       {line}" for line in rest)]), err=True)
        if hint is not None:
            click.echo(hint, err=True)


@contextmanager
def show_progress(*, quiet: bool) -> Iterator[Callable[[Progress], None] | None]:
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
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    remarks = TextColumn("{task.fields[remarks]}", markup=False)
    with Bar(*columns, remarks, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task("evaluating", total=None, remarks="")
        pace = _Pace()

        def update(state: Progress) -> None:
            remarks = ", ".join(pace.describe(state, time.monotonic()))
            bar.update(task, completed=state.done, total=state.total, remarks=remarks)

        yield update


def _lines() -> Callable[[Progress], None]:
    pace = _Pace()
    last = time.monotonic()

    def update(state: Progress) -> None:
        nonlocal last
        now = time.monotonic()
        pace.begin(state, now)
        if now - last >= _SECONDS_BETWEEN_LINES:
            last = now
            note(", ".join([f"{state.done:,} of {state.total:,} done", *pace.describe(state, now)]))

    return update


class _Pace:
    """How fast a run goes, since the first report of its progress: what came before was reading its dataset."""

    def __init__(self) -> None:
        self._began: float | None = None
        self._done = 0

    def begin(self, state: Progress, now: float) -> None:
        """Count from the first report."""
        if self._began is None:
            self._began = now
            self._done = state.done

    def describe(self, state: Progress, now: float) -> list[str]:
        """The remarks beside how much is done: what is unscored, the rate, the time left, what models used."""
        self.begin(state, now)
        seconds = now - (self._began or now)
        rate = (state.done - self._done) / seconds if seconds > 0 else 0.0
        pace = [f"{rate:.0f}/s" if rate >= 1 else f"{rate:.2f}/s"] if rate else []
        pace += [f"{_format_duration((state.total - state.done) / rate)} left"] if rate else []
        return [f"{state.unscored:,} unscored", *pace, *_model_use(state)]


def _format_duration(seconds: float) -> str:
    """A time as people say it.

    >>> _format_duration(59), _format_duration(61), _format_duration(7300)
    ('59 s', '1 min 1 s', '2 h 1 min')
    """
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minute} min"
    return f"{minute} min {second} s" if minute else f"{second} s"


def _model_use(state: Progress) -> list[str]:
    """What the models have used so far, and how many requests their limits let through at the moment."""
    from deemster.records.usage import sum_usage

    spent = sum_usage(usage for usage in state.spent.values() if usage is not None)
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


def print_planned_calls(planned: DryRun, destinations: Sequence[Destination] = ()) -> None:
    """Print the requests to each role, and about what they cost; write them as JSON where that is asked for.

    Args:
        planned: What a run would ask.
        destinations: Where its reports would go; only those of JSON are used.

    Raises:
        ReportError: A file cannot be written.
    """
    from deemster.text.destination import write_pieces

    for destination in destinations:
        if destination.format == "json":
            write_pieces((planned.to_json(),), destination)
            if destination.is_stdout:
                return
    lines = describe_planned_calls(planned)
    if not lines:
        click.echo("No model would be asked.")
        return
    for line in lines:
        click.echo(line)
    click.echo("The tokens sent are estimated; each answer is counted as long as it may be.")
    if any(calls.least.calls != calls.most.calls for calls in planned.roles.values()):
        click.echo("The higher number assumes that every follow-up is needed and every question is asked twice.")
    if planned.assumes_context:
        click.echo("A context of five passages is assumed where a judge reads one that only the target gives.")
    click.echo("Retries of failed requests are not counted.")


def describe_planned_calls(planned: DryRun) -> list[str]:
    """A line for each role that is asked, how often and at which cost, and one for all of several."""
    called = {role: plan for role, plan in planned.roles.items() if plan.most.calls}
    lines = [f"{role}: {_describe_calls(plan)}" for role, plan in called.items()]
    if len(called) > 1:
        counts = [sum(plan[end].calls for plan in called.values()) for end in (0, 1)]
        costs = [[plan[end].cost_usd for plan in called.values()] for end in (0, 1)]
        totals = [sum(filter(None, each), Decimal(0)) if None not in each else None for each in costs]
        lines.append(f"all: {_range(counts)} {'request' if counts[1] == 1 else 'requests'}, {_price(totals)}")
    return lines


def _describe_calls(plan: CallRange) -> str:
    least, most = plan
    noun = "request" if most.calls == 1 else "requests"
    sent = _range([least.prompt_tokens, most.prompt_tokens])
    price = _price([least.cost_usd, most.cost_usd])
    counts = _range([least.calls, most.calls])
    return f"{counts} {noun}, about {sent} tokens sent, at most {most.completion_tokens:,} received, {price}"


def _range(ends: Sequence[int]) -> str:
    """Two counts as people say a range.

    >>> _range([40, 115]), _range([7, 7])
    ('40 to 115', '7')
    """
    low, high = ends
    return f"{high:,}" if low == high else f"{low:,} to {high:,}"


def _price(ends: Sequence[Decimal | int | None]) -> str:
    low, high = ends
    if low is None or high is None:
        return "price unknown"
    return f"about ${high:.4f}" if low == high else f"about ${low:.4f} to ${high:.4f}"
