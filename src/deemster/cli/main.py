"""The `deemster` command. Commands are loaded when they are called, so that `--help` answers at once."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from deemster import __version__
from deemster.cli._console import note, safe_streams, show_progress, warn
from deemster.cli._retired import answer_command, answer_flag
from deemster.errors import DeemsterError, ExitCode, visible
from deemster.errors.user_code_guard import UserCodeGuard, is_raised_by_code, refuse_exit

# The commands in the groups of the help.
GROUPS = {
    "The first day": {
        "demo": "See two versions compared, one of which is worse.",
        "init": "Write a small suite that runs offline, and a GitHub workflow.",
        "check": "Find mistakes in files, try the models, say what a run costs.",
        "run": "Run a suite, store the run, print the report, apply the gate.",
        "show": "List the runs; show a report, what failed in it, or one sample.",
        "baseline": "Choose the run that others are compared with, or show it.",
        "compare": "Compare two runs: is the second worse, where, and why?",
        "view": "Look at the runs in a browser, and label their samples.",
    },
    "Judges and people": {
        "agreement": "Can a judge be trusted? Compare judges with people.",
        "grade": "Grade submissions by a rubric, with one judge or a panel.",
        "rubric": "Find what makes judges disagree about a rubric, and reword it.",
        "labels": "Write a sheet for people to label, or the labels of a run.",
    },
    "Is the evaluation any good?": {
        "audit": "Audit the evaluation itself: judges, metrics, gate, dataset.",
        "plan": "Tell how many samples, repetitions or labels a question needs.",
        "attack": "Attack a target: does it refuse, leak, call a forbidden tool?",
    },
    "Keep and exchange": {
        "monitor": "Show the pass-rate of recorded traffic over time, and drift.",
        "import": "Take in runs of promptfoo, Inspect, other tools and stores.",
        "export": "Write runs to a file or another tool; make golden samples.",
        "store": "Remove runs, look for damage, verify reports.",
    },
    "Reference": {
        "metrics": "Show the catalog: what each metric reads, returns, its options.",
        "help": "Say what commands share: names of runs, samples, files, money.",
    },
}
# What no help lists.
HIDDEN = {"completion": "Print the shell completion script."}
COMMANDS = {name: line for group in (*GROUPS.values(), HIDDEN) for name, line in group.items()}
# Files of commands whose name is a word of Python.
FILES = {"import": "import_command"}
# Where a command keeps the sentence that says how to continue what an error ends.
TO_CONTINUE = "deemster.to_continue"
_LEAST_MEMORY = 256 << 20
_exit = os._exit

if TYPE_CHECKING:
    from deemster.engine.watchers import Watchers

_T = TypeVar("_T")


class LazyGroup(click.Group):
    """A group that knows its commands by name and loads one only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The names of the commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """The command of a name, loaded from the module of that name."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"deemster.cli.{FILES.get(cmd_name, cmd_name)}").command
        return command

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands before the flags: they are what one looks for."""
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """List the commands in groups, without loading them."""
        width = max(map(len, COMMANDS))
        for heading, commands in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), line) for name, line in commands.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or say which one was probably meant."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from deemster.errors import did_you_mean

            unknown = f"No command is called `{visible(args[0], limit=80)}`. {did_you_mean(args[0], COMMANDS)}"
            ctx.fail(answer_command(args[0]) or unknown)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Call the command. What it raises becomes one message and an exit code, never a traceback and exit code 1."""
        with UserCodeGuard(everything=True) as caught:
            return super().invoke(ctx)
        error = caught.error
        if isinstance(error, click.NoSuchOption):
            error = answer_flag(error)
        if isinstance(error, (click.ClickException, click.exceptions.Exit)):
            raise error
        code = ExitCode.INCOMPLETE
        is_interrupt = isinstance(error, KeyboardInterrupt) and not is_raised_by_code(error)
        if is_interrupt or isinstance(error, click.Abort):
            leave_interrupted()
        if isinstance(error, DeemsterError):
            message, code = str(error), error.exit_code
        elif isinstance(error, MemoryError):
            message = "There is not enough memory to go on."
        elif isinstance(error, OSError):
            place = f"{error.filename}: " if error.filename else ""
            message = visible(f"{place}The command could not go on: {error.strerror or error}.")
        else:
            message = _describe_unexpected(caught)
        complain(message, hint=ctx.meta.get(TO_CONTINUE) if code is ExitCode.INCOMPLETE else None)
        raise click.exceptions.Exit(code)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command. Nothing that it prints is a command for the agent of a CI service."""
        with safe_streams():
            return super().main(*args, **kwargs)


