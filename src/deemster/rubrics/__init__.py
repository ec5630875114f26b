"""What good means: criteria, options, rubrics, and the scores that verdicts come to."""

from deemster.rubrics.criterion import FAILED, FAILED_WORST, MISSING, Check, Criterion, Option
from deemster.rubrics.length_penalty import LengthPenalty, Parts, submission_parts
from deemster.rubrics.rubric_definition import Rubric, Section, read_rubric
from deemster.rubrics.rubric_format import SCHEMA
from deemster.rubrics.rubric_scoring import RubricScore, Scores, Scoring, rubric_score, rubric_scores
from deemster.rubrics.vote_aggregation import Aggregated, Rules, aggregate

__all__ = [
    "FAILED",
    "FAILED_WORST",
    "MISSING",
    "SCHEMA",
    "Aggregated",
    "Check",
    "Criterion",
    "LengthPenalty",
    "Option",
    "Parts",
    "Rubric",
    "RubricScore",
    "Rules",
    "Scores",
    "Scoring",
    "Section",
    "aggregate",
    "read_rubric",
    "rubric_score",
    "rubric_scores",
    "submission_parts",
]
