"""A disk that fails: every opening, write, fsync, rename, statement and commit of a small run, each in turn."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deemster.store import open_store
from tests.cli.workspace import EPOCH, SUITE, called, written

FLAGS = ("run", "suite.yml", "--quiet", "--to", "report.json", "--to", "report.md")
REPORTS = ("report.json", "report.md")
TARGET = "async def answer(input):\n    return input['q']\n"
GOLDEN = "name: d\nsamples:\n" + "".join(f"  - {{id: s{n}, input: {{q: x}}, expected_output: x}}\n" for n in range(3))
LATER = str(int(EPOCH) + 60)
# How the disk fails, and the messages for files and for the store.
SAID = {
    errno.ENOSPC: ("No space left on device", "the disk is full"),
    errno.EIO: ("Input/output error", "reading or writing failed"),
    errno.EACCES: ("Permission denied", "it may only be read"),
}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A folder in which one run has ended well; the next one, a minute later, meets the faults."""
    folder = tmp_path_factory.mktemp("base")
    suite = SUITE.replace("outputs: answers.yml", "python: 'app:answer'")
    written(folder, {"suite.yml": suite, "golden.yml": GOLDEN, "app.py": TARGET})
    done = ran(folder, epoch=EPOCH)
    assert done.returncode == 0, done.stderr
    return folder


def ran(folder, *, epoch=LATER, before=None):
    return subprocess.run(
        [sys.executable, "-m", "deemster", *FLAGS],
        cwd=folder,
        env={**os.environ, "SOURCE_DATE_EPOCH": epoch},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=before,
        timeout=120,
    )


def stored(folder):
    """Every run in a store, oldest first: its row without the lease's facts, and its executions."""
    with open_store(folder / ".deemster" / "runs.db") as store:
        rows = store.runs()[::-1]
        return [(row.id, row.status, list(store.executions(row.id))) for row in rows]


def failures(base, scratch, kind):
    script = Path(__file__).parent / "failing_disk.py"
    done = subprocess.run(
        [sys.executable, script, base, scratch, kind, *FLAGS],
        env={**os.environ, "SOURCE_DATE_EPOCH": LATER},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("kind", ["open", "write", "fsync", "rename", "commit", "statement"])
def test_failing_disk_is_error_with_path_keeps_old_file_and_run_resumes(base, tmp_path, capsys, monkeypatch, kind):
    before = stored(base)
    found = failures(base, tmp_path, kind)
    whole = {name: (tmp_path / "0" / name).read_bytes() for name in REPORTS}
    assert found["whole"]["code"] == 0
    assert len(found["failed"]) >= 3
    with capsys.disabled():
        sys.stdout.write(f"\n  {kind}: {found['whole']['count']} calls, {len(found['failed'])} failed in turn\n")
    for case in found["failed"]:
        folder, err = Path(case["folder"]), case["err"]
        assert "Traceback" not in err
        # An unwritable path of a report is bad input. Every other failure is a storage failure.
        is_bad_place = case["error"] == errno.EACCES and "runs.db" not in err
        assert case["code"] == 3 or (is_bad_place and case["code"] == 2), case["what"]
        assert any(name in err for name in (*REPORTS, "runs.db"))
        assert any(said in err for said in SAID[case["error"]]), err
        assert stored(folder)[:1] == before
        for name in REPORTS:
            assert (folder / name).read_bytes() in (whole[name], (base / name).read_bytes())
        assert [path.name for path in folder.glob(".deemster-*")] == []
    if kind in ("commit", "rename"):
        for case in found["failed"][:: len(SAID)]:
            check_resume(Path(case["folder"]), whole, monkeypatch)


def check_resume(folder, whole, monkeypatch):
    """The disk recovers: the run ends with the reports of a run that met no fault."""
    begun = len(stored(folder)) == 2
    monkeypatch.chdir(folder)
    monkeypatch.delitem(sys.modules, "app", raising=False)
    done = called(*FLAGS, *["--resume"] * begun, SOURCE_DATE_EPOCH=LATER)
    assert done.exit_code == 0, done.stderr
    assert {name: (folder / name).read_bytes() for name in REPORTS} == whole
    assert [status for _, status, _ in stored(folder)] == ["complete", "complete"]


def bounded(size):
    """Make every write beyond a number of bytes fail, in SQLite's own code too."""

    def bound():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return bound


@pytest.mark.parametrize("size", [0, 512, 4_096, 20_000, 60_000, 90_000])
def test_file_size_limit_is_one_line_error_and_keeps_old_file(base, tmp_path, size):
    folder = tmp_path / "run"
    subprocess.run(["cp", "-r", base, folder], check=True)
    before = stored(base)
    done = ran(folder, before=bounded(size))
    assert "Traceback" not in done.stderr
    assert stored(folder)[:1] == before
    if done.returncode == 0:
        assert stored(folder)[1][1] == "complete"
        return
    assert done.returncode == 3
    assert any(name in done.stderr for name in (*REPORTS, "runs.db"))
    assert any(word in done.stderr for word in ("File too large", "the disk is full", "reading or writing failed"))
    for name in REPORTS:
        assert (folder / name).read_bytes() == (base / name).read_bytes()
