"""A rubric with every kind of criterion, cases to grade, and scripted judges."""

from __future__ import annotations

import json
import re

from deemster.datasets import RubricDataset
from deemster.judges.criterion_grader import CriterionGrader
from deemster.judges.grading_case import make_case
from deemster.judges.judge_panel import Judge
from deemster.records import Answer, Usage
from tests.builders.arguments import grader_arguments
from tests.judges.play import answered

FACTS = {"name": "facts", "weight": 10, "requirement": "Every claim is supported."}
FLUFF = {"name": "fluff", "weight": -4, "requirement": "The text repeats itself."}
DEPTH = {
    "name": "depth",
    "weight": 6,
    "requirement": "How deep is it?",
    "options": [
        {"label": "poor", "value": 0},
        {"label": "fair", "value": 0.5},
        {"label": "good", "value": 1},
        {"label": "n-a", "na": True},
    ],
}
TONE = {
    "name": "tone",
    "weight": 2,
    "requirement": "Which tone has it?",
    "scale_type": "nominal",
    "options": [{"label": "curt", "value": 0.2}, {"label": "warm", "value": 1}, {"label": "cold", "value": 0}],
}
RUBRIC = {"criteria": [FACTS, FLUFF, DEPTH, TONE]}
ALIKE = Usage(prompt_tokens=100, completion_tokens=10, cost_usd=1)


def dataset(*items, rubric=RUBRIC, **facts):
    given = [{"submission": item} if isinstance(item, str) else item for item in items or ("Paris.",)]
    return RubricDataset(given, rubric=rubric, **facts)


def case(submission="Paris.", rubric=RUBRIC, **facts):
    item = submission if isinstance(submission, dict) else {"submission": submission}
    return make_case(dataset(item, rubric=rubric, **facts), 0)


def grader(judges="a", **options):
    """A grader with one judge per letter; each judge has a role of the same name."""
    return CriterionGrader([Judge(name, name) for name in judges], **grader_arguments(**options))


def options_of(ask):
    """The labels of a question's options in the order they are shown."""
    return re.findall(r"^\d+\. (.*)$", ask.messages[1].content, re.MULTILINE)


def subject(ask, rubric=RUBRIC):
    """The name of the criterion a question is about."""
    (name,) = [each["name"] for each in rubric["criteria"] if f"\n{each['requirement']}\n" in ask.messages[1].content]
    return name


def reply(ask, label, *, reason="Because.", usage=None, thinking=None):
    """The answer that means a label."""
    shown = options_of(ask)
    said = {"option": shown.index(label) + 1} if shown else {"verdict": label}
    return Answer(text=json.dumps({"reason": reason, **said}), usage=usage, thinking=thinking)


def says(verdicts, **more):
    """Judges with scripted labels by criterion, common or one for each judge; a full reply is sent unchanged."""

    def answer(ask):
        said = verdicts[subject(ask)]
        if isinstance(said, dict):
            said = said[ask.role]
        return reply(ask, said, **more) if isinstance(said, str) else said

    return answer


def graded(verdicts, *, judges="a", submission="Paris.", rubric=RUBRIC, checks=None, **options):
    """The grading of one item by judges with these labels."""
    answer = verdicts if callable(verdicts) else says(verdicts)
    return answered(grader(judges, **options).script(case(submission, rubric), checks=checks), answer)[0]


def finals(item):
    return [each.verdict for each in item.criteria]
