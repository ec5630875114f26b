"""`deemster align`: how judges agree with people, and with each other."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deemster.cli._cascade_options import CascadeOptions, cascade_options, show_calibration
from deemster.cli._console import note, print_sections, warn, write_out
from deemster.cli.options import REDACT_LEVELS, ReportOptions, file_option
from deemster.errors import ExitCode, InputError, Issue, ReportError, visible

if TYPE_CHECKING:
    from deemster.alignment import MetricsResult
    from deemster.datasets import RubricDataset, Votes
    from deemster.report import Destination

_METHODS = ("percentile", "bca")
_MODES = click.Choice(["exclude", "as_unmet", "as_category"])
_REQUIRED = {"yes": "yes", "with-care": "with care"}
# What messages call an argument, and the flag for it.
_FLAGS = {"`na_mode='as_category'`": "`--na-mode as_category`"}


class _AlignCommand(click.Command):
    """A command whose `--bootstrap` may stand alone, before the votes too."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Give a lone `--bootstrap` its method, so that the next word is not taken for one."""
        following = [*args[1:], ""]
        explicit = [
            f"{word}={_METHODS[0]}" if word == "--bootstrap" and after not in _METHODS else word
            for word, after in zip(args, following, strict=True)
        ]
        return super().parse_args(ctx, explicit)


def _check_confidence(_context: click.Context, _parameter: click.Parameter, value: float) -> float:
    if not 0 < value < 1:
        raise click.BadParameter(f"{value} does not lie strictly between 0 and 1.")
    return value


@click.command("align", cls=_AlignCommand, short_help="Tell how judges agree with people, and with each other.")
@click.argument("votes", type=click.Path())
@click.option(
    "--dataset", metavar="FILE", help="A rubric dataset with people's labels; they win over those in the votes."
)
@click.option(
    "--judge", "judges", metavar="NAME", multiple=True, help="Look at this judge alone; repeat it for several."
)
@click.option(
    "--bootstrap",
    type=click.Choice(_METHODS),
    metavar="[bca]",
    help="Give every number its interval: percentile, or bca.",
)
@click.option(
    "--n-bootstrap",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    metavar="N",
    help="How many bootstrap replicates are drawn.",
)
@click.option(
    "--confidence",
    type=float,
    callback=_check_confidence,
    default=0.95,
    show_default=True,
    metavar="LEVEL",
    help="The level of the intervals.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    metavar="N",
    help="The same seed gives the same bytes; without one, a seed is drawn and printed.",
)
@click.option("--per-judge", is_flag=True, help="Add the numbers of each judge.")
@click.option(
    "--cannot-assess", type=_MODES, default="exclude", show_default=True, help="What CANNOT_ASSESS counts as."
)
@click.option("--na-mode", type=_MODES, default="exclude", show_default=True, help="What an NA option counts as.")
@click.option("--cluster", metavar="KEY", help="Draw whole clusters: items with the same value of this metadata key.")
@click.option("--per-slice", is_flag=True, help="Add the numbers of each tag.")
@click.option("--require", type=click.Choice(list(_REQUIRED)), help="Exit with 1 where the answer is below this one.")
@cascade_options
@click.option("--verbose", is_flag=True, help="Show the plain summary too, with each judge's confusion matrix.")
@file_option("json", "the result as JSON")
@file_option("markdown", "the result as Markdown")
def command(
    *,
    votes: str,
    dataset: str | None,
    cascade: CascadeOptions,
    verbose: bool,
    json: str | None,
    markdown: str | None,
    seed: int | None,
    require: str | None,
    **settings: Any,
) -> None:
    """Tell how judges agree with people, and with each other.

    VOTES is a file of verdicts, with people's labels in it or in a rubric dataset. With --cascade the votes are read as
    a cascade: one judge first, and others where it is unsure. The report then has each threshold with its accuracy,
    cost and share of escalations, and the cheapest one that is accurate enough. Exit codes: 0 done, 1 the answer is
    below the one that `--require` names, 2 bad input, 3 a result could not be written.
    """
    from deemster.datasets import RubricDataset, Votes, with_ground_truth
    from deemster.report import Destination

    files = {"json": json, "markdown": markdown}
    destinations = tuple(Destination(name, path) for name, path in files.items() if path is not None)
    cascade.check(other_flags=_flags_without_effect(settings, verbose=verbose, require=require))
    ReportOptions(destinations, REDACT_LEVELS[0], include_input=False).check()
    _protect_inputs(destinations, [votes] if dataset is None else [votes, dataset])
    labels = None if dataset is None else RubricDataset.load(dataset)
    loaded = Votes.load(votes)
    if cascade.cascade is not None:
        labelled = loaded if labels is None else with_ground_truth(loaded, labels)
        calibration = cascade.calibrate(labelled, confidence=settings["confidence"], seed=seed)
        show_calibration(calibration, destinations, seeded=seed is not None)
        return
    result = _compute(loaded, labels, seed=seed, **settings)
    _show(result, destinations, seeded=seed is not None, verbose=verbose)
    if require is not None and not result.verdict.reaches(_REQUIRED[require]):  # type: ignore[arg-type]
        from deemster.report.alignment_report import verdict_reason

        answer = result.verdict.answer or "none"
        note(f"required is the answer `{_REQUIRED[require]}`; it is `{answer}`: {visible(verdict_reason(result))}")
        sys.exit(ExitCode.GATE_FAILED)


