"""What is written is there whole or not at all, and what a killed process left is removed by the next."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deemster.formats.atomic_write import folder_aside, write_aside

WRITING = """
import os, signal, sys
from pathlib import Path
from deemster.formats.atomic_write import {maker}
with {maker}(Path(sys.argv[1])):
    print(flush=True)
    {end}
"""
MAKERS = {"open_aside": "report.json", "folder_aside": "."}


def writer(folder: Path, maker: str, end: str) -> subprocess.Popen:
    """Another process that has begun to write into a folder."""
    code = WRITING.format(maker=maker, end=end)
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(folder / MAKERS[maker])], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout.readline()
    return process


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


@pytest.mark.parametrize("maker", MAKERS)
def test_leftover_of_a_killed_process_is_removed_by_the_next(tmp_path, maker):
    with writer(tmp_path, maker, "os.kill(os.getpid(), signal.SIGKILL)") as process:
        process.communicate()
    assert [name[:10] for name in names(tmp_path)] == [".deemster-"]
    write_aside(tmp_path / "other.json", [b"{}"])
    assert names(tmp_path) == ["other.json"]


@pytest.mark.parametrize("maker", MAKERS)
def test_what_a_living_process_writes_stays(tmp_path, maker):
    with writer(tmp_path, maker, "sys.stdin.read()") as process:
        (held,) = names(tmp_path)
        write_aside(tmp_path / "other.json", [b"{}"])
        with folder_aside(tmp_path):
            pass
        assert names(tmp_path) == [held, "other.json"]
        process.communicate()
    assert process.returncode == 0
    assert held not in names(tmp_path)


def test_other_files_and_links_stay(tmp_path):
    kept = {".deemster-0123456789abcde", ".deemster-0123456789abcdefg", "deemster-0123456789abcdef", ".deemster"}
    for name in kept:
        (tmp_path / name).touch()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept.txt").touch()
    (tmp_path / ".deemster-0123456789abcdef").symlink_to(outside)
    write_aside(tmp_path / "new.json", [b"{}"])
    assert set(names(tmp_path)) == {*kept, "outside", "new.json", ".deemster-0123456789abcdef"}
    assert names(outside) == ["kept.txt"]


def test_failed_write_leaves_what_stood_there_and_nothing_else(tmp_path):
    path = tmp_path / "report.json"
    path.write_bytes(b"before")
    with pytest.raises(ZeroDivisionError):
        write_aside(path, (b"half" * (1 // left) for left in (1, 0)))
    assert (path.read_bytes(), names(tmp_path)) == (b"before", ["report.json"])


def test_file_has_the_permissions_that_its_owner_gives(tmp_path):
    before = os.umask(0o027)
    try:
        write_aside(tmp_path / "a.json", [b"{}"])
        with folder_aside(tmp_path) as folder:
            assert folder.stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(before)
    assert (tmp_path / "a.json").stat().st_mode & 0o777 == 0o640
