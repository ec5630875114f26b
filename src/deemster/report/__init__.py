"""Renders what a run came to. No arithmetic beyond formatting."""

from deemster import lazy_names

_FILES = {
    "deemster.report.audit_report": ("AuditReport",),
    "deemster.report.comparison_report": ("ComparisonReport",),
    "deemster.report.improvement_report": ("Improvement",),
    "deemster.report.privacy_levels": ("LEVELS", "PUBLISH_SAFE", "redact_report"),
    "deemster.report.report_assembly": ("RunSamples", "assemble_report"),
    "deemster.report.report_document": ("Report", "SCHEMA"),
    "deemster.report.report_entries": (
        "BudgetEntry",
        "DatasetEntry",
        "ExecutionEntry",
        "FailureEntry",
        "PrivacyEntry",
        "RunEntry",
        "ScoreEntry",
        "UnscoredEntry",
        "UnscoredReason",
    ),
    "deemster.report.report_files": ("FORMATS", "write_report"),
    "deemster.report.report_loader": ("load_comparison", "load_report"),
    "deemster.results.sample_summary": ("SampleEntry",),
    "deemster.text.destination": ("Destination",),
}

__getattr__, __all__ = lazy_names(__name__, _FILES)
