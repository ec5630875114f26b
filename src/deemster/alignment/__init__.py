"""Judges against people, and against each other."""

from deemster.alignment.annotators import annotator_tests, latent_truth
from deemster.alignment.comparison import compare_judges
from deemster.alignment.compute import compute_metrics
from deemster.alignment.models import JudgeComparison, JudgeMetrics, MetricsResult, Verdict

__all__ = [
    "JudgeComparison",
    "JudgeMetrics",
    "MetricsResult",
    "Verdict",
    "annotator_tests",
    "compare_judges",
    "compute_metrics",
    "latent_truth",
]
