"""`deemster store`: passes runs on, verifies reports, makes room, looks for damage."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deemster.cli._command import VerbGroup
from deemster.cli._console import note, warn, write_out
from deemster.cli.options import Age, open_run_store, refuse_stdout, store_option
from deemster.cli.runs import confirm_removal
from deemster.errors import ExitCode, plural, visible

if TYPE_CHECKING:
    from deemster.store.run_facts import RunStatus

_URLS = ("postgresql://", "postgres://")
_HASH = re.compile(r"[0-9a-fA-F]{64}")
_STATUSES = ("running", "complete", "incomplete", "mixed")


def _check_hash(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None and not _HASH.fullmatch(value):
        raise click.BadParameter("a SHA-256 has 64 hexadecimal digits.")
    return None if value is None else value.lower()


@click.group("store", cls=VerbGroup, short_help="Pass runs on, verify reports, make room, look for damage.")
@store_option
def command(*, store: str) -> None:
    """Pass runs on, verify reports, make room, look for damage."""


@command.command("path", short_help="Print where runs are kept.")
@store_option
def path(*, store: str) -> None:
    """Print where runs are kept: the whole path of a file, or a URL without its password.

    Nothing is opened, so it need not be there.
    """
    from deemster.store.open_and_migrate import check_store_place

    check_store_place(store)
    if store.startswith(_URLS):
        from deemster.store.postgres import PostgresDatabase

        write_out(f"{visible(PostgresDatabase(store, durable=False).where)}\n")
    else:
        write_out(f"{visible(str(Path(store).resolve()))}\n")


@command.command("export", short_help="Write runs to a file that another store can import.")
@click.argument("runs", metavar="[RUN]...", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Every run, in place of RUN.")
@click.option(
    "--to", callback=refuse_stdout, metavar="FILE", type=click.Path(dir_okay=False), help="The run file: JSON lines."
)
@click.option(
    "--parquet",
    callback=refuse_stdout,
    metavar="FOLDER",
    type=click.Path(file_okay=False),
    help="Parquet files, for analysis only.",
)
@store_option
def export(*, runs: tuple[str, ...], every: bool, to: str | None, parquet: str | None, store: str) -> None:
    """Write runs to a file that another store can import, with samples, outputs and marks.

    RUN is an id, the beginning of one, or `latest`. The SHA-256 of the file is printed: publish or sign it where others
    must know that they have the same facts. Every command that reads a run takes such a file in place of RUN, and
    `deemster store verify REPORT FILE` computes a report again from it.

    Parquet has one file for each kind of row (extra `parquet`); it is for analysis, and no store imports it.
    """
    from deemster.store.run_export import export_runs

    if to is None and parquet is None:
        raise click.UsageError("Say where the runs go: `--to runs.jsonl`, or `--parquet FOLDER`.")
    if bool(runs) is every:
        raise click.UsageError("Say which runs go: RUN... or `--all`, one of the two.")
    with open_run_store(store) as opened:
        rows = list(reversed(opened.runs())) if every else list({row.id: row for row in map(opened.run, runs)}.values())
        ids = [row.id for row in rows]
        if to is not None:
            sha256 = export_runs(opened, ids, Path(to))
            note(f"wrote {plural(len(ids), 'run')} to {visible(to)}")
            write_out(f"{sha256}\n")
        if parquet is not None:
            from deemster.store.parquet_export import export_parquet

            export_parquet(opened, ids, Path(parquet))
            note(f"wrote {plural(len(ids), 'run')} to {visible(parquet)}; no store imports Parquet")


@command.command("import", short_help="Take in the runs of a file.")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@store_option
def take(*, files: tuple[str, ...], store: str) -> None:
    """Take in the runs of files that `deemster store export --to FILE` wrote, here or elsewhere.

    A file is taken in as a whole, or not at all. A run that is there already is left as it is where
    it is the same, and refused where it is another one.
    """
    from deemster.evaluation.take_in_runs import take_in

    with open_run_store(store, create=True) as opened:
        for file in files:
            for taken in take_in(opened, Path(file)):
                said = "was here already" if taken.is_known else f"taken in, {plural(taken.samples, 'sample')}"
                write_out(f"{visible(taken.id)}: {said}\n")


@command.command("prune", short_help="Remove old runs and give the space back.")
@click.option("--keep", type=click.IntRange(min=0), metavar="N", help="Keep the newest N runs of each suite.")
@click.option("--older-than", "before", type=Age(), metavar="AGE", help="Only runs that started longer ago: 30d, 8w.")
@click.option("--status", type=click.Choice(_STATUSES), help="Only runs that ended so, or have not.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@store_option
def prune(*, keep: int | None, before: str | None, status: RunStatus | None, yes: bool, store: str) -> None:
    """Remove old runs and give the space back.

    Runs that fit every flag go; they are shown first. A run that a living process writes never goes,
    and neither does a baseline. Without a flag
    nothing goes, and only the space of runs removed before is given back.
    """
    from deemster.store.prune_runs import reclaim_space, runs_to_prune

    with open_run_store(store) as opened:
        rows = runs_to_prune(
            opened, keep=keep, before=before, status=status, on_damage=lambda damage: warn(visible(damage))
        )
        if rows and not confirm_removal({row.id: row for row in rows}, yes=yes):
            return
        for row in rows:
            opened.remove(row.id)
        contents, size = reclaim_space(opened)
    freed = "" if size is None else f", {size / 2**20:,.1f} MiB given back"
    note(f"removed {plural(len(rows), 'run')} and {plural(contents, 'sample content')} that nothing used{freed}")


@command.command("check", short_help="Look for damage, and say what is lost.")
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


@command.command("verify", short_help="Compute a report again from a run file, and compare every byte.")
@click.argument("report", type=click.Path())
@click.argument("file", type=click.Path())
@click.option("--sha256", metavar="HASH", callback=_check_hash, help="The SHA-256 that FILE must have.")
def verify(*, report: str, file: str, sha256: str | None) -> None:
    """Compute a report again from a run file, and compare every byte. No store, model or network is needed.

    REPORT is what `--to FILE.json` of `run` or `report` wrote, with whatever it leaves out. FILE is the run file of the
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
