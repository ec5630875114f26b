"""`--confirm N`: newly failing samples are run again, and are confirmed or cleared."""

from __future__ import annotations

import json
import os
import signal
import sys
import time

import pytest

from tests.cli.make_baselines import answers, dataset, suite
from tests.cli.workspace import called, started, written

# The target reads what it does from a file: `broken` samples are always wrong, `flaky` ones only when called first.
APP = """\
import json, pathlib, re

CALLS = {}


def answer(input):
    number = re.search(r"\\d+", input["question"])[0]
    state = json.loads(pathlib.Path("state.json").read_text())
    CALLS[number] = CALLS.get(number, 0) + 1
    with open("calls.txt", "a") as calls:
        calls.write(number + "\\n")
    if "hang" in state and CALLS[number] > state["hang"]:
        import time
        time.sleep(600)
    if int(number) in state["broken"] or (int(number) in state["flaky"] and CALLS[number] == 1):
        return "wrong"
    if int(number) in state.get("gone", ()) or (CALLS[number] == 1 and int(number) in state.get("late", ())):
        raise RuntimeError("gone")
    if CALLS[number] > 1 and int(number) in state.get("down", ()):
        raise RuntimeError("down")
    return f"answer {number}"
"""


@pytest.fixture
def folder(world):
    return world()


def prepared(folder, app, gate="margin: 0.3, max_newly_failing: 1", *, count=40, earlier=3, further=""):
    """A baseline, and as many runs before it as a sample needs for a history."""
    written(
        folder,
        {
            "golden.yml": dataset(count),
            "suite.yml": suite(gate, further=further).replace(
                "{ outputs: answers.yml }", f"{{ python: {app}:answer }}"
            ),
            f"{app}.py": APP,
        },
    )
    state(folder)
    for _ in range(earlier):
        called("run", "suite.yml", "--quiet")
    assert "is the baseline" in called("run", "suite.yml", "--quiet", "--as-baseline").stderr
    # Python keeps the module: a new run is a new process in real life.
    sys.modules.pop(app).CALLS.clear()
    (folder / "calls.txt").unlink()


def state(folder, **other):
    (folder / "state.json").write_text(json.dumps({"broken": [], "flaky": [], **other}))


def gate_check(name="baseline.max_newly_failing"):
    report = json.loads(called("show", "latest", "--to", "-").stdout)
    return next(check for check in report["gate"]["checks"] if check["name"] == name)


def test_broken_samples_are_confirmed_and_flaky_ones_cleared(folder, golden):
    prepared(folder, "confirm_app_a")
    state(folder, broken=[7], flaky=[1, 2, 3])
    first = called("run", "suite.yml", "--quiet", "--confirm", "8", "--to", "first.json")
    assert first.exit_code == 0, first.stderr
    check = gate_check()
    assert (check["status"], check["observed"]) == ("pass", 1)
    assert check["because"] == (
        "4 samples passed before and do not pass now: `s001`, `s002`, `s003` and `s007`; "
        "1 confirmed by running them again, 3 flaky"
    )
    calls = (folder / "calls.txt").read_text().split()
    assert [calls.count(number) for number in ("0", "1", "7")] == [1, 9, 9]
    # The marks of the paired interval are those of the run.
    assert gate_check("baseline.margin.metrics.exact-match")["observed"] == -0.1
    called("show", "latest", "--to", "again.json")
    assert (folder / "again.json").read_bytes() == (folder / "first.json").read_bytes()
    shown = called("compare", "baseline", "latest").stdout
    golden(
        "cli/compare-confirmed.txt",
        shown[shown.index("Samples that were run again") :].partition("\n\n")[0].rstrip() + "\n",
    )


def test_without_confirmation_every_newly_failing_sample_counts(folder):
    prepared(folder, "confirm_app_b")
    state(folder, broken=[7], flaky=[1, 2, 3])
    assert called("run", "suite.yml", "--quiet").exit_code == 1
    assert gate_check()["observed"] == 4


