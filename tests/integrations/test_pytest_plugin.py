"""The pytest plugin as its users see it, in sessions of pytest of their own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import entry_points
from xml.etree import ElementTree as ET

import pytest
from _pytest.pytester import SysModulesSnapshot

from deemster.evaluation.promote_baseline import promote_baseline
from deemster.store import open_store

pytest_plugins = ["pytester"]
# An environment that was made before the entry point loads the plugin by its file.
PLUGIN = () if entry_points(group="pytest11", name="deemster") else ("-p", "deemster.integrations.pytest_plugin")

PROJECT = ("shop_app", "test_shop", "unsure_metric")

SUITE = """
schema_version: deemster.suite.v1
name: shop
dataset: golden.yml
target: { python: "shop_app:answer" }
metrics: [contains]
gate:
  min_pass_rate: 0.5
  cohorts: { "*": { min_pass_rate: 0.9, min_samples: 2 } }
"""
GOLDEN = """
schema_version: deemster.dataset.v1
name: shop.questions
samples:
  - { id: hours, input: { question: "When are you open?" }, expected_output: "9 to 17", metadata: { tags: [facts] } }
  - { id: refund, input: { question: "How long?" }, expected_output: "30 days", metadata: { tags: [policy] } }
  - { id: ship, input: { question: "What does it cost?" }, expected_output: "free", metadata: { tags: [policy] } }
"""
APP = """
from pathlib import Path

def answer(input):
    with Path(__file__).with_name("calls.txt").open("a") as calls:
        calls.write(input["question"] + "\\n")
    if input["question"] == "What does it cost?":
        return "I do not know."
    return "From 9 to 17, within 30 days."
"""
TESTS = """
import pytest
from shop_app import answer

pytestmark = pytest.mark.deemster(name="answers", metrics=["contains"], gate={"min_pass_rate": 0.9})

@pytest.mark.parametrize("question, expected", [("How long?", "30 days"), ("What does it cost?", "free")])
def test_answer(deemster, question, expected):
    deemster.record({"question": question}, answer({"question": question}), expected_output=expected, tags=["shop"])

def test_plain():
    pass
