"""Every example runs on the command line and gives the same bytes each time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import deemster as dm
from deemster.cli import app

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
EPOCH = "1767225600"

EXIT_CODES = {
    "agent": 1,
    "citations": 0,
    "custom_metric": 0,
    "quickstart": 0,
    "rag": 0,
    "retrieval": 0,
    "targets": 0,
    "triage": 0,
}
# Without a `suite.yml`: `tests/test_essays_example.py`, `tests/test_judge_example.py`, `tests/test_plugin_example.py`,
# and the guides.
ELSEWHERE = ("audit", "calibration", "imports", "essays", "judge_validation", "plugin")


def environment(*, seed: str = "0", locale: str = "C.UTF-8") -> dict[str, str]:
    """As little of the caller's environment as will do."""
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT / "src"),
        "SOURCE_DATE_EPOCH": EPOCH,
        "PYTHONHASHSEED": seed,
        "LANG": locale,
        "LC_ALL": locale,
    }


def test_every_folder_of_the_examples_is_tested():
    assert sorted(EXIT_CODES) == sorted(path.parent.name for path in EXAMPLES.glob("*/suite.yml"))
    assert sorted([*EXIT_CODES, *ELSEWHERE]) == sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())


# All examples, one after the other in one process: each forgets the modules of the one before.
SEVERAL = """
import json, os, sys
from deemster.cli import app
examples = os.path.abspath("examples")
codes = {}
for example, argv in json.load(sys.stdin).items():
    try:
        app(argv, prog_name="deemster")
    except SystemExit as end:
        codes[example] = end.code
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(examples):
            del sys.modules[name]
print(json.dumps(codes))
"""


@pytest.mark.parametrize(("seed", "locale"), [("0", "C"), ("1", "C.UTF-8"), ("7", "C"), ("12", "C.UTF-8")])
def test_examples_have_the_same_reports_for_every_hash_seed_and_locale(seed, locale, tmp_path, golden):
    commands = {
        example: [
            *("run", f"examples/{example}/suite.yml", "--quiet", "--store", str(tmp_path / "runs.db")),
            *("--to", str(tmp_path / f"{example}.json"), "--to", str(tmp_path / f"{example}.md")),
        ]
        for example in EXIT_CODES
    }
    done = subprocess.run(
        [sys.executable, "-c", SEVERAL],
        cwd=ROOT,
        env=environment(seed=seed, locale=locale),
        input=json.dumps(commands),
        capture_output=True,
        check=False,
        text=True,
    )
    # The codes are the only line: a quiet run prints nothing.
    assert done.stdout, done.stderr
    assert json.loads(done.stdout) == EXIT_CODES, done.stderr
    for example in EXIT_CODES:
        golden(f"examples/{example}/report.json", (tmp_path / f"{example}.json").read_bytes())
        golden(f"examples/{example}/report.md", (tmp_path / f"{example}.md").read_bytes())


@pytest.mark.parametrize("example", sorted(EXIT_CODES))
def test_saved_report_renders_to_the_same_bytes_again(example, golden, tmp_path):
    held = ROOT / "tests" / "golden" / "examples" / example / "report.json"
    flags = ["--to", str(tmp_path / "again.md"), "--to", str(tmp_path / "again.json")]
    done = CliRunner().invoke(app, ["show", str(held), *flags])
    assert done.exit_code == 0, done.output
    golden(f"examples/{example}/report.md", (tmp_path / "again.md").read_bytes())
    assert (tmp_path / "again.json").read_bytes() == held.read_bytes()


@pytest.fixture
def _forgotten_modules():
    """What a suite imports from its folder is not what another test imports by the same name."""
    yield
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(EXAMPLES)):
            del sys.modules[name]


@pytest.mark.usefixtures("_forgotten_modules")
@pytest.mark.parametrize("example", sorted(EXIT_CODES))
def test_every_file_of_an_example_is_valid_without_a_warning(example):
    folder = EXAMPLES / example
    for file in sorted([*folder.glob("*.yml"), *folder.glob("*.jsonl")]):
        done = CliRunner().invoke(app, ["check", "--offline", str(file)], env={"APP_URL": "http://127.0.0.1:1"})
        assert (done.exit_code, done.stderr) == (0, ""), file


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*/script.py")), ids=lambda path: path.parent.name)
def test_example_script_output_matches_golden_file(script, golden):
    done = subprocess.run(
        [sys.executable, "-W", "error", script], env=environment(), capture_output=True, check=False, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    golden(f"examples/{script.parent.name}/script.txt", done.stdout)


def test_only_the_policy_cohort_of_the_quickstart_is_weak():
    report = dm.load_report(ROOT / "tests" / "golden" / "examples" / "quickstart" / "report.json")
    rates = {name: cohort.metrics["token-f1"].pass_rate for name, cohort in report.cohorts.items()}
    assert rates == {"account": 1.0, "policy": pytest.approx(1 / 3), "shipping": 1.0, "(untagged)": 1.0}
    assert report.gate is not None
    assert report.gate.decision == "pass"


def test_triage_example_has_three_unstable_tickets():
    report = dm.load_report(ROOT / "tests" / "golden" / "examples" / "triage" / "report.json")
    assert [sample.id for sample in report.samples if sample.unstable] == ["slow-search", "double-charge", "odd-login"]
