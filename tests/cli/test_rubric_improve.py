"""`deemster rubric improve` and `deemster rubric check --with-judge`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import deemster as dm
from tests.cli.workspace import called
from tests.runs.make_rewordings import BETTER, RUBRIC, dataset

WORLD = Path(__file__).parent.parent / "runs" / "make_rewordings.py"
CLIENTS = """\
import deemster as dm
from wordings import BETTER, Judge, Writer

judge = dm.models.FakeChat(Judge({"The facts are alright.": 0.6, BETTER: 0.97}), identity={"fake": "judge"})
writer = dm.models.FakeChat(Writer(lambda _: BETTER), identity={"fake": "writer"})
deaf = dm.models.FakeChat([])


def read(ask):
    text = ask.messages[-1].content
    if "exactly one thing" in text and "`depth`" in text and "One criterion" in text:
        return {"reason": "Depth\\x1b[31m of what?", "verdict": "UNMET"}
    if "beside the point" in text:
        return {"reason": "An empty text loses nothing.", "verdict": "UNMET"}
    return {"reason": "Fine.", "verdict": "MET"}


reader = dm.models.FakeChat(read)
"""
MODELS = """\
models:
  judge: { client: "clients:judge" }
  writer: { client: "clients:writer" }
  reader: { client: "clients:reader" }
  deaf: { client: "clients:deaf" }
"""
IMPROVE = (
    "rubric",
    "improve",
    "old.yaml",
    "items.jsonl",
    "--judge",
    "judge",
    "--models",
    "models.yml",
    "--to",
    "new.yaml",
)


@pytest.fixture
def folder(folder, monkeypatch):
    monkeypatch.syspath_prepend(folder)
    for name in ("clients", "wordings"):
        monkeypatch.delitem(__import__("sys").modules, name, raising=False)
    shutil.copy(WORLD, folder / "wordings.py")
    Path("clients.py").write_text(CLIENTS)
    Path("models.yml").write_text(MODELS)
    RUBRIC.dump("old.yaml")
    dataset(120).save("items.jsonl")
    return folder


def test_help_matches_golden_file(golden):
    result = called("rubric", "improve", "--help", COLUMNS="100", TERMINAL_WIDTH="100")
    golden("cli/rubric-improve.txt", result.stdout)


def test_better_wording_is_written_with_a_diff_and_reports(folder, golden):
    reports = ("--to", "report.md", "--to", "report.json")
    result = called(*IMPROVE, "--set", "writer=writer", "--set", "criteria=1", *reports)
    assert (result.exit_code, result.stderr) == (0, "")
    golden("cli/rubric-improve-better.txt", result.stdout)
    golden("cli/rubric-improve-better.md", Path("report.md").read_text())
    told = json.loads(Path("report.json").read_text())
    assert told["accepted"] == ["facts"]
    assert dm.Rubric.load("new.yaml").to_dict() == told["after"]
    assert told["after"]["criteria"][0]["requirement"] == BETTER
    assert not list(Path().glob("new.yaml.progress*"))
    assert called("check", "new.yaml").exit_code == 0


def test_dataset_without_a_rubric_takes_the_one_that_is_improved(folder):
    flags = ("--set", "writer=writer", "--set", "criteria=1")
    own = called(*IMPROVE, *flags)
    header, *items = Path("items.jsonl").read_text().splitlines()
    bare = {key: value for key, value in json.loads(header).items() if key != "rubric"}
    assert bare != json.loads(header)
    Path("items.jsonl").write_text("\n".join([json.dumps(bare), *items]) + "\n")
    found = called(*IMPROVE, *flags, "--cache", "none")
    assert (found.exit_code, found.stdout) == (0, own.stdout), found.stderr


def test_improvement_stopped_by_budget_resumes_without_repeated_call(folder):
    flags = ("--set", "writer=writer", "--set", "criteria=1")
    whole = called(*IMPROVE, *flags, "--cache", "none")
    assert whole.exit_code == 0
    result = called(*IMPROVE, *flags, "--budget", "40000tokens")
    assert result.exit_code == 3
    assert "incomplete: " in result.stderr
    assert "--resume" in result.stderr
    assert Path("new.yaml.progress.db").exists()
    assert called(*IMPROVE, *flags).exit_code == 2
    again = called(*IMPROVE, *flags, "--resume")
    assert (again.exit_code, again.stdout) == (0, whole.stdout)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--to", "old.yaml/where.md"), "cannot be written"),
        (("--set", "writer=wirter"), "Did you mean `writer`?"),
        (("--set", "train=7.5"), "train"),
        (("--set", "cluster=autor"), "no `autor`"),
        (("--set", "round=2"), "Did you mean `rounds`?"),
        (("--set", "rounds=0"), "rounds must be a whole number of at least 1, not 0."),
        (("--models", "old.yaml"), "section `models`"),
        (("--models", "absent.yml"), "absent.yml"),
        (("--budget", "-1usd"), "budget"),
        (("--to", "new.txt"), "new.txt"),
        (("--to", "other.yaml"), "Say where the new rubric goes, as one file: `--to new.yaml`."),
    ],
)
def test_unusable_input_is_error_before_any_request(folder, flags, message):
    result = called(*IMPROVE, *flags)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert not Path("new.yaml").exists()


def test_new_rubric_never_replaces_the_old_one(folder):
    result = called(*(word.replace("new.yaml", "old.yaml") for word in IMPROVE))
    assert result.exit_code == 2
    assert "old.yaml: The new rubric would overwrite the one it comes from" in result.stderr


def test_judge_examines_rubric(folder, golden):
    result = called("rubric", "check", "old.yaml", "--judge", "reader", "--models", "models.yml")
    assert (result.exit_code, result.stderr) == (0, "")
    golden("cli/rubric-check-judged.txt", result.stdout)
    assert "\x1b" not in result.stdout


def test_issues_of_judge_are_in_json_with_line(folder):
    result = called("rubric", "check", "old.yaml", "--judge", "reader", "--models", "models.yml", "--to", "-")
    told = json.loads(result.stdout)
    judged = {found["code"]: found for found in told["issues"] if found["code"].startswith("judged-")}
    assert judged.keys() == {"judged-single", "judged-separating"}
    assert judged["judged-single"]["path"] == "criteria[2].requirement"
    assert judged["judged-single"]["where"].startswith("old.yaml:")
    assert (judged["judged-single"]["severity"], judged["judged-separating"]["severity"]) == ("warning", "hint")
    # Three of the whole, five of each criterion that a judge answers, two more for the options of one.
    assert told["judged"] == {"questions": 20, "failed": 0, "halted": None}


def test_unanswered_judge_makes_check_incomplete(folder):
    result = called("rubric", "check", "old.yaml", "--judge", "deaf", "--models", "models.yml")
    assert result.exit_code == 3
    assert "20 without an answer" in result.stdout


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--judge", "reader"), "--models"),
        (("--judge", "redaer", "--models", "models.yml"), "Did you mean `reader`?"),
    ],
)
def test_unknown_judge_is_bad_input(folder, flags, message):
    result = called("rubric", "check", "old.yaml", *flags)
    assert result.exit_code == 2
    assert message in result.stderr
