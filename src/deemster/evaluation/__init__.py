"""Connects the rooms: from a dataset, a target and metrics to a report."""

from deemster.evaluation.apart import finished
from deemster.evaluation.counting import Progress
from deemster.evaluation.door import evaluate, evaluate_async
from deemster.evaluation.job import DELTA, Job, job_of, planned, spellings
from deemster.evaluation.ledger import Keeping
from deemster.evaluation.running import run
from deemster.evaluation.stored import report_of

__all__ = [
    "DELTA",
    "Job",
    "Keeping",
    "Progress",
    "evaluate",
    "evaluate_async",
    "finished",
    "job_of",
    "planned",
    "report_of",
    "run",
    "spellings",
]
