"""Flags of every command that renders a report, and what they ask for."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from deemster.errors import ConfigurationError, Fault, ReportError
from deemster.records import Metric
from deemster.report import LEVELS, PUBLISH_SAFE, Destination, Report, redacted, written
from deemster.run import catalog

_F = TypeVar("_F", bound=Callable[..., Any])
_FORMATS = {
    "json": "canonical JSON",
    "markdown": "Markdown",
    "csv": "CSV, one line per mark",
    "html": "one HTML page that loads nothing",
    "junit": "JUnit XML",
    "github": "the summary of a GitHub job",
}


class Rendering(NamedTuple):
    """Where reports go and what they leave out."""

    destinations: tuple[Destination, ...]
    level: str
    include_input: bool

    def check(self) -> None:
        """Make sure, before anything runs, that every report can be written.

        Raises:
            ReportError: One of them cannot, or two want standard output.
        """
        if sum(destination.is_stdout for destination in self.destinations) > 1:
            raise ReportError("Only one report can go to standard output.")
        taken: dict[Path, str] = {}
        for destination in self.destinations:
            destination.check()
            other = taken.setdefault(Path(destination.path).resolve(), destination.format)
            if other != destination.format:
                message = f"Two reports, {other} and {destination.format}, want this file."
                raise ReportError(Fault(message, destination.path))

    @property
    def takes_stdout(self) -> bool:
        """Whether standard output belongs to a report."""
        return any(destination.is_stdout for destination in self.destinations)

    def view(
        self,
        report: Report,
        metrics: tuple[Metric, ...] = (),
        *,
        quotes: Mapping[str, frozenset[str] | None] | None = None,
    ) -> Report:
        """The report as the flags want it shown.

        Args:
            report: The report.
            metrics: The run's metrics, where they are at hand; otherwise the report says which they were.
            quotes: By a metric's name, the details that may repeat text, where that was kept with the run.
        """
        known = {metric.name: catalog.quotes(metric) for metric in metrics} | dict(quotes or {})
        for name, figures in report.metrics.items():
            if name not in known:
                known[name] = _quotes_of_spec(figures.spec)
        return redacted(report, level=self.level, include_input=self.include_input, quotes=known.__getitem__)

    def write(self, view: Report) -> None:
        """Write every report that was asked for.

        Raises:
            ReportError: One of them cannot be written; the others are.
        """
        faults: list[Fault] = []
        for destination in self.destinations:
            try:
                written(view, destination)
            except ReportError as error:
                faults.extend(error.faults)
        if faults:
            raise ReportError(faults)


def _quotes_of_spec(spec: str) -> frozenset[str] | None:
    """What a metric of the catalog says it quotes; of user code nothing is known, and none of it is loaded."""
    try:
        catalog.describe(spec)
        return catalog.quotes(catalog.parse(spec))
    except ConfigurationError:
        return None


def rendering_options(command: _F) -> _F:
    """Add the flags; the command receives them as one ``rendering``."""

    @functools.wraps(command)
    def collected(**options: Any) -> Any:
        flavour = "csv-raw" if options.pop("csv_raw") else "csv"
        given = {name: options.pop(name) for name in _FORMATS}
        destinations = tuple(
            Destination(flavour if name == "csv" else name, path) for name, path in given.items() if path is not None
        )
        level = PUBLISH_SAFE if options.pop("publish_safe") else options["redact"]
        del options["redact"]
        rendering = Rendering(destinations, level, include_input="input" in options.pop("include"))
        return command(rendering=rendering, **options)

    for option in reversed(_options()):
        collected = option(collected)
    return collected  # type: ignore[return-value]


def _options() -> list[Callable[[Any], Any]]:
    formats = [
        click.option(f"--{name}", metavar="PATH", help=f"Write the report as {what}; `-` is standard output.")
        for name, what in _FORMATS.items()
    ]
    return [
        *formats,
        click.option("--csv-raw", is_flag=True, help="Leave CSV cells that look like formulas as they are."),
        click.option(
            "--redact",
            type=click.Choice([level for level in LEVELS if level != PUBLISH_SAFE]),
            default=LEVELS[0],
            metavar="LEVEL",
            help="Leave out `outputs`, `expected` or `all` of what samples and outputs say.",
        ),
        click.option("--publish-safe", is_flag=True, help="Leave out everything that could repeat private text."),
        click.option("--include", type=click.Choice(["input"]), multiple=True, help="Show the samples' input too."),
    ]
