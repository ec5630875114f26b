"""The base installation: `make demo` in a fresh clone installs no extra, and what it installs is enough."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.test_docs import EPOCH, ROOT

# One clone is installed once, by one worker.
pytestmark = pytest.mark.xdist_group("base installation")

# Variables of the calling `make` and environment must not reach the clone.
OUTER = {
    "DEEMSTER_ALL_TESTS",
    "VIRTUAL_ENV",
    "PYTHONPATH",
    "MAKEFLAGS",
    "MFLAGS",
    "MAKELEVEL",
    "MAKEOVERRIDES",
    "VENV",
    "PYTHON",
}
INSTALLED = """
import importlib.metadata, json
print(json.dumps([each.metadata["Name"].lower().replace("_", "-") for each in importlib.metadata.distributions()]))
"""
HELPING = """
import sys
from click.testing import CliRunner
from deemster.cli.main import COMMANDS, app

def paths(command, words):
    yield words
    for name in getattr(command, "commands", {}):
        yield from paths(command.commands[name], [*words, name])

asked = [[], *(words for name in COMMANDS for words in paths(app.get_command(None, name), [name]))]
for words in asked:
    result = CliRunner().invoke(app, [*words, "--help"], prog_name="deemster")
    if result.exit_code or not result.stdout.startswith(" ".join(["Usage: deemster", *words])):
        sys.exit(f"{words}: {result.output}{result.exception!r}")
print(len(asked))
"""


class Clone:
    """A clone of the repository in which `make demo` was called, and what that printed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
            text=True,
        )
        for name in filter(None, listed.stdout.split("\0")):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        # pip reads 0 as "do not compile": the demo compiles the few modules that it loads.
        self.demo = self.called("make", "demo", PIP_NO_COMPILE="0")

    def called(self, *command: str, **env: str) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if name not in OUTER}
        return subprocess.run(
            command,
            cwd=self.folder,
            env={**kept, "SOURCE_DATE_EPOCH": EPOCH, "NO_COLOR": "1", **env},
            capture_output=True,
            text=True,
            check=False,
        )

    def deemster(self, *argv: str) -> subprocess.CompletedProcess[str]:
        # The store of the demo.
        return self.called(".venv/bin/deemster", *argv, DEEMSTER_STORE="build/demo/.deemster/runs.db")

    def python(self, code: str) -> subprocess.CompletedProcess[str]:
        return self.called(".venv/bin/python", "-c", code)


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    return Clone(tmp_path_factory.mktemp("clone"))


def test_demo_compares_two_versions_and_leaves_the_clone_as_it_was(clone):
    assert clone.demo.returncode == 0, clone.demo.stderr
    again = clone.deemster("demo", "build/demo")
    assert clone.demo.stdout == again.stdout
    first, *_ = clone.demo.stdout.partition("Next:\n")[2].splitlines()
    assert first.split("   ")[0].strip() == "source .venv/bin/activate"
    assert "Gate: fail" in again.stdout
    assert clone.called("git", "-C", str(ROOT), "check-ignore", "build/demo").returncode == 0


def test_demo_installs_no_package_of_an_extra(clone):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    packages = {
        line.split(">")[0].split("=")[0].split("[")[0]
        for extra, lines in project["optional-dependencies"].items()
        if extra not in ("dev", "test")
        for line in lines
    }
    installed = set(json.loads(clone.python(INSTALLED).stdout))
    assert "deemster" in installed
    assert packages & installed == set()


def test_catalog_and_every_metric_in_it_are_shown(clone):
    listed = clone.deemster("metrics", "--to", "-")
    assert (listed.returncode, listed.stderr) == (0, "")
    needing = {entry["name"]: entry["extra"] for entry in json.loads(listed.stdout) if entry["extra"]}
    assert needing["bleu"] == "bleu"

    table = clone.deemster("metrics")
    assert (table.returncode, table.stderr) == (0, "")
    for name, extra in needing.items():
        assert f"needs deemster[{extra}]" in table.stdout
        shown = clone.deemster("metrics", name)
        assert (shown.returncode, shown.stderr) == (0, "")


def test_every_command_has_its_help(clone):
    done = clone.python(HELPING)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 30


def test_what_needs_an_extra_names_it_and_ends_with_2(clone):
    asked = {
        "view": ("view", "--port", "0"),
        "mlflow": ("export", "latest", "--to", "mlflow:runs"),
        "otel": ("export", "latest", "--to", "otel:traces.json"),
        "parquet": ("export", "latest", "--to", "rows.parquet"),
    }
    for extra, argv in asked.items():
        done = clone.deemster(*argv)
        assert done.returncode == 2, done.stdout + done.stderr
        assert f"deemster[{extra}]" in done.stderr


def test_hint_how_to_install_an_extra_works_where_deemster_came_from_a_clone(clone):
    hint = clone.deemster("view", "--port", "0").stderr.partition("pip ")[2].strip()
    assert hint == "install 'deemster[view]'"
    done = clone.called(".venv/bin/python", "-m", "pip", *shlex.split(hint), "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "Would install starlette" in done.stdout


def test_quick_tests_and_every_offline_example_pass_without_an_extra(clone):
    done = clone.called("make", "quick")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Not run, " in done.stdout
    assert "needs an extra: pip install 'deemster[bleu]'" in done.stdout
    installed = set(json.loads(clone.python(INSTALLED).stdout))
    assert {"pytest", "hypothesis"} <= installed
    assert {"pandas", "pyarrow", "sacrebleu", "ray"} & installed == set()
