"""Judges against people, and against each other: `compute_metrics` and the models of its result."""

from deemster import lazy_names

_FILES = {
    "deemster.alignment.cascade_calibration": ("CascadeCalibration", "CascadePoint", "calibrate_cascade"),
    "deemster.alignment.compute_alignment": ("align", "compute_metrics"),
    "deemster.alignment.judge_as_annotator": ("annotator_tests", "latent_truth"),
    "deemster.alignment.judge_comparison": ("compare_judges",),
    "deemster.alignment.metrics_result": ("MetricsResult",),
    "deemster.alignment.result_models": (
        "BootstrapResult",
        "BootstrapResults",
        "CalibrationBin",
        "CalibrationMetrics",
        "CannotAssessStats",
        "ConfusionMatrix",
        "CorrectedMeans",
        "CorrectedMetRate",
        "CorrectedScore",
        "CorrelationResult",
        "CoverageStats",
        "CriterionComparison",
        "CriterionMetrics",
        "Difference",
        "DisputedCell",
        "HumanAgreement",
        "HumanCriterion",
        "ItemMetrics",
        "JudgeComparison",
        "JudgeConsistency",
        "JudgeMetrics",
        "NAStats",
        "NominalCriterionMetrics",
        "OptionMetrics",
        "OrdinalCriterionMetrics",
        "PooledScaleMetrics",
        "PositionBias",
        "ReferenceAgreement",
        "ScoreICC",
        "ScoreLimits",
        "SliceMetrics",
    ),
    "deemster.alignment.trust_verdict": ("TrustVerdict",),
    "deemster.stats.confidence_interval": ("ConfidenceInterval",),
    "deemster.stats.systematic_bias": ("BiasResult",),
}

__getattr__, __all__ = lazy_names(__name__, _FILES)
