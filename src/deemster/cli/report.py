"""`deemster report`: renders a stored run or a JSON report again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from deemster.cli._command import Verb
from deemster.cli._console import print_sections, warn
from deemster.cli.options import ReportOptions, is_report_file, open_run, report_options, store_option

if TYPE_CHECKING:
    from deemster.report import Report


@click.command("report", cls=Verb, short_help="Render a stored run or a JSON report again, in any format.")
@click.argument("run", type=click.Path())
@report_options
@store_option
def command(*, run: str, reports: ReportOptions, store: str) -> None:
    """Render a stored run or a JSON report again, in any format.

    RUN is the id of a stored run, the beginning of one, a label, `latest`, `baseline`, or a file: a report that
    `deemster run --to FILE.json` wrote, or a run file that `deemster store export` wrote. Without a flag the report is
    printed on the terminal.
    """
    if is_report_file(run):
        from deemster.comparison import load_report

        _render(reports.shown(load_report(run)), reports)
        return
    from deemster.evaluation.suite import stored_junit
    from deemster.report.build_report import quoted_details, stored_report

    with open_run(store, run) as (opened, name):
        report = stored_report(opened, name, warn=warn)
        shown = reports.shown(report, quoted_details(opened, report.run.id))
        _render(shown, reports.with_junit(stored_junit(opened.run(report.run.id))))


def _render(report: Report, reports: ReportOptions) -> None:
    from deemster.report.report_sections import report_sections

    reports.write(report)
    reports.note_texts()
    if not reports.destinations:
        print_sections(report_sections(report))
