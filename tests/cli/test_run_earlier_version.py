"""What an earlier version wrote, with settings that are gone: stores resume and render, files load and compare."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

import deemster as dm
from tests.builders.report_formats import FORMATS
from tests.cli.workspace import called

BOTH = ("failed.json", "failed")
EARLIER = Path(__file__).parents[1] / "fixtures" / "version_0_1"


@pytest.fixture
def folder(folder):
    shutil.copytree(EARLIER, folder, dirs_exist_ok=True)
    return folder


def facts(report):
    """What a report says, to the last digit, but for the input, which earlier versions left out.

    The sentence of a rule that fails names samples now.
    """
    said = json.loads(report.read_bytes(), parse_float=str)
    for sample in said["samples"]:
        sample["input"] = None
    for check in said["gate"]["checks"]:
        if check["status"] == "fail":
            del check["because"]
    return said


def stored(name):
    return json.loads(called("show", name, "--store", "runs.db", "--to", "-").stdout)


def test_run_that_stopped_early_renders_the_same_facts(folder):
    called("show", "failed", "--store", "runs.db", "--to", "again.json")
    assert facts(folder / "again.json") == facts(folder / "failed.json")


def test_run_that_stopped_early_says_so_and_how_that_flatters(folder):
    text = called("show", "failed", "--store", "runs.db", "--to", "md:-").stdout
    assert "settled after 33 samples: the drop is larger than 0.2" in text
    assert "stopped as soon as its margin was settled, which makes a drop look 18 to 20 % larger" in text


def test_run_that_stopped_early_has_nothing_left_and_keeps_its_decision(folder):
    (folder / "wrong").touch()
    result = called("run", "suite.yml", "--quiet", "--store", "runs.db", "--resume=failed", "--to", "again.json")
    assert (result.exit_code, "Nothing is left to do" in result.stderr) == (1, True)
    assert facts(folder / "again.json") == facts(folder / "failed.json")


def test_unfinished_run_resumes_to_the_end_in_its_stored_order(folder):
    drawn = [sample["id"] for sample in stored("unfinished")["samples"]]
    result = called("run", "suite.yml", "--quiet", "--store", "runs.db", "--resume")
    assert (result.exit_code, "28 of 60 done" in result.stderr) == (0, True)
    report = stored("unfinished")
    assert [sample["id"] for sample in report["samples"]] == drawn != sorted(drawn)
    assert (report["run"]["status"], report["run"]["part"], report["totals"]["not_run"]) == ("complete", None, 0)
    assert report["gate"]["decision"] == "pass"


@pytest.mark.parametrize("name", ["failed", "passed", "unfinished", "baseline-run"])
@pytest.mark.parametrize("kind", [kind for kind in FORMATS if kind != "junit-samples"])
def test_stored_run_renders_in_every_format(folder, name, kind):
    result = called("show", name, "--store", "runs.db", "--to", f"{kind}:-")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "refunds" in result.stdout or kind == "csv"


@pytest.mark.parametrize("kind", [kind for kind in FORMATS if kind != "junit-samples"])
def test_report_file_renders_as_the_stored_run_does(folder, kind):
    called("show", "failed", "--store", "runs.db", "--to", "again.json")
    of_file = called("show", "again.json", "--to", f"{kind}:-")
    of_store = called("show", "failed", "--store", "runs.db", "--to", f"{kind}:-")
    assert of_file.exit_code == 0
    read = json.loads if kind == "json" else str
    assert read(of_file.stdout) == read(of_store.stdout)


def test_report_file_says_what_it_said_but_for_how_stopping_flatters(folder):
    now = called("show", "failed.json", "--to", "md:-").stdout.splitlines()
    before = (folder / "failed.md").read_text(encoding="utf-8").splitlines()
    changed = {old: new for old, new in zip(before, now, strict=True) if old != new and "macro-F1" not in old}
    numbers = re.compile(r"\d+\.\d+")
    assert [numbers.findall(line) for line in before] == [numbers.findall(line) for line in now]
    part, *others = changed
    assert part == "Part: <code>33 of 60 samples, --until-decided</code>."
    assert "stopped as soon as its margin was settled" in changed[part]
    assert {line for line in others if not line.startswith("|")} == {"None: every mark has a score."}


def test_report_file_compares_with_a_stored_run(folder):
    found = [called("compare", "baseline-run", name, "--store", "runs.db", "--to", "-") for name in BOTH]
    assert [result.exit_code for result in found] == [0, 0]
    of_file, of_store = (json.loads(result.stdout) for result in found)
    assert of_file["samples"]["paired"] == 33
    for key in ("samples", "macro_f1", "pass_rate", "metrics", "cohorts", "gate"):
        assert of_file[key] == of_store[key]


@pytest.mark.parametrize("extension", [".json", ".md", ".html", ".xml"])
def test_comparison_file_loads_and_is_written_in_every_format(folder, extension):
    written = folder / f"again{extension}"
    dm.comparison.load_comparison("comparison.json").save(written)
    text = written.read_text(encoding="utf-8")
    assert "fell from 100.0 % to 45.5 %" in text or json.loads(text)["macro_f1"]["difference"] == -0.545454545


def test_comparison_file_keeps_its_numbers_and_its_p_under_the_name_of_its_test(folder):
    dm.comparison.load_comparison("comparison.json").save("again.json")
    before, now = (
        json.loads((folder / name).read_text(encoding="utf-8")) for name in ("comparison.json", "again.json")
    )
    # What was run again is a run of its own by now.
    assert {**with_former_names(now), "confirmation": None} == before
    assert now["pass_rate"]["sign_flip_p"] == before["pass_rate"]["p_value"] == 7.629e-06


def with_former_names(value):
    """A value in which the p of the sign-flip test stands where it stood before it had a name of its own."""
    if isinstance(value, list):
        return [with_former_names(each) for each in value]
    if isinstance(value, dict) and "sign_flip_p" in value:
        assert value["p_value"] is None
        return {key: value["sign_flip_p" if key == "p_value" else key] for key in value if key != "sign_flip_p"}
    if isinstance(value, dict):
        return {key: with_former_names(each) for key, each in value.items()}
    return value


def test_files_are_valid_and_tell_what_failed(folder):
    assert called("check", "failed.json", "comparison.json", "run.jsonl").exit_code == 0
    assert "33 of 60 samples" in called("show", "failed.json", "--to", "md:-").stdout
    assert "broke" in called("show", "--failed", "comparison.json").stdout.lower()


def test_run_file_is_taken_in_and_renders_the_same_facts(folder):
    assert called("import", "run.jsonl", "--store", "taken.db").exit_code == 0
    called("show", "failed", "--store", "taken.db", "--to", "again.json")
    assert facts(folder / "again.json") == facts(folder / "failed.json")
