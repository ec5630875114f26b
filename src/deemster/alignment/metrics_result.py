"""The result of alignment: every number, with what it rests on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from deemster.alignment._result_extras import (
    CalibrationMetrics,
    CorrectedMeans,
    CorrectedRate,
    CorrectedScore,
    CriterionComparison,
    Difference,
    HumanAgreement,
    HumanCriterion,
    ItemMetrics,
    JudgeComparison,
    JudgeConsistency,
    ReferenceAgreement,
    ReliabilityBin,
    SliceMetrics,
)
from deemster.alignment._result_parts import (
    AnyCriterion,
    BootstrapResult,
    BootstrapResults,
    CannotAssessStats,
    ConfusionMatrix,
    CorrelationResult,
    CoverageStats,
    CriterionMetrics,
    CriterionType,
    Intervals,
    NAStats,
    NominalCriterionMetrics,
    OptionMetrics,
    OrdinalCriterionMetrics,
    PooledScaleMetrics,
    ScoreICC,
    ScoreLimits,
)
from deemster.alignment.trust_verdict import Verdict, verdict_of
from deemster.errors import counted
from deemster.stats.proportion_intervals import ConfidenceInterval
from deemster.stats.systematic_bias import BiasResult

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "SCHEMA",
    "AnyCriterion",
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
    "CriterionType",
    "Difference",
    "HumanAgreement",
    "HumanCriterion",
    "Intervals",
    "ItemMetrics",
    "JudgeComparison",
    "JudgeConsistency",
    "JudgeMetrics",
    "MetricsResult",
    "Mode",
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
]

SCHEMA = "deemster.alignment.v1"
Mode: TypeAlias = Literal["exclude", "as_unmet", "as_category"]


class JudgeMetrics(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One judge against the truth, from its own votes that did not fail."""

    judge_id: str
    criterion_accuracy: float | None
    criterion_precision: float | None
    criterion_recall: float | None
    criterion_f1: float | None
    mean_kappa: float | None
    phi: float | None
    confusion_matrix: ConfusionMatrix | None
    score_rmse: float | None
    score_mae: float | None
    score_spearman: CorrelationResult
    score_kendall: CorrelationResult
    score_pearson: CorrelationResult
    bias: BiasResult
    binary_accuracy: float | None
    n_samples: int
    n_failed: int
    n_abstained: int
    intervals: Intervals = None


class MetricsResult(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="schema_version", tag=SCHEMA
):
    """How judges agree with people and with each other.

    Micro numbers pool pairs, macro numbers average criteria. Undefined is None. `intervals` holds the interval of each
    number by its field name, where a bootstrap was asked for. `verdict` follows from the numbers, whatever is given.
    One mark as aggregators see it has a similar name: ``dm.results.MetricResult``.
    """

    verdict: Verdict = Verdict(answer=None, floor=None, reasons=())
    criterion_accuracy: float | None
    binary_accuracy: float | None
    criterion_precision: float | None
    criterion_recall: float | None
    criterion_f1: float | None
    macro_accuracy: float | None
    mean_kappa: float | None
    mean_kappa_by_kind: dict[str, float | None]
    micro_kappa: float | None
    criterion_phi: float | None
    mean_krippendorff_alpha: float | None
    score_rmse: float | None
    score_mae: float | None
    score_spearman: CorrelationResult
    score_kendall: CorrelationResult
    score_pearson: CorrelationResult
    bias: BiasResult
    score_concordance: float | None
    score_limits: ScoreLimits | None
    score_icc: ScoreICC | None
    score_alpha: float | None
    per_criterion: tuple[AnyCriterion, ...]
    per_judge: dict[str, JudgeMetrics] | None
    bootstrap: BootstrapResults | None
    n_items: int
    n_judges: int
    n_criteria: int
    n_binary_criteria: int
    n_ordinal_criteria: int
    n_nominal_criteria: int
    n_samples: int
    cannot_assess_mode: Mode
    na_mode: Mode
    na_stats: NAStats | None
    cannot_assess_stats: CannotAssessStats | None
    coverage_stats: CoverageStats | None
    pooled_by_scale: tuple[PooledScaleMetrics, ...] | None
    slices: tuple[SliceMetrics, ...] | None = None
    human: HumanAgreement | None = None
    consistency: tuple[JudgeConsistency, ...] | None = None
    calibration: tuple[CalibrationMetrics, ...] | None = None
    corrected: CorrectedMeans | None = None
    items: tuple[ItemMetrics, ...] | None = None
    warnings: tuple[str, ...] = ()
    intervals: Intervals = None

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "verdict", verdict_of(self))

    def summary(self, *, verbose: bool = False) -> str:
        """The result as plain text for people.

        Args:
            verbose: Show errors, correlations and the confusion matrix of each judge too.
        """
        from deemster.alignment.result_summary import summary_text  # noqa: PLC0415 - loaded where it is used

        return summary_text(self, verbose=verbose)

    def to_dataframe(self) -> pd.DataFrame:
        """The result as a pandas table: a row for all, for each criterion, each judge and each slice.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        from deemster.alignment._result_dataframe import dataframe  # noqa: PLC0415 - loaded where it is used

        return dataframe(self)

    def to_json(self) -> str:
        """The result as JSON: equal results are equal text."""
        from deemster.alignment._result_file import json_of  # noqa: PLC0415 - loaded where it is used

        return json_of(self)

    def to_file(self, path: str | Path) -> None:
        """Write the result as JSON; folders are created.

        Raises:
            ReportError: The file cannot be written.
        """
        from deemster.alignment._result_file import write  # noqa: PLC0415 - loaded where it is used

        write(self, path)

    @classmethod
    def from_file(cls, path: str | Path) -> MetricsResult:
        """Read a result that `to_file` wrote; it is equal to the one that was written.

        Raises:
            ReportError: The file cannot be read, or is no such result.
        """
        from deemster.alignment._result_file import read  # noqa: PLC0415 - loaded where it is used

        return read(path)

    def __repr__(self) -> str:
        accuracy = "n/a" if self.criterion_accuracy is None else f"{self.criterion_accuracy:.4f}"
        kappa = "n/a" if self.mean_kappa is None else f"{self.mean_kappa:.4f}"
        criteria = counted(self.n_criteria, "criterion") if self.n_criteria == 1 else f"{self.n_criteria:,} criteria"
        return f"<MetricsResult: {counted(self.n_items, 'item')}, {criteria}, accuracy {accuracy}, mean kappa {kappa}>"
