"""`deemster plan`: what samples can show, and how many samples, repetitions or labels a question needs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from deemster.cli._command import VerbGroup
from deemster.cli.options import Command, NumberRange, group_flags, read_settings, set_option, take_flags
from deemster.cli.report_options import RESULT_FORMATS, ReportOptions, result_options, write_result
from deemster.cli.store_options import store_option
from deemster.errors import ConfigurationError

if TYPE_CHECKING:
    from deemster.planning.plan_settings import PlanSettings
    from deemster.planning.sample_plans import RunNoise
    from deemster.results.run_columns import RunColumns

_INSIDE = NumberRange(0, 1, min_open=True, max_open=True)
_NOISE = "flip_rate=0.1, sd=0.2, pass_rate=0.8, cluster=KEY (measured on a run), cluster_size=5, icc=0.3, scores=true"


class PlanOptions(NamedTuple):
    """Which runs the noise is measured on.

    Attributes:
        against: The run whose differences to the planned one are the noise.
        metric: The metric that is looked at; every metric together unless given.
        store: Where the runs are stored.
    """

    against: str | None
    metric: str | None
    store: str

    def check_without_run(self, settings: PlanSettings, advice: str) -> None:
        """Refuse what only a run can answer.

        Args:
            settings: What the noise is said to be.
            advice: What there is in place of a run.

        Raises:
            ConfigurationError: Something of it was given.
        """
        if self.against or self.metric or settings.scores or settings.cluster:
            message = "`--against`, `--metric`, `--set scores=true` and `--set cluster=KEY` are for a run"
            raise ConfigurationError(f"{message}{advice}")

    def read_runs(self, run: str, settings: PlanSettings) -> tuple[RunColumns, RunNoise]:
        """A run, and its noise.

        Args:
            run: The run, as the user names it.
            settings: What the noise is said to be.

        Raises:
            InputError: A run cannot be read, or the noise is both measured and stated.
        """
        from deemster.comparison.find_runs import RunSources
        from deemster.planning.sample_plans import RunNoise

        noise = settings.noise()
        if noise is not None and self.against is not None:
            raise ConfigurationError("`--against` measures the noise on two runs; leave out what you would guess.")

        with RunSources(self.store) as sources:
            source = sources.find(run)
            columns = source.columns(cluster=settings.cluster or source.cluster)
            against = None if self.against is None else sources.find(self.against).columns(cluster=None)
        return columns, RunNoise(columns, against, noise, scores=settings.scores)


def _plan_options(command: Command) -> Command:
    options = [
        click.option("--against", metavar="RUN", help="Measure the noise on the differences to this run."),
        click.option("--metric", metavar="NAME", help="Look at this metric; otherwise at every metric together."),
        store_option,
    ]
    return group_flags(command, "options", lambda flags: take_flags(PlanOptions, flags), options)


@click.group(
    "plan",
    cls=VerbGroup,
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
@set_option(f"power=0.8, confidence=0.95; and of the noise {_NOISE}")
@result_options(*RESULT_FORMATS)
@_plan_options
def detect(*, dataset_or_run: str, overrides: tuple[str, ...], reports: ReportOptions, options: PlanOptions) -> None:
    """Tell which drops a dataset can show, and which margins it can certify, as a whole and by cohort.

    DATASET_OR_RUN is a dataset file, the id of a stored run, the beginning of one, a name, `latest`, a run file, or a
    file that `deemster run --to FILE.json` wrote. The noise is measured on `--against`, else on the run's repetitions,
    else guessed from the spread of its marks. For a dataset it is stated, or 10 % of samples flip.
    """
    from deemster.planning.plan_report import DetectionPlan
    from deemster.planning.plan_settings import PlanSettings
    from deemster.planning.sample_plans import plan_dataset, plan_run, stated_noise

    settings = read_settings(PlanSettings, overrides)
    if _is_dataset(dataset_or_run):
        from deemster.datasets import Dataset

        options.check_without_run(settings, ", and this is a dataset.")
        tags = [sample.tags for sample in Dataset.load(dataset_or_run)]
        detections = plan_dataset(tags, settings.noise() or stated_noise(), goal=settings.goal)
    else:
        run, noise = options.read_runs(dataset_or_run, settings)
        detections = plan_run(noise, run, metric=options.metric, goal=settings.goal)

    plan = DetectionPlan(confidence=settings.confidence, power=settings.power, detect=tuple(detections))
    write_result(plan, reports)


@command.command(
    "size",
    short_help="Tell how many samples show a drop, or certify a margin.",
    examples=["deemster plan size --effect 0.05 --from latest"],
    see_also=["audit gate"],
)
@click.option("--effect", type=_INSIDE, required=True, help="The drop to be shown, and the margin to be certified.")
@click.option("--from", "run", metavar="RUN", help="Measure the noise on this run.")
@set_option(f"power=0.8, confidence=0.95; of the noise {_NOISE}; sample_cost=5 (of one more sample, in calls)")
@result_options(*RESULT_FORMATS)
@_plan_options
def size(
    *, effect: float, run: str | None, overrides: tuple[str, ...], reports: ReportOptions, options: PlanOptions
) -> None:
    """Tell how many samples show a drop, or certify a margin.

    The noise is stated, or measured on the runs `--from` and `--against`. Where both have repetitions, the split
    between samples and repetitions that costs least comes first in a table.
    """
    import numpy as np

    from deemster.planning.plan_report import SizePlan
    from deemster.planning.plan_settings import SizeSettings
    from deemster.planning.sample_plans import EVERY_METRIC, plan_size, stated_noise

    settings = read_settings(SizeSettings, overrides)
    if run is None:
        options.check_without_run(settings, ": name it by `--from RUN`.")
        noise = settings.noise() or stated_noise()
    else:
        columns, measured = options.read_runs(run, settings)
        noise = measured.find(options.metric or EVERY_METRIC, np.arange(columns.marks.samples))

    samples = plan_size(effect, noise, sample_cost=settings.sample_cost, goal=settings.goal)
    write_result(SizePlan(confidence=settings.confidence, power=settings.power, size=samples), reports)


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
    help="Of the judge's scores with people's; `deemster agreement` measures it.",
)
@set_option("samples=5000 (all that the judge scores), pass_rate=0.8 or sd=0.2 (of what people say), confidence=0.95")
@result_options(*RESULT_FORMATS)
def labels(*, half_width: float, correlation: float, overrides: tuple[str, ...], reports: ReportOptions) -> None:
    """Tell how many human labels an interval needs, with the help of a judge and without.

    The judge scores all samples, people label some of them, drawn at random. The estimate is prediction-powered: the
    labels correct the judge, so its errors cost precision, never truth.
    """
    from deemster.planning.plan_report import LabelPlan
    from deemster.planning.plan_settings import LabelSettings
    from deemster.stats.power_analysis import label_size

    settings = read_settings(LabelSettings, overrides)
    size = label_size(
        half_width,
        correlation=correlation,
        sd=settings.spread,
        samples=settings.samples,
        confidence=settings.confidence,
    )
    write_result(LabelPlan(confidence=settings.confidence, labels=size), reports)


def _is_dataset(place: str) -> bool:
    from deemster.evaluation.check_file import find_kind

    return Path(place).is_file() and find_kind(place) not in ("report", "run")