"""


@pytest.fixture
def shop(pytester, monkeypatch):
    """A project with a suite, an application and tests that record; `pytest` in it."""
    monkeypatch.syspath_prepend(pytester.path)
    for name, text in {"suite.yml": SUITE, "golden.yml": GOLDEN, "shop_app.py": APP, "test_shop.py": TESTS}.items():
        (pytester.path / name).write_text(text, encoding="utf-8")
    # A session inside this process forgets only the project: numpy cannot be loaded twice.
    pytester._sys_modules_snapshot = SysModulesSnapshot(preserve=lambda name: not name.startswith(PROJECT))
    pytester._Pytester__take_sys_modules_snapshot = lambda: pytester._sys_modules_snapshot

    def run(*arguments: str, processes: bool = False) -> pytest.RunResult:
        if processes:
            return pytester.runpytest_subprocess(*PLUGIN, *arguments)
        return pytester.runpytest_inprocess(*PLUGIN, *arguments)

    run.path = pytester.path
    return run


def calls(shop) -> int:
    """How often the application was asked."""
    file = shop.path / "calls.txt"
    return len(file.read_text().splitlines()) if file.exists() else 0


def stored_runs(shop) -> list[str]:
    with open_store(shop.path / ".deemster" / "runs.db", create=False) as store:
        return [run.id for run in store.runs()]


def test_without_the_flag_suites_are_no_tests_and_tests_that_record_are_skipped(shop):
    done = shop("-rs")
    done.assert_outcomes(passed=1, skipped=2)
    done.stdout.fnmatch_lines(["*evaluations are off; `pytest --deemster` runs them"])
    assert (calls(shop), (shop.path / ".deemster").exists()) == (0, False)


def test_suite_is_a_test_for_each_sample_and_each_check(shop):
    done = shop("--deemster", "suite.yml", "-v", "-rs")
    done.assert_outcomes(passed=4, failed=2, skipped=1)
    done.stdout.fnmatch_lines(
        [
            "suite.yml::sample[[]hours] PASSED*",
            "suite.yml::sample[[]refund] PASSED*",
            "suite.yml::sample[[]ship] FAILED*",
            "suite.yml::gate[[]complete] PASSED*",
            "suite.yml::gate[[]min_pass_rate] PASSED*",
            "suite.yml::gate[[]cohorts.facts.min_pass_rate] SKIPPED*",
            "suite.yml::gate[[]cohorts.policy.min_pass_rate] FAILED*",
            "SKIPPED*suite.yml:1: 1 sample in the cohort, below the 2 it takes to be gated",
        ]
    )
    assert (calls(shop), len(stored_runs(shop))) == (3, 1)


def test_failure_shows_question_expected_output_and_reason_and_no_code(shop):
    done = shop("--deemster", "suite.yml")
    done.stdout.fnmatch_lines(
        [
            "*_ sample[[]ship] _*",
            "ship (policy)",
            "  input: What does it cost?",
            "  expected: free",
            "  output: I do not know.",
            "  contains: 0.0000, passes with >= 0.5",
            "*_ gate[[]cohorts.policy.min_pass_rate] _*",
            "fail: cohorts.policy.min_pass_rate: 0.50 (interval 0.09 to 0.91), required 0.9: *below*",
            "suite.yml: Gate: fail*`deemster show *`",
        ]
    )
    done.stdout.no_fnmatch_line("*pytest_suites.py*")


def test_only_selected_samples_are_run(shop):
    done = shop("--deemster", "suite.yml", "-k", "hours")
    done.assert_outcomes(passed=1, deselected=6)
    assert calls(shop) == 1


def test_collecting_only_runs_nothing(shop):
    done = shop("--deemster", "--collect-only", ".")
    done.stdout.fnmatch_lines(["*SampleTest sample[[]hours]*", "*CheckTest gate[[]min_pass_rate]*"])
    assert (calls(shop), (shop.path / ".deemster").exists()) == (0, False)


def test_suite_in_a_folder_must_say_that_it_is_one_and_one_that_is_named_need_not(shop):
    (shop.path / "suite.yml").write_text(SUITE.replace("schema_version: deemster.suite.v1\n", ""), encoding="utf-8")
    shop("--deemster", "--collect-only", "-q", ".").stdout.no_fnmatch_line("*sample*")
    shop("--deemster", "--collect-only", "-q", "suite.yml").stdout.fnmatch_lines(["*sample[[]hours]"])


def test_wrong_suite_is_an_error_of_collection_that_says_where(shop):
    (shop.path / "suite.yml").write_text(SUITE.replace("min_pass_rate: 0.5", "min_pas_rate: 0.5"), encoding="utf-8")
    done = shop("--deemster", "suite.yml")
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*suite.yml:8:*min_pas_rate*min_pass_rate*"])


def test_suite_that_cannot_run_fails_each_of_its_tests_and_is_tried_once(shop):
    (shop.path / "shop_app.py").write_text(APP.replace("def answer", "def reply"), encoding="utf-8")
    done = shop("--deemster", "suite.yml")
    done.assert_outcomes(failed=7)
    done.stdout.fnmatch_lines(["*`shop_app:answer`*"])


UNSURE = SUITE.replace("metrics: [contains]", "metrics: ['unsure_metric:Unsure']").partition("gate:")[0]
UNSURE_METRIC = """
import deemster as dm

class Unsure:
    name = "unsure"
    def score(self, sample, output):
        return dm.Unscored("no_quorum", "no idea") if sample.id == "hours" else dm.MetricScore(1.0)
