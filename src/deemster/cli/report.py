"""`deemster report`."""

from __future__ import annotations

from pathlib import Path

import click

from deemster.cli._console import show_report, warn
from deemster.cli.options import Rendering, opened, rendering_options, store_option
from deemster.report import Report, load_report


@click.command("report", short_help="Render a stored run or a JSON report again, in any format.")
@click.argument("run", type=click.Path())
@rendering_options
@store_option
def command(*, run: str, rendering: Rendering, store: str) -> None:
    """Render a stored run or a JSON report again, in any format.

    RUN is the id of a stored run, the beginning of one, `latest`, or a file that `deemster run --json FILE` wrote.
    Without a flag it is shown on the terminal.
    """
    rendering.check()
    if Path(run).is_file() or Path(run).suffix == ".json":
        _rendered(rendering.view(load_report(run)), rendering)
        return
    from deemster.runs.build_report import quoted_details, stored_report  # noqa: PLC0415 - a report file needs no store

    with opened(store) as held:
        report = stored_report(held, run, warn=warn)
        _rendered(rendering.view(report, quotes=quoted_details(held, report.run.id)), rendering)


def _rendered(view: Report, rendering: Rendering) -> None:
    rendering.write(view)
    if not rendering.destinations:
        show_report(view)