def _describe_unexpected(caught: UserCodeGuard) -> str:
    """What to say of an error that nobody expected. Its traceback goes into a file without secrets."""
    import tempfile
    import traceback

    from deemster.models.secret_redaction import Secrets, is_secret_name

    secrets = Secrets(value for name, value in os.environ.items() if is_secret_name(name))
    said = f"An unexpected error ended the command: {secrets.redact(caught.message, shapes=True)}"
    path = None
    with UserCodeGuard():
        text = secrets.redact("".join(traceback.format_exception(caught.error)), shapes=True)
        handle, path = tempfile.mkstemp(prefix="deemster-error-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    return said if path is None else f"{said}\nThe traceback is in {visible(path)}"


def leave(code: ExitCode) -> NoReturn:
    """End an interrupted command even where a call of the target never returns: Python would wait for its thread."""
    sys.stdout.flush()
    sys.stderr.flush()
    _exit(code)


def leave_interrupted() -> NoReturn:
    """End a command that reports nothing; a signal handler may call this while something is being printed."""
    try:
        complain("Interrupted; nothing was reported.", hint=click.get_current_context().meta.get(TO_CONTINUE))
        sys.stdout.flush()
    finally:
        _exit(ExitCode.INCOMPLETE)


def run_interruptible(work: Callable[[Watchers], Coroutine[Any, Any, _T]], *, quiet: bool = False) -> _T:
    """Do work that asks models: with its progress, and so that an interruption keeps what is done."""
    from deemster.engine.run_sync import run_sync
    from deemster.engine.stop_request import Stop, interruptible
    from deemster.engine.watchers import Watchers

    stop = Stop()
    with interruptible(stop, tell=note, leave=leave_interrupted), show_progress(quiet=quiet) as progress:
        return run_sync(work(Watchers(warn, progress, stop)))


def complain(message: str, *, hint: str | None = None) -> None:
    """Print an error; text from data never begins a line.

    Args:
        message: What went wrong.
        hint: A line after it that says what to do.
    """
    first, *rest = message.split("\n")
    # A standard error that is closed must not change the exit code.
    with contextlib.suppress(OSError, ValueError):
        click.echo("\n".join([f"error: {first}", *(f"       {line}" for line in rest)]), err=True)
        if hint is not None:
            click.echo(hint, err=True)


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="deemster %(version)s")
def app() -> None:
    """Judge what language-model applications produce, and judge the judges.

    More: `deemster COMMAND --help`; what commands share: `deemster help`.
    """


def main() -> None:
    """The entry point of the `deemster` script."""
    # A command makes records by the million and hardly a cycle: looking for cycles less often saves a twelfth of it.
    gc.set_threshold(50_000, 20, 100)
    _open_closed_streams()
    _check_memory()
    refuse_exit(_complain_of_exit)
    app(prog_name="deemster")


def _open_closed_streams() -> None:
    """Let a closed standard output or error take what is printed, and no file that is opened later take its place."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - to the end
            with contextlib.suppress(OSError, ValueError):
                click.echo(f"warning: {name} is closed: what belongs there is not printed", err=True)


def _check_memory() -> None:
    """End the command where a library for numbers would end it, with the exit code of a failed gate."""
    with contextlib.suppress(ImportError):
        import resource

        allowed, _ = resource.getrlimit(resource.RLIMIT_AS)
        if 0 <= allowed < _LEAST_MEMORY:
            complain(f"deemster needs {_LEAST_MEMORY >> 20} MB of memory, and may take {allowed >> 20} (`ulimit -v`).")
            _exit(ExitCode.INCOMPLETE)


def _complain_of_exit(code: int) -> ExitCode:
    complain(f"Code that was called ended the process (`os._exit({code})`); the command did not come to its end.")
    return ExitCode.INCOMPLETE
