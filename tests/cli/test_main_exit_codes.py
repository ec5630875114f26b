"""Exit codes, each row of the table, and which of several counts."""

from __future__ import annotations

import json

import pytest

from tests.cli.workspace import ANSWERS, GOLDEN, SUITE, called, written

TARGET = SUITE.replace("outputs: answers.yml", "python: 'exits_app:answer'")
HALF = "outputs:\n  - {id: window, output: 30 days}\n  - {id: fee, error: it broke}\n"


def gated(rules):
    return f"{SUITE}gate: {{ {rules} }}\n"


def test_low_scores_without_gate_are_exit_code_0(world):
    world(answers_yml="outputs: {window: wrong, fee: wrong}\n")
    assert called("run", "suite.yml").exit_code == 0


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ("min_macro_f1: 0.5", 0),
        ("min_macro_f1: 0.51", 1),
        ("min_pass_rate: 0.5", 0),
        ("min_pass_rate: 0.51", 1),
        ("metrics: { exact-match: { min_mean: 0.5 } }", 0),
        ("metrics: { exact-match: { min_mean: 0.6 } }", 1),
        ("metrics: { exact-match: { max_mean: 0.4 } }", 1),
        ("metrics: { exact-match: { min_pass_rate: 0.5, on: lower } }", 1),
        ("cohorts: { policy: { min_pass_rate: 1.0 } }", 0),
        ("cohorts: { '*': { min_pass_rate: 1.0 } }", 1),
        ("cohorts: { '*': { min_pass_rate: 1.0, min_samples: 2 } }", 0),
        ("budget: { max_cost_usd: 1 }", 0),
        ("budget: { max_cost_usd: 1 }, decision: three-way", 4),
    ],
)
def test_gate_rule_decides_the_exit_code(world, rule, code):
    world(suite_yml=gated(rule))
    assert called("run", "suite.yml").exit_code == code


@pytest.mark.parametrize(
    ("allowance", "code"),
    [
        (None, 3),
        ("0", 3),
        ("1", 0),
        ("2", 0),
        ("49%", 3),
        ("50%", 0),
        ("100%", 0),
        ("0%", 3),
        ("49.9%", 3),
        ("1 sample", 0),
        ("0 samples", 3),
    ],
)
def test_unscored_marks_above_the_allowance_make_a_run_incomplete(world, allowance, code):
    world(answers_yml=HALF, suite_yml=SUITE if allowance is None else gated(f"max_unscored: {allowance}"))
    assert called("run", "suite.yml").exit_code == code


def test_incomplete_run_reports_number_of_missing_marks(world):
    world(answers_yml=HALF)
    assert "incomplete: 1 of 2 samples crashed: it broke." in called("run", "suite.yml").stderr


BAD, INCOMPLETE, FAILING, OPEN = 2, 3, 1, 4
CAUSES = {
    BAD: ("--to", "suite.yml/report.json"),
    INCOMPLETE: ("--outputs", "half.yml"),
    FAILING: (),
    OPEN: (),
}


@pytest.mark.parametrize(
    "causes",
    [
        {BAD, INCOMPLETE, FAILING, OPEN},
        {INCOMPLETE, FAILING, OPEN},
        {FAILING, OPEN},
        {OPEN},
        {BAD, OPEN},
        {INCOMPLETE, FAILING},
        {BAD, FAILING},
        {INCOMPLETE, OPEN},
        {BAD, INCOMPLETE},
        set(),
    ],
    ids=str,
)
def test_of_several_outcomes_the_first_of_2_3_1_4_counts(world, causes):
    rules = ["decision: three-way"]
    rules += ["min_macro_f1: 1.0"] if FAILING in causes else []
    rules += ["budget: { max_cost_usd: 1 }"] if OPEN in causes else []
    written(world(suite_yml=gated(", ".join(rules))), {"half.yml": HALF})
    flags = [flag for cause in causes for flag in CAUSES[cause]]
    expected = next((code for code in (BAD, INCOMPLETE, FAILING, OPEN) if code in causes), 0)
    assert called("run", "suite.yml", *flags).exit_code == expected


