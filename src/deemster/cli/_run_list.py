"""The stored runs as a list, and what is stored of one that has no report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from deemster.cli._console import note, terminal_width, warn, write_out
from deemster.cli.report_options import ReportOptions, write_texts
from deemster.errors import ConfigurationError, StoreError, plural, visible

if TYPE_CHECKING:
    from deemster.datasets import SelectedPart
    from deemster.runs.run_figures import RunFigures
    from deemster.stats import Interval
    from deemster.store import LeaseOwner, RunRow, Store

_HEAD = (
    *("run", "name", "experiment", "suite", "dataset", "target", "started", "status", "samples", "done"),
    *("mean pass-rate", "95% interval", "pass-rate", "gate", "cost"),
)
# What a narrow terminal has no room for, in this order. The id of a run begins with the time of its start.
_LEFT_OUT = (
    "dataset",
    "started",
    "experiment",
    "suite",
    "cost",
    "target",
    "pass-rate",
    "95% interval",
    "name",
    "samples",
    "done",
)
# Columns that are left out where no run has something to say in them.
_SPARE = frozenset(
    {"name", "experiment", "suite", "target", "mean pass-rate", "95% interval", "pass-rate", "gate", "cost"}
)
# The commands that continue a run, by its kind.
_COMMANDS = {"run": "deemster run SUITE", "grading": "deemster grade DATASET ..."}
_LONGEST = 40
# A column is a field for tools such as `cut`, so it is never empty.
_AS_ABOVE = '"'


def show_runs(store: Store, *, suite: str | None, since: str | None, until: str | None, reports: ReportOptions) -> None:
    """Print the runs of a store, the newest first, and write them as JSON where that is asked for.

    Args:
        store: The store.
        suite: The suite whose runs they are, or the dataset of recordings; None for all.
        since: When the first may have begun.
        until: When the last must have begun.
        reports: Where the list is written.

    Raises:
        ConfigurationError: A list is not written in the format.
        StoreError: The store cannot be read.
    """
    others = [destination.format for destination in reports.destinations if destination.format != "json"]
    if others:
        raise ConfigurationError(f"The list of runs is written as JSON alone, not as {others[0]}: name a RUN.")

    runs = store.runs(since=since, until=until, on_damage=lambda damage: warn(visible(damage)))
    if runs and (damage := store.damage()) is not None:
        warn(visible(damage))
    # A recording has no suite.
    runs = [run for run in runs if suite in (None, run.suite or run.dataset)]
    stopped = {run.id for run in runs if run.status == "running" and not _is_written(store.owner(run.id))}

    write_texts(reports, {"json": lambda: _runs_json(runs, stopped)})
    if not reports.takes_stdout:
        rows = [_row(run, is_stopped=run.id in stopped) for run in runs]
        for run, above, row in zip(runs[1:], runs, rows[1:], strict=False):
            if run.experiment and run.experiment == above.experiment:
                row["experiment"] = _AS_ABOVE
        write_out(_table(rows) if rows else f"No run in {visible(store.where)} fits.\n")


def confirm_removal(runs: Mapping[str, RunRow | None], *, yes: bool) -> bool:
    """Whether runs may go: they are shown, and the user is asked unless that was answered already.

    Args:
        runs: The runs by id; None for one that is damaged.
        yes: Whether that was answered.

    Raises:
        UsageError: The question got no answer.
    """
    if yes:
        return True
    none = dict.fromkeys(_HEAD, "-")
    lost = [
        {**none, "run": visible(run_id, limit=_LONGEST), "status": "damaged"} for run_id, run in runs.items() if not run
    ]
    note(_table([*(_row(run) for run in runs.values() if run), *lost]).rstrip("\n"))
    try:
        agreed = click.confirm(f"Remove {plural(len(runs), 'run')}?", err=True)
    except click.Abort:
        note("")
        raise click.UsageError(
            "Nothing was removed: the question got no answer. `--yes` removes without asking."
        ) from None
    if not agreed:
        note("Nothing was removed.")
    return agreed


def _table(rows: Sequence[Mapping[str, str]]) -> str:
    from deemster.text.terminal_layout import list_text
    from deemster.text.text_sections import TextTable

    idle = {name for name in _SPARE if all(row[name] == "-" for row in rows)}
    if all(row["suite"] != "-" for row in rows):
        # A suite has one dataset.
        idle.add("dataset")
    if not any(" of " in row["done"] for row in rows):
        idle.add("done")
    head = [name for name in _HEAD if name not in idle]
    cells = [tuple(row[name] for name in head) for row in rows]
    return list_text(TextTable(tuple(head), cells, _LEFT_OUT), width=terminal_width())


def _is_written(owner: LeaseOwner | None) -> bool:
    return owner is not None and owner.alive


def _row(run: RunRow, *, is_stopped: bool = False) -> dict[str, str]:
    from deemster.runs.run_figures import stored_figures

    figures = stored_figures(run)
    return {
        "run": visible(run.id, limit=_LONGEST),
        **{name: _named(text) for name, text in (("name", run.facts.get("label")), ("suite", run.suite))},
        "experiment": _named(run.experiment),
        "dataset": _named(run.dataset),
        "target": _named(run.facts.get("target")),
        "started": _minute(run.started_at),
        "status": _status(run, is_stopped=is_stopped),
        "samples": _samples(run),
        "done": _done(run),
        "mean pass-rate": "-" if figures is None else _rate(figures.macro_f1),
        "95% interval": "-" if figures is None else _interval(figures.macro_f1_interval),
        "pass-rate": "-" if figures is None else _rate(figures.pass_rate),
        "gate": "-" if figures is None else _named(figures.gate),
        "cost": "-" if figures is None else _cost(figures),
    }


def _named(text: Any) -> str:
    return visible(text, limit=_LONGEST) if text and isinstance(text, str) else "-"


def _samples(run: RunRow) -> str:
    """How many samples a run has, of how many where it took a part."""
    try:
        part = _selected_part(run)
    except StoreError:
        part = None
    return f"{run.samples:,}" if part is None else f"{run.samples:,} of {part.of:,}"


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _interval(interval: Interval | None) -> str:
    return "-" if interval is None else f"{interval.low:.4f} - {interval.high:.4f}"


def _cost(figures: RunFigures) -> str:
    if figures.cost_usd is None:
        return "-"
    return f"{'' if figures.is_whole_cost else 'at least '}{figures.cost_usd:.4f} USD"


def _part(run: RunRow) -> str | None:
    """The part of its dataset that a run took."""
    part = _selected_part(run)
    return None if part is None else part.describe()


def _selected_part(run: RunRow) -> SelectedPart | None:
    if "part" not in run.facts:
        return None
    from deemster.report.report_settings import report_facts

    return report_facts(run).part


def _minute(moment: str | None) -> str:
    return "-" if moment is None else visible(moment[:16]).replace("T", " ")


def _status(run: RunRow, *, is_stopped: bool) -> str:
    status = "stopped" if is_stopped else run.status
    kind = "part" if "part" in run.facts else run.kind
    return status if kind == "run" else f"{status} {kind}"


def _done(run: RunRow) -> str:
    total = run.samples * run.repetitions
    return f"{run.done:,}" if run.done == total else f"{run.done:,} of {total:,}"


def _runs_json(runs: Sequence[RunRow], stopped: set[str]) -> str:
    from deemster.formats.canonical_json import json_text

    return f"{json_text([_plain_run(run, is_stopped=run.id in stopped) for run in runs])}\n"


def _plain_run(run: RunRow, *, is_stopped: bool) -> dict[str, Any]:
    """A run as JSON."""
    import msgspec

    from deemster.store.run_file_format import card_to_line

    plain: dict[str, Any] = msgspec.to_builtins(run)
    if is_stopped:
        plain["status"] = "stopped"
    for scoring, shown in zip(run.scorings, plain["scorings"], strict=True):
        shown["metrics"] = [msgspec.to_builtins(card_to_line(card)) for card in scoring.cards]
        del shown["cards"]
    return plain


def describe_run(run: RunRow, owner: LeaseOwner | None) -> str:
    """What is stored of a run, a line for each fact.

    Args:
        run: The run.
        owner: The process that writes it, or wrote it last.
    """
    sized = f"{plural(run.samples, 'sample')} x {plural(run.repetitions, 'repetition')}"
    facts = [
        ("run", run.id),
        ("name", run.facts.get("label")),
        ("kind", run.kind),
        ("suite", run.suite),
        ("dataset", f"{run.dataset}, {sized}"),
        ("part", _part(run)),
        ("target", run.facts.get("target")),
        ("status", describe_status(run, owner)),
        ("done", _done(run)),
        ("started", run.started_at),
        ("finished", run.finished_at),
        ("owner", None if owner is None else _describe_owner(owner)),
    ]
    return "".join(f"{name.ljust(8)}  {visible(value)}\n" for name, value in facts if isinstance(value, str))


def describe_status(run: RunRow, owner: LeaseOwner | None) -> str:
    """How a run stands, and how an unfinished one is continued."""
    status = run.status if run.reason is None else f"{run.status}: {run.reason}"
    if run.status not in ("running", "incomplete") or run.kind not in _COMMANDS or _is_written(owner):
        return status
    status = "stopped" if run.status == "running" else status.rstrip(".")
    return f"{status}. To continue: {_COMMANDS[run.kind]} --resume={run.id}"


def _describe_owner(owner: LeaseOwner) -> str:
    return f"process {owner.pid} on {owner.host}, {'running' if owner.alive else 'gone'}"
