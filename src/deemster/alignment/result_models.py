"""The models that a `MetricsResult` is made of: criteria, judges, coverage, intervals, slices."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from deemster.stats.confidence_interval import ConfidenceInterval
from deemster.stats.interpretation import interpret_correlation
from deemster.stats.systematic_bias import BiasResult

AbstentionMode: TypeAlias = Literal["exclude", "as_unmet", "as_category"]
CriterionType: TypeAlias = Literal["binary", "ordinal", "nominal"]
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

    # Where users of autorubric look for it.
    interpret_correlation = staticmethod(interpret_correlation)


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
    """Which share of the labelled pairs the numbers rest on, and why the rest is out.

    A disputed pair is one on which the annotators are tied: it was labelled, and has no truth to compare with.
    """

    n_total: int
    n_covered: int
    coverage: float | None
    judge_abstain_rate: float | None
    gt_abstain_rate: float | None
    union_exclusion_rate: float | None
    n_errored: int
    error_rate: float | None
    n_disputed: int = 0
    disputed_rate: float | None = None
    intervals: Intervals = None


class NAStats(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Agreement about when a multi-choice criterion does not apply, in every mode the same."""

    na_count_true: int
    na_count_pred: int
    na_kappa: float | None
    na_kappa_interpretation: str | None
    na_false_positive: int
    na_false_negative: int
    intervals: Intervals = None


