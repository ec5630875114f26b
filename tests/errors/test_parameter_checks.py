"""What a parameter of an earlier version, and settings that are none, are answered with."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import deemster as dm


@pytest.mark.parametrize(
    ("function", "old", "now"),
    [
        (dm.evaluate, {"cache": "answers.jsonl"}, "calls=dm.ModelCalls(cache=...)"),
        (dm.evaluate, {"store": "runs.db"}, 'storage="runs.db"'),
        (dm.evaluate, {"resume": True}, 'storage=dm.Storage("runs.db", resume=True)'),
        (dm.evaluate, {"group": "generation"}, 'metrics=["group:generation"]'),
        (dm.evaluate, {"label": "before"}, 'name="..."'),
        (dm.evaluate, {"max_unscored": 1}, "settings=dm.EvaluationSettings(max_unscored=...)"),
        (dm.evaluate, {"cluster": "auto"}, "settings=dm.EvaluationSettings(on=...)"),
        (dm.evaluate_async, {"partial": True}, "settings=dm.EvaluationSettings(only_answered=True)"),
        (dm.grade, {"budget_usd": 1}, "calls=dm.ModelCalls(budget_usd=...)"),
        (dm.calibrate, {"min_kappa": 0.4}, "settings=dm.calibration.CalibrationSettings(min_kappa=...)"),
        (dm.calibrate, {"offline": True}, "calls=dm.ModelCalls(offline=...)"),
        (dm.improve_rubric, {"cache": None}, "calls=dm.ModelCalls(cache=...)"),
        (dm.improve_rubric, {"cluster": "family"}, "settings=dm.grading.ImprovementSettings(cluster=...)"),
        (dm.improve_rubric, {"rounds": 1}, "settings=dm.grading.ImprovementSettings(rounds=...)"),
        (dm.targets.HttpTarget, {"output": "answer"}, "reply=dm.targets.ReplyPaths(output=...)"),
        (dm.targets.HttpTarget, {"timeout_s": 5}, "limits=dm.targets.HttpLimits(timeout_s=...)"),
        (dm.CriterionGrader, {"auto_na": False}, "questions=dm.judges.QuestionSettings(auto_na=...)"),
        (dm.CriterionGrader, {"cascade": None}, "judges=dm.judges.Cascade(...)"),
        (dm.compute_metrics, {"seed": 7}, "bootstrap=dm.agreement.BootstrapSettings(seed=...)"),
        (dm.compute_metrics, {"n_bootstrap": 50}, "bootstrap=dm.agreement.BootstrapSettings(replicates=...)"),
        (dm.improve_rubric, {"progress_file": "x.db"}, 'storage="progress.db"'),
        (dm.audit.judge, {"limits": None}, "calls=dm.ModelCalls(...)"),
    ],
)
def test_earlier_parameter_is_answered_with_what_to_write(function, old, now):
    with pytest.raises(dm.ConfigurationError) as caught:
        function(**old)
    assert str(caught.value) == f"The parameter `{next(iter(old))}` has moved: write `{now}`."


def changelog_rows():
    """What was written before, and what is written now, by the changelog."""
    text = (Path(__file__).parents[2] / "CHANGELOG.md").read_text(encoding="utf-8")
    table = text.partition("### Settings objects of Python")[2].partition("\n### ")[0]
    return re.findall(r"^\| `(dm\..*?)` \| `(dm\..*?)` \|$", table, re.MULTILINE)


@pytest.fixture(scope="module")
def names():
    """What the rows of the changelog are about."""
    rubric = dm.Rubric.parse("- { name: brief, requirement: It is brief. }")
    items = [{"id": f"i{n}", "submission": f"Reply {n}.", "ground_truth": ["MET"]} for n in range(6)]
    labelled = dm.RubricDataset(items, rubric=rubric)
    judge = dm.Judge("judge", "judge")
    grader = dm.CriterionGrader(judge)
    models = {"judge": dm.models.FakeChat(lambda _: {"reason": "Short.", "verdict": "MET"})}
    votes = dm.grade(labelled, grader, models=models)
    return {"dm": dm, "url": "http://127.0.0.1:9/ask", **locals()}


@pytest.mark.parametrize(("before", "now"), changelog_rows())
def test_row_of_the_changelog_is_answered_and_what_is_written_now_works(before, now, names):
    with pytest.raises(dm.ConfigurationError, match="has moved: write"):
        eval(before, names)
    assert eval(now, names) is not None


def test_all_earlier_parameters_of_a_call_are_answered_at_once():
    with pytest.raises(dm.ConfigurationError) as caught:
        dm.evaluate([], store="runs.db", cache="answers.jsonl")
    assert len(caught.value.issues) == 2


def test_parameter_that_never_was_is_a_type_error():
    with pytest.raises(TypeError, match="metrcs"):
        dm.evaluate([], metrcs=["exact-match"])


def test_signature_shows_the_parameters_of_now_alone():
    parameters = inspect.signature(dm.evaluate).parameters
    assert len(parameters) == 14
    assert {"store", "cache", "kwargs"}.isdisjoint(parameters)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"calls": {"cache": "a.jsonl"}}, "`calls` is `dm.ModelCalls(...)`, not {'cache': 'a.jsonl'}."),
        ({"settings": None}, "`settings` is `dm.EvaluationSettings(...)`, not None."),
    ],
)
def test_settings_that_are_no_such_object_are_an_error(given, message):
    with pytest.raises(dm.ConfigurationError) as caught:
        dm.evaluate([], **given)
    assert str(caught.value) == message
