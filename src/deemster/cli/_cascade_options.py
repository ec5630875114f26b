"""`deemster align --cascade`: which threshold of a cascade to choose, from stored votes."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import click
import msgspec

from deemster.alignment.cascade_calibration import CascadeCalibration, calibrate_cascade
from deemster.cli._console import draw, note
from deemster.datasets import Votes
from deemster.errors import ConfigurationError, InputError, Issue
from deemster.report import Destination
from deemster.report.cascade_report import cascade_console, cascade_markdown
from deemster.report.report_files import write_pieces

_F = TypeVar("_F", bound=Callable[..., Any])
_ENCODER = msgspec.json.Encoder(order="deterministic")
# What calibration calls its arguments, and what they are called here.
_FLAGS = {"`strong`": "`--strong`", "`tolerance`": "`--tolerance`", "`fresh_items`": "`--fresh-items`"}


class Wanted(NamedTuple):
    """A cascade to be calibrated.

    Attributes:
        cheap: The judge that is asked first; None where nobody asked for a cascade.
        strong: Those asked after it; every other one where none is named.
        costs: What an answer of each costs, as `JUDGE=USD`.
        tolerance: How much accuracy may be given up; None for the default.
        fresh_items: The size of the run that the intervals speak of.
    """

    cheap: str | None
    strong: tuple[str, ...]
    costs: tuple[str, ...]
    tolerance: float | None
    fresh_items: int | None

    def check(self, *, beside: Mapping[str, bool]) -> None:
        """Refuse flags that say nothing together.

        Args:
            beside: Other flags, and whether they were given.

        Raises:
            ConfigurationError: Some were given.
        """
        own = {
            "--strong": bool(self.strong),
            "--cost": bool(self.costs),
            "--tolerance": self.tolerance is not None,
            "--fresh-items": self.fresh_items is not None,
        }
        lost = [flag for flag, given in (own if self.cheap is None else beside).items() if given]
        word = "needs" if self.cheap is None else "says nothing beside"
        if lost:
            raise ConfigurationError([Issue(f"`{flag}` {word} `--cascade`.") for flag in lost])


def cascade_options(command: _F) -> _F:
    """Add the flags of a cascade; the command receives them as one ``cascade``."""

    @functools.wraps(command)
    def collected(**options: Any) -> Any:
        given = (options.pop(key) for key in ("cascade", "strong", "costs", "tolerance", "fresh_items"))
        return command(cascade=Wanted(*given), **options)

    for option in reversed(_options()):
        collected = option(collected)
    return collected  # type: ignore[return-value]


def _options() -> list[Callable[[Any], Any]]:
    return [
        click.option(
            "--cascade", metavar="JUDGE", help="Calibrate a cascade that asks this judge first, and tell that alone."
        ),
        click.option(
            "--strong",
            metavar="JUDGE",
            multiple=True,
            help="With --cascade: who is asked where it is unsure; every other judge unless named. Repeatable.",
        ),
        click.option(
            "--cost",
            "costs",
            metavar="JUDGE=USD",
            multiple=True,
            help="With --cascade: what one answer of a judge costs; repeatable.",
        ),
        click.option(
            "--tolerance", type=float, metavar="SHARE", help="With --cascade: accuracy that may be given up; 0.01."
        ),
        click.option(
            "--fresh-items",
            type=int,
            metavar="N",
            help="With --cascade: promise it for a run of so many items; the long run unless given.",
        ),
    ]


def calibrated(votes: Votes, wanted: Wanted, *, confidence: float, seed: int | None) -> CascadeCalibration:
    """What every threshold of a cascade comes to.

    Args:
        votes: Votes with truth.
        wanted: Which cascade.
        confidence: The level of the intervals.
        seed: Of the draws; drawn where none is given.

    Raises:
        InputError: It cannot be calibrated from these votes; all issues are listed.
    """
    cheap = str(wanted.cheap)
    strong = wanted.strong or tuple(judge.id for judge in votes.judges if judge.id != cheap)
    try:
        return calibrate_cascade(
            votes,
            cheap=cheap,
            strong=strong,
            costs=_costs(wanted.costs),
            tolerance=0.01 if wanted.tolerance is None else wanted.tolerance,
            confidence=confidence,
            seed=seed,
            fresh_items=wanted.fresh_items,
        )
    except InputError as error:
        raise type(error)([issue._replace(message=_in_flags(issue.message)) for issue in error.issues]) from None


def _costs(given: Sequence[str]) -> dict[str, float]:
    costs: dict[str, float] = {}
    issues = []
    for text in given:
        judge, sign, value = text.rpartition("=")
        try:
            cost = float(value)
        except ValueError:
            sign = ""
        if not sign or not judge:
            issues.append(Issue(f"`--cost` is JUDGE=USD, such as small=0.0002, not `{text}`."))
        elif judge in costs:
            issues.append(Issue(f"`--cost` of `{judge}` is given twice."))
        else:
            costs[judge] = cost
    if issues:
        raise ConfigurationError(issues)
    return costs


def _in_flags(message: str) -> str:
    if message.startswith("The cost of ") and message.endswith(" is missing."):
        return message.removesuffix(".") + ": give it as `--cost JUDGE=USD`."
    for argument, flag in _FLAGS.items():
        if message.startswith(argument):
            return flag + message.removeprefix(argument)
    return message


def show_cascade(result: CascadeCalibration, destinations: Sequence[Destination], *, seeded: bool) -> None:
    """Write a calibration where it was asked for, and print it unless standard output is taken.

    Args:
        result: The calibration.
        destinations: Where it goes, as JSON or Markdown.
        seeded: Whether somebody chose the seed; otherwise it is told.

    Raises:
        ReportError: It cannot be written.
    """
    for destination in destinations:
        if destination.format == "json":
            text = msgspec.json.format(_ENCODER.encode(_document(result)).decode(), indent=2) + "\n"
        else:
            text = cascade_markdown(result)
        write_pieces((text.encode(),), destination)
    if not any(destination.is_stdout for destination in destinations):
        draw(lambda console: cascade_console(result, console))
        sys.stdout.flush()
    if not seeded:
        note(f"drawn with seed {result.seed}")


def _document(result: CascadeCalibration) -> dict[str, Any]:
    fields = {key: getattr(result, key) for key in result.__struct_fields__}
    return {"schema_version": "deemster.cascade.v1", **fields, "choice": result.choice, "pays": result.pays}
