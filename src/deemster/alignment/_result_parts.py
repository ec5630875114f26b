"""The parts of an alignment result: intervals, correlations, coverage, confusion matrices, criteria, options."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from deemster.stats.proportion_intervals import ConfidenceInterval

_MET_TABLE = ("MET", "UNMET")


class BootstrapResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One number under resampling; `ci` and `standard_error` are None where too few replicates are defined.

    Attributes:
        estimate: The number itself, from the data as they are.
        ci: Its interval, which names its level and method.
        standard_error: The standard deviation of the replicates.
        n_bootstrap: Replicates in which the number is defined.
        bootstrap_distribution: The replicates, where they were kept.
    """

    estimate: float | None
    ci: ConfidenceInterval | None
    standard_error: float | None
    n_bootstrap: int
    bootstrap_distribution: tuple[float, ...] | None = None


# By field name; a dotted name such as `score_icc.icc_2_1` is a field of a part.
Intervals: TypeAlias = dict[str, BootstrapResult] | None


class BootstrapResults(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the intervals of a result were drawn, with the three that are asked for most."""

    accuracy_ci: tuple[float, float] | None
    kappa_ci: tuple[float, float] | None
    rmse_ci: tuple[float, float] | None
    n_bootstrap: int
    confidence_level: float
    seed: int
    method: str
    unit: str


class CorrelationResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A correlation with what it rests on; the coefficient is None below three pairs or for a constant side."""

    coefficient: float | None
    p_value: float | None
    ci: ConfidenceInterval | None
    interpretation: str
    n_samples: int
    method: Literal["spearman", "kendall", "pearson"]


class ScoreLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The limits of agreement between predicted and true scores: mean difference ± z standard deviations."""

    mean: float | None
    lower: float | None
    upper: float | None
    lower_ci: ConfidenceInterval | None
    upper_ci: ConfidenceInterval | None
    n_samples: int


class ScoreICC(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The six intraclass correlations of the judges' item scores, over items that every judge scored."""

    icc_1_1: float | None
    icc_2_1: float | None
    icc_3_1: float | None
    icc_1_k: float | None
    icc_2_k: float | None
    icc_3_k: float | None
    n_items: int
    n_judges: int


class CoverageStats(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which share of the labelled pairs the numbers rest on, and why the rest is out."""

    n_total: int
    n_covered: int
    coverage: float | None
    judge_abstain_rate: float | None
    gt_abstain_rate: float | None
    union_exclusion_rate: float | None
    n_errored: int
    error_rate: float | None
    intervals: Intervals = None


class NAStats(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Agreement about when a multi-choice criterion does not apply, in every mode the same."""

    na_count_true: int
    na_count_pred: int
    na_kappa: float | None
    na_kappa_interpretation: str
    na_false_positive: int
    na_false_negative: int
    intervals: Intervals = None


class CannotAssessStats(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Agreement about when a binary criterion cannot be assessed, in every mode the same."""

    ca_count_true: int
    ca_count_pred: int
    ca_kappa: float | None
    ca_kappa_interpretation: str
    ca_false_positive: int
    ca_false_negative: int
    intervals: Intervals = None


class ConfusionMatrix(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Counts of pairs: a row for each true label, a column for each predicted one.

    >>> table = ConfusionMatrix(matrix=((8, 2), (1, 9)), labels=("MET", "UNMET"))
    >>> table.total, table.tp, table.fn, table.fnr
    (20, 8, 2, 0.2)
    """

    matrix: tuple[tuple[int, ...], ...]
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.matrix) != len(self.labels) or any(len(row) != len(self.labels) for row in self.matrix):
            shape = " + ".join(str(len(row)) for row in self.matrix)
            raise ValueError(
                f"A confusion matrix has a row and a column for each of its {len(self.labels)} labels; "
                f"this one has the rows {shape or 'none'}."
            )

    @property
    def n_classes(self) -> int:
        """How many labels there are."""
        return len(self.labels)

    @property
    def total(self) -> int:
        """How many pairs there are."""
        return sum(map(sum, self.matrix))

    @property
    def tp(self) -> int:
        """Pairs that are MET on both sides.

        Raises:
            ValueError: The table is not MET against UNMET.
        """
        return self._cell("tp", 0, 0)

    @property
    def fn(self) -> int:
        """Pairs that are MET in truth and UNMET for the judge.

        Raises:
            ValueError: The table is not MET against UNMET.
        """
        return self._cell("fn", 0, 1)

    @property
    def fp(self) -> int:
        """Pairs that are UNMET in truth and MET for the judge.

        Raises:
            ValueError: The table is not MET against UNMET.
        """
        return self._cell("fp", 1, 0)

    @property
    def tn(self) -> int:
        """Pairs that are UNMET on both sides.

        Raises:
            ValueError: The table is not MET against UNMET.
        """
        return self._cell("tn", 1, 1)

    @property
    def fpr(self) -> float | None:
        """The share of true UNMET that the judge calls MET; None without a true UNMET.

        Raises:
            ValueError: The table is not MET against UNMET.
        """
        return _share(self.fp, self.fp + self.tn)

    @property
    def fnr(self) -> float | None:
        """The share of true MET that the judge calls UNMET; None without a true MET.

        Raises:
            ValueError: The table is not MET against UNMET.
        """
        return _share(self.fn, self.fn + self.tp)

    @property
    def precision(self) -> float | None:
        """The share of the judge's MET that are MET in truth; None where the judge says MET to nothing.

        Raises:
            ValueError: The table is not MET against UNMET.
        """
        return _share(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float | None:
        """The share of true MET that the judge calls MET; None without a true MET.

        Raises:
            ValueError: The table is not MET against UNMET.
        """
        return _share(self.tp, self.tp + self.fn)

    def _cell(self, name: str, truth: int, judged: int) -> int:
        if self.labels != _MET_TABLE:
            labels = ", ".join(self.labels)
            raise ValueError(f"`{name}` belongs to a table of MET against UNMET; this one has {labels or 'no labels'}.")
        return self.matrix[truth][judged]


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


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
