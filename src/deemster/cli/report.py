"""`deemster report`."""

from __future__ import annotations

import click

from deemster.cli.console import show_report
from deemster.cli.rendering import Rendering, rendering_options
from deemster.report import load_report


@click.command("report", short_help="Render a JSON report again, in any format.")
@click.argument("file", type=click.Path())
@rendering_options
def command(*, file: str, rendering: Rendering) -> None:
    """Render a JSON report again, in any format.

    FILE is a report that `deemster run --json FILE` wrote. Without a flag it is shown on the terminal.
    """
    rendering.check()
    view = rendering.view(load_report(file))
    rendering.write(view)
    if not rendering.destinations:
        show_report(view)
