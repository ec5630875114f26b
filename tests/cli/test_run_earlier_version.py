"""What an earlier version wrote, with settings that are gone: stores resume and render, files load and compare."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.workspace import called

EARLIER = Path(__file__).parents[1] / "fixtures" / "version_0_1"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    shutil.copytree(EARLIER, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def stored(name):
    return json.loads(called("report", name, "--store", "runs.db", "--json", "-").stdout)


def test_run_that_stopped_early_renders_the_same_bytes(folder):
    called("report", "failed", "--store", "runs.db", "--json", "again.json")
    assert (folder / "again.json").read_bytes() == (folder / "failed.json").read_bytes()


def test_run_that_stopped_early_says_so_and_how_that_flatters(folder):
    text = called("report", "failed", "--store", "runs.db", "--markdown", "-").stdout
    assert "settled after 33 samples: the drop is larger than 0.2" in text
    assert "stopped as soon as its margin was settled, which makes a drop look 18 to 20 % larger" in text


def test_run_that_stopped_early_has_nothing_left_and_keeps_its_decision(folder):
    (folder / "wrong").touch()
    result = called("run", "suite.yml", "--quiet", "--store", "runs.db", "--resume", "failed", "--json", "again.json")
    assert (result.exit_code, "Nothing is left to do" in result.stderr) == (1, True)
    assert (folder / "again.json").read_bytes() == (folder / "failed.json").read_bytes()


def test_unfinished_run_resumes_to_the_end_in_its_stored_order(folder):
    drawn = [sample["id"] for sample in stored("unfinished")["samples"]]
    result = called("run", "suite.yml", "--quiet", "--store", "runs.db", "--resume")
    assert (result.exit_code, "28 of 60 done" in result.stderr) == (0, True)
    report = stored("unfinished")
    assert [sample["id"] for sample in report["samples"]] == drawn != sorted(drawn)
    assert (report["run"]["status"], report["run"]["part"], report["totals"]["not_run"]) == ("complete", None, 0)
    assert report["gate"]["decision"] == "pass"


def test_report_and_comparison_files_load_render_and_compare(folder):
    assert called("compare", "failed.json", "failed.json").exit_code == 0
    assert "33 of 60 samples" in called("report", "failed.json", "--markdown", "-").stdout
    assert "newly failing" in called("brief", "comparison.json").stdout.lower()
