"""Flags of `deemster run` and `deemster attack`: which samples are run, and how."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from deemster.cli.options import Command, Decorator, Flags, group_flags, only_option, take_flags, take_only
from deemster.cli.store_options import open_run_store, place_of
from deemster.errors import ConfigurationError

if TYPE_CHECKING:
    from deemster.datasets import Dataset
    from deemster.datasets.only_expression import Only
    from deemster.evaluation.resolve_evaluation import SuiteOverrides
    from deemster.evaluation.run_part import RunPart
    from deemster.evaluation.suite import Suite
    from deemster.runs.run_storage import Storage


class PartOptions(NamedTuple):
    """Which samples are run.

    Attributes:
        only: What `--only` says of them.
        sample: So many at random.
        seed: The seed of these; None unless given.
        limit: The first so many.
    """

    only: Only
    sample: int | None
    seed: int | None
    limit: int | None

    def find(self, suite: Suite, storage: Storage | None) -> RunPart:
        """The part that the flags select, or that of the run which is resumed without any of them.

        Args:
            suite: The suite.
            storage: Where the run is stored, and what it resumes.

        Raises:
            InputError: The flags contradict each other, or a run that they name cannot be read.
        """
        from deemster.evaluation.run_part import RunPart, failed_samples, resumed_samples

        resume = None if storage is None else storage.resume
        self._check(is_resumed=bool(resume))
        choose = functools.partial(self._choose, suite.seed) if self.has_chosen else None

        if self.only.failed:
            with open_run_store(place_of(storage)) as store:
                failed = failed_samples(store, self.only.failed, suite=suite.name)
            return RunPart(failed, choose)

        if choose is not None or not resume:
            return RunPart(choose=choose)

        with open_run_store(place_of(storage), create=True) as store:
            return RunPart(resumed_samples(store, resume, suite=suite.name))

    @property
    def has_chosen(self) -> bool:
        """Whether a flag chooses by what samples are, or how many."""
        narrows = self.only.tags or self.only.ids or self.only.where
        return bool(narrows) or self.sample is not None or self.limit is not None

    def _check(self, *, is_resumed: bool) -> None:
        from deemster.datasets.only_expression import LATEST

        if self.seed is not None and self.sample is None:
            raise ConfigurationError("`--seed` is for `--sample`, which draws samples at random.")
        if LATEST in self.only.failed and is_resumed:
            raise ConfigurationError("Beside `--resume`, name the run: `--only failed:RUN`. The last one is resumed.")

    def _choose(self, suite_seed: int, dataset: Dataset) -> Dataset:
        return dataset.select(
            tags=self.only.tags,
            ids=self.only.ids,
            where=self.only.where,
            sample=self.sample,
            # With another seed only the draw changes; the suite's seed stays that of the models.
            seed=suite_seed if self.seed is None else self.seed,
            limit=self.limit,
        )


def part_options(command: Command) -> Command:
    """Add the flags that choose samples; the command receives them as one ``part``."""
    return group_flags(command, "part", _take_part, _PART)


def _take_part(flags: Flags) -> PartOptions:
    flags["only"] = take_only(flags)
    part: PartOptions = take_flags(PartOptions, flags)
    return part


class RunNumbers(NamedTuple):
    """How often and how fast a run goes, where flags say so.

    Attributes:
        repetitions: How often each sample is run.
        concurrency: How many calls of the target may be under way at once.
        timeout_s: How long the run may take.
    """

    repetitions: int | None
    concurrency: int | None
    timeout_s: float | None

    def apply(self, suite: Suite) -> Suite:
        """The suite, with these numbers in place of its own."""
        return suite.with_numbers(**self._asdict())


def number_options(command: Command) -> Command:
    """Add the flags of numbers; the command receives them as one ``numbers``."""
    return group_flags(command, "numbers", lambda flags: take_flags(RunNumbers, flags), _NUMBERS)


def override_options(*options: Decorator) -> Decorator:
    """Add flags that win over the suite; the command receives them as one ``overrides``."""
    return lambda command: group_flags(command, "overrides", _take_overrides, options)


def _take_overrides(flags: Flags) -> SuiteOverrides:
    from deemster.evaluation.resolve_evaluation import SuiteOverrides

    overrides: SuiteOverrides = take_flags(SuiteOverrides, flags)
    return overrides


def _read_thresholds(
    _context: click.Context, _parameter: click.Parameter, texts: tuple[str, ...]
) -> Mapping[str, float]:
    """The pass mark of each metric that `--threshold` names."""
    thresholds = {}
    for text in texts:
        name, sign, value = text.rpartition("=")
        try:
            thresholds[name] = float(value)
        except ValueError:
            sign = ""
        if not sign or not name:
            raise ConfigurationError(f"`--threshold` is NAME=T, such as rouge-l=0.7, not `{text}`.")
    return thresholds


_PART: Sequence[Decorator] = (
    only_option,
    click.option("--sample", type=int, metavar="N", help="Only N samples, drawn at random."),
    click.option("--seed", type=int, metavar="S", help="The seed of --sample, in place of the suite's."),
    click.option("--limit", type=int, metavar="N", help="Only the first N samples."),
)
name_option = click.option("--name", "label", metavar="TEXT", help="What you call this run; other commands take it.")
_NUMBERS = (
    click.option("--repetitions", type=int, metavar="R", help="Run each sample R times."),
    click.option("--concurrency", type=int, metavar="N", help="How many calls of the target at once."),
    click.option(
        "--timeout", "timeout_s", type=float, metavar="SECONDS", help="Stop the run after so long; it can be resumed."
    ),
)
threshold_option = click.option(
    "--threshold",
    "thresholds",
    multiple=True,
    metavar="NAME=T",
    callback=_read_thresholds,
    help="Set a metric's threshold; repeatable.",
)
RUN_OVERRIDES: Sequence[Decorator] = (
    name_option,
    click.option(
        "--outputs",
        metavar="FILE|RUN",
        help="Score earlier answers, call no target: `help outputs`.",
    ),
    click.option(
        "--metric",
        "metrics",
        multiple=True,
        metavar="SPEC",
        help="Use this metric, not the suite's; repeatable.",
    ),
)
