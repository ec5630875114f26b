"""Opens the runs that a command names, in the store or in run files: the one place that takes either."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from deemster.errors import Issue, StoreError, plural
from deemster.formats.atomic_write import folder_aside
from deemster.store.open_and_migrate import open_store
from deemster.store.run_export import export_runs
from deemster.store.run_file import temporary_store
from deemster.store.run_file_check import raw_lines
from deemster.store.run_file_format import parse_header
from deemster.store.run_import import import_runs
from deemster.store.run_store import Store

_SUFFIX = ".jsonl"


def is_run_file(name: str | Path) -> bool:
    """Whether a name is that of a run file, not of a stored run: by its first line, or by its suffix if it is gone."""
    path = Path(name)

    if not path.is_file():
        return path.suffix == _SUFFIX

    try:
        _, first = next(raw_lines(path), (0, b""))
        parse_header(first)
    except ValueError:
        return False
    return True


@contextmanager
def open_runs(store: str | Path | None, names: Sequence[str]) -> Iterator[tuple[Store, list[str]]]:
    """The store that holds some runs, and their names there. Where one is a run file, it is a temporary store.

    Args:
        store: Where stored runs are; `.deemster/runs.db` unless given. It is opened only where one is named.
        names: The runs: stored ones, and run files with one run each.

    Raises:
        StoreError: A file cannot be read or is no run file, or the store cannot be opened.
    """
    if not any(map(is_run_file, names)):
        with open_store(store, create=False) as opened:
            yield opened, list(names)
        return

    with temporary_store() as shared:
        shared.where = next(filter(is_run_file, names))
        yield shared, [_take_in(shared, store, name) for name in names]


def _take_in(shared: Store, store: str | Path | None, name: str) -> str:
    """Take a run in, from a run file or from the store; returns its id."""
    if is_run_file(name):
        return _import_one(shared, Path(name))

    with open_store(store, create=False) as opened, folder_aside() as folder:
        copy = folder / "run.jsonl"
        export_runs(opened, [opened.run(name).id], copy)
        return _import_one(shared, copy)


def _import_one(store: Store, file: Path) -> str:
    runs = import_runs(store, file)

    if len(runs) != 1:
        message = f"The file holds {plural(len(runs), 'run')}, not one. `deemster import` takes in all of them."
        raise StoreError(Issue(message, str(file)))
    return runs[0].id
