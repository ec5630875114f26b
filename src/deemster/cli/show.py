"""`deemster show`: one sample of a run, whole."""

from __future__ import annotations

import click

from deemster.cli._command import Verb
from deemster.cli._console import print_sections, warn
from deemster.cli.options import ReportOptions, is_report_file, open_run, store_option, without_text_option
from deemster.errors import ConfigurationError


@click.command("show", cls=Verb, short_help="Show one sample of a run: question, output, every mark and its reasons.")
@click.argument("run", type=click.Path())
@click.argument("sample")
@without_text_option
@click.option("--prompts", is_flag=True, help="Show what each judge was asked and replied, where the run kept it.")
@store_option
def command(*, run: str, sample: str, reports: ReportOptions, prompts: bool, store: str) -> None:
    """Show one sample of a run: question, output, every mark and its reasons.

    Texts are not cut. What was expected and retrieved, the steps of an agent, and the traceback of a Python target that
    raised are shown too. A run keeps the prompts of judges whose marks did not pass; `deemster run --keep-prompts all`
    keeps all.

    RUN is the id of a stored run, the beginning of one, a label, `latest`, `baseline`, or a file: a report
    that `deemster run --to FILE.json` wrote, or a run file that `deemster store export` wrote.
    SAMPLE is the id of the sample.
    """
    from deemster.report.sample_report import NOTHING_KEPT, find_sample, sample_sections

    if prompts and reports.without_text:
        raise ConfigurationError("Prompts quote inputs and outputs: `--prompts` does not go with `--without-text`.")
    if is_report_file(run):
        from deemster.comparison import load_report

        if prompts:
            raise ConfigurationError("A report file holds no prompts: name a stored run.")
        report = reports.shown(load_report(run))
        print_sections(list(sample_sections(report, find_sample(report, sample))))
        return
    from deemster.report.build_report import quoted_details, stored_report
    from deemster.report.kept_details import kept_details

    with open_run(store, run) as (opened, name):
        stored = stored_report(opened, name, warn=warn)
        report = reports.shown(stored, quoted_details(opened, stored.run.id))
        found, kept = find_sample(report, sample), NOTHING_KEPT
        if not reports.without_text:
            kept = kept_details(opened, report.run.id, found.position, prompts=prompts)
        print_sections(list(sample_sections(report, found, kept)))
