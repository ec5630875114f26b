"""`deemster baseline`: the run that the others of its suite are compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from deemster.cli._command import Verb
from deemster.cli._console import note, write_out
from deemster.cli._retired import answer_verb
from deemster.cli.report_options import ReportOptions, result_options, write_texts
from deemster.cli.store_options import open_run_store, store_option
from deemster.errors import ConfigurationError, did_you_mean, visible

if TYPE_CHECKING:
    from deemster.store import BaselineRow, RunRow, Store

# Names the runs of a dataset that belong to no suite.
_DATASET = "dataset:"


@click.command(
    "baseline",
    cls=Verb,
    examples=["deemster baseline", "deemster baseline latest", "deemster baseline --clear"],
    see_also=["run --as-baseline", "compare baseline latest"],
)
@click.argument("words", metavar="[RUN]", nargs=-1)
@click.option("--clear", is_flag=True, help="Forget the baseline of a suite, in place of RUN; its run stays.")
@result_options("json")
@store_option
def command(*, words: tuple[str, ...], clear: bool, reports: ReportOptions, store: str) -> None:
    """Choose the run that others are compared with, or show it.

    A suite has one baseline. Runs without a suite have one for each dataset. Without RUN the baselines are shown.

    RUN is an id, the beginning of one, a name, or `latest`; it takes the place of the baseline of its suite. A run is
    refused if it failed its gate, was stopped by a budget, is incomplete, has more unscored marks than it may, ran a
    part of its dataset, or lacks samples of the baseline that it would replace.

    With --clear the name of the suite stands in place of RUN, or `dataset:NAME` for runs without a suite; it can be
    left out where there is only one baseline.
    """
    name = words[0] if words else None
    if advice := answer_verb(f"baseline {name}"):
        raise click.UsageError(advice)
    if len(words) > 1:
        raise click.UsageError(f"Name one run, not {len(words)}.")
    with open_run_store(store) as opened:
        if clear:
            _clear(opened, name)
        elif name is not None:
            choose_baseline(opened, name)
        else:
            _show(opened, reports)


def choose_baseline(store: Store, run: str) -> None:
    """Make a run the baseline, and say so.

    Raises:
        StoreError: There is no such run, or it cannot become the baseline.
    """
    from deemster.evaluation.promote_baseline import promote_baseline
    from deemster.runs.run_timer import RunTimer

    row = promote_baseline(store, run, now=RunTimer().now())
    note(visible(f"{row.id} is the baseline of {_subject(row)}"))


def _show(store: Store, reports: ReportOptions) -> None:
    """Print the baseline of each suite: the run, when it was chosen, what it came to."""
    import msgspec

    from deemster.formats.canonical_json import json_text
    from deemster.text.terminal_layout import list_text
    from deemster.text.text_sections import TextTable

    rows = store.baselines()
    write_texts(reports, {"json": lambda: f"{json_text(msgspec.to_builtins(rows))}\n"})
    if reports.takes_stdout:
        return
    if not rows:
        write_out("There is no baseline yet. `deemster baseline RUN` makes one.\n")
        return
    head = ("suite", "dataset", "run", "chosen", "samples", "mean pass-rate", "pass-rate", "metrics")
    write_out(list_text(TextTable(head, [_row(row) for row in rows])))


def _clear(store: Store, name: str | None) -> None:
    """Forget the baseline of a suite, or of runs of a dataset without one."""
    baselines = {_name(row): row for row in store.baselines()}
    if name is None and len(baselines) > 1:
        raise ConfigurationError(f"There are several baselines. Name the suite: {', '.join(baselines)}.")
    if name is None:
        name = next(iter(baselines), None)

    if name not in baselines:
        subject = "" if name is None else f" of `{name}`"
        suggestion = f" {did_you_mean(str(name), baselines)}" if baselines else ""
        raise ConfigurationError(f"There is no baseline{subject}.{suggestion}")

    row = baselines[name]
    store.clear_baseline(row.suite, "" if row.suite is not None else row.dataset)
    note(visible(f"forgot the baseline of {row.suite or row.dataset}"))


def _name(row: BaselineRow) -> str:
    """What `--clear` calls a baseline."""
    return f"{_DATASET}{row.dataset}" if row.suite is None else row.suite


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
