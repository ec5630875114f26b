"""Judges against people, and against each other."""

from deemster import lazy_names

_FILES = {
    "deemster.alignment.cascade_calibration": ("CascadeCalibration", "CascadePoint", "calibrate_cascade"),
    "deemster.alignment.compute_alignment": ("align", "compute_metrics"),
    "deemster.alignment.judge_as_annotator": ("annotator_tests", "latent_truth"),
    "deemster.alignment.judge_comparison": ("compare_judges",),
    "deemster.alignment.metrics_result": (
        "BiasResult",
        "BootstrapResult",
        "BootstrapResults",
        "CalibrationMetrics",
        "CannotAssessStats",
        "ConfidenceInterval",
        "ConfusionMatrix",
        "CorrectedMeans",
        "CorrectedRate",
        "CorrectedScore",
        "CorrelationResult",
        "CoverageStats",
        "CriterionComparison",
        "CriterionMetrics",
        "Difference",
        "HumanAgreement",
        "HumanCriterion",
        "ItemMetrics",
        "JudgeComparison",
        "JudgeConsistency",
        "JudgeMetrics",
        "MetricsResult",
        "NAStats",
        "NominalCriterionMetrics",
        "OptionMetrics",
        "OrdinalCriterionMetrics",
        "PooledScaleMetrics",
        "ReferenceAgreement",
        "ReliabilityBin",
        "ScoreICC",
        "ScoreLimits",
        "SliceMetrics",
        "Verdict",
    ),
}

__getattr__, __all__ = lazy_names(__name__, _FILES)
