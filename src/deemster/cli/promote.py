"""`deemster promote`: turns failing records into golden samples."""

from __future__ import annotations

from pathlib import Path

import click

from deemster.cli._command import Verb
from deemster.cli._console import note
from deemster.cli.options import open_run, refuse_stdout, store_option
from deemster.errors import ConfigurationError, plural


@click.command("promote", cls=Verb, short_help="Turn failing records into golden samples for a person to complete.")
@click.argument("run")
@click.option(
    "--to",
    callback=refuse_stdout,
    metavar="FILE",
    required=True,
    help="The dataset to add them to; made where there is none.",
)
@store_option
@click.option("--metric", metavar="NAME", help="Take what fails by this metric; otherwise by any.")
@click.option("--id", "ids", multiple=True, metavar="ID", help="Take this record, failing or not; repeatable.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Take N at most.")
@click.option("--name", metavar="NAME", help="The name of a dataset that is made; the file's stem unless given.")
def command(
    *, run: str, to: str, store: str, metric: str | None, ids: tuple[str, ...], limit: int | None, name: str | None
) -> None:
    """Turn failing records into golden samples for a person to complete.

    RUN is a recording or a run: its id, the beginning of it, `latest`, or a run file. Each sample carries the tag
    `to-complete`. Its expected output is null unless it had one. Its metadata hold the output and the metrics that it
    failed.
    """
    from deemster.monitoring.promote_failures import TAG, promote_failures

    if metric is not None and ids:
        raise ConfigurationError("`--metric` chooses failing records and `--id` names records: give one of them.")
    with open_run(store, run) as (opened, stored):
        found = promote_failures(
            opened, [opened.run(stored)], to, name=name or Path(to).stem, metric=metric, ids=ids, limit=limit
        )
    known = f"; {plural(found.known, 'record')} left out whose input is there already" if found.known else ""
    if not found.ids:
        note(f"Nothing to promote{known}.")
        return
    note(f"{plural(len(found.ids), 'sample')} written to {to}{known}.")
    note(f"Fill in each `expected_output` and remove the tag `{TAG}`.")