def _show(result: MetricsResult, destinations: tuple[Destination, ...], *, seeded: bool, verbose: bool) -> None:
    """Write the result to its destinations, and print it unless standard output is taken."""
    import msgspec

    from deemster.report.alignment_report import alignment_sections
    from deemster.report.markdown_report import render_markdown
    from deemster.report.report_files import write_pieces

    prints = not any(destination.is_stdout for destination in destinations)
    if not prints or not _shares_terminal():
        for warning in result.warnings:
            warn(visible(warning))
    for destination in destinations:
        text = result.to_json() if destination.format == "json" else render_markdown(alignment_sections(result))
        write_pieces((text.encode(),), destination)
    if not prints:
        return
    print_sections(alignment_sections(result))
    if verbose:
        # The report has shown the warnings already.
        write_out("\n" + msgspec.structs.replace(result, warnings=()).summary(verbose=True))
    if result.bootstrap is not None and not seeded:
        note(f"drawn with seed {result.bootstrap.seed}")


def _flags_without_effect(settings: dict[str, Any], *, verbose: bool, require: str | None) -> dict[str, bool]:
    """The flags that have no effect on a cascade, and whether they were given."""
    return {
        "--judge": bool(settings["judges"]),
        "--bootstrap": settings["bootstrap"] is not None,
        "--per-judge": settings["per_judge"],
        "--cluster": settings["cluster"] is not None,
        "--per-slice": settings["per_slice"],
        "--require": require is not None,
        "--verbose": verbose,
    }


def _shares_terminal() -> bool:
    """Whether standard output and standard error go to the same place, so that a warning is printed once."""
    try:
        return sys.stdout.isatty() or os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno())
    except (OSError, io.UnsupportedOperation):
        return False


def _protect_inputs(destinations: tuple[Destination, ...], inputs: list[str]) -> None:
    """Refuse to write a result over a file that it is made from."""
    read = {Path(path).resolve() for path in inputs}
    for destination in destinations:
        if not destination.is_stdout and Path(destination.path).resolve() in read:
            raise ReportError(Issue("The result would overwrite the file that it is made from.", destination.path))


def _compute(
    votes: Votes, labels: RubricDataset | None, *, judges: tuple[str, ...], bootstrap: str | None, **settings: Any
) -> MetricsResult:
    from deemster.alignment import compute_metrics

    try:
        return compute_metrics(votes, labels, judges=judges or None, bootstrap=bootstrap or False, **settings)  # type: ignore[arg-type]
    except InputError as error:
        raise type(error)([issue._replace(message=_name_flags(issue.message)) for issue in error.issues]) from None


def _name_flags(message: str) -> str:
    """A message with the names of flags in place of those of arguments."""
    for argument, flag in _FLAGS.items():
        if message.startswith(argument):
            return flag + message.removeprefix(argument)
    return message
