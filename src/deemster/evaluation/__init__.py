"""Connects the rooms: from a dataset, a target and metrics to a report."""

from deemster.evaluation.apart import finished
from deemster.evaluation.counting import Progress
from deemster.evaluation.door import evaluate, evaluate_async
from deemster.evaluation.job import DELTA, Job, job_of, planned, spellings
from deemster.evaluation.running import run

__all__ = [
    "DELTA",
    "Job",
    "Progress",
    "evaluate",
    "evaluate_async",
    "finished",
    "job_of",
    "planned",
    "run",
    "spellings",
]
