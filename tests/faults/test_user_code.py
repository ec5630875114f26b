"""Targets and metrics that raise anything, cancel everything, stop the loop, or take the store away."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
import textwrap

import pytest

from tests.cli.workspace import called, started, written

SUITE = """\
name: wild
dataset: golden.yml
target: {{ python: "{module}:{target}" }}
metrics: {metrics}
limits: {{ concurrency: 2 }}
"""
GOLDEN = "name: numbers\nsamples:\n" + "".join(
    f"  - {{id: s{n}, input: {{n: {n}}}, expected_output: x}}\n" for n in range(8)
)
# What user code does at the third sample; each line is a statement.
RAISES = {
    "exit": "raise SystemExit(0)",
    "exit_code": "import sys; sys.exit(1)",
    "interrupt": "raise KeyboardInterrupt",
    "generator": "raise GeneratorExit",
    "cancelled": "raise asyncio.CancelledError",
    "own": "raise Leave('for good')",
    "group": "raise BaseExceptionGroup('several', [KeyboardInterrupt(), SystemExit(1)])",
    "iteration": "raise StopIteration",
    "memory": "raise MemoryError",
    "recursion": "raise RecursionError",
    "no text": "raise Rude",
}
CODE = """\
import asyncio, os, shutil, threading

class Leave(BaseException): ...

class Rude(BaseException):
    def __str__(self):
        raise SystemExit(0)

def act():
    {act}

def sync(input):
    if input["n"] == 3:
        act()
    return "x"

async def asynchronous(input):
    await asyncio.sleep(0)
    if input["n"] == 3:
        act()
        await asyncio.sleep(0.01)
    return "x"

def calm(input):
    return "x" if input["n"] != 3 else "three"

class Metric:
    name = "mine"
    def score(self, sample, output):
        if output.text == "three":
            act()
        return 1.0

class Many(Metric):
    def score_many(self, samples, outputs):
        if any(output.text == "three" for output in outputs):
            act()
        return [1.0] * len(samples)
