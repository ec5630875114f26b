"""Answers a mistyped path with the existing file that was most likely meant."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

from deemster.errors import visible
from deemster.errors.message_text import nearest

# A folder may hold millions of files; so many names are looked at to find the nearest.
_MOST_NAMES = 2000


def nearest_file(path: str | Path) -> str | None:
    """The existing file that the path of a missing one most likely meant, or None.

    Where the folder is missing too, the nearest folder above it is searched.
    """
    wanted = Path(path)
    try:
        folder = next((above for above in wanted.parents if above.is_dir()), Path())
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in islice(entries, _MOST_NAMES) if entry.is_file())
    except (OSError, ValueError):
        return None
    # The extension counts only between files of one stem: `labels.json` is not near `votes.json`.
    names.sort(key=lambda name: Path(name).suffix != wanted.suffix)
    by_stem = {Path(name).stem.casefold(): name for name in reversed(names)}
    found = nearest(wanted.stem, by_stem)
    return None if found is None else visible(str(folder / by_stem[found]), limit=300)


def missing_file(written: str, *, folder: str | Path = "") -> str | None:
    """What a message says of a missing file that another file names: its path there, and the nearest one.

    Args:
        written: Its path, as the other file has it.
        folder: What the path is relative to.

    Returns:
        None where the file is there, or the reader of the file must say what is wrong with it.
    """
    path = Path(folder, written)
    try:
        path.stat()
    except FileNotFoundError:
        near = nearest_file(path)
    except (OSError, ValueError):
        return None
    else:
        return None
    shown = f"There is no file `{visible(written, limit=300)}`."
    if near is None:
        return shown
    is_within = not Path(written).is_absolute() and Path(near).is_relative_to(folder)
    return f"{shown} Did you mean `{Path(near).relative_to(folder) if is_within else near}`?"
