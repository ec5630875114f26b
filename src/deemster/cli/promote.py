"""`deemster promote`."""

from __future__ import annotations

from pathlib import Path

import click

from deemster.cli._console import note
from deemster.cli.options import opened, store_option
from deemster.errors import ConfigurationError, counted
from deemster.runs.promote_failures import TAG, promote_failures


@click.command("promote", short_help="Turn failing records into golden samples for a person to complete.")
@click.argument("run")
@click.option("--to", "path", required=True, metavar="FILE", help="The dataset; made where there is none.")
@store_option
@click.option("--metric", metavar="NAME", help="Take what fails by this metric; otherwise by any.")
@click.option("--id", "ids", multiple=True, metavar="ID", help="Take this record, failing or not; repeatable.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Take so many at most.")
@click.option("--name", metavar="NAME", help="The name of a dataset that is made; the file's stem unless given.")
def command(
    *, run: str, path: str, store: str, metric: str | None, ids: tuple[str, ...], limit: int | None, name: str | None
) -> None:
    """Turn failing records into golden samples for a person to complete.

    RUN is a recording or a run: its id, the beginning of it, or `latest`. Each sample carries the tag `to-complete`,
    its expected output is null unless it had one, and its metadata say what was said and by what it failed.
    """
    if metric is not None and ids:
        raise ConfigurationError("`--metric` chooses failing records and `--id` names records: give one of them.")
    with opened(store) as held:
        found = promote_failures(
            held, [held.run(run)], path, name=name or Path(path).stem, metric=metric, ids=ids, limit=limit
        )
    known = f"; {counted(found.known, 'record')} left out whose input is there already" if found.known else ""
    if not found.ids:
        note(f"Nothing to promote{known}.")
        return
    note(f"{counted(len(found.ids), 'sample')} written to {path}{known}.")
    note(f"Fill in each `expected_output` and take the tag `{TAG}` away.")
