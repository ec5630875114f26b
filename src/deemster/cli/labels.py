"""`deemster labels`: sheets for people to fill in with labels."""

from __future__ import annotations

from pathlib import Path

import click

from deemster.cli._console import note, warn
from deemster.cli.options import ReportOptions, open_run_store, store_option, write_file
from deemster.errors import Issue, ReportError


@click.group("labels", short_help="Write a sheet of samples for people to label.")
def command() -> None:
    """Write a sheet of samples for people to label."""


@command.command("sheet", short_help="Write a sheet of samples of a run, drawn at random, for people to label.")
@click.argument("run")
@click.option("--n", type=click.IntRange(min=1), default=50, show_default=True, help="How many samples are drawn.")
@click.option(
    "--metric", "metrics", metavar="NAME", multiple=True, help="What people judge; every metric unless given."
)
@click.option("--stratify", is_flag=True, help="Draw an equal part from each quarter of the mean scores.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="The seed of the draw.")
@click.option("--to", "file", metavar="FILE", default="labels.csv", show_default=True, help="Where the sheet goes.")
@store_option
def sheet(*, run: str, n: int, metrics: tuple[str, ...], stratify: bool, seed: int, file: str, store: str) -> None:
    """Write a sheet of samples of a run, drawn at random, for people to label.

    RUN is the id of a stored run, the beginning of one, or `latest`. The sheet is CSV with a line for each sample and
    metric: input, expected output, output, and blank cells `annotator` and `verdict` (yes or no). What the run's
    metrics said is not shown. Each line has the probability with which its sample was drawn. To compare the labels with
    the run: `deemster report RUN --csv marks.csv`, then `deemster align --labels labels.csv --verdicts marks.csv`.
    """
    from deemster.report.label_sheet import draw_samples, label_sheet
    from deemster.runs.build_report import stored_report

    if file != "-" and Path(file).exists():
        raise ReportError(Issue("The file exists, and may hold labels. Name another one with `--to`.", file))
    with open_run_store(store) as opened:
        report = ReportOptions((), "default", include_input=True).redact(stored_report(opened, run, warn=warn))
        drawn = draw_samples(report, n, seed=seed, stratify=stratify)
        text = label_sheet(report, drawn, metrics=metrics)
    write_file(file, text)
    if file != "-":
        note(f"{len(drawn):,} of {report.totals.samples:,} samples are in {file}.")
