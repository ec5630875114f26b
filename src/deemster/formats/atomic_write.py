"""Writes a file or folder so that a reader never sees half of it; what a killed process left is removed by the next."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_BUFFER = 1 << 20
_PREFIX = ".deemster-"
_LEFT = re.compile(re.escape(_PREFIX) + "[0-9a-f]{16}")


def write_aside(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file beside its place, then rename it.

    Args:
        path: Where the file goes; what stands there is replaced.
        pieces: What it holds.

    Raises:
        OSError: It cannot be written; what stood there is untouched.
    """
    with open_aside(path) as file:
        file.writelines(pieces)


@contextmanager
def open_aside(path: Path) -> Iterator[BinaryIO]:
    """A file beside its place, which is renamed at the end.

    Args:
        path: Where the file goes; what stands there is replaced.

    Raises:
        OSError: It cannot be written; what stood there is untouched.
    """
    remove_leftovers(path.parent)
    aside, file = _create_file(path.parent)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if sys.platform == "win32":
                file.close()
            aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


@contextmanager
def folder_aside(parent: Path | None = None) -> Iterator[Path]:
    """A folder for its owner alone, removed at the end unless it was renamed.

    Args:
        parent: Where it is made; in the folder for temporary files unless given.

    Raises:
        OSError: It cannot be made.
    """
    parent = Path(tempfile.gettempdir()) if parent is None else parent
    remove_leftovers(parent)
    aside, held = _create_folder(parent)
    try:
        yield aside
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        if held is not None:
            os.close(held)


def remove_leftovers(folder: Path) -> None:
    """Remove what processes of this user left in a folder that were killed while they wrote there.

    A process holds what it writes by a lock, which ends with the process. Where there are no locks, nothing is removed.

    Args:
        folder: The folder.
    """
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _LEFT.fullmatch(entry.name):
                _remove_if_left(Path(entry.path))


def _create_file(folder: Path) -> tuple[Path, BinaryIO]:
    """A new file that this process holds."""
    while True:
        aside = folder / f"{_PREFIX}{secrets.token_hex(8)}"
        # Opened by name, unlike a temporary file, so that it has the permissions of any file its owner writes.
        file = aside.open("xb", buffering=_BUFFER)
        _hold(file.fileno())
        # Another process may have taken it for a leftover before it was held.
        if aside.exists():
            return aside, file
        file.close()


def _create_folder(parent: Path) -> tuple[Path, int | None]:
    """A new folder that this process holds, and what holds it."""
    while True:
        aside = parent / f"{_PREFIX}{secrets.token_hex(8)}"
        aside.mkdir(mode=0o700)
        if sys.platform == "win32":
            return aside, None
        with contextlib.suppress(FileNotFoundError):
            held = os.open(aside, os.O_RDONLY)
            _hold(held)
            if aside.exists():
                return aside, held
            os.close(held)


def _hold(descriptor: int) -> None:
    """Lock what was opened, as far as its file system can."""
    if sys.platform != "win32":
        import fcntl  # noqa: PLC0415 - not on Windows

        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)


def _remove_if_left(path: Path) -> None:
    """Remove a file or folder that no process holds."""
    if sys.platform == "win32":
        return

    import fcntl  # noqa: PLC0415 - not on Windows

    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            if os.fstat(descriptor).st_uid != os.getuid():
                return
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        finally:
            os.close(descriptor)
