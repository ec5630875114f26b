"""`deemster export`: hands a stored run to another tool."""

from __future__ import annotations

from typing import Any

import click

from deemster.cli._command import Verb
from deemster.cli._console import write_out
from deemster.cli.options import open_run, refuse_stdout, store_option
from deemster.errors import visible

EXPORTS = ("otel", "mlflow")
# Tools that runs are no longer handed to, and what to do instead.
RETIRED_EXPORTS = {
    "every-eval-ever": "Use `deemster show RUN --to FILE.json`, or `--to FILE.csv` for one row a sample.",
    "promptfoo": "Look at the run with `deemster view`, or write a page with `deemster show RUN --to FILE.html`.",
}


class _Tool(click.Choice[str]):
    """The tools; one that is gone is answered by what to do instead."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in RETIRED_EXPORTS:
            self.fail(f"`{value}` is gone. {RETIRED_EXPORTS[value]}", param, ctx)
        return super().convert(value, param, ctx)


@click.command("export", cls=Verb, short_help="Hand a run to another tool: OpenTelemetry or MLflow.")
@click.argument("run")
@click.option("--as", "kind", type=_Tool(EXPORTS), required=True, help="The tool.")
@click.option(
    "--to",
    callback=refuse_stdout,
    metavar="PLACE",
    required=True,
    help="A file, a URL or a tracking URI, as the tool needs.",
)
@store_option
def command(*, run: str, kind: str, to: str, store: str) -> None:
    """Hand a run to another tool: OpenTelemetry or MLflow.

    RUN is the id of a stored run, the beginning of one, a name, `latest`, or a run file. `otel` sends events
    `gen_ai.evaluation.result` to a collector or writes OTLP's JSON lines (extra `otel`), `mlflow` logs to a tracking
    URI (extra `mlflow`).

    For another store, use `deemster store export`; for tables, `deemster show RUN --to FILE.csv` or `store export
    --parquet`.
    """
    from deemster.integrations.export_run import export_run

    with open_run(store, run) as (opened, name):
        place = export_run(opened, name, kind=kind, to=to)
    write_out(visible(f"wrote {place}") + "\n")
