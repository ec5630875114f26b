"""`deemster monitor`: the pass-rate of recorded traffic over time."""

from __future__ import annotations

import click

from deemster.cli._command import Verb
from deemster.cli._console import note
from deemster.cli._golden_samples import save_failing
from deemster.cli.report_options import RESULT_FORMATS, ReportOptions, result_options, write_result
from deemster.cli.store_options import open_run_store, store_option
from deemster.errors import ExitCode, plural, visible

PERIODS = ("hour", "day", "week", "month")
BASELINE = 500


@click.command(
    "monitor",
    cls=Verb,
    examples=[
        "deemster monitor support-bot --every week",
        "deemster monitor support-bot --fail-on-drift --save-failing golden.yml",
    ],
    see_also=["run", "export"],
)
@click.argument("dataset")
@store_option
@click.option("--metric", metavar="NAME", help="Look at this metric alone; otherwise a record passes if all do.")
@click.option(
    "--every",
    default="day",
    show_default=True,
    metavar=f"{'|'.join(PERIODS)}|N",
    help="The period (UTC), or a number of records.",
)
@click.option(
    "--baseline",
    type=int,
    default=BASELINE,
    show_default=True,
    metavar="N",
    help="Compare later records with the first N scored ones. Choose it before you look.",
)
@click.option(
    "--alpha",
    type=float,
    default=0.05,
    show_default=True,
    help="The share of false alarms that is accepted, over all looks there will ever be.",
)
@click.option("--since", metavar="DATE", help="Leave out what was recorded before, such as 2026-03-01.")
@result_options(*RESULT_FORMATS)
@click.option("--save-failing", "failing_file", metavar="FILE", help="Add the records that failed to this dataset.")
@click.option("--fail-on-drift", is_flag=True, help="Exit with 1 where the rate has drifted down.")
def command(
    *,
    dataset: str,
    store: str,
    metric: str | None,
    every: str,
    baseline: int,
    alpha: float,
    since: str | None,
    reports: ReportOptions,
    fail_on_drift: bool,
    failing_file: str | None,
) -> None:
    """Show the pass-rate of recorded traffic over time, and drift.

    DATASET is the name the recorder was given. Control limits show what to expect of so many records, given the
    baseline. The test of drift stays valid however often you look.
    """
    from deemster.monitoring.monitor_traffic import monitor
    from deemster.monitoring.monitoring_report import drift_words

    history = monitor(dataset, store=store, metric=metric, every=every, baseline=baseline, alpha=alpha, since=since)
    if history.n == history.unscored:
        by = "every metric; `--metric` looks at one" if metric is None else f"`{visible(metric)}`"
        note(f"None of {plural(history.n, 'record')} is scored by {by}.")
        note("`deemster run --outputs dataset:NAME --metric ...` scores recordings.")
    write_result(history, reports)
    if failing_file is not None:
        with open_run_store(store) as opened:
            save_failing(opened, opened.runs(dataset=dataset, kind="recording"), failing_file, metric=metric)
    if fail_on_drift and history.drift is not None and history.drift.direction == "down":
        note(drift_words(history))
        raise click.exceptions.Exit(ExitCode.GATE_FAILED)
