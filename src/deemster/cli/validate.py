"""`deemster validate`: checks files and lists every issue in them."""

from __future__ import annotations

import click

from deemster.cli._command import Verb
from deemster.cli._console import note, warn
from deemster.cli.main import complain
from deemster.errors import DeemsterError, ExitCode, plural, visible

KINDS = (
    "dataset",
    "suite",
    "outputs",
    "report",
    "comparison",
    "rubric",
    "rubric-dataset",
    "votes",
    "alignment",
    "calibration",
    "calibration-report",
)


@click.command("validate", cls=Verb, short_help="Check files: dataset, suite, outputs, report, rubric, votes.")
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILE_OR_DIRECTORY...")
@click.option("--as", "kind", type=click.Choice(KINDS), help="What the files are, where they do not say so themselves.")
def command(*, files: tuple[str, ...], kind: str | None) -> None:
    """Check files: dataset, suite, outputs, report, rubric, votes.

    Rubric datasets and results of `deemster align --to FILE.json` are known too. A suite is checked with everything it
    names: its dataset, target, metrics and gate. All issues are listed.

    Of a directory, and of the directories in it, every suite is checked, and every file whose `schema_version` is one
    of deemster's.
    """
    from deemster.evaluation.check_file import check_file, find_files

    found = find_files(files, kind)
    failing, code = 0, ExitCode.PASSED
    for file in found.files:
        try:
            click.echo(visible(f"{file}: {check_file(file, kind, warn=warn)}"))
        except DeemsterError as error:
            failing, code = failing + 1, max(code, error.exit_code)
            complain(str(error))
    if len(found.files) > 1:
        passed_over = f", {plural(found.unknown, 'file')} of other kinds passed over" if found.unknown else ""
        note(f"{plural(len(found.files), 'file')} checked, {failing} with issues{passed_over}")
    if failing:
        raise click.exceptions.Exit(code)
