"""`deemster export`: writes stored runs to a file, hands them to another tool, or makes golden samples of failures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deemster.cli._command import Verb
from deemster.cli._console import note, write_out
from deemster.cli._golden_samples import save_failing
from deemster.cli.options import only_option, take_only
from deemster.cli.store_options import open_run_store, store_option
from deemster.errors import ConfigurationError, Issue, plural, visible

if TYPE_CHECKING:
    from deemster.datasets.only_expression import Only
    from deemster.store import Store

TOOLS = ("mlflow", "otel")
_RUN_FILE, _PARQUET, _GOLDEN = ".jsonl", ".parquet", "golden"
_DATASETS = (".yml", ".yaml", ".json")


@click.command(
    "export",
    cls=Verb,
    headings={"Which samples": ("--metric", "--limit")},
    examples=[
        "deemster export latest --to run.jsonl",
        "deemster export latest --only failed --to golden.yml",
        "deemster export --all --to tables.parquet",
        "deemster export latest --to otel:traces.json",
    ],
    see_also=["import", "store verify", "show"],
)
@click.argument("runs", metavar="[RUN]...", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Every run, in place of RUN.")
@click.option("--to", "place", metavar="PLACE", required=True, help="Where they go, as listed above.")
@only_option
@click.option("--metric", metavar="NAME", help="With --only failed: what fails by this metric; otherwise by any.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="With --only: N samples at most.")
@store_option
def command(
    *,
    runs: tuple[str, ...],
    every: bool,
    place: str,
    only: tuple[str, ...],
    metric: str | None,
    limit: int | None,
    store: str,
) -> None:
    """Write runs to a file or another tool; make golden samples.

    RUN is the id of a stored run, the beginning of one, a name, `latest`, or a run file. PLACE says what is written:

    \b
    x.jsonl         a run file, which every command takes in place of RUN
    folder.parquet  one file for each kind of row, for analysis (extra `parquet`)
    mlflow:URI      a run of MLflow (extra `mlflow`)
    otel:URL        events `gen_ai.evaluation.result`; a file gets OTLP's JSON lines (extra `otel`)
    golden.yml      with --only failed, or --only id:ID: samples added to a dataset, for a person to complete

    All of them hold texts of samples and outputs. The SHA-256 of a run file is printed: publish or sign it where others
    must know that they have the same facts. Golden samples carry the tag `to-complete`, their expected output is null
    unless they had one, and their metadata hold the output and the metrics that they failed.
    """  # noqa: D301 - how click marks lines that stay as they are
    wanted = take_only({"only": only}) if only else None
    kind, target = _read_place(place, is_part=wanted is not None)
    if bool(runs) is every:
        raise click.UsageError("Say which runs go: RUN... or `--all`, one of the two.")
    if wanted is None and (metric is not None or limit is not None):
        raise ConfigurationError("`--metric` and `--limit` are for `--only failed`; runs are written whole.")
    with _open(store, runs, every=every) as (opened, ids):
        if kind == _GOLDEN:
            ids_wanted = _wanted_ids(wanted, metric)
            save_failing(opened, [opened.run(name) for name in ids], target, metric=metric, ids=ids_wanted, limit=limit)
        else:
            _write_runs(opened, ids, kind, target)


def _read_place(place: str, *, is_part: bool) -> tuple[str, str]:
    """What is written, and where."""
    prefix, colon, rest = place.partition(":")
    is_tool = bool(colon) and prefix in TOOLS
    target = rest if is_tool else place
    suffix = Path(place).suffix.lower()
    if target in ("", "-"):
        message = "`-` is standard output, and this command writes a file: name it."
        raise click.BadParameter(message, param_hint="'--to'")
    if is_part and is_tool:
        raise ConfigurationError(f"`--only` chooses golden samples; {prefix} gets whole runs.")
    if is_part:
        return _GOLDEN, target
    if is_tool:
        return prefix, target
    if suffix in (_RUN_FILE, _PARQUET):
        return suffix, target
    if suffix in _DATASETS:
        message = "A dataset gets golden samples: say which, `--only failed` or `--only id:ID`. A run file is `.jsonl`."
        raise ConfigurationError(Issue(message, place))
    known = "`run.jsonl`, `folder.parquet`, `mlflow:URI`, `otel:URL`, or `golden.yml` with `--only failed`"
    raise ConfigurationError(Issue(f"The name does not say what is written. Known are {known}.", place))


@contextmanager
def _open(store: str, runs: Sequence[str], *, every: bool) -> Iterator[tuple[Store, list[str]]]:
    """The store that holds the runs, and their ids there, each once."""
    from deemster.store.open_runs import open_runs

    if every:
        with open_run_store(store) as opened:
            yield opened, [row.id for row in reversed(opened.runs())]
        return
    with open_runs(store, runs) as (opened, names):
        yield opened, list(dict.fromkeys(opened.run(name).id for name in names))


def _wanted_ids(only: Only | None, metric: str | None) -> tuple[str, ...]:
    """The samples that are named; none where those are taken that failed."""
    from deemster.datasets.only_expression import LATEST, Only

    only = only or Only()
    if only.tags or only.where or only.answered or set(only.failed) - {LATEST}:
        raise ConfigurationError("Golden samples are chosen by `--only failed` of RUN, or by `--only id:ID`.")
    if only.ids and (only.failed or metric is not None):
        raise ConfigurationError("`--only failed` chooses failing samples and `--only id:ID` names samples: give one.")
    return only.ids


def _write_runs(store: Store, ids: Sequence[str], kind: str, target: str) -> None:
    if kind == _RUN_FILE:
        from deemster.store.run_export import export_runs

        sha256 = export_runs(store, ids, Path(target))
        note(f"wrote {plural(len(ids), 'run')} to {visible(target)}")
        write_out(f"{sha256}\n")
    elif kind == _PARQUET:
        from deemster.store.parquet_export import export_parquet

        export_parquet(store, ids, Path(target))
        note(f"wrote {plural(len(ids), 'run')} to {visible(target)}; no store imports Parquet")
    else:
        from deemster.integrations.export_run import export_run

        for name in ids:
            write_out(visible(f"wrote {export_run(store, name, kind=kind, to=target)}") + "\n")
