"""Signals and closed pipes, in a separate process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from tests.cli.workspace import ANSWERS, FILES, GOLDEN, SUITE, called, started, written

# The target reports through a named pipe that its second call has begun, and then never answers.
STUCK = """\
import asyncio
import threading

calls = 0

def report_call():
    with open("inside", "w") as pipe:
        pipe.write("inside")

{kind} answer(asked):
    global calls
    calls += 1
    if calls == 1:
        return "30 days"
    report_call()
    {wait}
"""
KINDS = {
    "async": STUCK.format(kind="async def", wait="await asyncio.Event().wait()"),
    "sync": STUCK.format(kind="def", wait="threading.Event().wait(600)"),
}


def interrupted(folder, number, *flags, kind="async"):
    """A run that was stopped by a signal inside the second call of its target."""
    suite = SUITE.replace("outputs: answers.yml", "python: 'stuck:answer'") + "limits: { concurrency: 1 }\n"
    samples = "".join(f"  - {{id: s{n}, input: {{}}, expected_output: 30 days}}\n" for n in range(5))
    written(folder, {"suite.yml": suite, "golden.yml": f"name: d\nsamples:\n{samples}", "stuck.py": KINDS[kind]})
    os.mkfifo(folder / "inside")
    process = started(folder, "run", "suite.yml", *flags)
    try:
        with (folder / "inside").open() as pipe:
            assert pipe.read() == "inside"
        process.send_signal(number)
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    return process.returncode, out, err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_run_writes_partial_report_and_exits_with_3(tmp_path, number):
    code, out, err = interrupted(tmp_path, number, "--to", "-")
    report = json.loads(out)
    assert code == 3
    assert (report["run"]["status"], report["run"]["reason"]) == (
        "incomplete",
        f"4 of 5 scores were not computed (interrupted by {number.name})",
    )
    assert (report["totals"]["scored"], report["totals"]["not_run"]) == (1, 4)
    causes = [entry["marks"]["exact-match"].get("unscored", {}).get("cause") for entry in report["executions"]]
    assert causes == [None, "not_run", "not_run", "not_run", "not_run"]
    assert report["failures"] == []
    assert f"{number.name}: finishing what is under way" in err
    assert "Traceback" not in err


def test_stuck_thread_does_not_keep_an_interrupted_run_from_ending(tmp_path):
    code, out, err = interrupted(tmp_path, signal.SIGINT, "--to", "run.json", "--quiet", kind="sync")
    assert (code, out) == (3, "")
    assert json.loads((tmp_path / "run.json").read_text())["totals"]["not_run"] == 4
    assert "Traceback" not in err


def test_interrupt_before_the_run_is_exit_code_3_and_one_line(tmp_path):
    module = (
        'import threading\nwith open("inside", "w") as pipe:\n    pipe.write("inside")\nthreading.Event().wait(600)\n'
    )
    suite = SUITE.replace("outputs: answers.yml", "python: 'slow_import:answer'")
    written(tmp_path, {**FILES, "suite.yml": suite, "slow_import.py": module})
    os.mkfifo(tmp_path / "inside")
    process = started(tmp_path, "run", "suite.yml")
    with (tmp_path / "inside").open() as pipe:
        assert pipe.read() == "inside"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out, err) == (3, "", "error: Interrupted; nothing was reported.\n")


@pytest.mark.parametrize(
    ("first", "second", "code"),
    [
        (signal.SIGINT, signal.SIGINT, 3),
        (signal.SIGTERM, signal.SIGINT, 3),
        (signal.SIGINT, signal.SIGTERM, -signal.SIGTERM),
        (signal.SIGTERM, signal.SIGTERM, -signal.SIGTERM),
    ],
)
def test_second_signal_exits_at_once_and_run_is_resumable(folder, monkeypatch, first, second, code):
    suite = SUITE.replace("outputs: answers.yml", "python: 'stuck:answer'")
    written(folder, {**FILES, "suite.yml": suite, "stuck.py": KINDS["sync"].replace("calls == 1", "False")})
    os.mkfifo(folder / "inside")
    process = started(folder, "run", "suite.yml", "--concurrency", "1")
    try:
        with (folder / "inside").open() as pipe:
            assert pipe.read() == "inside"
        process.send_signal(first)
        assert "once more to leave at once" in process.stderr.readline()
        process.send_signal(second)
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    # A run that had waited until its open calls were abandoned would have printed its report.
    assert (process.returncode, out) == (code, "")
    assert "Traceback" not in err
    written(folder, {"stuck.py": "def answer(asked):\n    return '30 days'\n"})
    monkeypatch.delitem(sys.modules, "stuck", raising=False)
    again = called("run", "suite.yml", "--resume", "--allow-changed", "--quiet")
    assert (again.exit_code, "Resuming the run" in again.stderr) == (0, True)


def test_closed_pipe_gives_no_traceback(tmp_path):
    written(tmp_path, FILES)
    process = started(tmp_path, "run", "suite.yml", "--to", "-")
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    # A reader may have read enough: the exit code stays the command's own.
    assert process.wait(timeout=120) == 0
    assert "Traceback" not in err
    assert "Exception ignored" not in err


@pytest.mark.parametrize(("bound", "code"), [(0.5, 0), (0.6, 1)])
def test_closed_pipe_keeps_exit_code_of_gate(tmp_path, bound, code):
    written(tmp_path, {**FILES, "suite.yml": f"{SUITE}gate: {{ min_macro_f1: {bound} }}\n"})
    process = started(tmp_path, "run", "suite.yml")
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert (process.wait(timeout=120), err) == (code, "")


def test_report_with_the_wrong_locale_is_still_utf_8(tmp_path):
    written(
        tmp_path,
        {**FILES, "golden.yml": GOLDEN.replace("fee", "Gebühr"), "answers.yml": ANSWERS.replace("fee", "Gebühr")},
    )
    process = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-m", "deemster", "run", "suite.yml", "--to", "-"],
        cwd=tmp_path,
        env={"LC_ALL": "C", "PATH": "/usr/bin", "PYTHONCOERCECLOCALE": "0"},
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert process.returncode == 0
    assert json.loads(process.stdout.decode("utf-8"))["samples"][1]["id"] == "Gebühr"


def test_terminal_report_works_with_ascii_terminal(tmp_path):
    tagged = GOLDEN.replace("policy", "Gebühr…")
    written(tmp_path, {**FILES, "golden.yml": tagged, "answers.yml": ANSWERS})
    process = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-m", "deemster", "run", "suite.yml"],
        cwd=tmp_path,
        env={"LC_ALL": "C", "PATH": "/usr/bin", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (process.returncode, b"Traceback" in process.stderr) == (0, False)
