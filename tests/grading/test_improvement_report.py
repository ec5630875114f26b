"""The report of an improvement, and hostile text in it."""

from __future__ import annotations

import json

from deemster.agreement.agreement_gain import compare_agreement
from deemster.grading.improvement_report import Improvement, TargetCriterion, WordingTrial
from deemster.rubrics import Criterion, Rubric

HOSTILE = "```\n# Heading | <img src=x> @team https://evil.example `x`"
OLD = Rubric((Criterion("Is good.", name="a|b"),))
NEW = Rubric((Criterion(f"Says ```` {HOSTILE.replace(chr(10), ' ')}", name="a|b"),))


def improvement(**changes):
    gain = compare_agreement([0.0] * 8, [1.0] * 8)
    fields = {
        "before": OLD,
        "after": NEW,
        "targets": (
            TargetCriterion(
                criterion="a|b",
                requirement="Is good.",
                train_n=8,
                train_agreement=0.5,
                train_disagreements=4,
                held_out_n=8,
                held_out_agreement=0.0,
                least_p=2**-8,
            ),
        ),
        "tries": (
            WordingTrial(
                round=1,
                criterion="a|b",
                decision="accepted",
                level=0.05,
                requirement=NEW.criteria[0].requirement,
                diagnosis=HOSTILE * 30,
                train=gain,
                held_out=gain,
            ),
            WordingTrial(round=1, criterion="c", decision="refused", level=0.05, message=HOSTILE),
        ),
        "alpha": 0.05,
        "family": 2,
        "train_items": 8,
        "held_out_items": 8,
        "stopped": "all rounds are over",
    }
    return Improvement(**(fields | changes))


def test_text_from_models_stays_text():
    text = improvement().to_markdown()
    before, _, diff = text.partition("## Diff")
    assert "<img" not in before
    assert "https://" not in before
    assert "@team" not in before
    assert [line for line in before.splitlines() if line.startswith("# ")] == ["# Rubric improvement"]
    fence = next(line for line in diff.splitlines() if line.startswith("```")).removesuffix("diff")
    assert diff.rstrip().endswith(f"\n{fence}")
    assert fence not in "\n".join(diff.split("\n")[3:-2])


def test_long_diagnosis_is_not_cut():
    assert improvement().to_markdown().count("Heading") >= 30


def test_incomplete_improvement_warns_first():
    text = improvement(complete=False, stopped="the budget is used up").to_markdown()
    assert text.splitlines()[2].startswith("**Warning: this is incomplete")


def test_without_a_change_there_is_no_diff():
    found = improvement(after=OLD, tries=())
    assert found.diff == ""
    assert "## Diff" not in found.to_markdown()
    assert "No wording was accepted" in found.to_markdown()


def test_json_holds_every_try_with_its_numbers():
    told = json.loads(improvement().to_json())
    assert told["accepted"] == ["a|b"]
    assert told["tries"][0]["held_out"]["p_value"] == 2**-8
    assert told["tries"][1]["held_out"] is None
    assert told["before"]["criteria"][0]["requirement"] == "Is good."
    assert improvement().to_json() == improvement().to_json()