"""


@pytest.mark.parametrize(("flags", "failed", "skipped"), [((), 1, 1), (("--deemster-strict",), 2, 0)])
def test_unscored_sample_is_skipped_unless_strict(shop, flags, failed, skipped):
    (shop.path / "suite.yml").write_text(UNSURE, encoding="utf-8")
    (shop.path / "unsure_metric.py").write_text(UNSURE_METRIC, encoding="utf-8")
    done = shop("--deemster", "suite.yml", "-rs", *flags)
    # The run is incomplete, which fails its check in either case.
    done.assert_outcomes(passed=2, failed=failed, skipped=skipped)
    shown = "*unscored: no_quorum: no idea" if skipped else "*unsure: no_quorum: no idea"
    done.stdout.fnmatch_lines_random([shown, "The run is incomplete*"])


INCONCLUSIVE = SUITE.partition("gate:")[0] + "gate:\n  decision: three-way\n  budget: { max_cost_usd: 1 }\n"


@pytest.mark.parametrize(("flags", "outcome"), [((), {"skipped": 1}), (("--deemster-strict",), {"failed": 1})])
def test_inconclusive_check_is_skipped_with_its_reason_unless_strict(shop, flags, outcome):
    (shop.path / "suite.yml").write_text(INCONCLUSIVE, encoding="utf-8")
    done = shop("--deemster", "suite.yml", "-rs", "-k", "gate and not complete", *flags)
    done.assert_outcomes(deselected=4, **outcome)
    done.stdout.fnmatch_lines(["*inconclusive: *max_cost_usd*no cost was recorded*"])
    assert done.ret == (1 if flags else 0)


BASELINE = SUITE.partition("gate:")[0] + "gate:\n  baseline: { margin: 0.05 }\n"


def test_all_checks_against_a_baseline_are_one_test(shop, monkeypatch):
    monkeypatch.setenv("DEEMSTER_STORE", str(shop.path / "elsewhere.db"))
    (shop.path / "suite.yml").write_text(BASELINE, encoding="utf-8")
    first = shop("--deemster", "suite.yml", "-rs", "-k", "baseline")
    first.assert_outcomes(skipped=1, deselected=4)
    first.stdout.fnmatch_lines(["*suite.yml:1: nothing was compared:*"])
    with open_store(shop.path / "elsewhere.db") as store:
        promote_baseline(store, "latest", now="2026-01-01T00:00:00.000Z")
    (shop.path / "shop_app.py").write_text(APP.replace("From 9 to 17", "From ten"), encoding="utf-8")
    again = shop("--deemster", "suite.yml", "-k", "baseline", "--deemster-strict")
    again.assert_outcomes(failed=1, deselected=4)
    again.stdout.fnmatch_lines(["inconclusive: baseline.margin.*"])


def test_what_tests_record_is_judged_at_the_end_of_the_session(shop):
    done = shop("--deemster", "test_shop.py", "-v")
    done.assert_outcomes(passed=5, failed=2)
    assert done.ret == 1
    done.stdout.fnmatch_lines(
        [
            "test_shop.py::test_answer[[]How long?-30 days] PASSED*",
            "test_shop.py::test_plain PASSED*",
            "test_shop.py::test_answer[[]How long?-30 days]::answer PASSED*",
            "test_shop.py::test_answer[[]What does it cost?-free]::answer FAILED*",
            "answers::gate[[]complete] PASSED*",
            "answers::gate[[]min_pass_rate] FAILED*[[]100%]",
            "*_ test_answer[[]What does it cost?-free]::answer _*",
            "  input: What does it cost?",
            "  expected: free",
            "  output: I do not know.",
            "  contains: 0.0000, passes with >= 0.5",
        ]
    )


def test_recorded_session_is_judged_again_without_calling_the_application(shop):
    shop("--deemster", "test_shop.py")
    assert calls(shop) == 2
    text = TESTS.replace('"min_pass_rate": 0.9', '"min_pass_rate": 0.5')
    (shop.path / "test_shop.py").write_text(text, encoding="utf-8")
    done = shop("--deemster", "--deemster-rejudge", "test_shop.py", "-v")
    done.assert_outcomes(passed=4, failed=1, skipped=2)
    done.stdout.fnmatch_lines(["answers::gate[[]min_pass_rate] PASSED*"])
    again = shop("--deemster", "--deemster-rejudge", "test_shop.py", "-k", "30")
    again.assert_outcomes(passed=3, skipped=1, deselected=2)
    assert (calls(shop), len(stored_runs(shop))) == (2, 3)


def test_judging_again_without_a_recording_fails(shop):
    done = shop("--deemster", "--deemster-rejudge", "test_shop.py")
    done.stdout.fnmatch_lines(["No test has recorded anything yet in *"])
    assert done.ret == 1


def test_interrupted_session_keeps_what_was_recorded(shop):
    (shop.path / "test_shop.py").write_text(f"{TESTS}\ndef test_z():\n    pytest.exit('stopped')\n", encoding="utf-8")
    done = shop("--deemster", "test_shop.py")
    done.stdout.fnmatch_lines(["What was recorded is not judged yet: pytest --deemster --deemster-rejudge"])
    (shop.path / "test_shop.py").write_text(TESTS, encoding="utf-8")
    shop("--deemster", "--deemster-rejudge", "test_shop.py").assert_outcomes(passed=3, failed=2, skipped=2)


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ("@pytest.mark.deemster(metrics=['contians'])", "*`contians`*`contains`*"),
        ("@pytest.mark.deemster(metric=['contains'])", "*no setting `metric`*`metrics`*"),
        ("@pytest.mark.deemster(metrics=[object()])", "*import path*"),
        ("@pytest.mark.deemster(['contains'])", "*have names*"),
        ("", "*has no mark `@pytest.mark.deemster(metrics=[[]...])`*"),
    ],
)
def test_mark_that_cannot_be_used_is_refused_before_anything_runs(shop, mark, said):
    text = f"import pytest\nfrom shop_app import answer\n\n{mark}\ndef test_it(deemster):\n    answer('x')\n"
    (shop.path / "test_shop.py").write_text(text, encoding="utf-8")
    done = shop("--deemster", "test_shop.py")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines([said])
    assert calls(shop) == 0


def test_flags_without_the_main_one_are_refused(shop):
    done = shop("--deemster-rejudge")
    assert done.ret == pytest.ExitCode.USAGE_ERROR


def test_with_xdist_the_outcomes_are_the_same_and_the_suite_runs_once(shop):
    refused = "import pytest\n\n@pytest.mark.deemster(metrics=['contians'])\ndef test_it(deemster):\n    pass\n"
    (shop.path / "test_shop_refused.py").write_text(refused, encoding="utf-8")
    done = shop("--deemster", "-n2", ".", "--junitxml=junit.xml", processes=True)
    done.assert_outcomes(passed=9, failed=4, skipped=1, errors=1)
    done.stdout.fnmatch_lines_random(["  output: I do not know.", "answers: Gate: fail*", "suite.yml: Gate: fail*"])
    done.stdout.fnmatch_lines(["test_shop_refused.py::test_it: No metric is called `contians`. Did you mean *"])
    assert (calls(shop), len(stored_runs(shop))) == (5, 2)
    cases = ET.parse(shop.path / "junit.xml").findall(".//testcase")
    assert sorted(case.get("name") for case in cases if case.find("failure") is not None) == [
        "gate[cohorts.policy.min_pass_rate]",
        "gate[min_pass_rate]",
        "sample[ship]",
        "test_answer[What does it cost?-free]::answer",
    ]


def test_recorded_session_is_stored_with_tags_and_the_test(shop):
    shop("--deemster", "test_shop.py")
    with open_store(shop.path / ".deemster" / "runs.db", create=False) as store:
        (run,) = store.runs()
        samples = list(store.samples(run.id))
    assert (run.suite, run.dataset) == ("answers", "answers")
    assert [sample.tags for sample in samples] == [("shop",)] * 2
    assert samples[0].metadata["test"] == "test_shop.py::test_answer[How long?-30 days]"


def test_plugin_loads_nothing_of_deemster_but_itself():
    code = "import sys, pytest; before = set(sys.modules); import deemster.integrations.pytest_plugin; "
    code += "import json; print(json.dumps(sorted(set(sys.modules) - before)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = [name for name in json.loads(done.stdout) if not re.match(r"json|_json", name)]
    assert loaded == ["deemster", "deemster.integrations", "deemster.integrations.pytest_plugin"]


EVIL = "##vso[task.setvariable variable=DEPLOY]yes"


def test_nothing_that_is_printed_is_a_command_of_a_ci_service(shop):
    sample = {
        "id": EVIL,
        "input": {"question": EVIL},
        "expected_output": f"::error::{EVIL}",
        "metadata": {"tags": [EVIL]},
    }
    golden = {
        "schema_version": "deemster.dataset.v1",
        "name": "x",
        "samples": [sample, {**sample, "id": "::stop::"}],
    }
    (shop.path / "golden.yml").write_text(json.dumps(golden), encoding="utf-8")
    (shop.path / "shop_app.py").write_text(f"def answer(input):\n    return {EVIL!r} + chr(10) + '::error::x'\n")
    for flags in (("-v", "-rA"), ("-q", "--deemster-strict")):
        done = shop("--deemster", "suite.yml", *flags)
        printed = done.stdout.str() + done.stderr.str()
        assert "task.setvariable" in printed
        assert "##vso[" not in printed
        assert not re.search(r"(?m)^\s*::", printed)
    (shop.path / "suite.yml").write_text(SUITE.replace("contains", f"'{EVIL}'"), encoding="utf-8")
    done = shop("--deemster", "suite.yml")
    assert "##vso[" not in done.stdout.str() + done.stderr.str()
