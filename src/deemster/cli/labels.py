"""`deemster labels`: sheets for people to fill in with labels, and the labels they gave in the viewer."""

from __future__ import annotations

from pathlib import Path

import click

from deemster.cli._command import VerbGroup
from deemster.cli._console import note, warn
from deemster.cli.report_options import ReportOptions, result_options, write_texts
from deemster.cli.store_options import open_run, store_option
from deemster.errors import ConfigurationError, Issue, ReportError


@click.group(
    "labels",
    cls=VerbGroup,
    examples=["deemster labels sheet latest --n 100", "deemster labels export latest --to votes.json"],
    see_also=["agreement", "view"],
)
def command() -> None:
    """Write a sheet for people to label, or the labels of a run."""


@command.command(
    "sheet",
    short_help="Write a sheet of samples of a run, drawn at random, for people to label.",
    examples=["deemster labels sheet latest --n 100 --to labels.csv"],
    see_also=["agreement", "view"],
)
@click.argument("run")
@click.option("--n", type=click.IntRange(min=1), default=50, show_default=True, help="How many samples are drawn.")
@click.option(
    "--metric", "metrics", metavar="NAME", multiple=True, help="What people judge; every metric unless given."
)
@click.option("--stratify", is_flag=True, help="Draw an equal part from each quarter of the mean scores.")
@click.option(
    "--balance",
    metavar="NAME",
    help="Draw half of the samples where this metric fails, half where it passes: where failures are rare.",
)
@click.option(
    "--efficient", is_flag=True, help="Draw more of the samples of which judges are not sure: fewer labels say as much."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="The seed of the draw.")
@result_options("csv", default="labels.csv")
@store_option
def sheet(
    *,
    run: str,
    n: int,
    metrics: tuple[str, ...],
    stratify: bool,
    balance: str | None,
    efficient: bool,
    seed: int,
    reports: ReportOptions,
    store: str,
) -> None:
    """Write a sheet of samples of a run, drawn at random, for people to label.

    RUN is the id of a stored run, the beginning of one, `latest`, or a run file. The sheet is CSV with a line for each
    sample and metric: input, expected output, output, and blank cells `annotator` and `verdict` (yes or no). What the
    run's metrics said is not shown. Each line has the probability with which its sample was drawn; estimates weight by
    it. To compare the labels with the run: `deemster agreement RUN --labels labels.csv`.
    """
    from deemster.calibration.label_sheet import draw_samples, label_sheet
    from deemster.calibration.label_uncertainty import draw_unsure_samples
    from deemster.report.stored_report import stored_report

    if stratify + (balance is not None) + efficient > 1:
        raise ConfigurationError("Give one of `--stratify`, `--balance` and `--efficient`.")
    for destination in reports.destinations:
        if not destination.is_stdout and Path(destination.path).exists():
            message = "The file exists, and may hold labels. Name another one with `--to`."
            raise ReportError(Issue(message, destination.path))
    with open_run(store, run) as (opened, name):
        report = stored_report(opened, name, warn=warn)
        if efficient:
            drawn = draw_unsure_samples(report, metrics or report.metric_order, n, seed=seed)
        else:
            drawn = draw_samples(report, n, seed=seed, stratify=stratify, balance=balance)
        text = label_sheet(report, drawn, metrics=metrics)
    write_texts(reports, {"csv": lambda: text})
    for destination in reports.destinations:
        if not destination.is_stdout:
            note(f"{len(drawn):,} of {report.totals.samples:,} samples are in {destination.path}.")


@command.command(
    "export",
    short_help="Write the labels that people gave to a run in the viewer.",
    examples=["deemster labels export latest --to labels.csv", "deemster labels export latest --to votes.json"],
    see_also=["agreement", "view"],
)
@click.argument("run")
@result_options("csv", "votes", default="csv:-")
@store_option
def export(*, run: str, reports: ReportOptions, store: str) -> None:
    """Write the labels that people gave to a run in the viewer.

    RUN is the id of a stored run, the beginning of one, `latest`, or a run file. CSV has a line for each label; a votes
    file has the verdicts of the run beside them. `deemster agreement` reads both; `deemster agreement RUN` needs
    neither.
    """
    from deemster.calibration.people_labels import labelled_votes, labels_csv
    from deemster.formats.canonical_json import json_text

    with open_run(store, run) as (opened, name):
        row = opened.run(name)
        texts = {
            "csv": lambda: labels_csv(opened, row),
            "votes": lambda: f"{json_text(labelled_votes(opened, row).to_dict())}\n",
        }
        write_texts(reports, texts)
