"""`deemster align --cascade`."""

from __future__ import annotations

import json

import pytest

from tests.alignment.make_votes import FACTS, votes_value
from tests.alignment.test_cascade_calibration import FOUR
from tests.cli.workspace import called
from tests.test_schemas import validator

COSTS = ("--cost", "cheap=1", "--cost", "strong=10")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    value = votes_value(FOUR, criteria=(FACTS,), judges=("cheap", "strong"))
    (tmp_path / "votes.json").write_text(json.dumps(value))
    bare = [{key: item[key] for key in item if key != "ground_truth"} for item in value["items"]]
    (tmp_path / "bare.json").write_text(json.dumps({**value, "items": bare}))
    labels = [{"id": item["id"], "submission": "x", "ground_truth": item["ground_truth"]} for item in value["items"]]
    (tmp_path / "labels.json").write_text(json.dumps({"rubric": value["rubric"], "items": labels}))
    return tmp_path


def test_table_and_the_choice_are_printed():
    result = called("align", "votes.json", "--cascade", "cheap", *COSTS, "--seed", "7")
    assert result.exit_code == 0
    assert "Escalate below a confidence of 0.7" in result.stdout
    assert "always escalate" in result.stdout
    assert result.stderr == ""


def test_labels_from_dataset_give_same_json():
    own = called("align", "votes.json", "--cascade", "cheap", *COSTS, "--seed", "7", "--json", "-")
    joined = called(
        "align", "bare.json", "--dataset", "labels.json", "--cascade", "cheap", *COSTS, "--seed", "7", "--json", "-"
    )
    assert own.stdout == joined.stdout
    found = json.loads(own.stdout)
    validator("cascade").validate(found)
    assert (found["schema_version"], found["choice"]["threshold"], found["pays"]) == ("deemster.cascade.v1", 0.7, True)
    assert [point["accuracy"] for point in found["points"]] == [0.5, 0.75, 0.5, 0.75, 0.75]


def test_without_a_seed_the_same_votes_give_the_same_cascade():
    first, again, seeded = (
        called("align", "votes.json", "--cascade", "cheap", *COSTS, *more) for more in ((), (), ("--seed", "0"))
    )
    assert (first.exit_code, first.stderr) == (0, "")
    assert first.stdout == again.stdout == seeded.stdout


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--cascade", "chep", *COSTS], "Did you mean `cheap`?"),
        (["--cascade", "cheap", "--cost", "cheap=1"], "give it as `--cost JUDGE=USD`"),
        (["--cascade", "cheap", "--cost", "cheap"], "`--cost` is JUDGE=USD"),
        (["--cascade", "cheap", *COSTS, "--cost", "cheap=2"], "given twice"),
        (["--cascade", "cheap", *COSTS, "--tolerance", "2"], "`--tolerance` is a share"),
        (["--cascade", "cheap", *COSTS, "--fresh-items", "0"], "`--fresh-items` is a whole number"),
        (["--cascade", "cheap", *COSTS, "--per-judge"], "`--per-judge` has no effect beside `--cascade`"),
        (["--strong", "strong"], "`--strong` needs `--cascade`"),
    ],
)
def test_unusable_flags_are_error(flags, message):
    result = called("align", "votes.json", *flags)
    assert result.exit_code == 2
    assert message in result.stderr
