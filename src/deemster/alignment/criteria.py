"""What alignment says of one criterion, of one option, and of all criteria of a kind together."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from deemster.alignment.parts import ConfusionMatrix, CorrelationResult, CoverageStats, Intervals

CriterionType: TypeAlias = Literal["binary", "ordinal", "nominal"]


class OptionMetrics(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One option against all others."""

    label: str
    index: int
    precision: float | None
    recall: float | None
    f1: float | None
    support_true: int
    support_pred: int
    intervals: Intervals = None


class CriterionMetrics(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="criterion_type", tag="binary"
):
    """A binary criterion: truth against final verdict, and the judges among each other."""

    name: str
    index: int
    n_samples: int
    accuracy: float | None
    precision: float | None
    recall: float | None
    f1: float | None
    kappa: float | None
    kappa_interpretation: str
    phi: float | None
    fpr: float | None
    fnr: float | None
    support_true: int
    support_pred: int
    confusion_matrix: ConfusionMatrix | None
    krippendorff_alpha: float | None
    fleiss_kappa: float | None
    is_degenerate: bool
    coverage_stats: CoverageStats | None
    balanced_accuracy: float | None
    scott_pi: float | None
    pabak: float | None
    gwet_ac: float | None
    panel_gwet_ac: float | None
    intervals: Intervals = None

    @property
    def criterion_type(self) -> CriterionType:
        """The kind of criterion."""
        return "binary"


class OrdinalCriterionMetrics(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="criterion_type", tag="ordinal"
):
    """A criterion whose options are ordered."""

    name: str
    index: int
    n_samples: int
    n_options: int
    exact_accuracy: float | None
    adjacent_accuracy: float | None
    weighted_kappa: float | None
    kappa_interpretation: str
    krippendorff_alpha: float | None
    fleiss_kappa: float | None
    spearman: CorrelationResult
    kendall: CorrelationResult
    rmse: float | None
    mae: float | None
    per_option: tuple[OptionMetrics, ...]
    confusion_matrix: ConfusionMatrix | None
    is_degenerate: bool
    coverage_stats: CoverageStats | None
    linear_kappa: float | None
    balanced_accuracy: float | None
    scott_pi: float | None
    pabak: float | None
    gwet_ac: float | None
    panel_gwet_ac: float | None
    intervals: Intervals = None

    @property
    def criterion_type(self) -> CriterionType:
        """The kind of criterion."""
        return "ordinal"


class NominalCriterionMetrics(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="criterion_type", tag="nominal"
):
    """A criterion whose options have no order."""

    name: str
    index: int
    n_samples: int
    n_options: int
    exact_accuracy: float | None
    kappa: float | None
    kappa_interpretation: str
    krippendorff_alpha: float | None
    fleiss_kappa: float | None
    per_option: tuple[OptionMetrics, ...]
    confusion_matrix: ConfusionMatrix | None
    is_degenerate: bool
    coverage_stats: CoverageStats | None
    balanced_accuracy: float | None
    scott_pi: float | None
    pabak: float | None
    gwet_ac: float | None
    panel_gwet_ac: float | None
    intervals: Intervals = None

    @property
    def criterion_type(self) -> CriterionType:
        """The kind of criterion."""
        return "nominal"


AnyCriterion: TypeAlias = CriterionMetrics | OrdinalCriterionMetrics | NominalCriterionMetrics


class PooledScaleMetrics(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All pairs of one kind of criterion, pooled where items have different rubrics.

    Errors and correlations are on option values; kappa, phi and what depends on MET exist for binary criteria only.
    """

    scale_type: CriterionType
    n_points: int
    exact_accuracy: float | None
    value_rmse: float | None
    value_mae: float | None
    value_spearman: float | None
    value_pearson: float | None
    kappa: float | None
    phi: float | None
    precision: float | None
    recall: float | None
    f1: float | None
    confusion_matrix: ConfusionMatrix | None
    n_abstain: int
    intervals: Intervals = None
