"""Judges against people, and against each other."""

from deemster.alignment.annotators import annotator_tests, latent_truth
from deemster.alignment.cascade import CascadeCalibration, calibrate_cascade
from deemster.alignment.comparison import compare_judges
from deemster.alignment.compute import compute_metrics
from deemster.alignment.models import JudgeComparison, JudgeMetrics, MetricsResult, Verdict

__all__ = [
    "CascadeCalibration",
    "JudgeComparison",
    "JudgeMetrics",
    "MetricsResult",
    "Verdict",
    "annotator_tests",
    "calibrate_cascade",
    "compare_judges",
    "compute_metrics",
    "latent_truth",
]
