"""`deemster monitor`."""

from __future__ import annotations

import sys

import click
import msgspec

from deemster.cli._console import draw, note, say
from deemster.cli.options import store_option
from deemster.errors import ExitCode, counted, visible
from deemster.formats.canonical_json import json_text
from deemster.report.monitoring_report import drift_words, monitoring_console
from deemster.results.pass_rate_over_time import BASELINE, PERIODS
from deemster.runs.monitor_traffic import monitor


@click.command("monitor", short_help="Show the pass-rate of recorded traffic over time, and whether it drifts.")
@click.argument("dataset")
@store_option
@click.option("--metric", metavar="NAME", help="Look at this metric alone; otherwise a record passes if all do.")
@click.option(
    "--every",
    default="day",
    show_default=True,
    metavar=f"{'|'.join(PERIODS)}|N",
    help="The period (UTC), or so many records.",
)
@click.option(
    "--baseline",
    type=int,
    default=BASELINE,
    show_default=True,
    metavar="N",
    help="How many scored records, the first ones, the later ones are held against. Choose it before you look.",
)
@click.option(
    "--alpha",
    type=float,
    default=0.05,
    show_default=True,
    help="The share of false alarms that is accepted, over all looks there will ever be.",
)
@click.option("--since", metavar="DATE", help="Leave out what was recorded before, such as 2026-03-01.")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
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
    as_json: bool,
    fail_on_drift: bool,
) -> None:
    """Show the pass-rate of recorded traffic over time, and whether it drifts.

    DATASET is the name the recorder was given. Control limits show what the baseline lets expect of so
    many records. The test of drift stays valid however often you look.
    """
    shown = monitor(dataset, store=store, metric=metric, every=every, baseline=baseline, alpha=alpha, since=since)
    if shown.n == shown.unscored:
        by = "every metric; `--metric` looks at one" if metric is None else f"`{visible(metric)}`"
        note(f"None of {counted(shown.n, 'record')} is scored by {by}.")
        note("`deemster rescore --dataset NAME --metric ...` scores recordings.")
    if as_json:
        say(json_text(msgspec.to_builtins(shown)) + "\n")
    else:
        draw(lambda console: monitoring_console(shown, console, name=dataset))
    if fail_on_drift and shown.drift is not None and shown.drift.direction == "down":
        note(drift_words(shown))
        sys.exit(ExitCode.GATE_FAILED)
