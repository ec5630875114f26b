"""`deemster view`: the stored runs in a browser."""

from __future__ import annotations

from pathlib import Path

import click

from deemster.cli._command import Verb
from deemster.cli._console import note
from deemster.cli.report_options import ReportOptions, without_text_option
from deemster.cli.store_options import open_run_store, store_option
from deemster.errors import ConfigurationError, plural


@click.command(
    "view",
    cls=Verb,
    examples=[
        "deemster view --open",
        "deemster view --annotator ada",
        "deemster view --export site before latest --without-text",
    ],
    see_also=["show", "labels", "agreement"],
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Where the viewer listens. Beyond loopback it asks for a token.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="The port; 7070 unless given, or a free one where that is taken.",
)
@click.option("--open", "opens", is_flag=True, help="Open the browser.")
@click.option(
    "--annotator", "author", metavar="NAME", help="Label samples as this person. Without it nothing can be changed."
)
@click.option(
    "--export",
    metavar="DIR",
    help="Write RUN..., or their comparison, as static files for a browser, and end.",
)
@without_text_option
@click.argument("runs", metavar="[RUN]...", nargs=-1)
@store_option
def command(
    *,
    host: str,
    port: int | None,
    opens: bool,
    author: str | None,
    export: str | None,
    reports: ReportOptions,
    runs: tuple[str, ...],
    store: str,
) -> None:
    """Look at the runs in a browser, and label their samples.

    The viewer listens on this machine alone and asks no other host for anything. Ctrl-C ends it.

    RUN is for --export: the id of a stored run, the beginning of one, a name, `latest`, or a run file. Several are
    compared; the first one is the baseline.
    """
    if export is not None:
        _export(export, runs, reports, store)
        return
    if runs:
        raise ConfigurationError("RUN is for `--export DIR`. Without it the viewer shows all runs.")
    from deemster.view.viewer_api import Viewer
    from deemster.view.viewer_server import serve

    def tell(address: str) -> None:
        note(f"The viewer is at {address}  (Ctrl-C ends it)")
        if opens:
            click.launch(address)

    with open_run_store(store) as opened:
        serve(Viewer(opened, author=author), host=host, port=port, tell=tell)


def _export(folder: str, runs: tuple[str, ...], reports: ReportOptions, store: str) -> None:
    """Write runs as static files."""
    from deemster.store.open_runs import open_runs
    from deemster.view.static_export import export_viewer

    if not runs:
        raise ConfigurationError("Name the runs to be exported, such as `--export DIR latest`.")
    with open_runs(store, runs) as (opened, names):
        count = export_viewer(opened, names, Path(folder), without_text=reports.without_text)
    note(f"{plural(count, 'file')} in {folder}. Open {Path(folder) / 'index.html'} in a browser.")
    if not reports.without_text:
        note("They hold texts of samples and outputs; `--without-text` leaves them out.")
