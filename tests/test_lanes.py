"""The lanes name tests that exist, and what is not run is named, or fails where all are to run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lanes import NEEDS, NEEDS_OF_FIXTURES, REST

ROOT = Path(__file__).parents[1]
# It mounts, so it needs `unshare`, which an empty PATH does not have.
MOUNTING = "tests/store/test_sqlite_read_only.py::test_run_on_read_only_mount_is_exported"


@pytest.mark.parametrize("test", sorted({*NEEDS, *(test for part in REST for test in part.tests)}))
def test_test_that_a_lane_names_exists(test):
    file, _, name = test.partition("::")
    assert (ROOT / file).exists(), f"tests/lanes.py names {file}, and there is no such file."
    begins = re.escape(name.partition("[")[0])
    text = (ROOT / file).read_text(encoding="utf-8") if name else ""
    assert re.search(rf"^def {begins}", text, re.MULTILINE) or not name, f"tests/lanes.py names {test}; none begins so."


@pytest.mark.parametrize("fixture", sorted({*NEEDS_OF_FIXTURES, *(name for part in REST for name in part.fixtures)}))
def test_fixture_that_a_lane_names_exists(fixture):
    files = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("conftest.py")]
    assert any(f"\ndef {fixture}(" in text for text in files), f"tests/lanes.py names the fixture {fixture}."


def run_without_unshare(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "0", MOUNTING],
        cwd=ROOT,
        # The outer run keeps its folder for temporary files: whoever made it removes it at the end.
        env={**os.environ, "PATH": str(Path(sys.executable).parent), "TMPDIR": str(folder), **variables},
        capture_output=True,
        check=False,
        text=True,
    )


def test_test_that_lacks_what_it_needs_is_named_with_a_command(tmp_path):
    done = run_without_unshare(tmp_path, DEEMSTER_ALL_TESTS="")
    assert done.returncode == 0, done.stdout
    assert "Not run, 1: needs the right to mount: run it as root, or allow user namespaces" in done.stdout


def test_test_that_lacks_what_it_needs_fails_where_all_are_to_run(tmp_path):
    done = run_without_unshare(tmp_path, DEEMSTER_ALL_TESTS="1")
    assert done.returncode == 1
    assert "Not run: Skipped: needs the right to mount" in done.stdout
