"""Finds the nearest store, as git finds its repository."""

from __future__ import annotations

import os
from pathlib import Path

from deemster.store.open_and_migrate import DEFAULT


def find_store(folder: str | Path | None = None) -> str:
    """The file of the nearest store: `.deemster/runs.db` in a folder or above it, as far as its repository reaches.

    A store that belongs to another user is not taken.

    Args:
        folder: Where the search begins. Where it finds none, it begins again at the current folder.

    Returns:
        The path; that of a store to be made in the current folder where there is none.
    """
    here = Path.cwd()
    for start in ([] if folder is None else [Path(folder).resolve()]) + [here]:
        for place in (start, *start.parents):
            if _is_own_file(place / DEFAULT):
                return str(DEFAULT) if place == here else os.path.relpath(place / DEFAULT)
            if (place / ".git").exists():
                break
    return str(DEFAULT)


def _is_own_file(path: Path) -> bool:
    try:
        # Windows has no user numbers.
        return path.is_file() and (not hasattr(os, "getuid") or path.stat().st_uid == os.getuid())
    except OSError:
        return False
