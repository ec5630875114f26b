"""Renders what a run came to. No arithmetic beyond formatting."""

from deemster.report.privacy_levels import LEVELS, PUBLISH_SAFE, redacted
from deemster.report.report_assembly import Samples, assemble
from deemster.report.report_document import SCHEMA, Report
from deemster.report.report_entries import (
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
from deemster.report.report_files import FORMATS, Destination, written
from deemster.report.report_loader import load_report

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
