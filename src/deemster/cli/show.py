"""`deemster show`: one sample of a run, whole."""

from __future__ import annotations

from pathlib import Path

import click

from deemster.cli._console import print_sections, warn
from deemster.cli.options import REDACT_LEVELS, ReportOptions, open_run_store, store_option


@click.command("show", short_help="Show one sample of a run: question, output, every mark and its reasons.")
@click.argument("run", type=click.Path())
@click.argument("sample")
@click.option(
    "--redact",
    type=click.Choice(REDACT_LEVELS),
    default=REDACT_LEVELS[0],
    metavar="LEVEL",
    help="Leave out `outputs`, `expected` or `all`.",
)
@store_option
def command(*, run: str, sample: str, redact: str, store: str) -> None:
    """Show one sample of a run: question, output, every mark and its reasons.

    Texts are not cut. What was expected and retrieved, and the steps of an agent, are shown too.

    RUN is the id of a stored run, the beginning of one, `latest`, or a file that `deemster run --json FILE` wrote.
    SAMPLE is the id of the sample.
    """
    from deemster.report.sample_report import find_sample, sample_sections

    options = ReportOptions((), redact, include_input=True)
    if Path(run).is_file() or Path(run).suffix == ".json":
        from deemster.report import load_report

        report = options.redact(load_report(run))
        print_sections(list(sample_sections(report, *find_sample(report, sample))))
        return
    from deemster.runs.build_report import quoted_details, stored_report

    with open_run_store(store) as opened:
        stored = stored_report(opened, run, warn=warn)
        report = options.redact(stored, quoted_details(opened, stored.run.id))
        print_sections(list(sample_sections(report, *find_sample(report, sample))))
