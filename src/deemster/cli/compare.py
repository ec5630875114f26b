"""`deemster compare`: compares two runs sample by sample."""

from __future__ import annotations

import functools
from contextlib import ExitStack

import click

from deemster.cli._console import print_sections
from deemster.cli.options import ReportOptions, comparison_options, open_run_store, store_option


@click.command("compare", short_help="Compare two runs: is the second worse, where, and why?")
@click.argument("baseline", type=click.Path())
@click.argument("candidate", type=click.Path())
@click.option("--margin", type=float, metavar="M", help="The drop that would still be acceptable.")
@click.option(
    "--confidence", type=float, default=0.95, show_default=True, help="The level of intervals and one-sided bounds."
)
@click.option("--cluster", metavar="KEY", help="Samples with the same metadata KEY are one unit.")
@click.option("--seed", type=int, default=0, show_default=True, help="The seed of what is drawn.")
@click.option("--full", is_flag=True, help="Print effects, tests and more samples too.")
@comparison_options
@store_option
def command(
    *,
    baseline: str,
    candidate: str,
    margin: float | None,
    confidence: float,
    cluster: str | None,
    seed: int,
    full: bool,
    reports: ReportOptions,
    store: str,
) -> None:
    """Compare two runs: is the second worse, where, and why?

    BASELINE and CANDIDATE are ids of stored runs, the beginnings of ids, labels, `latest`, `previous`, or files that
    `deemster run --json FILE` wrote. Samples with the same input and expected output are compared with each other.
    """
    from deemster.report.comparison_report import write_comparison
    from deemster.report.comparison_sections import comparison_sections
    from deemster.report.privacy_levels import redact_comparison
    from deemster.results.compare_columns import ComparisonSettings
    from deemster.runs.compare_runs import RunSources, compare_sources, quotes_of_either

    settings = ComparisonSettings(confidence=confidence, margin=margin, cluster=cluster, seed=seed)
    reports.check()
    with ExitStack() as opened:
        sources = RunSources(lambda: opened.enter_context(open_run_store(store)))
        before, now = sources.find(baseline), sources.find(candidate)
        comparison = compare_sources(before, now, settings=settings)
        quotes = quotes_of_either(before, now)
    shown = redact_comparison(comparison, level=reports.level, include_input=reports.include_input, quotes=quotes)
    reports.write_each(functools.partial(write_comparison, shown))
    if not reports.takes_stdout:
        print_sections(comparison_sections(shown, full=full))
