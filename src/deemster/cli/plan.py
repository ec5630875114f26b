"""`deemster plan`: what samples can show, and how many samples, repetitions or labels a question needs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from deemster.cli._command import VerbGroup
from deemster.cli.options import Command, NumberRange, confidence_option, group_flags, take_flags
from deemster.cli.report_options import RESULT_FORMATS, ReportOptions, result_options, write_result
from deemster.cli.store_options import store_option
from deemster.errors import ConfigurationError

if TYPE_CHECKING:
    from deemster.planning.sample_plans import Noise, RunNoise
    from deemster.results.run_columns import RunColumns

_SHARE = NumberRange(0, 1)
_INSIDE = NumberRange(0, 1, min_open=True, max_open=True)
_power_option = click.option("--power", type=_INSIDE, default=0.8, show_default=True, help="The chance of an answer.")


class StatedNoise(NamedTuple):
    """What the user says about the noise, and which runs to measure it on."""

    against: str | None
    metric: str | None
    scores: bool
    flip_rate: float | None
    sd: float | None
    pass_rate: float | None
    cluster: str | None
    cluster_size: float | None
    icc: float | None

    def noise(self) -> Noise | None:
        """The stated noise; None where nothing is stated.

        Raises:
            ConfigurationError: Two things are said that exclude each other.
        """
        from deemster.planning.sample_plans import USUAL_ICC, stated_noise

        if self.flip_rate is not None and self.sd is not None:
            raise ConfigurationError("`--flip-rate` is for pass or fail, `--sd` for scores. Give one of them.")
        if self.cluster is not None and (self.cluster_size is not None or self.icc is not None):
            raise ConfigurationError("`--cluster` measures clusters on a run; leave out what you would guess.")
        if self.icc is not None and self.cluster_size is None:
            raise ConfigurationError("`--icc` says how alike samples of a cluster are; give `--cluster-size` too.")
        if self.flip_rate is None and self.sd is None and self.pass_rate is None and self.cluster_size is None:
            return None
        if self.against is not None:
            raise ConfigurationError("`--against` measures the noise on two runs; leave out what you would guess.")
        return stated_noise(
            pass_rate=self.pass_rate,
            flip_rate=self.flip_rate,
            sd=self.sd,
            cluster_size=self.cluster_size or 1.0,
            icc=USUAL_ICC if self.icc is None else self.icc,
        )


def _noise_options(command: Command) -> Command:
    return group_flags(
        command,
        "stated",
        lambda flags: take_flags(StatedNoise, flags),
        [
            click.option("--against", metavar="RUN", help="Measure the noise on the differences to this run."),
            click.option("--metric", metavar="NAME", help="Look at this metric; otherwise at every metric together."),
            click.option("--scores", is_flag=True, help="Look at mean scores of a run instead of pass-rates."),
            click.option("--flip-rate", type=_SHARE, help="The share of samples that flip from run to run."),
            click.option("--sd", type=NumberRange(min=0, min_open=True), help="The spread of differences of scores."),
            click.option("--pass-rate", type=_SHARE, help="The share of marks that pass; a guess of the noise."),
            click.option("--cluster", metavar="KEY", help="Samples with the same metadata KEY of a run are one unit."),
            click.option("--cluster-size", type=NumberRange(min=1), help="Samples a cluster has; a guess."),
            click.option("--icc", type=_SHARE, help="How alike samples of a cluster are; a guess, 0.3 unless given."),
        ],
    )


@click.group(
    "plan",
    cls=VerbGroup,
    short_help="Tell how many samples, repetitions or labels a question needs.",
    examples=["deemster plan detect golden.yml", "deemster plan size --effect 0.05 --from latest"],
    see_also=["audit gate", "check"],
)
def command() -> None:
    """Tell how many samples, repetitions or labels a question needs.

    `detect` tells what a dataset can show. The numbers are those of the gate's own rule, not of a formula for large
    samples.
    """


@command.command(
    "detect",
    short_help="Tell which drops a dataset can show, and which margins it can certify.",
    examples=["deemster plan detect golden.yml", "deemster plan detect latest"],
    see_also=["audit gate"],
)
@click.argument("dataset_or_run", type=click.Path())
@_noise_options
@confidence_option
@_power_option
@result_options(*RESULT_FORMATS)
@store_option
def detect(
    *,
    dataset_or_run: str,
    confidence: float,
    power: float,
    reports: ReportOptions,
    store: str,
    stated: StatedNoise,
) -> None:
    """Tell which drops a dataset can show, and which margins it can certify, as a whole and by cohort.

    DATASET_OR_RUN is a dataset file, the id of a stored run, the beginning of one, a name, `latest`, a run file, or a
    file that `deemster run --to FILE.json` wrote. The noise is measured on `--against`, else on the run's repetitions,
    else guessed from the spread of its marks. For a dataset it is stated, or 10 % of samples flip.
    """
    from deemster.planning.plan_report import DetectionPlan
    from deemster.planning.sample_plans import Goal, plan_dataset, plan_run, stated_noise

    goal = Goal(confidence, power)
    if _is_dataset(dataset_or_run):
        from deemster.datasets import Dataset

        if stated.against or stated.metric or stated.scores or stated.cluster:
            given = "`--against`, `--metric`, `--scores` and `--cluster`"
            raise ConfigurationError(f"{given} are for a run, and this is a dataset.")
        tags = [sample.tags for sample in Dataset.load(dataset_or_run)]
        detections = plan_dataset(tags, stated.noise() or stated_noise(), goal=goal)
    else:
        run, noise = _read_runs(dataset_or_run, stated, store)
        detections = plan_run(noise, run, metric=stated.metric, goal=goal)
    plan = DetectionPlan(confidence=confidence, power=power, detect=tuple(detections))
    write_result(plan, reports)


@command.command(
    "size",
    short_help="Tell how many samples show a drop, or certify a margin.",
    examples=["deemster plan size --effect 0.05 --from latest"],
    see_also=["audit gate"],
)
@click.option("--effect", type=_INSIDE, required=True, help="The drop to be shown, and the margin to be certified.")
@_power_option
@confidence_option
@click.option("--from", "run", metavar="RUN", help="Measure the noise on this run.")
@_noise_options
@click.option(
    "--sample-cost",
    type=NumberRange(min=0),
    default=0.0,
    show_default=True,
    help="What making one more sample costs, in calls; for the split with repetitions.",
)
@result_options(*RESULT_FORMATS)
@store_option
def size(
    *,
    effect: float,
    power: float,
    confidence: float,
    run: str | None,
    sample_cost: float,
    reports: ReportOptions,
    store: str,
    stated: StatedNoise,
) -> None:
    """Tell how many samples show a drop, or certify a margin.

    The noise is stated, or measured on the runs `--from` and `--against`. Where both have repetitions, the split
    between samples and repetitions that costs least comes first in a table.
    """
    import numpy as np

    from deemster.planning.plan_report import SizePlan
    from deemster.planning.sample_plans import EVERY_METRIC, Goal, plan_size, stated_noise

    goal = Goal(confidence, power)
    if run is None:
        if stated.against or stated.metric or stated.scores or stated.cluster:
            raise ConfigurationError("`--against`, `--metric`, `--scores` and `--cluster` need a run: `--from RUN`.")
        noise = stated.noise() or stated_noise()
    else:
        columns, measured = _read_runs(run, stated, store)
        noise = measured.find(stated.metric or EVERY_METRIC, np.arange(columns.marks.samples))
    samples = plan_size(effect, noise, sample_cost=sample_cost, goal=goal)
    write_result(SizePlan(confidence=confidence, power=power, size=samples), reports)


@command.command(
    "labels",
    short_help="Tell how many human labels an interval needs, with a judge and without.",
    examples=["deemster plan labels --half-width 0.05 --correlation 0.6"],
    see_also=["labels sheet"],
)
@click.option(
    "--half-width",
    type=NumberRange(0, 1, min_open=True),
    required=True,
    help="Half the width of the interval of the true pass-rate or mean score.",
)
@click.option(
    "--correlation",
    type=NumberRange(-1, 1),
    required=True,
    help="Of the judge's marks with people's; `deemster agreement` measures it.",
)
@click.option("--pass-rate", type=_INSIDE, default=0.5, show_default=True, help="The share that people pass.")
@click.option("--sd", type=NumberRange(min=0, min_open=True), help="The spread of people's scores instead.")
@click.option("--samples", type=click.IntRange(min=1), help="All samples that the judge scores; endless unless given.")
@confidence_option
@result_options(*RESULT_FORMATS)
def labels(
    *,
    half_width: float,
    correlation: float,
    pass_rate: float,
    sd: float | None,
    samples: int | None,
    confidence: float,
    reports: ReportOptions,
) -> None:
    """Tell how many human labels an interval needs, with the help of a judge and without.

    The judge scores all samples, people label some of them, drawn at random. The estimate is prediction-powered: the
    labels correct the judge, so its errors cost precision, never truth.
    """
    from deemster.planning.plan_report import LabelPlan
    from deemster.stats.power_analysis import label_size

    spread = (pass_rate * (1 - pass_rate)) ** 0.5 if sd is None else sd
    size = label_size(half_width, correlation=correlation, sd=spread, samples=samples, confidence=confidence)
    write_result(LabelPlan(confidence=confidence, labels=size), reports)


def _is_dataset(place: str) -> bool:
    from deemster.evaluation.check_file import find_kind

    return Path(place).is_file() and find_kind(place) not in ("report", "run")


def _read_runs(run: str, stated: StatedNoise, store: str) -> tuple[RunColumns, RunNoise]:
    from deemster.comparison.find_runs import RunSources
    from deemster.planning.sample_plans import RunNoise

    noise = stated.noise()
    with RunSources(store) as sources:
        source = sources.find(run)
        columns = source.columns(cluster=stated.cluster or source.cluster)
        against = None if stated.against is None else sources.find(stated.against).columns(cluster=None)
        return columns, RunNoise(columns, against, noise, scores=stated.scores)
