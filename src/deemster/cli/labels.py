"""`deemster labels`: sheets for people to fill in with labels, and the labels they gave in the viewer."""

from __future__ import annotations

from pathlib import Path

import click

from deemster.cli._command import VerbGroup
from deemster.cli._console import note, warn
from deemster.cli.options import ReportOptions, open_run, store_option, write_file
from deemster.errors import ConfigurationError, Issue, ReportError


@click.group(
    "labels", cls=VerbGroup, short_help="Write a sheet of samples for people to label, or the labels of a run."
)
def command() -> None:
    """Write a sheet of samples for people to label, or the labels of a run."""


@command.command("sheet", short_help="Write a sheet of samples of a run, drawn at random, for people to label.")
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
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="The seed of the draw.")
@click.option("--to", "file", metavar="FILE", default="labels.csv", show_default=True, help="Where the sheet goes.")
@store_option
def sheet(
    *,
    run: str,
    n: int,
    metrics: tuple[str, ...],
    stratify: bool,
    balance: str | None,
    seed: int,
    file: str,
    store: str,
) -> None:
    """Write a sheet of samples of a run, drawn at random, for people to label.

    RUN is the id of a stored run, the beginning of one, `latest`, or a run file. The sheet is CSV with a line for each
    sample and metric: input, expected output, output, and blank cells `annotator` and `verdict` (yes or no). What the
    run's metrics said is not shown. Each line has the probability with which its sample was drawn; estimates weight by
    it. To compare the labels with the run: `deemster calibrate RUN --labels labels.csv`.
    """
    from deemster.calibration.label_sheet import draw_samples, label_sheet
    from deemster.report.build_report import stored_report

    if stratify and balance is not None:
        raise ConfigurationError("Give `--stratify` or `--balance`, not both.")
    if file != "-" and Path(file).exists():
        raise ReportError(Issue("The file exists, and may hold labels. Name another one with `--to`.", file))
    with open_run(store, run) as (opened, name):
        report = ReportOptions((), "default", include_input=True).redact(stored_report(opened, name, warn=warn))
        drawn = draw_samples(report, n, seed=seed, stratify=stratify, balance=balance)
        text = label_sheet(report, drawn, metrics=metrics)
    write_file(file, text)
    if file != "-":
        note(f"{len(drawn):,} of {report.totals.samples:,} samples are in {file}.")


@command.command("export", short_help="Write the labels that people gave to a run in the viewer.")
@click.argument("run")
@click.option("--to", "file", metavar="FILE", default="-", help="Where they go; standard output unless given.")
@click.option(
    "--as",
    "form",
    type=click.Choice(["csv", "votes"]),
    default="csv",
    show_default=True,
    help="CSV with a line for each label, or a votes file with the verdicts of the run beside them.",
)
@store_option
def export(*, run: str, file: str, form: str, store: str) -> None:
    """Write the labels that people gave to a run in the viewer.

    RUN is the id of a stored run, the beginning of one, `latest`, or a run file. `deemster align --labels` reads the
    CSV, and `deemster align` the votes; `deemster align --run RUN` needs neither.
    """
    from deemster.calibration.people_labels import labelled_votes, labels_csv
    from deemster.formats.canonical_json import json_text

    with open_run(store, run) as (opened, name):
        row = opened.run(name)
        text = labels_csv(opened, row) if form == "csv" else f"{json_text(labelled_votes(opened, row).to_dict())}\n"
    write_file(file, text)