def test_report_that_cannot_be_written_stops_the_run_before_any_call(world):
    folder = world(suite_yml=TARGET)
    code = "import pathlib\ndef answer(input):\n    pathlib.Path('called').touch()\n    return ''\n"
    written(folder, {"exits_app.py": code})
    result = called("run", "suite.yml", "--to", "suite.yml/report.json")
    assert result.exit_code == 2
    assert not (folder / "called").exists()


def test_report_that_cannot_be_written_after_the_run_is_exit_code_3_and_the_others_are_written(world):
    folder = world(suite_yml=TARGET.replace("exits_app", "exits_vandal"))
    act = "shutil.rmtree('reports', ignore_errors=True); open('reports', 'a').close()"
    code = f"import shutil\ndef answer(input):\n    {act}\n    return '30 days'\n"
    written(folder, {"exits_vandal.py": code, "reports/keep": ""})
    result = called("run", "suite.yml", "--to", "reports/run.json", "--to", "run.csv")
    assert result.exit_code == 3
    assert "reports/run.json: The report cannot be written: " in result.stderr
    assert (folder / "run.csv").read_text().count("\n") == 3


def test_sys_exit_in_target_is_target_failure(world):
    folder = world(suite_yml=TARGET.replace("exits_app", "exits_leaver"))
    written(folder, {"exits_leaver.py": "import sys\ndef answer(input):\n    sys.exit(0)\n"})
    result = called("run", "suite.yml", "--to", "run.json")
    assert result.exit_code == 3
    failures = json.loads((folder / "run.json").read_text())["failures"]
    assert [(entry["cause"], entry["message"]) for entry in failures] == [
        ("target_failed", "SystemExit: 0 (exits_leaver.py:3)")
    ] * 2


def test_sys_exit_at_import_is_bad_input(world):
    folder = world(suite_yml=TARGET.replace("exits_app", "exits_import"))
    written(folder, {"exits_import.py": "import sys\nsys.exit(0)\n"})
    result = called("run", "suite.yml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "cannot be imported: SystemExit: 0" in result.stderr


def test_disk_that_fails_during_the_run_is_one_line_and_exit_code_3(world, monkeypatch):
    def full(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("deemster.store.spool.Spool.add", full)
    result = called("run", "suite.yml", "--store", "none")
    assert result.exit_code == 3
    assert result.stderr == "error: The command could not go on: No space left on device.\n"


def test_gate_decision_goes_to_stderr_if_report_is_on_stdout(world):
    world(suite_yml=gated("min_macro_f1: 0.9"))
    result = called("run", "suite.yml", "--to", "-")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["gate"]["decision"] == "fail"
    assert (
        "fail: min_macro_f1: 0.50 (interval 0.09 to 0.91), required 0.9: the estimate is below the bound; sample `fee`"
        in result.stderr
    )


@pytest.mark.parametrize("flags", [(), ("--quiet",), ("--to", "-")])
def test_inconclusive_rule_that_passes_is_warning(world, flags):
    world(suite_yml=gated("budget: { max_cost_usd: 1 }"))
    warning = (
        "warning: the gate counts budget.max_cost_usd as passed, though it is inconclusive: no cost was recorded\n"
    )
    result = called("run", "suite.yml", *flags)
    assert (result.exit_code, result.stderr.count(warning)) == (0, 1)


def test_three_way_decision_gives_no_warning(world):
    world(suite_yml=gated("budget: { max_cost_usd: 1 }, decision: three-way"))
    result = called("run", "suite.yml")
    assert (result.exit_code, result.stderr) == (4, "")


def test_fixture_files_pass(world):
    world(golden_yml=GOLDEN, answers_yml=ANSWERS)
    assert called("run", "suite.yml").exit_code == 0
