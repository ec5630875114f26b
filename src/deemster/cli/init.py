"""`deemster init`: writes a small starter suite."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import click

from deemster.errors import ConfigurationError, Issue, is_storage_failure

FILES = ("suite.yml", "golden.yml", "app.py")


@click.command("init", short_help="Write a small starter suite that runs offline.")
@click.argument("directory", default=".", type=click.Path())
def command(*, directory: str) -> None:
    """Write a small starter suite that runs offline.

    DIRECTORY (default: here) gets a golden dataset, a target to replace by your application, and a suite.
    """
    folder = Path(directory)
    taken = [name for name in FILES if (folder / name).exists()]
    if taken:
        raise ConfigurationError(Issue("There is such a file already; nothing was written.", str(folder / taken[0])))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            (folder / name).write_bytes((files("deemster.cli") / "starter" / name).read_bytes())
    except OSError as error:
        if is_storage_failure(error):
            raise
        raise ConfigurationError(Issue(f"The suite cannot be written: {error.strerror}.", str(folder))) from None
    click.echo(f"Wrote {', '.join(str(folder / name) for name in FILES)}.")
    click.echo(f"Next: deemster run {folder / 'suite.yml'}")
