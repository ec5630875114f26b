"""Connects the rooms: from a dataset, a target and metrics to a report."""

from deemster.runs.evaluate_dataset import evaluate, evaluate_async
from deemster.runs.evaluation_job import DELTA, Job, job_of, planned, spellings
from deemster.runs.progress import Progress
from deemster.runs.run_job import run
from deemster.runs.run_sync import run_sync
from deemster.runs.run_writer import Keeping
from deemster.runs.stored_run import report_of

__all__ = [
    "DELTA",
    "Job",
    "Keeping",
    "Progress",
    "evaluate",
    "evaluate_async",
    "job_of",
    "planned",
    "report_of",
    "run",
    "run_sync",
    "spellings",
]
