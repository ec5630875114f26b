"""Renders what a run came to. No arithmetic beyond formatting."""

from deemster import lazy_names

_FILES = {
    "deemster.report.improvement_report": ("Improvement",),
    "deemster.report.privacy_levels": ("LEVELS", "PUBLISH_SAFE", "redacted"),
    "deemster.report.report_assembly": ("Samples", "assemble"),
    "deemster.report.report_document": ("Report", "SCHEMA"),
    "deemster.report.report_entries": (
        "Budget",
        "DatasetNote",
        "ExecutionEntry",
        "Failure",
        "NoScore",
        "Privacy",
        "RunNote",
        "SampleEntry",
        "Score",
        "Why",
    ),
    "deemster.report.report_files": ("Destination", "FORMATS", "written"),
    "deemster.report.report_loader": ("load_report",),
}

__getattr__, __all__ = lazy_names(__name__, _FILES)