"""


@pytest.fixture
def wild(folder, monkeypatch, request):
    """Runs a suite whose user code does something at the third sample; the result and the report, or None."""
    monkeypatch.syspath_prepend(str(folder))
    name = f"wild_{abs(hash(request.node.name))}"

    def run(act, *, target="sync", metrics="[exact-match]", flags=()):
        code = CODE.replace("{act}", act.replace("\n", "\n    "))
        suite = SUITE.format(module=name, target=target, metrics=metrics.replace("MODULE", name))
        written(folder, {"golden.yml": GOLDEN, f"{name}.py": code, "suite.yml": suite})
        result = called("run", "suite.yml", "--quiet", "--to", "run.json", *flags)
        file = folder / "run.json"
        return result, json.loads(file.read_text()) if file.exists() else None

    return run


@pytest.mark.parametrize("target", ["sync", "asynchronous"])
@pytest.mark.parametrize("act", RAISES.values(), ids=RAISES)
def test_whatever_a_target_raises_fails_its_sample_and_the_run_goes_on(wild, act, target):
    result, report = wild(act, target=target)
    assert (result.exit_code, "Traceback" in result.stderr) == (3, False)
    assert [(entry["id"], entry["cause"]) for entry in report["failures"]] == [("s3", "target_failed")]
    assert report["metrics"]["exact-match"]["n_scored"] == 7


@pytest.mark.parametrize("metric", ["Metric", "Many"])
@pytest.mark.parametrize("act", RAISES.values(), ids=RAISES)
def test_whatever_a_metric_raises_fails_its_mark_and_the_run_goes_on(wild, act, metric):
    result, report = wild(act, target="calm", metrics=f"[exact-match, 'MODULE:{metric}']")
    assert (result.exit_code, "Traceback" in result.stderr) == (3, False)
    failures = [(entry["id"], entry["cause"]) for entry in report["failures"] if entry["metric"] == "mine"]
    assert failures == [("s3", "metric_failed")]
    assert (report["metrics"]["mine"]["n_scored"], report["metrics"]["exact-match"]["n_scored"]) == (7, 8)


STOPS = {
    "stop": "asyncio.get_running_loop().stop()",
    "callback exits": "asyncio.get_running_loop().call_soon(os.sys.exit, 0)",
    "callback interrupts": "def interrupt(): raise KeyboardInterrupt\nasyncio.get_running_loop().call_soon(interrupt)",
    "thread stops": (
        "loop = asyncio.get_running_loop()\n"
        "threading.Thread(target=loop.call_soon_threadsafe, args=[loop.stop]).start()"
    ),
}


@pytest.mark.parametrize("act", STOPS.values(), ids=STOPS)
def test_target_that_stops_the_loop_does_not_stop_the_run(wild, act):
    result, report = wild(act, target="asynchronous")
    assert (result.exit_code, "Traceback" in result.stderr) == (0, False)
    assert report["metrics"]["exact-match"]["n_scored"] == 8


def test_target_that_cancels_every_task_ends_the_run_with_one_sentence_and_it_is_resumed(wild, tmp_path):
    result, report = wild("for task in asyncio.all_tasks(): task.cancel()", target="asynchronous")
    (run,) = json.loads(called("show", "--to", "-").stdout)
    assert (result.exit_code, report) == (3, None)
    assert result.stderr == (
        "error: The target or a metric cancelled the tasks of the run.\n"
        f"To continue: deemster run suite.yml --resume={run['id']}\n"
    )
    assert run["status"] == "incomplete"
    assert f"To continue: deemster run SUITE --resume={run['id']}\n" in called("show", run["id"]).stderr
    code = CODE.replace("{act}", "pass")
    done = called("run", "suite.yml", "--quiet", "--allow-changed", "--to", "run.json", f"--resume={run['id']}")
    assert done.exit_code == 3
    (module,) = tmp_path.glob("wild_*.py")
    module.write_text(code)
    process = started(tmp_path, "run", "suite.yml", "--quiet", "--allow-changed", "--to", "-", f"--resume={run['id']}")
    out, err = process.communicate(timeout=180)
    assert (process.returncode, json.loads(out)["metrics"]["exact-match"]["n_scored"]) == (0, 8), err


TAKES = {
    "removed": "shutil.rmtree('.deemster')",
    "moved": "shutil.move('.deemster', 'elsewhere')",
    "replaced": "os.replace('.deemster/runs.db', 'kept'); shutil.copy('kept', '.deemster/runs.db')",
}


@pytest.mark.parametrize("act", TAKES.values(), ids=TAKES)
def test_store_that_is_gone_in_the_middle_is_error(wild, act):
    result, report = wild(act)
    assert (result.exit_code, report) == (3, None)
    first, then = result.stderr.splitlines()
    gone = "The store is gone: its file was removed or replaced while it was in use."
    assert first == f"error: .deemster/runs.db: {gone}"
    assert then.startswith("To continue: deemster run suite.yml --resume=")


@pytest.mark.parametrize("place", [":memory:", "file::memory:"])
def test_database_in_memory_is_no_store(wild, place, tmp_path):
    result, _ = wild("pass", flags=("--store", place))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        f"error: {place}: A store is a file: SQLite forgets a database in memory when the run ends.\n"
    )
    assert not list(tmp_path.glob("*memory*"))


def test_run_whose_store_fails_is_listed_as_stopped(wild, tmp_path):
    # A trigger stands for a disk that fails: it refuses outputs, and every change of the run's row but its heartbeat.
    act = textwrap.dedent("""\
        import contextlib, sqlite3
        with contextlib.closing(sqlite3.connect(".deemster/runs.db", isolation_level=None)) as rows:
            rows.execute("CREATE TRIGGER full BEFORE INSERT ON outputs BEGIN SELECT RAISE(ABORT, 'full'); END")
            rows.execute("CREATE TRIGGER broken BEFORE UPDATE OF status ON runs BEGIN SELECT RAISE(ABORT, 'no'); END")
        import time; time.sleep(0.5)""")
    result, report = wild(act)
    assert (result.exit_code, report) == (3, None)
    assert "error: .deemster/runs.db: The store cannot be used: " in result.stderr
    assert "To continue: deemster run suite.yml --resume=" in result.stderr
    with contextlib.closing(sqlite3.connect(tmp_path / ".deemster" / "runs.db", isolation_level=None)) as rows:
        rows.execute("DROP TRIGGER full")
        rows.execute("DROP TRIGGER broken")
    listed = called("show").stdout.splitlines()[1].split()
    assert "stopped" in listed
    (module,) = tmp_path.glob("wild_*.py")
    module.write_text(CODE.replace("{act}", "pass"))
    process = started(tmp_path, "run", "suite.yml", "--quiet", "--allow-changed", "--to", "-", f"--resume={listed[0]}")
    out, err = process.communicate(timeout=180)
    assert (process.returncode, json.loads(out)["metrics"]["exact-match"]["n_scored"]) == (0, 8), err


def test_interrupt_of_the_user_is_told_apart_from_one_that_the_target_raises(tmp_path):
    # Both come in one call: the user presses Ctrl-C, then the target raises a KeyboardInterrupt.
    code = CODE.replace("{act}", "os.kill(os.getpid(), 2); raise KeyboardInterrupt")
    suite = SUITE.format(module="twice", target="asynchronous", metrics="[exact-match]")
    written(tmp_path, {"golden.yml": GOLDEN, "twice.py": code, "suite.yml": suite})
    process = started(tmp_path, "run", "suite.yml", "--quiet", "--to", "-")
    out, err = process.communicate(timeout=180)
    report = json.loads(out)
    assert process.returncode == 3
    assert err.startswith("SIGINT: finishing what is under way")
    assert "interrupted by SIGINT" in report["run"]["reason"]
    failed = [(entry["id"], entry["message"]) for entry in report["failures"] if entry["cause"] == "target_failed"]
    assert failed == [("s3", "KeyboardInterrupt (twice.py:10)")]


def test_error_that_nobody_expected_is_exit_code_3_with_its_traceback_in_a_file(wild, tmp_path, monkeypatch):
    def broken(*_args, **_settings):
        raise KeyError("Bearer abcdef123456 and hunter2-hunter2 \x1b[31m")

    monkeypatch.setenv("SOME_API_KEY", "hunter2-hunter2")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("deemster.evaluation.run_evaluation.build_report", broken)
    result, _ = wild("pass")
    assert result.exit_code == 3
    first, second, third = result.stderr.splitlines()
    said = "KeyError: 'Bearer [removed] and [removed] \\x1b[31m'"
    assert first == f"error: An unexpected error ended the command: {said}"
    file = tmp_path / second.rpartition("/")[2]
    assert second == f"       The traceback is in {file}"
    assert third.startswith("To continue: deemster run suite.yml --resume=")
    text = file.read_text()
    assert text.startswith("Traceback (most recent call last):\n")
    assert text.rstrip().endswith(said)
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("error", ["SystemExit(0)", "SystemExit(1)", "KeyboardInterrupt()", "RuntimeError()"])
def test_no_command_ends_with_the_exit_code_of_an_error_that_nobody_expected(tmp_path, error):
    code = f"""
import deemster.cli.metrics as command
def broken(**_):
    raise {error}
command.command.callback = broken
from deemster.cli import main
main()
"""
    process = subprocess.run(
        [sys.executable, "-c", code, "metrics"],
        cwd=tmp_path,
        env={"TMPDIR": str(tmp_path), "PATH": "/usr/bin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert (process.returncode, process.stdout) == (3, "")
    assert process.stderr.startswith("error: An unexpected error ended the command: ")
    assert "Traceback" not in process.stderr
    assert len(list(tmp_path.glob("deemster-error-*.txt"))) == 1
