"""`deemster align`."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from deemster.alignment import MetricsResult, compute_metrics
from deemster.alignment.trust_verdict import Answer
from deemster.cli._cascade_options import Wanted, calibrated, cascade_options, show_cascade
from deemster.cli._console import draw, note, say, warn
from deemster.cli.options import Rendering
from deemster.datasets import RubricDataset, Votes
from deemster.datasets.join_ground_truth import with_truth
from deemster.errors import ExitCode, InputError, Issue, ReportError, visible
from deemster.report import LEVELS, Destination
from deemster.report.alignment_report import alignment_console, alignment_markdown, verdict_reason
from deemster.report.report_files import write_pieces

_METHODS = ("percentile", "bca")
_MODES = click.Choice(["exclude", "as_unmet", "as_category"])
_REQUIRED: dict[str, Answer] = {"yes": "yes", "with-care": "with care"}
# What messages call arguments, and what they are called here.
_FLAGS = {"`na_mode='as_category'`": "`--na as_category`"}


class _Command(click.Command):
    """A command whose `--bootstrap` may stand alone, before the votes too."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Give a lone `--bootstrap` its method, so that the word after it is not taken for one."""
        following = [*args[1:], ""]
        told = [
            f"{word}={_METHODS[0]}" if word == "--bootstrap" and after not in _METHODS else word
            for word, after in zip(args, following, strict=True)
        ]
        return super().parse_args(ctx, told)


@click.command("align", cls=_Command, short_help="Tell how judges agree with people, and with each other.")
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
    "--replicates",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    metavar="N",
    help="How many times items are drawn again.",
)
@click.option(
    "--confidence",
    type=float,
    callback=lambda *given: _level(given[2]),
    default=0.95,
    show_default=True,
    metavar="LEVEL",
    help="The level of the intervals.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    metavar="N",
    help="The same seed gives the same bytes; without one it is told.",
)
@click.option("--per-judge", is_flag=True, help="Tell of each judge.")
@click.option(
    "--cannot-assess", type=_MODES, default="exclude", show_default=True, help="What CANNOT_ASSESS counts as."
)
@click.option("--na", "na_mode", type=_MODES, default="exclude", show_default=True, help="What an NA option counts as.")
@click.option("--cluster", metavar="KEY", help="Draw whole clusters: items with the same value of this metadata key.")
@click.option("--slices", is_flag=True, help="Tell of each tag.")
@click.option("--require", type=click.Choice(list(_REQUIRED)), help="Exit with 1 where the answer is below this one.")
@cascade_options
@click.option("--verbose", is_flag=True, help="Show the plain summary too, with each judge's confusion matrix.")
@click.option("--json", metavar="PATH", help="Write the result as JSON; `-` is standard output.")
@click.option("--markdown", metavar="PATH", help="Write the result as Markdown; `-` is standard output.")
def command(
    *,
    votes: str,
    dataset: str | None,
    cascade: Wanted,
    verbose: bool,
    json: str | None,
    markdown: str | None,
    seed: int | None,
    require: str | None,
    **options: Any,
) -> None:
    """Tell how judges agree with people, and with each other.

    VOTES is a file of verdicts, with people's labels in it or in a rubric dataset. With --cascade the votes are read as
    a cascade: a cheap judge first, and others where it is unsure; each threshold with its accuracy, cost and share of
    escalations, and the cheapest one that is accurate enough. Exit codes: 0 done, 1 the answer is below the one that
    `--require` names, 2 bad input.
    """
    given = {"json": json, "markdown": markdown}
    destinations = tuple(Destination(name, path) for name, path in given.items() if path is not None)
    rendering = Rendering(destinations, LEVELS[0], include_input=False)
    cascade.check(beside=_beside(options, verbose=verbose, require=require))
    rendering.check()
    _keep_inputs(destinations, [votes] if dataset is None else [votes, dataset])
    if cascade.cheap is not None:
        held = Votes.load(votes)
        labelled = held if dataset is None else with_truth(held, RubricDataset.load(dataset))
        found = calibrated(labelled, cascade, confidence=options["confidence"], seed=seed)
        show_cascade(found, destinations, seeded=seed is not None)
        return
    result = _result(votes, dataset, seed, options)
    if rendering.takes_stdout or not _together():
        for warning in result.warnings:
            warn(visible(warning))
    for destination in destinations:
        text = result.to_json() if destination.format == "json" else alignment_markdown(result)
        write_pieces((text.encode(),), destination)
    if not rendering.takes_stdout:
        draw(lambda console: alignment_console(result, console))
        if verbose:
            # The report has told the warnings.
            say("\n" + msgspec.structs.replace(result, warnings=()).summary(verbose=True))
        if result.bootstrap is not None and seed is None:
            note(f"drawn with seed {result.bootstrap.seed}")
    if require is not None and not result.verdict.reaches(_REQUIRED[require]):
        answer = result.verdict.answer or "none"
        note(f"required is the answer `{_REQUIRED[require]}`; it is `{answer}`: {visible(verdict_reason(result))}")
        sys.exit(ExitCode.GATE_FAILED)


def _beside(options: dict[str, Any], *, verbose: bool, require: str | None) -> dict[str, bool]:
    """The flags that say nothing about a cascade, and whether they were given."""
    return {
        "--judge": bool(options["judges"]),
        "--bootstrap": options["bootstrap"] is not None,
        "--per-judge": options["per_judge"],
        "--cluster": options["cluster"] is not None,
        "--slices": options["slices"],
        "--require": require is not None,
        "--verbose": verbose,
    }


def _level(value: float) -> float:
    """The level of intervals as it was given.

    Raises:
        BadParameter: It is none.
    """
    if not 0 < value < 1:
        raise click.BadParameter(f"{value} does not lie strictly between 0 and 1.")
    return value


def _together() -> bool:
    """Whether a reader of standard output sees standard error too, so that nothing has to be said on both."""
    try:
        return sys.stdout.isatty() or os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno())
    except (OSError, io.UnsupportedOperation):
        return False


def _keep_inputs(destinations: tuple[Destination, ...], inputs: list[str]) -> None:
    """Refuse to write a result over what it is made from."""
    read = {Path(path).resolve() for path in inputs}
    for destination in destinations:
        if not destination.is_stdout and Path(destination.path).resolve() in read:
            raise ReportError(Issue("The result would be written over what it is made from.", destination.path))


def _result(votes: str, dataset: str | None, seed: int | None, options: dict[str, Any]) -> MetricsResult:
    labels = None if dataset is None else RubricDataset.load(dataset)
    held = Votes.load(votes)
    try:
        return _computed(held, labels, seed, options)
    except InputError as error:
        raise type(error)([issue._replace(message=_in_flags(issue.message)) for issue in error.issues]) from None


def _in_flags(message: str) -> str:
    for argument, flag in _FLAGS.items():
        if message.startswith(argument):
            return flag + message.removeprefix(argument)
    return message


def _computed(votes: Votes, labels: RubricDataset | None, seed: int | None, options: dict[str, Any]) -> MetricsResult:
    return compute_metrics(
        votes,
        labels,
        judges=options["judges"] or None,
        bootstrap=options["bootstrap"] or False,
        n_bootstrap=options["replicates"],
        per_judge=options["per_judge"],
        cannot_assess=options["cannot_assess"],
        na_mode=options["na_mode"],
        confidence_level=options["confidence"],
        seed=seed,
        cluster=options["cluster"],
        per_slice=options["slices"],
    )
