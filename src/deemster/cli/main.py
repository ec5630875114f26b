"""The `deemster` command. Commands are loaded when they are called, so that `--help` answers at once."""

from __future__ import annotations

import gc
import importlib
import os
from typing import Any

import click

from deemster import __version__
from deemster.cli._console import complain, safe_streams
from deemster.cli._interruption import TO_CONTINUE, leave_interrupted
from deemster.cli._process import check_memory, open_closed_streams
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
# Modules of commands whose name is a word of Python.
MODULE_NAMES = {"import": "import_command"}


class LazyGroup(click.Group):
    """A group that knows its commands by name and loads one only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The names of the commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """The command of a name, loaded from the module of that name."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"deemster.cli.{MODULE_NAMES.get(cmd_name, cmd_name)}").command
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

        is_interrupt = isinstance(error, KeyboardInterrupt) and not is_raised_by_code(error)
        if is_interrupt or isinstance(error, click.Abort):
            leave_interrupted()

        code = error.exit_code if isinstance(error, DeemsterError) else ExitCode.INCOMPLETE
        hint = ctx.meta.get(TO_CONTINUE) if code is ExitCode.INCOMPLETE else None
        complain(_describe(error, caught), hint=hint)
        raise click.exceptions.Exit(code)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command. Nothing that it prints is a command for the agent of a CI service."""
        with safe_streams():
            return super().main(*args, **kwargs)


def _describe(error: BaseException | None, caught: UserCodeGuard) -> str:
    if isinstance(error, DeemsterError):
        return str(error)
    if isinstance(error, MemoryError):
        return "There is not enough memory to go on."
    if isinstance(error, OSError):
        prefix = f"{error.filename}: " if error.filename else ""
        return visible(f"{prefix}The command could not go on: {error.strerror or error}.")
    return _describe_unexpected(caught)


def _describe_unexpected(caught: UserCodeGuard) -> str:
    """What to say of an error that nobody expected. Its traceback goes into a file without secrets."""
    import tempfile
    import traceback

    from deemster.models.secret_redaction import Secrets, is_secret_name

    secrets = Secrets(value for name, value in os.environ.items() if is_secret_name(name))
    message = f"An unexpected error ended the command: {secrets.redact(caught.message, shapes=True)}"

    path = None
    with UserCodeGuard():
        text = secrets.redact("".join(traceback.format_exception(caught.error)), shapes=True)
        handle, path = tempfile.mkstemp(prefix="deemster-error-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    return message if path is None else f"{message}\nThe traceback is in {visible(path)}"


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
    open_closed_streams()
    check_memory()
    refuse_exit(_complain_of_exit)
    app(prog_name="deemster")


def _complain_of_exit(code: int) -> ExitCode:
    complain(f"Code that was called ended the process (`os._exit({code})`); the command did not come to its end.")
    return ExitCode.INCOMPLETE
