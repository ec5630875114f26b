"""`deemster certify`: one file from which anyone computes the report of a run again."""

from __future__ import annotations

from pathlib import Path

import click

from deemster.cli._console import note, warn, write_out
from deemster.cli.options import open_run_store, store_option
from deemster.errors import visible


@click.command("certify", short_help="Write one file from which anyone computes the report of a run again.")
@click.argument("run")
@click.option("--to", metavar="FILE", type=click.Path(dir_okay=False), help="The file; default RUN.certificate.")
@store_option
def command(*, run: str, to: str | None, store: str) -> None:
    """Write one file from which anyone computes the report of a run again.

    RUN is an id, the beginning of one, a label, `latest` or `baseline`. The file holds every fact of the run, so the
    samples and outputs too, and its report. `deemster verify FILE` checks it, offline.

    The SHA-256 is printed: publish or sign it where it must be known who made the certificate.
    """
    from deemster.runs.certificate import certify_run

    with open_run_store(store) as opened:
        row = opened.run(run)
        file = to or f"{row.id}.certificate"
        verified = certify_run(opened, row.id, Path(file), warn=warn)
    note(f"wrote {visible(file)}")
    write_out(f"{verified.sha256}\n")
