"""`deemster compare`: compares two runs sample by sample."""

from __future__ import annotations

from contextlib import ExitStack

import click

from deemster.cli._console import print_sections
from deemster.cli.options import file_option, open_run_store, store_option


@click.command("compare", short_help="Compare two runs: is the second worse, where, and why?")
@click.argument("baseline", type=click.Path())
@click.argument("candidate", type=click.Path())
@click.option("--margin", type=float, metavar="M", help="The drop that would still be acceptable.")
@click.option(
    "--confidence", type=float, default=0.95, show_default=True, help="The level of intervals and one-sided bounds."
)
@click.option("--cluster", metavar="KEY", help="Samples with the same metadata KEY are one unit.")
@click.option("--seed", type=int, default=0, show_default=True, help="The seed of what is drawn.")
@file_option("json", "the comparison as canonical JSON")
@store_option
def command(
    *,
    baseline: str,
    candidate: str,
    margin: float | None,
    confidence: float,
    cluster: str | None,
    seed: int,
    json: str | None,
    store: str,
) -> None:
    """Compare two runs: is the second worse, where, and why?

    Runs are compared sample by sample.

    BASELINE and CANDIDATE are ids of stored runs, the beginnings of ids, labels, `latest`, `previous`, or files that
    `deemster run --json FILE` wrote.
    """
    from deemster.report.comparison_report import comparison_sections
    from deemster.report.report_files import Destination, write_pieces
    from deemster.results.compare_columns import ComparisonSettings
    from deemster.runs.compare_runs import RunSources, compare_sources

    settings = ComparisonSettings(confidence=confidence, margin=margin, cluster=cluster, seed=seed)
    with ExitStack() as opened:
        sources = RunSources(lambda: opened.enter_context(open_run_store(store)))
        comparison = compare_sources(sources.find(baseline), sources.find(candidate), settings=settings)
    if json is not None:
        write_pieces(comparison.pieces(), Destination("json", json))
    if json != "-":
        print_sections(comparison_sections(comparison))