class CannotAssessStats(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Agreement about when a binary criterion cannot be assessed, in every mode the same."""

    ca_count_true: int
    ca_count_pred: int
    ca_kappa: float | None
    ca_kappa_interpretation: str | None
    ca_false_positive: int
    ca_false_negative: int
    intervals: Intervals = None


class ConfusionMatrix(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Counts of pairs: a row for each true label, a column for each predicted one.

    The cells `tp`, `fn`, `fp`, `tn` and the rates belong to a table of MET against UNMET; on any other table they raise
    a ValueError.

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
        """Pairs that are MET on both sides."""
        return self._cell("tp", 0, 0)

    @property
    def fn(self) -> int:
        """Pairs that are MET in truth and UNMET for the judge."""
        return self._cell("fn", 0, 1)

    @property
    def fp(self) -> int:
        """Pairs that are UNMET in truth and MET for the judge."""
        return self._cell("fp", 1, 0)

    @property
    def tn(self) -> int:
        """Pairs that are UNMET on both sides."""
        return self._cell("tn", 1, 1)

    @property
    def fpr(self) -> float | None:
        """The share of true UNMET that the judge calls MET; None without a true UNMET."""
        return _share(self.fp, self.fp + self.tn)

    @property
    def fnr(self) -> float | None:
        """The share of true MET that the judge calls UNMET; None without a true MET."""
        return _share(self.fn, self.fn + self.tp)

    @property
    def precision(self) -> float | None:
        """The share of the judge's MET that are MET in truth; None where the judge says MET to nothing."""
        return _share(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float | None:
        """The share of true MET that the judge calls MET; None without a true MET."""
        return _share(self.tp, self.tp + self.fn)

    def _cell(self, name: str, truth: int, judged: int) -> int:
        if self.labels != _MET_TABLE:
            labels = ", ".join(self.labels)
            raise ValueError(f"`{name}` belongs to a table of MET against UNMET; this one has {labels or 'no labels'}.")
        return self.matrix[truth][judged]


def _share(part: int, total: int) -> float | None:
    return part / total if total else None


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


class CriterionModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="criterion_type"):
    """A criterion of any kind; `criterion_type` is its kind, in Python and in files."""

    @property
    def criterion_type(self) -> CriterionType:
        """The kind of criterion."""
        kind: CriterionType = self.__struct_config__.tag  # type: ignore[assignment]
        return kind


class CriterionMetrics(CriterionModel, frozen=True, kw_only=True, tag="binary"):
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


class OrdinalCriterionMetrics(CriterionModel, frozen=True, kw_only=True, tag="ordinal"):
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


class NominalCriterionMetrics(CriterionModel, frozen=True, kw_only=True, tag="nominal"):
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


AnyCriterion: TypeAlias = CriterionMetrics | OrdinalCriterionMetrics | NominalCriterionMetrics


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


class SliceMetrics(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The items of one tag; a difference is this slice minus all other items."""

    tag: str
    n_items: int
    n_samples: int
    n_scores: int
    criterion_accuracy: float | None
    mean_kappa: float | None
    score_rmse: float | None
    bias: float | None
    accuracy_difference: float | None
    kappa_difference: float | None
    rmse_difference: float | None
    bias_difference: float | None
    intervals: Intervals = None


class ReferenceAgreement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one annotator, judge or panel agrees with the consensus of people it is not part of."""

    name: str
    accuracy: float | None
    mean_kappa: float | None
    n_samples: int


class HumanCriterion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How annotators agree among each other on one criterion; units have two labels or more."""

    name: str
    index: int
    criterion_type: CriterionType
    krippendorff_alpha: float | None
    n_units: int


class DisputedCell(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A cell on which annotators are tied, and what each of them said."""

    item: str
    criterion: str
    labels: dict[str, str]


class HumanAgreement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What people reach among themselves, and how far the judges are from it.

    Attributes:
        n_annotators: People with at least one label.
        n_items: Items with two annotators or more.
        krippendorff_alpha: The mean of the criteria's alphas, defined ones.
        per_criterion: The alphas.
        annotators: Each person against the consensus of the others.
        ceiling_accuracy: The mean accuracy of `annotators`.
        ceiling_kappa: The mean kappa of `annotators`.
        panel: The final verdicts against the same references.
        judges: Each judge against the same references.
        accuracy_gap: The panel's accuracy minus the ceiling.
        kappa_gap: The panel's kappa minus the ceiling.
        pairwise_kappa: Kappa over all pairs of two people's labels of one cell, the mean over criteria. It looks at
            every cell that two people labelled, those they do not agree on included.
        panel_pairwise_kappa: The same over all pairs of the panel's verdict and a person's label of these cells.
        pairwise_kappa_gap: The second minus the first: from 0 on, the panel agrees with people as they do.
        n_cells: Cells that two people or more labelled, which these numbers rest on.
        n_labelled_cells: All cells with a label.
        disputed: The cells on which people are tied, for someone to decide.
        intervals: The intervals of the numbers above, by field name.
    """

    n_annotators: int
    n_items: int
    krippendorff_alpha: float | None
    per_criterion: tuple[HumanCriterion, ...]
    annotators: tuple[ReferenceAgreement, ...]
    ceiling_accuracy: float | None
    ceiling_kappa: float | None
    panel: ReferenceAgreement
    judges: tuple[ReferenceAgreement, ...]
    accuracy_gap: float | None
    kappa_gap: float | None
    pairwise_kappa: float | None = None
    panel_pairwise_kappa: float | None = None
    pairwise_kappa_gap: float | None = None
    n_cells: int = 0
    n_labelled_cells: int = 0
    disputed: tuple[DisputedCell, ...] = ()
    intervals: Intervals = None


class JudgeConsistency(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one judge repeats itself, over the cells it was asked more than once.

    Attributes:
        judge_id: The judge.
        n_cells: Cells with two usable repeats or more.
        n_repeats: Usable repeats in them.
        stable_share: The share of cells whose repeats are all equal.
        pairwise_agreement: The mean over cells of the share of equal pairs of repeats.
        krippendorff_alpha: Alpha with the repeats as raters, the mean over criteria.
    """

    judge_id: str
    n_cells: int
    n_repeats: int
    stable_share: float | None
    pairwise_agreement: float | None
    krippendorff_alpha: float | None


class CalibrationBin(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One point of a reliability curve; the interval is of the observed share."""

    lower: float
    upper: float
    n_samples: int
    mean_probability: float | None
    observed_share: float | None
    ci: ConfidenceInterval | None


class CalibrationMetrics(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether a judge's probabilities mean what they say.

    Attributes:
        judge_id: The judge; None for all judges together.
        scale: Binary criteria (P(MET)), or multi-choice ones (a probability for each option).
        n_samples: Labelled cells with a probability.
        brier: The mean squared error; multi-choice: summed over options.
        calibration_error: The expected calibration error over ten bins of equal width.
        curve: The bins.
    """

    judge_id: str | None
    scale: Literal["binary", "multi-choice"]
    n_samples: int
    brier: float | None
    calibration_error: float | None
    curve: tuple[CalibrationBin, ...]


class CorrectedScore(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The mean true score over all items, labelled or not, corrected by the labelled ones (PPI++).

    Attributes:
        value: The corrected mean.
        ci: Its interval.
        standard_error: Its standard error.
        weight: How much the predictions are trusted, 0 to 1 (the lambda of PPI++).
        labelled_mean: The mean true score of the labelled items.
        predicted_mean: The mean predicted score of all items, uncorrected.
        n_labelled: Items with a true and a predicted score.
        n_unlabelled: Items with a predicted score only.
    """

    value: float | None
    ci: ConfidenceInterval | None
    standard_error: float | None
    weight: float | None
    labelled_mean: float | None
    predicted_mean: float | None
    n_labelled: int
    n_unlabelled: int


class CorrectedMetRate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The MET rate of one binary criterion, corrected for the judge's errors (Rogan, Gladen).

    Attributes:
        name: The criterion.
        index: Its place.
        value: The corrected rate, clipped to [0, 1].
        ci: Its interval.
        observed_rate: The rate of the judge's MET verdicts.
        sensitivity: The share of true MET that it calls MET.
        specificity: The share of true UNMET that it calls UNMET.
        is_clipped: Whether the formula left [0, 1].
        n_samples: Verdicts behind the observed rate.
        n_positive: True MET behind the sensitivity.
        n_negative: True UNMET behind the specificity.
        note: Why there is no value or no interval, or what is doubtful about them.
    """

    name: str
    index: int
    value: float | None
    ci: ConfidenceInterval | None
    observed_rate: float | None
    sensitivity: float | None
    specificity: float | None
    is_clipped: bool
    n_samples: int
    n_positive: int
    n_negative: int
    note: str | None = None


class CorrectedMeans(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Means over all items, corrected for the judge's errors; right where labelled items were drawn at random."""

    score: CorrectedScore | None
    met_rates: tuple[CorrectedMetRate, ...]


class ItemMetrics(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One item.

    Attributes:
        id: The item.
        difficulty: The share of covered votes that miss the truth.
        n_votes: Those votes.
        dispute: How far the judges differ among themselves: the mean over criteria of the share of unequal pairs.
        n_criteria: Criteria with two votes or more.
    """

    id: str
    difficulty: float | None
    n_votes: int
    dispute: float | None
    n_criteria: int


class Difference(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One number of two judges on the same cells; the difference is a minus b, resampled on shared draws."""

    a: float | None
    b: float | None
    difference: BootstrapResult
    n_samples: int


class CriterionComparison(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Two judges on one criterion: McNemar's exact test over the cells where only one of them is right."""

    name: str
    index: int
    n_samples: int
    accuracy_a: float | None
    accuracy_b: float | None
    only_a_right: int
    only_b_right: int
    p_value: float | None
    adjusted_p_value: float | None


class JudgeComparison(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Two judges against the same truth, over the cells that are covered for both."""

    judge_a: str
    judge_b: str
    n_items: int
    n_samples: int
    accuracy: Difference
    mean_kappa: Difference
    score_rmse: Difference
    per_criterion: tuple[CriterionComparison, ...]
    n_bootstrap: int
    confidence_level: float
    seed: int
    unit: str
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<JudgeComparison {self.judge_a!r} against {self.judge_b!r}: {self.n_samples:,} cells>"
