"""The template of a plug-in installs with pip, its own tests pass, and a suite finds its parts by name."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent.parent / "examples" / "plugin"
REPORT = Path("tests", "report.json")


@pytest.fixture(scope="module")
def copied(tmp_path_factory) -> Path:
    """A copy of the template, in which its tests may leave files."""
    return shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("plugin") / "plugin")


@pytest.fixture(scope="module")
def installed(copied, tmp_path_factory) -> Path:
    """The folder that pip installed the plug-in into, without an index."""
    folder = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    offline = ["--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, *offline, "--target", folder, copied], check=True)
    return folder


def started(installed: Path, folder: Path, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join(filter(None, (str(installed), os.environ.get("PYTHONPATH"))))
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", **more},
        capture_output=True,
        text=True,
        check=False,
    )


def test_its_own_tests_pass(installed, copied, refresh_golden):
    done = started(installed, copied, "pytest", "-q", "tests", **({"REFRESH": "1"} if refresh_golden else {}))
    if refresh_golden:
        shutil.copy(copied / REPORT, EXAMPLE / REPORT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed" in done.stdout


def test_suite_finds_metric_target_and_client_by_name(installed, copied):
    done = started(installed, copied, "deemster", "run", "acme.yml", "--store", "none", "--quiet", "--to", "-")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["metrics"]["acme-politeness"]["n_passed"] == 2
    assert report["metrics"]["llm-as-judge"]["n_passed"] == 1
    assert report["run"]["models"]["judge"]["provider"] == "acme"
