"""Renders what a run came to. No arithmetic beyond formatting."""

from deemster.report.assembly import Samples, assemble
from deemster.report.document import SCHEMA, Report
from deemster.report.entries import (
    Budget,
    DatasetNote,
    ExecutionEntry,
    Failure,
    NoScore,
    Privacy,
    RunNote,
    SampleEntry,
    Score,
    Why,
)
from deemster.report.loading import load_report
from deemster.report.privacy import LEVELS, PUBLISH_SAFE, redacted
from deemster.report.writing import FORMATS, Destination, written

__all__ = [
    "FORMATS",
    "LEVELS",
    "PUBLISH_SAFE",
    "SCHEMA",
    "Budget",
    "DatasetNote",
    "Destination",
    "ExecutionEntry",
    "Failure",
    "NoScore",
    "Privacy",
    "Report",
    "RunNote",
    "SampleEntry",
    "Samples",
    "Score",
    "Why",
    "assemble",
    "load_report",
    "redacted",
    "written",
]
