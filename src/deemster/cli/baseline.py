"""`deemster baseline`: the run that the others of its suite are compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from deemster.cli._command import VerbGroup
from deemster.cli._console import note, write_out
from deemster.cli.options import ReportOptions, open_run_store, result_options, store_option, write_texts
from deemster.errors import ConfigurationError, did_you_mean, visible

if TYPE_CHECKING:
    from deemster.store import BaselineRow, RunRow, Store


@click.group(
    "baseline", cls=VerbGroup, short_help="The run that others are compared with: promote one, show it, clear it."
)
@store_option
def command(*, store: str) -> None:
    """The run that others are compared with: promote one, show it, clear it.

    A suite has one baseline. Runs without a suite have one for each dataset.
    """


@command.command("promote", short_help="Make a run the baseline of its suite.")
@click.argument("run")
@store_option
def promote(*, run: str, store: str) -> None:
    """Make a run the baseline of its suite, in place of the one before.

    RUN is an id, the beginning of one, a label, or `latest`. A run is refused if it failed its gate, was stopped by a
    budget, is incomplete, has more unscored marks than it may, ran a part of its dataset, or lacks samples of the
    baseline that it would replace.
    """
    with open_run_store(store) as opened:
        promote_run(opened, run)


def promote_run(store: Store, run: str) -> None:
    """Make a run the baseline, and say so.

    Raises:
        StoreError: There is no such run, or it cannot become the baseline.
    """
    from deemster.evaluation.promote_baseline import promote_baseline
    from deemster.runs.run_lifecycle import RunTimer

    row = promote_baseline(store, run, now=RunTimer().now())
    note(visible(f"{row.id} is the baseline of {_subject(row)}"))


@command.command("show", short_help="Show the baselines.")
@result_options("json")
@store_option
def show(*, reports: ReportOptions, store: str) -> None:
    """Show the baseline of each suite: the run, when it was promoted, what it came to."""
    import msgspec

    from deemster.formats.canonical_json import json_text
    from deemster.text.terminal_layout import list_text
    from deemster.text.text_sections import TextTable

    with open_run_store(store) as opened:
        rows = opened.baselines()
    write_texts(reports, {"json": lambda: f"{json_text(msgspec.to_builtins(rows))}\n"})
    if reports.takes_stdout:
        return
    if not rows:
        write_out("There is no baseline yet. `deemster baseline promote RUN` makes one.\n")
        return
    head = ("suite", "dataset", "run", "promoted", "samples", "macro-F1", "pass-rate", "metrics")
    write_out(list_text(TextTable(head, [_row(row) for row in rows])))


@command.command("clear", short_help="Forget a baseline; its run stays.")
@click.argument("suite", required=False)
@click.option("--dataset", metavar="NAME", help="The baseline of runs of this dataset that have no suite.")
@store_option
def clear(*, suite: str | None, dataset: str | None, store: str) -> None:
    """Forget the baseline of a suite. Its run stays.

    SUITE is the name of the suite. It can be left out where there is only one baseline.
    """
    if suite is not None and dataset is not None:
        raise ConfigurationError("Name a SUITE, or a `--dataset` of runs without one.")
    with open_run_store(store) as opened:
        if suite is None and dataset is None:
            rows = opened.baselines()
            if len(rows) > 1:
                names = [row.suite or f"--dataset {row.dataset}" for row in rows]
                raise ConfigurationError(f"There are several baselines. Name the suite: {', '.join(names)}.")
            suite, dataset = (rows[0].suite, rows[0].dataset) if rows else (None, "")
        if opened.clear_baseline(suite, dataset or ""):
            note(visible(f"forgot the baseline of {suite or dataset}"))
            return
        known = [row.suite or row.dataset for row in opened.baselines()]
    near = f" {did_you_mean(suite or dataset or '', known)}" if known else ""
    raise ConfigurationError(f"There is no baseline{f' of `{suite or dataset}`' if suite or dataset else ''}.{near}")


def _subject(row: RunRow) -> str:
    return f"the suite {row.suite}" if row.suite is not None else f"the dataset {row.dataset}"


def _row(row: BaselineRow) -> tuple[str, ...]:
    summary = row.facts.summary
    return (
        visible(row.suite or "-", limit=40),
        visible(row.dataset, limit=40),
        visible(row.run, limit=40),
        visible(row.facts.promoted_at[:16]).replace("T", " "),
        visible(str(summary.get("samples", "-"))),
        _number(summary.get("macro_f1")),
        _number(summary.get("pass_rate")),
        visible(", ".join(row.facts.metrics) or "-", limit=60),
    )


def _number(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, float) else "-"
