"""A run file in place of a store: its runs are taken into a temporary one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deemster.errors import Issue, StoreError
from deemster.formats.atomic_write import folder_aside
from deemster.store.open_and_migrate import open_store
from deemster.store.run_import import import_runs
from deemster.store.run_store import Store

_PIECE = 1 << 20


@contextmanager
def open_run_file(path: str | Path) -> Iterator[Store]:
    """A temporary store with the runs of a file, removed at the end. Nothing that they name is called or loaded.

    Raises:
        StoreError: The file cannot be read or is no run file.
    """
    with temporary_store() as store:
        store.where = str(path)
        import_runs(store, Path(path))
        yield store


@contextmanager
def temporary_store() -> Iterator[Store]:
    """A store that is removed at the end."""
    with folder_aside() as folder, open_store(folder / "runs.db") as store:
        yield store


def file_sha256(path: str | Path) -> str:
    """The SHA-256 of a run file, by which two people know that they have the same one.

    Raises:
        StoreError: The file cannot be read.
    """
    digest = hashlib.sha256()
    try:
        with Path(path).open("rb") as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
    except OSError as error:
        raise StoreError(Issue(f"The file cannot be read: {error.strerror}.", str(path))) from None
    return digest.hexdigest()
