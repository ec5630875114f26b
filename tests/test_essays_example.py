"""The essays example matches its generator, and its README works offline from grading to alignment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import deemster as dm
from deemster.cli import app

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "examples" / "essays"
JUDGES = ("ada", "bert", "cleo")


@pytest.fixture(scope="module")
def grading():
    letters = dm.RubricDataset.load(FOLDER / "letters.yml")
    panel = dm.CriterionGrader([dm.Judge(name, name) for name in JUDGES], calls="per_item", quorum=2)
    models = {name: {"replay": str(FOLDER / "replies" / f"{name}.jsonl")} for name in JUDGES}
    return dm.grade(letters, panel, models=models, calls=dm.ModelCalls(offline=True))


def item_of(grading, name):
    return next(item for item in grading.items if item.id == name)


def test_example_files_match_generator(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", FOLDER / "make.py", tmp_path],
        env={"PATH": os.environ["PATH"], "PYTHONHASHSEED": "5"},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    for name in ("letters.yml", *(f"replies/{judge}.jsonl" for judge in JUDGES)):
        assert (tmp_path / name).read_bytes() == (FOLDER / name).read_bytes(), f"run make.py to refresh {name}"


def test_rubric_has_every_kind_of_criterion_and_no_issue():
    rubric = dm.Rubric.load(FOLDER / "rubric.yaml")
    assert {criterion.kind for criterion in rubric.criteria} == {"binary", "ordinal", "nominal"}
    assert any(criterion.fatal for criterion in rubric.criteria)
    assert any(criterion.weight < 0 for criterion in rubric.criteria)
    assert any(criterion.check for criterion in rubric.criteria)
    assert any(option.na for criterion in rubric.criteria for option in criterion.options)
    done = CliRunner().invoke(app, ["rubric", "check", str(FOLDER / "rubric.yaml"), "--strict"])
    assert done.exit_code == 0, done.output
    assert dm.RubricDataset.load(FOLDER / "letters.yml").rubric == rubric


@pytest.mark.parametrize("name", ["letters.yml", "rubric.yaml"])
def test_every_file_is_valid_without_a_warning(name):
    done = CliRunner().invoke(app, ["check", str(FOLDER / name)])
    assert (done.exit_code, done.stderr) == (0, "")


def test_letters_without_position_score_zero(grading):
    failed = {item.id for item in grading.items if item.failed_fatal}
    assert failed == {"undecided", "copy", "injection"}
    assert all(item_of(grading, name).score == 0.0 for name in failed)


def test_two_lenient_judges_outvote_the_careful_one(grading):
    item = item_of(grading, "wrong-number")
    facts = next(each for each in item.criteria if each.criterion == "facts")
    assert [vote.verdict for vote in facts.votes] == ["UNMET", "MET", "MET"]
    assert (facts.verdict, item.score) == ("MET", 1.0)


def test_unreadable_reply_is_failed_call(grading):
    item = item_of(grading, "cyclist")
    (failed,) = [vote for each in item.criteria for vote in each.votes if vote.failure is not None]
    assert (failed.judge, failed.failure.category) == ("cleo", "parse")


def test_panel_has_numbers_of_readme(grading):
    result = dm.compute_metrics(grading.votes(), per_judge=True)
    by_name = {each.name: each for each in result.per_criterion}
    assert by_name["facts"].kappa == pytest.approx(0.0)
    assert by_name["position"].kappa == by_name["padding"].kappa == pytest.approx(1.0)
    assert round(result.per_judge["bert"].criterion_accuracy, 2) == 0.85


def test_people_do_not_always_agree():
    letters = dm.RubricDataset.load(FOLDER / "letters.yml")
    assert len(letters) == 20
    truths = [label for truth in letters.truths for label in truth]
    assert truths.count(None) == 10
    assert all(set(item.annotations) == {"hanna", "jonas"} for item in letters)


def test_commands_of_the_readme_reach_no_network(folder):
    judges = [flag for name in JUDGES for flag in ("--judge", name)]
    flags = [
        "--set",
        "quorum=2",
        "--set",
        "calls=per_item",
        "--offline",
        "--store",
        "none",
        "--cache",
        "none",
        "--to",
        "votes.json",
    ]
    done = CliRunner().invoke(
        app, ["grade", str(FOLDER / "letters.yml"), "--models", str(FOLDER / "models.yml"), *judges, *flags]
    )
    assert done.exit_code == 0, done.output
    assert "0 calls, 61 answered from a cache or recording" in done.stdout
    done = CliRunner().invoke(app, ["agreement", "votes.json", "--per-judge", "--set", "seed=7"])
    assert done.exit_code == 0, done.output
    assert "facts (0.0000)" in done.stdout
