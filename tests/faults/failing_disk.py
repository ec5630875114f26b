"""Runs a command many times, and each time makes another of its disk calls fail.

Everything is imported once; each run is a fork in a copy of a folder. The calls are those that a run makes through
Python: opening for writing, writing, fsync, renaming, and statements of SQLite, of which a COMMIT is one.

Usage: python tests/faults/failing_disk.py BASE SCRATCH KIND ARGV...
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import io
import json
import os
import shutil
import sqlite3
import sys
import traceback
from pathlib import Path
from typing import Any, Self

from deemster.cli import app

KINDS = ("open", "write", "fsync", "rename", "commit", "statement")
ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES)
REFUSALS = {
    errno.ENOSPC: ("SQLITE_FULL", "database or disk is full"),
    errno.EIO: ("SQLITE_IOERR_WRITE", "disk I/O error"),
    errno.EACCES: ("SQLITE_READONLY", "attempt to write a readonly database"),
}
_MODES = frozenset("wax+")
_WRITING = ("INSERT", "UPDATE", "DELETE", "CREATE", "BEGIN IMMEDIATE", "PRAGMA journal_mode =")


_MANY = 12


class Shim:
    """Counts calls of one kind within a folder, and makes one of them fail.

    Args:
        folder: Where calls count.
        kind: Which calls count.
        number: Which of them fails, from 1; 0 for none.
        number_of_error: How it fails.
    """

    def __init__(self, folder: Path, kind: str, number: int, number_of_error: int) -> None:
        self._folder, self._kind, self._number, self._error = str(folder), kind, number, number_of_error
        self.count = 0
        self.what = ""

    def note(self, kind: str, path: Any) -> None:
        """Count a call, and fail if its turn has come.

        Raises:
            OSError: It is.
        """
        if self._is_it(kind, path):
            raise OSError(self._error, os.strerror(self._error), str(path) if kind in ("open", "rename") else None)

    def _is_it(self, kind: str, path: Any) -> bool:
        if isinstance(path, int):
            path = str(Path(f"/proc/self/fd/{path}").readlink())
        if kind != self._kind or not os.path.abspath(path).startswith(self._folder):  # noqa: PTH100 - not resolved
            return False
        self.count += 1
        return self.count == self._number

    def install(self) -> None:
        """Put itself before the functions that reach the disk."""
        self._install_files()
        shim = self

        class Connection(sqlite3.Connection):
            def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
                shim.query(sql)
                return super().execute(sql, *values)

            def executemany(self, sql: str, *values: Any) -> sqlite3.Cursor:
                shim.query(sql)
                return super().executemany(sql, *values)

        connect = sqlite3.connect
        sqlite3.connect = lambda path, **options: connect(path, **options, factory=Connection)  # type: ignore[assignment]

    def query(self, sql: str) -> None:
        """Count a statement, and fail if its turn has come.

        Raises:
            OperationalError: It is.
        """
        kind = "commit" if sql == "COMMIT" else "statement" if sql.startswith(_WRITING) else "reading"
        if self._is_it(kind, self._folder):
            self.what = sql
            name, said = REFUSALS[self._error]
            refused = sqlite3.OperationalError(said)
            refused.sqlite_errorname, refused.sqlite_errorcode = name, getattr(sqlite3, name)
            raise refused

    def _install_files(self) -> None:
        opened, opened_low, synced, renamed, replaced = io.open, os.open, os.fsync, os.rename, os.replace

        def open_file(file: Any, mode: str = "r", *values: Any, **options: Any) -> Any:
            if not _MODES & set(mode):
                return opened(file, mode, *values, **options)
            if not isinstance(file, int):
                self.note("open", file)
            return Written(opened(file, mode, *values, **options), self)

        def open_low(path: Any, flags: int, *values: Any, **options: Any) -> int:
            if flags & (os.O_WRONLY | os.O_RDWR):
                self.note("open", path)
            return opened_low(path, flags, *values, **options)

        def sync(handle: Any) -> None:
            self.note("fsync", handle)
            synced(handle)

        def rename(source: Any, target: Any, **options: Any) -> None:
            self.note("rename", target)
            renamed(source, target, **options)

        def replace(source: Any, target: Any, **options: Any) -> None:
            self.note("rename", target)
            replaced(source, target, **options)

        io.open = builtins.open = open_file  # type: ignore[assignment]
        os.open, os.fsync, os.rename, os.replace = open_low, sync, rename, replace


class Written:
    """A file whose writing may fail."""

    def __init__(self, file: Any, shim: Shim) -> None:
        self._file, self._shim = file, shim

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __iter__(self) -> Any:
        return iter(self._file)

    def write(self, data: Any) -> int:
        """Write, or fail."""
        self._shim.note("write", self._file.fileno())
        return int(self._file.write(data))

    def writelines(self, pieces: Any) -> None:
        """Write, or fail: the file has a buffer, so that many pieces are one call."""
        self._shim.note("write", self._file.fileno())
        self._file.writelines(pieces)


def forked(base: Path, folder: Path, shim_of: Any, argv: list[str]) -> dict[str, Any]:
    """Runs a command in a copy of a folder, with a shim in front of the disk."""
    shutil.copytree(base, folder)
    child = os.fork()
    if child:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return {"code": code, "err": (folder / "err.txt").read_text(), **json.loads((folder / "count.txt").read_text())}
    # This runs in the child process. It must never return into the parent's loop.
    try:
        os.chdir(folder)
        for handle, name in ((1, "out.txt"), (2, "err.txt")):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT), handle)
        counted = os.open("count.txt", os.O_WRONLY | os.O_CREAT)
        shim = shim_of(folder)
        shim.install()
        code = 99
        try:
            app(argv, prog_name="deemster")
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 98
        except BaseException:  # noqa: BLE001 - shown as what it is
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(counted, json.dumps({"count": shim.count, "what": shim.what}).encode())
    finally:
        os._exit(code)


def load_everything(base: Path, folder: Path, argv: list[str]) -> None:
    """Runs the command once without a fork: what it imports, no fork imports again."""
    shutil.copytree(base, folder)
    with contextlib.chdir(folder), contextlib.suppress(SystemExit):
        app(argv, prog_name="deemster")


def main() -> None:
    """Print what every run came to, as JSON."""
    base, scratch, kind, *argv = sys.argv[1:]
    load_everything(Path(base), Path(scratch) / "loading", argv)
    found = []
    first = forked(Path(base), Path(scratch) / "0", lambda folder: Shim(folder, kind, 0, 0), argv)
    for number in range(1, first["count"] + 1):
        # Of many statements each fails once, in one of the ways in turn.
        for error in ERRORS if first["count"] < _MANY else (ERRORS[number % len(ERRORS)],):
            folder = Path(scratch) / f"{number}-{error}"
            came = forked(Path(base), folder, lambda folder, n=number, e=error: Shim(folder, kind, n, e), argv)
            found.append({**came, "folder": str(folder), "number": number, "error": error})
    sys.stdout.write(json.dumps({"whole": first, "failed": found}) + "\n")


if __name__ == "__main__":
    main()
