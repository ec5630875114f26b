"""`deemster export`: hands a stored run to another tool."""

from __future__ import annotations

import click

from deemster.cli._console import write_out
from deemster.cli.options import open_run, store_option
from deemster.errors import visible

EXPORTS = ("otel", "mlflow")


@click.command("export", short_help="Hand a run to another tool: OpenTelemetry or MLflow.")
@click.argument("run")
@click.option("--as", "kind", type=click.Choice(EXPORTS), required=True, help="The tool.")
@click.option("--to", metavar="PLACE", required=True, help="A file, a URL or a tracking URI, as the tool needs.")
@store_option
def command(*, run: str, kind: str, to: str, store: str) -> None:
    """Hand a run to another tool: OpenTelemetry or MLflow.

    RUN is the id of a stored run, the beginning of one, a label, `latest`, or a run file. `otel` sends events
    `gen_ai.evaluation.result` to a collector or writes OTLP's JSON lines (extra `otel`), `mlflow` logs to a tracking
    URI (extra `mlflow`).

    For another store, use `deemster store export`; for tables, `deemster report --csv` or `store export --parquet`.
    """
    from deemster.integrations.export_run import export_run

    with open_run(store, run) as (opened, name):
        place = export_run(opened, name, kind=kind, to=to)
    write_out(visible(f"wrote {place}") + "\n")