def test_too_few_reruns_clear_nothing_that_fails_them_all(folder):
    prepared(folder, "confirm_app_c")
    state(folder, broken=[7, 8], flaky=[1])
    assert called("run", "suite.yml", "--quiet", "--confirm", "2").exit_code == 1
    check = gate_check()
    assert check["observed"] == 2
    assert check["because"].endswith(
        "0 confirmed by running them again, 1 flaky, 2 open (it takes 6 reruns to confirm one)"
    )


def test_without_a_history_nothing_is_confirmed_and_the_gate_counts_it(folder):
    """One pass in the baseline may have been luck; the flaky sample is cleared all the same."""
    prepared(folder, "confirm_app_m", earlier=0)
    state(folder, broken=[7, 8], flaky=[1])
    assert called("run", "suite.yml", "--quiet", "--confirm", "8").exit_code == 1
    check = gate_check()
    assert check["observed"] == 2
    assert check["because"].endswith(
        "0 confirmed by running them again, 1 flaky, 2 open (they have no history: a baseline with repetitions, or "
        "runs before it, would be one)"
    )
    shown = called("compare", "baseline", "latest").stdout
    assert "Without a history nothing is confirmed: one pass in the baseline may have been luck." in shown


def test_rerun_without_an_answer_is_no_failure(folder):
    prepared(folder, "confirm_app_d")
    state(folder, flaky=[1], down=[1])
    assert called("run", "suite.yml", "--quiet", "--confirm", "6").exit_code == 0
    # No rerun was marked, so nothing is known of the sample, and it counts.
    assert gate_check()["because"] == "1 sample passed before and does not pass now: `s001`"


def test_samples_without_an_answer_are_run_again_too(folder):
    prepared(folder, "confirm_app_l", further=", max_unscored: 2")
    state(folder, late=[1], gone=[2])
    assert called("run", "suite.yml", "--quiet", "--confirm", "6").exit_code == 0
    # One answers when it is asked again. The other never does, so nothing is known of it, and it counts.
    check = gate_check()
    assert check["observed"] == 1
    assert check["because"].endswith(
        "2 samples passed before and do not pass now: `s001` and `s002`; 0 confirmed by running them again, 1 flaky, "
        "1 open (it takes 5 reruns to confirm one)"
    )
    calls = (folder / "calls.txt").read_text().split()
    assert [calls.count(number) for number in ("0", "1", "2")] == [1, 7, 7]


def test_nothing_is_run_again_where_nothing_newly_fails(folder):
    prepared(folder, "confirm_app_e")
    assert called("run", "suite.yml", "--quiet", "--confirm", "6").exit_code == 0
    assert len((folder / "calls.txt").read_text().split()) == 40


def test_compare_confirms_a_stored_run_and_stores_it(folder):
    prepared(folder, "confirm_app_f")
    state(folder, broken=[7], flaky=[1, 2])
    assert called("run", "suite.yml", "--quiet").exit_code == 1
    before = (folder / "calls.txt").read_text().count("\n")
    result = called("compare", "baseline", "latest", "--gate", "suite.yml", "--confirm", "7")
    assert result.exit_code == 0, result.output
    assert "3 samples that broke, run again: 1 confirmed, 2 flaky." in result.stdout
    assert (folder / "calls.txt").read_text().count("\n") == before + 21
    # What was run again stays with the run: the same question asks for nothing more.
    again = called("compare", "baseline", "latest", "--confirm", "7")
    assert "1 confirmed, 2 flaky" in again.stdout
    assert "1 confirmed, 2 flaky" in called("compare", "baseline", "latest").stdout
    assert (folder / "calls.txt").read_text().count("\n") == before + 21


