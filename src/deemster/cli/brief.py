"""`deemster brief`: what failed, group_flags by likely cause, for a person or an assistant who must fix it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from deemster.cli._command import Verb
from deemster.cli._console import warn, write_out
from deemster.cli.options import ReportOptions, is_report_file, open_run, store_option, without_text_option
from deemster.errors import ConfigurationError, ReportError, visible

if TYPE_CHECKING:
    from deemster.comparison import Comparison
    from deemster.comparison.compare_runs import RunSources
    from deemster.report import Report
    from deemster.store import Store

MAX_CHARS = 12_000


@click.command(
    "brief", cls=Verb, short_help="Tell what failed, by likely cause, to a person or an assistant who must fix it."
)
@click.argument("run", type=click.Path())
@click.option("--against", metavar="RUN", help="Tell what changed since this run; default the suite's baseline.")
@click.option(
    "--max-chars", type=int, default=MAX_CHARS, show_default=True, metavar="N", help="The most characters of the brief."
)
@without_text_option
@store_option
def command(*, run: str, against: str | None, max_chars: int, reports: ReportOptions, store: str) -> None:
    """Tell what failed, by likely cause, to a person or an assistant who must fix it.

    RUN is the id of a stored run, the beginning of one, a label, `latest`, or a file: a run file, a report that
    `deemster run --to FILE.json` wrote, or a comparison that `deemster compare --to FILE.json` wrote.

    The brief is Markdown and needs nothing else to be understood. Text of samples and models stands between fences.
    """
    from deemster.comparison.compare_runs import RunSources
    from deemster.comparison.failure_brief import comparison_brief, report_brief
    from deemster.comparison.report_loader import load_report_or_comparison
    from deemster.report import Report
    from deemster.report.build_report import quoted_details, stored_report

    with RunSources(store) as sources:
        stored = None if is_report_file(run) else sources.enter_context(open_run(store, run))
        found = load_report_or_comparison(run) if stored is None else stored_report(*stored, warn=warn)
        if isinstance(found, Report):
            held = None if stored is None else stored[0]
            quotes = None if held is None else quoted_details(held, found.run.id)
            comparison = _compare(found, against, reports, sources, held)
            text = report_brief(reports.shown(found, quotes), comparison, max_chars=max_chars)
        elif against is not None:
            raise ConfigurationError("A comparison tells already what changed: leave out `--against`.")
        else:
            text = comparison_brief(reports.shown_comparison(found, lambda _: None), max_chars=max_chars)
    write_out(text)


def _compare(
    report: Report, against: str | None, reports: ReportOptions, sources: RunSources, store: Store | None
) -> Comparison | None:
    """The comparison of a run with the one that is named, else with its suite's baseline; None where there is none."""
    from deemster.comparison.compare_runs import StoredSource, compare_sources, quotes_of_either

    run = sources.find(report) if store is None else StoredSource(store, store.run(report.run.id))
    named = against is not None
    if against is None and store is not None:
        baseline = store.baseline(report.run.suite, report.dataset.name)
        against = None if baseline is None or baseline.run == report.run.id else baseline.run
    if against is None:
        return None
    before = sources.find(against)
    try:
        comparison = compare_sources(before, run)
    except ReportError as error:
        if named:
            raise
        warn(visible(f"the brief does not compare with the baseline: {error}"))
        return None
    return reports.shown_comparison(comparison, quotes_of_either(before, run))
