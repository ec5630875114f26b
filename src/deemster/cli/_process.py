"""The process of a command: how it begins where something is missing, and how it ends at once."""

from __future__ import annotations

import contextlib
import os
import sys

import click

from deemster.cli._console import complain
from deemster.errors import ExitCode

_LEAST_MEMORY = 256 << 20
# Ends the process at once; taken before code that is called is kept from doing so.
end_process = os._exit


def open_closed_streams() -> None:
    """Let a closed standard output or error take what is printed, and no file that is opened later take its place."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - to the end
            with contextlib.suppress(OSError, ValueError):
                click.echo(f"warning: {name} is closed: what belongs there is not printed", err=True)


def check_memory() -> None:
    """End the command where a library for numbers would end it, with the exit code of a failed gate."""
    with contextlib.suppress(ImportError):
        import resource

        allowed, _ = resource.getrlimit(resource.RLIMIT_AS)
        if 0 <= allowed < _LEAST_MEMORY:
            complain(f"deemster needs {_LEAST_MEMORY >> 20} MB of memory, and may take {allowed >> 20} (`ulimit -v`).")
            end_process(ExitCode.INCOMPLETE)
