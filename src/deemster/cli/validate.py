"""`deemster validate`: checks a file and lists every issue in it."""

from __future__ import annotations

import click

from deemster.cli._console import warn
from deemster.errors import visible

KINDS = ("dataset", "suite", "outputs", "report", "rubric", "rubric-dataset", "votes", "alignment")


@click.command("validate", short_help="Check a file: dataset, suite, outputs, report, rubric, votes.")
@click.argument("file", type=click.Path())
@click.option("--as", "kind", type=click.Choice(KINDS), help="What the file is, where it does not say so itself.")
def command(*, file: str, kind: str | None) -> None:
    """Check a file: dataset, suite, outputs, report, rubric, votes.

    Rubric datasets and results of `deemster align --json` are known too. A suite is checked with everything it names:
    its dataset, target, metrics and gate. All issues are listed.
    """
    from deemster.runs.check_file import check_file

    click.echo(visible(f"{file}: {check_file(file, kind, warn=warn)}"))
