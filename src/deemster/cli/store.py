"""`deemster store`: where runs are kept; removes some, looks for damage, verifies reports."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deemster.cli._command import VerbGroup
from deemster.cli._console import note, warn, write_out
from deemster.cli._run_list import confirm_removal
from deemster.cli.moments import Moment
from deemster.cli.store_options import open_run_store, store_option
from deemster.errors import ConfigurationError, ExitCode, LeaseError, StoreError, plural, visible

if TYPE_CHECKING:
    from deemster.store import RunRow, Store
    from deemster.store.run_facts import RunStatus

_URLS = ("postgresql://", "postgres://")
_HASH = re.compile(r"[0-9a-fA-F]{64}")
_STATUSES = ("running", "complete", "incomplete", "mixed")


def _check_hash(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None and not _HASH.fullmatch(value):
        raise click.BadParameter("a SHA-256 has 64 hexadecimal digits.")
    return None if value is None else value.lower()


@click.group(
    "store",
    cls=VerbGroup,
    invoke_without_command=True,
    examples=["deemster store", "deemster store rm --until 90d", "deemster store check"],
    see_also=["show", "export", "import"],
)
@store_option
@click.pass_context
def command(context: click.Context, /, *, store: str) -> None:
    """Remove runs, look for damage, verify reports.

    Without a verb, its place is printed: the whole path of a file, or a URL without its password. Nothing is opened, so
    it need not be there.
    """
    if context.invoked_subcommand is None:
        _print_place(store)


def _print_place(store: str) -> None:
    from deemster.store.open_and_migrate import check_store_place

    check_store_place(store)
    if store.startswith(_URLS):
        from deemster.store.postgres import PostgresDatabase

        write_out(f"{visible(PostgresDatabase(store, durable=False).where)}\n")
    else:
        write_out(f"{visible(str(Path(store).resolve()))}\n")


@command.command(
    "rm",
    short_help="Remove runs, and give the space back.",
    examples=[
        "deemster store rm 20261119T151209Z-a6f9da",
        "deemster store rm --since 2026-10-01 --until 2026-10-31",
        "deemster store rm --keep 20 --until 90d",
    ],
    see_also=["show", "baseline"],
)
@click.argument("runs", metavar="[RUN]...", nargs=-1)
@click.option("--since", type=Moment(), metavar="WHEN", help="Runs started then or later: 2026-01-31, or 7d.")
@click.option("--until", type=Moment(end=True), metavar="WHEN", help="Runs started before; a day means its end.")
@click.option("--status", type=click.Choice(_STATUSES), help="Runs that ended so, or have not.")
@click.option("--keep", type=click.IntRange(min=0), metavar="N", help="But not the newest N of each suite.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@store_option
def remove(
    *,
    runs: tuple[str, ...],
    since: str | None,
    until: str | None,
    status: RunStatus | None,
    keep: int | None,
    yes: bool,
    store: str,
) -> None:
    """Remove runs, with everything that is stored of them, and give the space back.

    RUN is the id of a stored run, the beginning of one, a name, or `latest`. In place of RUN, the flags choose; runs
    must fit every flag. What is to go is shown first. A baseline never goes, nor a run that a living process writes.
    Without RUN and flags nothing goes, and only the space of runs removed before is given back.
    """
    from deemster.store.prune_runs import reclaim_space, runs_to_prune

    if runs and any(flag is not None for flag in (since, until, status, keep)):
        raise ConfigurationError("Name each RUN, or choose by flags; not both.")
    with open_run_store(store) as opened:
        if runs:
            chosen = _named_runs(opened, runs)
        else:
            rows = runs_to_prune(
                opened,
                keep=keep,
                since=since,
                until=until,
                status=status,
                on_damage=lambda damage: warn(visible(damage)),
            )
            chosen = {row.id: row for row in rows}
        if chosen and not confirm_removal(chosen, yes=yes):
            return
        for run_id in chosen:
            opened.remove(run_id)
        contents, size = reclaim_space(opened)
    freed = "" if size is None else f", {size / 2**20:,.1f} MiB given back"
    note(f"removed {plural(len(chosen), 'run')} and {plural(contents, 'sample content')} that nothing used{freed}")


def _named_runs(store: Store, names: Sequence[str]) -> dict[str, RunRow | None]:
    """Runs by their ids; None for one that is damaged, which is found by its whole id.

    Raises:
        StoreError: There is no such run, or it may not go.
    """
    baselines = {baseline.run for baseline in store.baselines()}
    chosen: dict[str, RunRow | None] = {}
    for name in names:
        row = _find_run(store, name)
        run_id = name if row is None else row.id

        owner = store.owner(run_id)
        if owner is not None and owner.alive:
            raise LeaseError(f"The run `{run_id}` cannot go: process {owner.pid} on {owner.host} writes it.")
        if run_id in baselines:
            raise StoreError(f"The run `{run_id}` is a baseline, so it stays. `deemster baseline --clear` forgets it.")
        chosen[run_id] = row
    return chosen


def _find_run(store: Store, name: str) -> RunRow | None:
    try:
        return store.run(name)
    except StoreError as error:
        try:
            store.owner(name)
        except StoreError:
            raise error from None
        return None


@command.command(
    "check",
    short_help="Look for damage, and say what is lost.",
    examples=["deemster store check"],
    see_also=["store rm"],
)
@store_option
def check(*, store: str) -> None:
    """Look for damage, and say what is lost: every check sum, count and reference, and the database itself.

    Exit codes: 0 nothing is damaged, 1 something is, 2 there is no such store, 3 it cannot be read.
    """
    from deemster.store.find_damage import find_damage

    found = 0
    with open_run_store(store) as opened:
        for damage in find_damage(opened):
            found += 1
            write_out(f"{visible(str(damage))}\n")
        runs = len(opened.runs()) if not found else 0
    if found:
        note(f"{plural(found, 'damage')} found in {visible(opened.where)}")
        raise click.exceptions.Exit(ExitCode.GATE_FAILED)
    write_out(visible(f"{opened.where}: {plural(runs, 'run')}, nothing is damaged.") + "\n")


@command.command(
    "verify",
    short_help="Compute a report again from a run file, and compare every byte.",
    examples=["deemster store verify report.json run.jsonl"],
    see_also=["export", "import"],
)
@click.argument("report", type=click.Path())
@click.argument("file", type=click.Path())
@click.option("--sha256", metavar="HASH", callback=_check_hash, help="The SHA-256 that FILE must have.")
def verify(*, report: str, file: str, sha256: str | None) -> None:
    """Compute a report again from a run file, and compare every byte. No store, model or network is needed.

    REPORT is what `--to FILE.json` of `run` or `show` wrote, with whatever it leaves out. FILE is the run file of the
    same run. It says that the report follows from the facts. It does not say who recorded them: compare
    the SHA-256 with the one that the maker published or signed. The hash covers facts that no report shows too.

    Exit codes: 0 the report follows from the facts, 1 something differs, 2 a file cannot be used.
    """
    from deemster.evaluation.verify_report import verify_report

    verified = verify_report(report, file, sha256=sha256)
    for difference in verified.differences:
        write_out(f"{visible(difference)}\n")
    if verified.differences:
        raise click.exceptions.Exit(ExitCode.GATE_FAILED)
    write_out(f"run: {visible(verified.run)}\nsha256: {verified.sha256}\n")
    write_out("The report follows from the facts, byte for byte.\n")
