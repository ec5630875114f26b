"""`deemster runs`: lists the stored runs, shows one, removes some."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.core import ParameterSource

from deemster.cli._command import VerbGroup
from deemster.cli._console import note, terminal_width, warn, write_out
from deemster.cli.options import (
    Command,
    Moment,
    ReportOptions,
    group_flags,
    open_run,
    open_run_store,
    result_options,
    store_option,
    take_flags,
    write_texts,
)
from deemster.errors import LeaseError, StoreError, plural, visible

if TYPE_CHECKING:
    from deemster.runs.run_figures import RunFigures
    from deemster.stats import Interval
    from deemster.store import LeaseOwner, RunRow, Store
    from deemster.store.run_facts import PassCounts

_HEAD = (
    *("run", "label", "suite", "dataset", "target", "started", "status", "samples", "done"),
    *("macro-F1", "95% interval", "pass-rate", "gate", "cost"),
)
# What a narrow terminal has no room for, in this order. The id of a run begins with the time of its start.
_LEFT_OUT = ("dataset", "started", "suite", "cost", "target", "pass-rate", "95% interval", "label", "samples", "done")
# Columns that are left out where no run has something to say in them.
_SPARE = frozenset({"label", "suite", "target", "macro-F1", "95% interval", "pass-rate", "gate", "cost"})
# The commands that continue a run, by its kind.
_COMMANDS = {"run": "deemster run SUITE", "grading": "deemster grade DATASET ..."}
_LONGEST = 40
_STATUSES = ("running", "complete", "incomplete", "mixed")


class RunChoice(NamedTuple):
    """Which runs are listed: arguments of `Store.runs` under their own names."""

    suite: str | None
    dataset: str | None
    status: str | None
    kind: str | None
    since: str | None
    until: str | None
    limit: int | None


def _choice_options(command: Command) -> Command:
    return group_flags(command, "chosen", lambda flags: take_flags(RunChoice, flags))


@click.group(
    "runs", cls=VerbGroup, invoke_without_command=True, short_help="List the stored runs, show one, remove some."
)
@click.option("--suite", metavar="NAME", help="Only runs of this suite.")
@click.option("--dataset", metavar="NAME", help="Only runs over this dataset.")
@click.option("--status", type=click.Choice(_STATUSES), help="Only runs that ended so, or have not.")
@click.option("--kind", type=click.Choice(("run", "grading", "recording")), help="Only runs of this kind.")
@click.option("--since", type=Moment(), metavar="WHEN", help="Only runs started then or later: 2026-01-31, or 7d.")
@click.option("--until", type=Moment(end=True), metavar="WHEN", help="Only runs started before; a day means its end.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the newest N.")
@result_options("json")
@store_option
@_choice_options
@click.pass_context
def command(context: click.Context, /, *, store: str, reports: ReportOptions, chosen: RunChoice) -> None:
    """List the stored runs, show one, remove some.

    Without a command the runs are listed, newest first. A run is named by its id, by the beginning of its id, or by
    `latest`.
    """
    from deemster.formats.canonical_json import json_text

    if context.invoked_subcommand is not None:
        _refuse_flags(context)
        return
    with open_run_store(store) as opened:
        runs = opened.runs(**chosen._asdict(), on_damage=lambda damage: warn(visible(damage)))
        where = opened.where
        stopped = {run.id for run in runs if run.status == "running" and not _is_written(opened.owner(run.id))}
    plain = [_plain_run(run, is_stopped=run.id in stopped) for run in runs]
    write_texts(reports, {"json": lambda: f"{json_text(plain)}\n"})
    if not reports.takes_stdout:
        write_out(runs_table(runs, stopped=stopped) if runs else f"No run in {visible(where)} fits.\n")


@command.command("show", short_help="Show what is stored of a run.")
@click.argument("run")
@result_options("json")
@store_option
def show(*, run: str, reports: ReportOptions, store: str) -> None:
    """Show what is stored of a run: what it was, how it ended, what was marked how often.

    RUN is an id, the beginning of one, `latest`, or a run file. For its report: `deemster report RUN`.
    """
    import msgspec

    from deemster.formats.canonical_json import json_text
    from deemster.runs.run_figures import stored_figures

    with open_run(store, run) as (opened, name):
        row = opened.run(name)
        figures = stored_figures(row)
        counts = figures.outcomes if figures is not None else _pass_counts(opened, row)
        owner = opened.owner(row.id)
    further = msgspec.to_builtins({"owner": owner, "outcomes": counts})
    plain = {**_plain_run(row, is_stopped=row.status == "running" and not _is_written(owner)), **further}
    write_texts(reports, {"json": lambda: f"{json_text(plain)}\n"})
    if not reports.takes_stdout:
        write_out(_describe_run(row, owner, counts))


def _pass_counts(store: Store, row: RunRow) -> Sequence[PassCounts]:
    """How often each metric passed; nothing of a grading, whose verdicts neither pass nor fail."""
    return store.pass_counts(row.id) if row.traits.has_metrics else ()


@command.command("rm", short_help="Remove runs.")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask.")
@store_option
def remove(*, runs: tuple[str, ...], yes: bool, store: str) -> None:
    """Remove runs, with everything that is stored of them.

    RUN is an id, the beginning of one, or `latest`. What is to go is shown first. A baseline never goes.
    The file does not get smaller: `deemster store prune` gives the space back.
    """
    with open_run_store(store) as opened:
        found = dict(_find_run(opened, name) for name in runs)
        baselines = {baseline.run for baseline in opened.baselines()}
        for run_id in found:
            _refuse_owned(run_id, opened.owner(run_id))
            if run_id in baselines:
                raise StoreError(
                    f"The run `{run_id}` is a baseline, so it stays. `deemster baseline clear` forgets it."
                )
        if not confirm_removal(found, yes=yes):
            return
        for run_id in found:
            opened.remove(run_id)
    note(f"removed {plural(len(found), 'run')}")


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


def runs_table(runs: Sequence[RunRow], *, stopped: Collection[str] = ()) -> str:
    """Runs as lines with a head.

    Args:
        runs: The runs.
        stopped: The ids of those that no process writes any more, though their status is `running`: a process that is
            killed cannot change it, nor one whose store fails.
    """
    return _table([_row(run, is_stopped=run.id in stopped) for run in runs])


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


def _refuse_flags(context: click.Context) -> None:
    """Refuse flags of the list before a command that would not heed them."""
    for parameter in context.command.params:
        name = parameter.name or ""
        if name != "store" and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"`{parameter.opts[0]}` is for the list; `{context.invoked_subcommand}` has none.")


def _find_run(store: Store, name: str) -> tuple[str, RunRow | None]:
    """A run by its name; one that is damaged is found by its whole id."""
    try:
        row = store.run(name)
    except StoreError as error:
        try:
            store.owner(name)
        except StoreError:
            raise error from None
        return name, None
    return row.id, row


def _refuse_owned(run_id: str, owner: LeaseOwner | None) -> None:
    if owner is not None and owner.alive:
        raise LeaseError(f"The run `{run_id}` cannot go: process {owner.pid} on {owner.host} writes it.")


def _is_written(owner: LeaseOwner | None) -> bool:
    return owner is not None and owner.alive


def _row(run: RunRow, *, is_stopped: bool = False) -> dict[str, str]:
    from deemster.runs.run_figures import stored_figures

    figures = stored_figures(run)
    return {
        "run": visible(run.id, limit=_LONGEST),
        **{name: _named(text) for name, text in (("label", run.facts.get("label")), ("suite", run.suite))},
        "dataset": _named(run.dataset),
        "target": _named(run.facts.get("target")),
        "started": _minute(run.started_at),
        "status": _status(run, is_stopped=is_stopped),
        "samples": _samples(run),
        "done": _done(run),
        "macro-F1": "-" if figures is None else _rate(figures.macro_f1),
        "95% interval": "-" if figures is None else _interval(figures.macro_f1_interval),
        "pass-rate": "-" if figures is None else _rate(figures.pass_rate),
        "gate": "-" if figures is None else _named(figures.gate),
        "cost": "-" if figures is None else _cost(figures),
    }


def _named(text: Any) -> str:
    return visible(text, limit=_LONGEST) if text and isinstance(text, str) else "-"


def _samples(run: RunRow) -> str:
    """How many samples a run has, of how many where it took a part."""
    from deemster.evaluation.run_part import stored_part

    try:
        part = stored_part(run)
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
    from deemster.evaluation.run_part import stored_part

    part = stored_part(run)
    return None if part is None else part.describe()


def _minute(moment: str | None) -> str:
    return "-" if moment is None else visible(moment[:16]).replace("T", " ")


def _status(run: RunRow, *, is_stopped: bool) -> str:
    status = "stopped" if is_stopped else run.status
    kind = "part" if "part" in run.facts else run.kind
    return status if kind == "run" else f"{status} {kind}"


def _done(run: RunRow) -> str:
    total = run.samples * run.repetitions
    return f"{run.done:,}" if run.done == total else f"{run.done:,} of {total:,}"


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


def _describe_run(run: RunRow, owner: LeaseOwner | None, counts: Sequence[PassCounts]) -> str:
    from deemster.formats.canonical_json import json_text

    sized = f"{plural(run.samples, 'sample')} x {plural(run.repetitions, 'repetition')}"
    facts = [
        ("run", run.id),
        ("label", run.facts.get("label")),
        ("kind", run.kind),
        ("suite", run.suite),
        ("dataset", f"{run.dataset}, {sized}"),
        ("part", _part(run)),
        ("target", run.facts.get("target")),
        ("fingerprint", run.fingerprint),
        ("seed", str(run.seed)),
        ("status", _describe_status(run, owner)),
        ("done", _done(run)),
        ("started", run.started_at),
        ("finished", run.finished_at),
        ("took", None if run.duration_s is None else f"{run.duration_s:.3f} s"),
        *_figures(run),
        ("owner", None if owner is None else _describe_owner(owner)),
        ("tool", f"deemster {run.tool_version}"),
    ]
    lines = [f"{name.ljust(11)}  {visible(value)}\n" for name, value in facts if isinstance(value, str)]
    identity = [f"  {visible(name)}: {visible(json_text(value), limit=400)}\n" for name, value in run.identity.items()]
    tables = [*_scorings_table(run), *_outcomes_table(counts)]
    return "".join([*lines, *tables, *(["\nidentity\n"] if identity else []), *identity])


def _figures(run: RunRow) -> list[tuple[str, str | None]]:
    """What a run came to, where that is stored."""
    from deemster.runs.run_figures import stored_figures

    figures = stored_figures(run)
    if figures is None:
        return []
    rates = (("macro-F1", figures.macro_f1, figures.macro_f1_interval),
             ("pass-rate", figures.pass_rate, figures.pass_rate_interval))  # fmt: skip
    told: list[tuple[str, str | None]] = [
        (name, f"{value:.4f}" + ("" if interval is None else f" ({_interval(interval)})"))
        for name, value, interval in rates
        if value is not None
    ]
    return [*told, ("gate", figures.gate), ("cost", None if figures.cost_usd is None else _cost(figures))]


def _describe_status(run: RunRow, owner: LeaseOwner | None) -> str:
    """How a run stands, and how an unfinished one is continued."""
    status = run.status if run.reason is None else f"{run.status}: {run.reason}"
    if run.status not in ("running", "incomplete") or run.kind not in _COMMANDS or _is_written(owner):
        return status
    status = "stopped" if run.status == "running" else status.rstrip(".")
    return f"{status}. To continue: {_COMMANDS[run.kind]} --resume={run.id}"


def _describe_owner(owner: LeaseOwner) -> str:
    return f"process {owner.pid} on {owner.host}, {'running' if owner.alive else 'gone'}"


def _scorings_table(run: RunRow) -> list[str]:
    from deemster.text.terminal_layout import list_text
    from deemster.text.text_sections import TextTable

    head = ("scoring", "status", "started", "metrics")
    rows = [
        (
            str(scoring.number),
            scoring.status,
            _minute(scoring.started_at),
            visible(", ".join(card.name for card in scoring.cards) or "-", limit=80),
        )
        for scoring in run.scorings
    ]
    return ["\n", list_text(TextTable(head, rows))] if rows else []


def _outcomes_table(counts: Sequence[PassCounts]) -> list[str]:
    from deemster.text.terminal_layout import list_text
    from deemster.text.text_sections import TextTable

    outside = any(count.not_applicable for count in counts)
    head = ("metric", "passed", "failed", "unscored", *(("not applicable",) if outside else ()))
    rows = [
        (
            visible(count.metric, limit=_LONGEST),
            f"{count.passed:,}",
            f"{count.failed:,}",
            ", ".join(f"{number:,} {cause}" for cause, number in count.unscored.items()) or "-",
            *((f"{count.not_applicable:,}",) if outside else ()),
        )
        for count in counts
    ]
    return ["\n", list_text(TextTable(head, rows))] if rows else []
