"""What a process of the command line says and ends with where its streams, its memory or its target fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.cli.workspace import EPOCH, FILES, called, written

EVIL = "a\x9b31m\u202eb\U000e0041"


@pytest.fixture
def world(folder):
    written(folder, FILES)
    return folder


def shell(line: str) -> subprocess.CompletedProcess[str]:
    command = line.replace("deemster", f"{sys.executable} -m deemster")
    env = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH}
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=env, check=False)


def test_closed_standard_output_is_said_and_changes_no_exit_code(world):
    done = shell("deemster run suite.yml >&-")
    assert (done.returncode, done.stdout) == (0, "")
    assert "stdout is closed" in done.stderr
    assert "unexpected error" not in done.stderr
    assert shell("deemster run suite.yml 2>&-").returncode == 0


@pytest.mark.parametrize("flags", ["show latest --to -", "show latest", "metrics", "show", "show latest window"])
def test_reader_that_stops_reading_changes_no_exit_code(world, flags):
    assert called("run", "suite.yml").exit_code == 0
    done = shell(f"set -o pipefail; deemster {flags} | true")
    assert (done.returncode, done.stderr) == (0, "")


def test_target_that_ends_the_process_leaves_the_run_incomplete(world):
    written(world, {"app.py": "import os\n\ndef answer(input):\n    os._exit(0)\n"})
    written(world, {"suite.yml": FILES["suite.yml"].replace("outputs: answers.yml", 'python: "app:answer"')})
    done = shell("deemster run suite.yml")
    assert done.returncode == 3
    assert "ended the process (`os._exit(0)`)" in done.stderr


def test_too_little_memory_is_said_and_is_no_failed_gate(world):
    done = shell("ulimit -v 120000; deemster run suite.yml")
    assert done.returncode == 3
    assert done.stderr == "error: deemster needs 256 MB of memory, and may take 117 (`ulimit -v`).\n"


def test_file_named_like_standard_output_breaks_no_run(world):
    written(world, {"-": "mine"})
    assert called("run", "suite.yml", GITHUB_STEP_SUMMARY=None).exit_code == 0
    assert called("run", "suite.yml", GITHUB_STEP_SUMMARY="").exit_code == 0
    assert (world / "-").read_text() == "mine"


@pytest.mark.parametrize(
    "argv",
    [
        ("export", "--all", "--to", "-"),
        ("export", "latest", "--to", "otel:-"),
        ("export", "latest", "--only", "failed", "--to", "-"),
        ("import", "x.yaml", "--to", "-"),
    ],
)
def test_no_command_makes_a_file_named_like_standard_output(world, argv):
    called("run", "suite.yml")
    done = called(*argv)
    assert done.exit_code == 2
    assert "`-` is standard output, and this command writes a file: name it." in done.output
    assert not (world / "-").exists()


def test_json_on_standard_output_escapes_what_a_terminal_obeys(world):
    answers = json.dumps({"outputs": {"window": EVIL, "fee": EVIL}})
    written(world, {"answers.yml": None, "answers.json": answers})
    written(world, {"suite.yml": FILES["suite.yml"].replace("answers.yml", "answers.json")})
    done = called("run", "suite.yml", "--to", "-")
    assert not {"\x9b", "\u202e", "\U000e0041"} & set(done.stdout)
    assert json.loads(done.stdout)["executions"][0]["output"] == EVIL
    called("show", "latest", "--to", "r.json")
    assert json.loads((world / "r.json").read_text()) == json.loads(done.stdout)
