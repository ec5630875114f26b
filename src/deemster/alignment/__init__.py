"""Judges against people, and against each other."""

from deemster.alignment.cascade_calibration import CascadeCalibration, calibrate_cascade
from deemster.alignment.compute_alignment import compute_metrics
from deemster.alignment.judge_as_annotator import annotator_tests, latent_truth
from deemster.alignment.judge_comparison import compare_judges
from deemster.alignment.metrics_result import JudgeComparison, JudgeMetrics, MetricsResult, Verdict

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
