"""`deemster align --cascade`: which threshold of a cascade to choose, from stored votes."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from deemster.cli._console import note, print_sections
from deemster.cli.options import Command, Decorator, add_options
from deemster.errors import ConfigurationError, InputError, Issue

if TYPE_CHECKING:
    from deemster.alignment import CascadeCalibration
    from deemster.datasets import Votes
    from deemster.report import Destination

# What messages call the arguments of `calibrate_cascade`, and the flags for them.
_FLAGS = {"`strong`": "`--strong`", "`tolerance`": "`--tolerance`", "`fresh_items`": "`--fresh-items`"}


class CascadeOptions(NamedTuple):
    """A cascade to be calibrated.

    Attributes:
        cascade: The judge that is asked first; None where no cascade is calibrated.
        strong: The judges asked after it; every other one where none is named.
        costs: What an answer of each judge costs, as `JUDGE=USD`.
        tolerance: How much accuracy may be given up; None for the default.
        fresh_items: The size of the run that the intervals speak of.
    """

    cascade: str | None
    strong: tuple[str, ...]
    costs: tuple[str, ...]
    tolerance: float | None
    fresh_items: int | None

    def check(self, *, other_flags: Mapping[str, bool]) -> None:
        """Refuse flags that have no effect together.

        Args:
            other_flags: Flags that have no effect on a cascade, and whether they were given.

        Raises:
            ConfigurationError: Some were given.
        """
        own = {
            "--strong": bool(self.strong),
            "--cost": bool(self.costs),
            "--tolerance": self.tolerance is not None,
            "--fresh-items": self.fresh_items is not None,
        }
        idle = [flag for flag, given in (own if self.cascade is None else other_flags).items() if given]
        words = "needs" if self.cascade is None else "has no effect beside"
        if idle:
            raise ConfigurationError([Issue(f"`{flag}` {words} `--cascade`.") for flag in idle])

    def calibrate(self, votes: Votes, *, confidence: float, seed: int | None) -> CascadeCalibration:
        """Calibrate the cascade.

        Args:
            votes: Votes with truth.
            confidence: The level of the intervals.
            seed: The seed of the bootstrap; drawn where none is given.

        Raises:
            InputError: It cannot be calibrated from these votes; all issues are listed.
        """
        from deemster.alignment import calibrate_cascade

        cheap = str(self.cascade)
        try:
            return calibrate_cascade(
                votes,
                cheap=cheap,
                strong=self.strong or tuple(judge.id for judge in votes.judges if judge.id != cheap),
                costs=_parse_costs(self.costs),
                tolerance=0.01 if self.tolerance is None else self.tolerance,
                confidence=confidence,
                seed=seed,
                fresh_items=self.fresh_items,
            )
        except InputError as error:
            raise type(error)([issue._replace(message=_name_flags(issue.message)) for issue in error.issues]) from None


def cascade_options(command: Command) -> Command:
    """Add the flags of a cascade; the command receives them as one ``cascade``."""

    @functools.wraps(command)
    def collect(**flags: Any) -> Any:
        cascade = CascadeOptions(*(flags.pop(key) for key in CascadeOptions._fields))
        return command(cascade=cascade, **flags)

    return add_options(collect, _OPTIONS)  # type: ignore[return-value]


_OPTIONS: Sequence[Decorator] = (
    click.option("--cascade", metavar="JUDGE", help="Calibrate a cascade that asks this judge first."),
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
        help="With --cascade: intervals for a run of N items; for the long run unless given.",
    ),
)


def _parse_costs(given: Sequence[str]) -> dict[str, float]:
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


def _name_flags(message: str) -> str:
    """A message with the names of flags in place of those of arguments."""
    if message.startswith("The cost of ") and message.endswith(" is missing."):
        return message.removesuffix(".") + ": give it as `--cost JUDGE=USD`."
    for argument, flag in _FLAGS.items():
        if message.startswith(argument):
            return flag + message.removeprefix(argument)
    return message


def show_calibration(result: CascadeCalibration, destinations: Sequence[Destination], *, seeded: bool) -> None:
    """Write a calibration to its destinations, and print it unless standard output is taken.

    Args:
        result: The calibration.
        destinations: Where it goes, as JSON or Markdown.
        seeded: Whether the user chose the seed; otherwise it is printed.

    Raises:
        ReportError: It cannot be written.
    """
    import msgspec

    from deemster.report.cascade_report import cascade_sections
    from deemster.report.markdown_report import render_markdown
    from deemster.report.report_files import write_pieces

    for destination in destinations:
        if destination.format == "json":
            data = msgspec.json.encode(_document(result), order="deterministic")
            text = msgspec.json.format(data, indent=2) + b"\n"
        else:
            text = render_markdown(cascade_sections(result)).encode()
        write_pieces((text,), destination)
    if not any(destination.is_stdout for destination in destinations):
        print_sections(cascade_sections(result))
    if not seeded:
        note(f"drawn with seed {result.seed}")


def _document(result: CascadeCalibration) -> dict[str, Any]:
    fields = {key: getattr(result, key) for key in result.__struct_fields__}
    return {"schema_version": "deemster.cascade.v1", **fields, "choice": result.choice, "pays": result.pays}
