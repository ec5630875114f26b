"""A store on a mount that may only be read: it is read, and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.workspace import EPOCH, FILES, called, written
from tests.lanes import READ_ONLY_MOUNT


@pytest.fixture
def folder(folder):
    """A folder with a store of one run in `kept`."""
    written(folder, FILES)
    assert called("run", "suite.yml", "--quiet", "--store", "kept/runs.db").exit_code == 0
    assert sorted(path.name for path in (folder / "kept").iterdir()) == ["runs.db"]
    return folder


def on_read_only_mount(folder, *argv):
    """What `deemster ARGV` does where `kept` is mounted read-only."""
    command = [sys.executable, "-m", "deemster", *argv, "--store", "kept/runs.db"]
    return subprocess.run(
        ["unshare", "-rm", "sh", "-c", READ_ONLY_MOUNT, "sh", str(folder / "kept"), *command],
        cwd=folder,
        env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH, "COLUMNS": "120"},
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )


@pytest.mark.parametrize(
    "command",
    [
        "show",
        "show latest",
        "show latest --to -",
        "store check",
        "monitor support",
        "show latest window",
    ],
)
def test_store_on_read_only_mount_is_read(folder, command):
    here = called(*command.split(), "--store", "kept/runs.db", COLUMNS="120")
    there = on_read_only_mount(folder, *command.split())
    assert (there.returncode, there.stdout) == (here.exit_code, here.stdout), there.stderr


def test_run_on_read_only_mount_is_exported(folder):
    called("export", "--all", "--to", "here.jsonl", "--store", "kept/runs.db")
    there = on_read_only_mount(folder, "export", "--all", "--to", "there.jsonl")
    assert (there.returncode, there.stderr) == (0, "wrote 1 run to there.jsonl\n")
    assert (folder / "there.jsonl").read_bytes() == (folder / "here.jsonl").read_bytes()


@pytest.mark.parametrize("command", ["run suite.yml", "store rm latest --yes", "store rm", "run --outputs latest"])
def test_store_on_read_only_mount_is_not_written(folder, command):
    before = (folder / "kept" / "runs.db").read_bytes()
    flags = ("--metric", "contains") if "--outputs" in command else ()
    there = on_read_only_mount(folder, *command.split(), *flags)
    assert there.returncode == 3
    assert there.stderr.startswith("error: kept/runs.db: The store cannot be ")
    assert "Traceback" not in there.stderr
    assert (folder / "kept" / "runs.db").read_bytes() == before


@pytest.mark.parametrize("shared", [True, False])
def test_store_of_a_killed_run_on_read_only_mount_is_read_whole_or_not_at_all(folder, shared):
    # The last commits of a process that was killed are in the log beside the file.
    code = (
        "import os, sqlite3; rows = sqlite3.connect('kept/runs.db', isolation_level=None);"
        "rows.execute('PRAGMA wal_autocheckpoint = 0'); rows.execute(\"UPDATE runs SET suite = 'x' || suite\");"
        "os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)
    assert (folder / "kept" / "runs.db-wal").stat().st_size > 0
    if shared:
        there = on_read_only_mount(folder, "show", "latest")
        assert (there.returncode, "is damaged (its facts do not fit their check sum)" in there.stderr) == (3, True)
    else:
        (folder / "kept" / "runs.db-shm").unlink()
        there = on_read_only_mount(folder, "show")
        assert there.returncode == 3
        assert "its last commits are still in runs.db-wal. Copy both files to a folder" in there.stderr


def test_store_of_earlier_schema_on_read_only_mount_must_be_migrated_elsewhere(tmp_path):
    (tmp_path / "kept").mkdir()
    shutil.copy(Path(__file__).parent / "databases" / "v1.db", tmp_path / "kept" / "runs.db")
    there = on_read_only_mount(tmp_path, "show")
    assert (there.returncode, there.stdout) == (3, "")
    assert (
        "it may only be read (attempt to write a readonly database). It has schema 1 and must be migrated to "
        in there.stderr
    )
    assert "Open it, or a copy of it, where it can be written." in there.stderr
