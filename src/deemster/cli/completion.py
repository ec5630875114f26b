"""`deemster completion`: prints the shell completion script."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from deemster.cli._command import Verb
from deemster.cli.main import app

_SHELLS = ("bash", "zsh", "fish")


@click.command(
    "completion",
    cls=Verb,
    examples=["deemster completion bash"],
    see_also=["help"],
)
@click.argument("shell", type=click.Choice(_SHELLS))
def command(*, shell: str) -> None:
    """Print the shell completion script.

    For bash: `deemster completion bash >> ~/.bashrc`.
    """
    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"No completion is known for {shell}.")
    click.echo(found(app, {}, "deemster", "_DEEMSTER_COMPLETE").source())
