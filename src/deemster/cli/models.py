"""`deemster models`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from deemster.cli._check_models import Finding, failed, findings, price_of
from deemster.cli._console import note
from deemster.errors import ExitCode, visible
from deemster.models.clock import clock_from_environment
from deemster.runs.run_sync import run_sync
from deemster.runs.suite import load_suite

_HEAD = ("role", "model", "works", "latency", "tokens", "price")


@click.group("models", short_help="Check the models that a suite names.")
def command() -> None:
    """Check the models that a suite names."""


@command.command("check", short_help="Ask each model of a suite one small thing.")
@click.argument("suite", type=click.Path())
def check(*, suite: str) -> None:
    """Ask each model of a suite one small thing, and say what is wrong where that fails.

    A file that has nothing but a section `models` will do, as `deemster grade --models` takes it.

    A chat model is asked for a JSON object, an embedding model for the vector of a word; a request is not repeated, and
    no answer is kept. Exit codes: 0 every model can be used, 2 bad input, or a model cannot be used.
    """
    found = run_sync(findings(load_suite(suite, calls_target=False, whole=False), clock=clock_from_environment()))
    if not found:
        click.echo("No metric of this suite asks a model.")
        return
    click.echo(_table(found))
    issues = failed(found)
    for finding in issues:
        note("")
        note("\n".join(_explained(finding)))
    if issues:
        sys.exit(ExitCode.BAD_INPUT)


def _table(found: Sequence[Finding]) -> str:
    rows = [_HEAD, *map(_row, found)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(lines)


def _row(finding: Finding) -> tuple[str, ...]:
    model = visible(finding.model or "-", limit=60)
    if finding.issue is not None:
        return finding.role, model, "cannot be used", "-", "-", "-"
    usage = finding.usage
    latency = "-" if usage is None or usage.latency_ms is None else f"{usage.latency_ms:.0f} ms"
    counts = [] if usage is None else [usage.prompt_tokens, usage.completion_tokens]
    known = [f"{count:,}" for count in counts if count is not None]
    return finding.role, model, finding.works, latency, " + ".join(known) or "-", price_of(finding)


def _explained(finding: Finding) -> list[str]:
    first, *rest = (visible(line) for line in (finding.issue or "").split("\n"))
    return [f"{finding.role}: {first}", *(f"  {line}" for line in [*rest, *filter(None, [finding.advice])])]
