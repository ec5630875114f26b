"""Flags of commands that write results: `--to`, `--without-text`, and what they write."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from deemster.cli._console import note, print_sections
from deemster.cli.options import Command, Decorator, Flags, group_flags
from deemster.errors import Issue, ReportError, list_names, visible

if TYPE_CHECKING:
    from deemster.comparison import Comparison
    from deemster.report import Destination, Report
    from deemster.text.rendered import Rendered


# What can be written of a result, of a report, and of a comparison.
RESULT_FORMATS = ("json", "md", "html")
REPORT_FORMATS = ("json", "md", "html", "csv", "junit", "pr-comment", "brief", "methods", "github")
# So many characters of a brief are read by an assistant in one go.
BRIEF_CHARS = 12_000
COMPARISON_FORMATS = ("json", "md", "html", "junit", "pr-comment", "github")


def destination_option(formats: Sequence[str], default: str | None = None) -> Decorator:
    """The flag `--to FILE`, repeatable, of a command that writes these formats."""
    from deemster.text.destination import list_endings

    return click.option(
        "--to",
        "destinations",
        metavar="FILE",
        multiple=True,
        default=None if default is None else (default,),
        show_default=default or False,
        help=f"Write {', '.join(list_endings(formats))}, by name: `help files`.",
    )


def read_destinations(values: Sequence[str], formats: Sequence[str]) -> tuple[Destination, ...]:
    """Where `--to` says that something goes.

    Raises:
        ReportError: A value says no format, cannot be written, or two are for standard output or one file.
    """
    from deemster.text.destination import read_destination

    destinations = tuple(read_destination(value, formats) for value in values)
    if sum(destination.is_stdout for destination in destinations) > 1:
        raise ReportError("Only one report can go to standard output.")
    taken: dict[Path, str] = {}
    for destination in destinations:
        destination.check()
        other = taken.setdefault(Path(destination.path).resolve(), destination.format)
        if other != destination.format:
            message = f"Two reports, {other} and {destination.format}, are for this file."
            raise ReportError(Issue(message, destination.path))
    return destinations


def result_options(*formats: str, default: str | None = None) -> Callable[[Command], Command]:
    """Add `--to` to a command that writes these formats; it receives them as one ``reports``."""
    return lambda command: group_flags(
        command, "reports", lambda flags: take_destinations(flags, formats), (destination_option(formats, default),)
    )


def take_destinations(flags: Flags, formats: Sequence[str]) -> ReportOptions:
    """Take `--to` out of all flags.

    Raises:
        ReportError: A value says no format, cannot be written, or two are for standard output or one file.
    """
    return ReportOptions(read_destinations(flags.pop("destinations"), formats))


def write_texts(reports: ReportOptions, texts: Mapping[str, Callable[[], str]]) -> None:
    """Write a result to every destination.

    Args:
        reports: The destinations.
        texts: By the name of a format, what makes the text.

    Raises:
        ReportError: It cannot be written to some of them; it is to the others.
    """
    from deemster.text.destination import write_pieces

    reports.write_each(lambda destination: write_pieces((texts[destination.format]().encode(),), destination))


def refuse_stdout(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """The file or folder that a flag names, of a command that writes nothing to standard output.

    Raises:
        BadParameter: It is `-`.
    """
    if value == "-":
        raise click.BadParameter("`-` is standard output, and this command writes a file: name it.")
    return value


class ReportOptions(NamedTuple):
    """Where reports are written, whether they leave texts out, and whether all of a report is printed."""

    destinations: tuple[Destination, ...] = ()
    without_text: bool = False
    full: bool = False

    def with_junit(self, kind: str) -> ReportOptions:
        """The same, with a JUnit report in which samples fail too where the key `junit` of the suite says so."""
        if kind != "samples":
            return self
        written = (one._replace(format="junit-samples") if one.format == "junit" else one for one in self.destinations)
        return self._replace(destinations=tuple(written))

    def spare(self, *read: object) -> None:
        """Refuse reports that would take the place of a file that the command reads.

        Args:
            read: The files it reads; what is no path is none.

        Raises:
            ReportError: There is such a report.
        """
        files = {Path(name).resolve() for name in read if isinstance(name, (str, Path))}
        for destination in self.destinations:
            if not destination.is_stdout and Path(destination.path).resolve() in files:
                raise ReportError(
                    Issue("The run reads this file, and a report would take its place.", destination.path)
                )

    @property
    def takes_stdout(self) -> bool:
        """Whether a report is written to standard output."""
        return any(destination.is_stdout for destination in self.destinations)

    def shown(self, report: Report, quotes: Mapping[str, frozenset[str] | None] | None = None) -> Report:
        """The report, without texts where they are left out.

        Args:
            report: The report.
            quotes: By a metric's name, the details that may repeat text; otherwise the report's specs say which may.
        """
        if not self.without_text:
            return report
        from deemster.comparison import report_without_text
        from deemster.judges.metric_catalog import quotes_of_spec

        known = dict(quotes or {})
        for name, figures in report.metrics.items():
            if name not in known:
                known[name] = quotes_of_spec(figures.spec)
        return report_without_text(report, quotes=known.__getitem__)

    def shown_comparison(self, comparison: Comparison, quotes: Callable[[str], frozenset[str] | None]) -> Comparison:
        """The comparison, without texts where they are left out.

        Args:
            comparison: The comparison.
            quotes: Says by a metric's name which of its details may repeat text; None for all.
        """
        from deemster.comparison.without_text import comparison_without_text

        return comparison_without_text(comparison, quotes=quotes) if self.without_text else comparison

    def write(self, report: Report, *, comparison: Comparison | None = None) -> None:
        """Write the report to every destination.

        Args:
            report: The report.
            comparison: The comparison with a baseline, for the comment and for the summary of a job.

        Raises:
            ReportError: It cannot be written to some of them; it is to the others.
        """
        if not self.destinations:
            return
        from deemster.comparison.comparison_comment import comparison_comment
        from deemster.comparison.comparison_sections import comparison_summary
        from deemster.comparison.failure_brief import report_brief
        from deemster.report.github_summary import github_job_summary
        from deemster.report.pull_request_comment import pull_request_comment
        from deemster.text.destination import write_pieces

        def write_one(destination: Destination) -> None:
            if destination.format == "pr-comment":
                comment = pull_request_comment(report) if comparison is None else comparison_comment(comparison, report)
                write_pieces((comment.encode(),), destination)
            elif destination.format == "brief":
                write_pieces((report_brief(report, comparison, max_chars=BRIEF_CHARS).encode(),), destination)
            elif destination.format == "github" and comparison is not None:
                parts = github_job_summary(report), comparison_summary(comparison)
                write_pieces(("\n".join(parts).encode(),), destination)
            else:
                report.write(destination)

        self.write_each(write_one)

    def write_each(self, write: Callable[[Destination], None]) -> None:
        """Write something to every destination.

        Raises:
            ReportError: It cannot be written to some of them; it is to the others.
        """
        errors: list[ReportError] = []
        for destination in self.destinations:
            try:
                write(destination)
            except ReportError as error:
                errors.append(error)
        if errors:
            raise type(errors[0])([issue for error in errors for issue in error.issues])

    def note_files(self) -> None:
        """Say which files were written, whether they hold texts of samples and outputs, and how these are left out."""
        files = [visible(destination.path) for destination in self.destinations if not destination.is_stdout]
        if not files:
            return
        holds = "holds" if len(files) == 1 else "hold"
        told = f"Wrote {list_names(files)}"
        if self.without_text:
            note(f"{told}. {'It' if len(files) == 1 else 'They'} {holds} no texts; ids, tags and scores stay.")
        else:
            note(f"{told}, which {holds} texts of samples and outputs; `--without-text` leaves them out.")


def report_options(command: Command) -> Command:
    """Add the flags of reports; the command receives them as one ``reports``."""
    return _printed_report_options(command, step_summary=False)


def run_report_options(command: Command) -> Command:
    """Add the flags of the report of a run that ends with it; in a GitHub job, its summary is written too."""
    return _printed_report_options(command, step_summary=True)


def _printed_report_options(command: Command, *, step_summary: bool) -> Command:
    def group(flags: Flags) -> ReportOptions:
        return _take_text_files(flags, REPORT_FORMATS, step_summary=step_summary)._replace(full=flags.pop("full"))

    return group_flags(command, "reports", group, (destination_option(REPORT_FORMATS), _WITHOUT_TEXT, _FULL))


def comparison_options(command: Command) -> Command:
    """Add the flags of writing a comparison; in a GitHub job, its summary is written too."""
    return text_file_options(*COMPARISON_FORMATS, step_summary=True)(command)


def text_file_options(*formats: str, step_summary: bool = False) -> Callable[[Command], Command]:
    """Add `--to` and `--without-text` to a command whose files hold texts; it receives them as one ``reports``.

    Args:
        formats: What can be written.
        step_summary: Whether the summary of a GitHub job is written where a step of one runs.
    """

    def group(flags: Flags) -> ReportOptions:
        return _take_text_files(flags, formats, step_summary=step_summary)

    return lambda command: group_flags(command, "reports", group, (destination_option(formats), _WITHOUT_TEXT))


def _take_text_files(flags: Flags, formats: Sequence[str], *, step_summary: bool) -> ReportOptions:
    from deemster.text.destination import STEP_SUMMARY, Destination

    destinations = read_destinations(flags.pop("destinations"), formats)
    summary = os.environ.get(STEP_SUMMARY)
    is_summarised = any(destination.format == "github" for destination in destinations)
    if step_summary and not is_summarised and summary and Path(summary).is_file():
        destinations = (*destinations, Destination("github", summary))
    return ReportOptions(destinations, flags.pop("without_text"))


def without_text_option(command: Command) -> Command:
    """Add `--without-text` to a command that writes no report file; it receives it as one ``reports``."""
    return group_flags(command, "reports", _take_privacy, (_WITHOUT_TEXT,))


def _take_privacy(flags: Flags) -> ReportOptions:
    return ReportOptions(without_text=flags.pop("without_text"))


_WITHOUT_TEXT = click.option(
    "--without-text",
    is_flag=True,
    help="Leave out texts and metadata: `help privacy`.",
)

_FULL = click.option("--full", is_flag=True, help="Print the whole report, in place of one screen of it.")


def write_result(result: Rendered, reports: ReportOptions, *, quiet: bool = False) -> None:
    """Write a result to its files, and print it unless standard output is taken.

    Args:
        result: The result.
        reports: The files.
        quiet: Whether it is not printed.

    Raises:
        ReportError: A file cannot be written.
    """
    reports.write_each(result.write)
    if not reports.takes_stdout and not quiet:
        print_sections(result.sections())
