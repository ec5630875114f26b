"""Arguments of `evaluate`, `grade` and `compute_metrics`, where a test gives some by the names of their objects."""

from __future__ import annotations

from typing import Any

import deemster as dm


def agreement_arguments(**given: Any) -> dict[str, Any]:
    """What is said of a bootstrap in its object, for `compute_metrics` and `compare_judges`; the rest as it is."""
    kind = dm.agreement.BootstrapSettings
    bootstrap = {name: given.pop(name) for name in kind._fields if name in given}
    return {"bootstrap": kind(**bootstrap), **given}


def grader_arguments(**given: Any) -> dict[str, Any]:
    """What is said of votes, scores and questions, each in its object, for a grader; the rest as it is."""
    objects = {"rules": dm.rubrics.Rules, "scoring": dm.rubrics.Scoring, "questions": dm.judges.QuestionSettings}
    for parameter, kind in objects.items():
        fields = {name: given.pop(name) for name in kind.__match_args__ if name in given}
        if fields:
            given[parameter] = kind(**fields)
    return given


def arguments(**given: Any) -> dict[str, Any]:
    """What is said of models, of storage and rarely, each in its object; the rest as it is."""
    calls = {name: given.pop(name) for name in dm.ModelCalls._fields if name in given}
    rare = {name: given.pop(name) for name in dm.EvaluationSettings._fields if name in given}
    if calls:
        given["calls"] = given.get("calls", dm.ModelCalls())._replace(**calls)
    if rare:
        given["settings"] = given.get("settings", dm.EvaluationSettings())._replace(**rare)
    if given.get("where") is not None:
        given["storage"] = dm.Storage(**{name: given.pop(name) for name in dm.Storage._fields if name in given})
    given.pop("where", None)
    return given