def test_suite_with_another_target_does_not_confirm(folder):
    prepared(folder, "confirm_app_g")
    state(folder, broken=[7])
    called("run", "suite.yml", "--quiet")
    written(
        folder, {"confirm_app_h.py": APP, "suite.yml": (folder / "suite.yml").read_text().replace("app_g", "app_h")}
    )
    result = called("compare", "baseline", "latest", "--confirm", "7")
    assert result.exit_code == 2
    assert "is not the same any more, so its samples are not run again" in result.stderr


@pytest.mark.parametrize(
    ("gate", "outputs", "said"),
    [
        (None, (), "the gate needs a section `baseline`"),
        ("margin: 0.2", ("--outputs", "answers.yml"), "this run grades saved outputs"),
    ],
)
def test_what_cannot_be_run_again_is_refused_before_anything_runs(folder, gate, outputs, said):
    written(
        folder,
        {
            "golden.yml": dataset(4),
            "answers.yml": answers(count=4),
            "suite.yml": suite(gate).replace("{ outputs: answers.yml }", "{ python: confirm_app_i:answer }"),
            "confirm_app_i.py": APP,
        },
    )
    result = called("run", "suite.yml", "--confirm", "3", *outputs)
    assert (result.exit_code, said in result.stderr) == (2, True)
    assert not (folder / "calls.txt").exists()
    assert not (folder / ".deemster").exists()


def test_report_cannot_be_confirmed(folder):
    prepared(folder, "confirm_app_j")
    state(folder, broken=[7])
    called("run", "suite.yml", "--quiet", "--to", "now.json")
    result = called("compare", "baseline", "now.json", "--confirm", "3")
    assert (result.exit_code, "which a stored run knows and a report does not" in result.stderr) == (2, True)


def test_reruns_survive_a_kill(folder):
    prepared(folder, "confirm_app_k")
    suite = folder / "suite.yml"
    suite.write_text(f"durable: true\n{suite.read_text()}")
    # The fourth rerun hangs.
    state(folder, broken=[7], hang=4)
    process = started(folder, "run", "suite.yml", "--quiet", "--confirm", "6")
    deadline = time.monotonic() + 180
    while (folder / "calls.txt").exists() is False or (folder / "calls.txt").read_text().split().count("7") < 5:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(0.3)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    (folder / "calls.txt").unlink()
    state(folder, broken=[7])
    result = called("run", "suite.yml", "--quiet", "--resume", "--confirm", "6")
    assert result.exit_code == 0, result.stderr
    again = (folder / "calls.txt").read_text().split()
    assert set(again) == {"7"}
    assert len(again) <= 6
    assert "1 confirmed by running them again" in gate_check()["because"]


def test_confirmed_run_that_is_resumed_stays_confirmed(folder):
    prepared(folder, "confirm_app_n")
    state(folder, broken=[7], flaky=[1, 2])
    assert called("run", "suite.yml", "--quiet", "--confirm", "7").exit_code == 0
    before = (folder / "calls.txt").read_text()
    assert called("run", "suite.yml", "--quiet", "--resume").exit_code == 0
    assert "1 confirmed by running them again, 2 flaky" in gate_check()["because"]
    assert (folder / "calls.txt").read_text() == before


def test_confirmation_is_a_run_of_its_own_and_not_the_latest(folder):
    prepared(folder, "confirm_app_o")
    state(folder, broken=[7])
    called("run", "suite.yml", "--quiet", "--confirm", "7", "--to", "report.json")
    run = json.loads((folder / "report.json").read_text())["run"]["id"]
    assert json.loads(called("show", "latest", "--to", "-").stdout)["run"]["id"] == run
    rows = json.loads(called("show", "--to", "-").stdout)
    listed = [(row["kind"], row["facts"]["label"]) for row in rows[:2]]
    assert listed == [("confirmation", f"confirms {run}"), ("run", None)]
    confirming = json.loads(called("show", rows[0]["id"], "--to", "-").stdout)
    assert (confirming["totals"]["samples"], confirming["totals"]["repetitions"]) == (1, 7)
