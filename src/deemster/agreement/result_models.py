"""The models that a `MetricsResult` is made of: criteria, judges, coverage, intervals, slices."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from deemster.stats.alternative_annotator_test import AlternativeAnnotator
from deemster.stats.confidence_interval import ConfidenceInterval
from deemster.stats.interpretation import interpret_correlation
from deemster.stats.probability_calibration import CalibrationBin
from deemster.stats.systematic_bias import BiasResult

AbstentionMode: TypeAlias = Literal["exclude", "as_unmet", "as_category"]
CriterionType: TypeAlias = Literal["binary", "ordinal", "nominal", "numeric"]
_MET_TABLE = ("MET", "UNMET")


class ResultModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a result, or the whole; pydantic users find their two methods."""

    def model_dump(self) -> dict[str, Any]:
        """The numbers as maps, lists and plain values."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found

    def model_dump_json(self) -> str:
        """The numbers as JSON, without indentation."""
        return msgspec.json.encode(self).decode()


class BootstrapResult(ResultModel, frozen=True, kw_only=True):
    """One number under resampling.

    Attributes:
        estimate: The number itself, from the data as they are. None where it is undefined.
        ci: Its interval, which names its level and method. None where fewer than half of the replicates are defined, or
            there is one unit only.
        standard_error: The standard deviation of the replicates. None where `ci` is.
        n_bootstrap: Replicates in which the number is defined.
        bootstrap_distribution: The replicates. None in every result of `compute_metrics`, as the seed draws them again.
    """

    estimate: float | None
    ci: ConfidenceInterval | None
    standard_error: float | None
    n_bootstrap: int
    bootstrap_distribution: tuple[float, ...] | None = None


# By field name; a dotted name such as `score_icc.icc_2_1` is a field of a part.
Intervals: TypeAlias = dict[str, BootstrapResult] | None


def interval_of(intervals: Intervals, name: str) -> ConfidenceInterval | None:
    """The interval of a number by its field name; None where it has none."""
    found = (intervals or {}).get(name)
    return None if found is None else found.ci


def value_at(part: Any, path: str) -> Any:
    """A field of a result, or behind a dotted name that of a part; None where there is no such part.

    >>> value_at(JudgeDifference(a=0.5, b=None, difference=None, n_samples=4), "a")
    0.5
    """
    for name in path.split("."):
        part = part.get(name) if isinstance(part, dict) else getattr(part, name, None)
    return part


def bootstrap_at(part: Any, path: str) -> BootstrapResult | None:
    """A number under resampling by the path of `value_at`; the main number of a part has the name of the part."""
    intervals = part.intervals or {}
    return intervals.get(path, intervals.get(path.partition(".")[0]))


class BootstrapResults(ResultModel, frozen=True, kw_only=True):
    """How the intervals of a result were drawn, with the three that are asked for most.

    Attributes:
        accuracy_ci: The interval of `criterion_accuracy`. None where it has none.
        kappa_ci: The interval of `mean_kappa`. None where it has none.
        rmse_ci: The interval of `score_rmse`. None where it has none.
        n_bootstrap: Replicates that were drawn.
        confidence_level: The level of all intervals.
        seed: The seed of the draws.
        method: How replicates were drawn: "smoothed", "percentile" or "bca".
        unit: What was resampled: "item", or the name of the clusters.
    """

    accuracy_ci: tuple[float, float] | None
    kappa_ci: tuple[float, float] | None
    rmse_ci: tuple[float, float] | None
    n_bootstrap: int
    confidence_level: float
    seed: int
    method: str
    unit: str


class CorrelationResult(ResultModel, frozen=True, kw_only=True):
    """A correlation with what it rests on.

    Attributes:
        coefficient: The correlation, -1 to 1. None below three pairs, or where one side is constant.
        p_value: The p-value of no correlation. None where the coefficient is, and for Pearson below four pairs.
        ci: The interval of the coefficient in closed form. None below five pairs, and at ±1.
        interpretation: The coefficient in words: "insufficient data" below three pairs, "undefined" for a constant
            side.
        n_samples: Pairs of numbers.
        method: Which correlation it is.
    """

    coefficient: float | None
    p_value: float | None
    ci: ConfidenceInterval | None
    interpretation: str
    n_samples: int
    method: Literal["spearman", "kendall", "pearson"]

    # Where users of autorubric look for it.
    interpret_correlation = staticmethod(interpret_correlation)


class ScoreLimits(ResultModel, frozen=True, kw_only=True):
    """The limits of agreement between predicted and true scores (Bland, Altman).

    Attributes:
        mean: The mean of predicted minus true. Never None: without a pair of scores there are no limits.
        lower: The mean minus z standard deviations. None below two pairs.
        upper: The mean plus z standard deviations. None below two pairs.
        lower_ci: The interval of `lower`. None where `lower` is, and where all differences are equal.
        upper_ci: The interval of `upper`. None where `upper` is, and where all differences are equal.
        n_samples: Pairs of scores.
    """

    mean: float | None
    lower: float | None
    upper: float | None
    lower_ci: ConfidenceInterval | None
    upper_ci: ConfidenceInterval | None
    n_samples: int


class ScoreICC(ResultModel, frozen=True, kw_only=True):
    """The six intraclass correlations of the judges' item scores, over items that every judge scored (Shrout, Fleiss).

    Attributes:
        icc_1_1: One judge, judges drawn anew for each item. None below two items, and where a denominator is 0.
        icc_2_1: One judge of a random panel: absolute agreement. None as above.
        icc_3_1: One judge of this panel: consistency. None as above.
        icc_1_k: The mean of all judges, judges drawn anew for each item. None as above.
        icc_2_k: The mean of all judges of a random panel: absolute agreement. None as above.
        icc_3_k: The mean of all judges of this panel: consistency. None as above.
        n_items: Items that every judge scored.
        n_judges: Judges of the panel.
    """

    icc_1_1: float | None
    icc_2_1: float | None
    icc_3_1: float | None
    icc_1_k: float | None
    icc_2_k: float | None
    icc_3_k: float | None
    n_items: int
    n_judges: int


class CoverageStats(ResultModel, frozen=True, kw_only=True):
    """Which share of the labelled pairs the numbers rest on, and why the rest is out.

    A disputed pair is one on which the annotators are tied: it was labelled, and has no truth to compare with.

    Attributes:
        n_total: Labelled pairs before anything is left out.
        n_covered: Pairs that count; the same as `n_samples`.
        coverage: The share of covered pairs. None without a labelled pair.
        judge_abstain_rate: The share on which the final verdict abstains. None without a labelled pair.
        gt_abstain_rate: The share on which the truth abstains. None without a labelled pair.
        union_exclusion_rate: The share that is out for any reason: 1 - coverage. None without a labelled pair.
        n_errored: Pairs without a verdict: failed cells, and all cells of errored items.
        error_rate: The share of errored pairs. None without a labelled pair.
        n_disputed: Disputed pairs.
        disputed_rate: The share of disputed pairs. None without a labelled pair.
        intervals: The intervals of the numbers above, by field name. None without a bootstrap.
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


class AbstentionStats(ResultModel, frozen=True, kw_only=True):
    """Agreement about when to abstain, pooled over the binary criteria or over all others.

    Attributes:
        count_true: Pairs on which the truth abstains.
        count_pred: Pairs on which the final verdict abstains.
        kappa: Kappa of {abstains, does not}. None without a pair, and where nothing or everything abstains on both
            sides.
        kappa_interpretation: That kappa in words. None where it is.
        false_positive: Pairs on which only the final verdict abstains.
        false_negative: Pairs on which only the truth abstains.
        intervals: The intervals of the numbers above, by field name. None without a bootstrap.
    """

    count_true: int
    count_pred: int
    kappa: float | None
    kappa_interpretation: str | None
    false_positive: int
    false_negative: int
    intervals: Intervals = None


class ConfusionMatrix(ResultModel, frozen=True, kw_only=True):
    """Counts of pairs: a row for each true label, a column for each predicted one.

    The cells `tp`, `fn`, `fp`, `tn` and the rates belong to a table of MET against UNMET; on any other table they raise
    a ValueError.

    Attributes:
        matrix: The counts.
        labels: The labels of rows and columns, in one order.

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
        """The share of true UNMET that the judge calls MET. None without a true UNMET."""
        return _share(self.fp, self.fp + self.tn)

    @property
    def fnr(self) -> float | None:
        """The share of true MET that the judge calls UNMET. None without a true MET."""
        return _share(self.fn, self.fn + self.tp)

    @property
    def precision(self) -> float | None:
        """The share of the judge's MET that are MET in truth. None where the judge says MET to nothing."""
        return _share(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float | None:
        """The share of true MET that the judge calls MET. None without a true MET."""
        return _share(self.tp, self.tp + self.fn)

    def _cell(self, name: str, truth: int, judged: int) -> int:
        if self.labels != _MET_TABLE:
            labels = ", ".join(self.labels)
            raise ValueError(f"`{name}` belongs to a table of MET against UNMET; this one has {labels or 'no labels'}.")
        return self.matrix[truth][judged]


def _share(part: int, total: int) -> float | None:
    return part / total if total else None


class OptionMetrics(ResultModel, frozen=True, kw_only=True):
    """One option against all others.

    Attributes:
        label: The option.
        index: Its place in the rubric's order, from 0.
        precision: The share of its predictions that are right. None where it is never predicted.
        recall: The share of its true pairs that are found. None where it is never true.
        f1: 2tp/(2tp + fp + fn). None where it is neither true nor predicted.
        support_true: Pairs with this true label.
        support_pred: Pairs with this final verdict.
        intervals: The intervals of the numbers above, by field name. None without a bootstrap.
    """

    label: str
    index: int
    precision: float | None
    recall: float | None
    f1: float | None
    support_true: int
    support_pred: int
    intervals: Intervals = None


class CriterionModel(ResultModel, frozen=True, tag_field="criterion_type"):
    """A criterion of any kind; `criterion_type` is its kind, in Python and in files.

    The meaning of a field that several kinds share stands here.

    Attributes:
        name: The name; `#2` is appended where items have different criteria of one name.
        index: Its place among the criteria, from 0.
        n_samples: Pairs of a true label and a final verdict that count.
        n_options: Classes of a pair: the scored options, and one more for abstentions under `as_category`.
        exact_accuracy: The share of equal pairs. None without a pair.
        kappa: Cohen's kappa. None without a pair, and where both sides are one same class.
        kappa_interpretation: Kappa in words (Landis, Koch): "undefined" where it is None.
        krippendorff_alpha: Agreement of the judges among each other, by distance on an ordinal scale. None below two
            judges or two items with two votes, and where all votes are equal.
        fleiss_kappa: Agreement of the judges on items where each of them voted, without distances. None below two
            judges or two such items, and where all votes are equal.
        per_option: Each option against all others, in the rubric's order.
        confusion_matrix: Counts of pairs, classes in the rubric's order. None in files of earlier versions: no pair.
        is_degenerate: Whether there are pairs and yet no kappa, as all are of one class.
        coverage_stats: Which share of the labelled pairs counts. None unless both modes are `exclude`.
        balanced_accuracy: The mean recall of the classes that occur in the truth. None below two such classes.
        scott_pi: Scott's pi. None without a pair, and where both sides are one same class.
        pabak: Kappa adjusted for prevalence and bias (Brennan, Prediger). None without a pair.
        gwet_ac: Gwet's AC1; AC2 on an ordinal scale. None without a pair.
        panel_gwet_ac: The same coefficient among the judges. None below two judges or two items with two votes.
        intervals: The intervals of the numbers above, by field name. None without a bootstrap.
    """

    @property
    def criterion_type(self) -> CriterionType:
        """The kind of criterion."""
        kind: CriterionType = self.__struct_config__.tag  # type: ignore[assignment]
        return kind


class CriterionMetrics(CriterionModel, frozen=True, kw_only=True, tag="binary"):
    """A binary criterion: truth against final verdict, and the judges among each other.

    Attributes:
        accuracy: The share of equal pairs. None without a pair.
        precision: The share of MET verdicts that are MET in truth. None without a MET verdict.
        recall: The share of true MET that are found. None without a true MET.
        f1: 2tp/(2tp + fp + fn) of MET. None where MET is neither true nor predicted.
        phi: The correlation of MET against the rest (Matthews). None where one side is constant.
        fpr: The share of true UNMET that are judged MET. None without a true UNMET.
        fnr: The share of true MET that are not judged MET. None without a true MET.
        support_true: Pairs whose truth is MET.
        support_pred: Pairs whose final verdict is MET.
        confusion_matrix: MET against the rest. None without a pair.
    """

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
    """A criterion whose options are ordered.

    Attributes:
        adjacent_accuracy: The share of pairs at most one place apart. None without a pair.
        weighted_kappa: Kappa with quadratic weights. None without a pair, and where both sides are one same class.
        spearman: Spearman's correlation of places on the scale.
        kendall: Kendall's tau-b of places on the scale.
        rmse: The root mean squared difference of option values. None without a pair.
        mae: The mean absolute difference of option values. None without a pair.
        linear_kappa: Kappa with linear weights. None as `weighted_kappa`.
    """

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


class LevelCorrelations(ResultModel, frozen=True, kw_only=True):
    """Correlations of numbers that are grouped first, as meta-evaluations of metrics report them.

    Attributes:
        key: The metadata key that names the group of an item.
        n_groups: Groups with a correlation at the level of samples; systems with a mean at the level of systems.
        pearson: Pearson's correlation. None below three pairs, and where a side is constant.
        spearman: Spearman's correlation. None as above.
        kendall: Kendall's tau-b. None as above.
    """

    key: str
    n_groups: int
    pearson: float | None
    spearman: float | None
    kendall: float | None


class NumericCriterionMetrics(CriterionModel, frozen=True, kw_only=True, tag="numeric"):
    """A criterion that is answered by a number: truth against final verdict, and the judges among each other.

    All numbers are in the unit of the criterion.

    Attributes:
        minimum: The lower end of the range.
        maximum: The upper end of the range.
        concordance: Lin's concordance of verdict and truth, the counterpart of quadratic kappa. None without a pair,
            and where both sides hold one same number.
        icc: The intraclass correlations of truth and verdict as two judges.
        limits: The limits of agreement. None without a pair.
        pearson: Pearson's correlation over all pairs, the level of the dataset.
        spearman: Spearman's correlation over all pairs.
        kendall: Kendall's tau-b over all pairs.
        sample_level: The mean of the correlations inside the groups of `group`. None where it was not asked for.
        system_level: The correlations of the means of the systems of `system`. None where it was not asked for.
        rmse: The root mean squared difference of verdict and truth. None without a pair.
        mae: The mean absolute difference. None without a pair.
        bias: How far verdicts lie above the truth.
        krippendorff_alpha: Krippendorff's interval alpha of the judges. None below two judges or two items with two
            numbers, and where all numbers are equal.
        judge_icc: The intraclass correlations of the judges. None below two judges.
        is_degenerate: Whether there are pairs, but no concordance.
    """

    name: str
    index: int
    n_samples: int
    minimum: float
    maximum: float
    concordance: float | None
    icc: ScoreICC
    limits: ScoreLimits | None
    pearson: CorrelationResult
    spearman: CorrelationResult
    kendall: CorrelationResult
    sample_level: LevelCorrelations | None
    system_level: LevelCorrelations | None
    rmse: float | None
    mae: float | None
    bias: BiasResult
    krippendorff_alpha: float | None
    judge_icc: ScoreICC | None
    is_degenerate: bool
    coverage_stats: CoverageStats | None
    intervals: Intervals = None


AnyCriterion: TypeAlias = CriterionMetrics | OrdinalCriterionMetrics | NominalCriterionMetrics | NumericCriterionMetrics


class JudgeMetrics(ResultModel, frozen=True, kw_only=True):
    """One judge against the truth, from its own votes that did not fail.

    Attributes:
        judge_id: The judge.
        criterion_accuracy: The share of equal pairs over all criteria. None without a pair.
        criterion_precision: The share of its MET votes that are MET in truth. None without a MET vote on a binary
            criterion.
        criterion_recall: The share of true MET that it finds. None without a true MET.
        criterion_f1: 2tp/(2tp + fp + fn) of MET. None where MET is neither true nor voted.
        mean_kappa: The mean kappa of the criteria, quadratic on ordinal ones. None where no criterion has one.
        phi: The correlation of MET against the rest, binary criteria pooled. None where one side is constant.
        confusion_matrix: Binary votes against the truth before any mode: MET, UNMET, CANNOT_ASSESS. None without such a
            vote.
        score_rmse: The root mean squared difference of item scores. None without a pair of scores.
        score_mae: The mean absolute difference of item scores. None without a pair of scores.
        score_spearman: Spearman's correlation of item scores.
        score_kendall: Kendall's tau-b of item scores.
        score_pearson: Pearson's correlation of item scores.
        bias: How far its scores lie above the true ones.
        binary_accuracy: The accuracy on binary criteria. None without a binary pair.
        n_samples: Pairs of its vote and the truth that count.
        n_failed: Its votes on labelled cells that failed.
        n_abstained: Its votes on labelled cells that abstain.
        intervals: The intervals of the numbers above, by field name. None without a bootstrap.
    """

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


class PooledScaleMetrics(ResultModel, frozen=True, kw_only=True):
    """All pairs of one kind of criterion, pooled where items have different rubrics.

    Errors and correlations are on option values.

    Attributes:
        scale_type: The kind of criterion.
        n_points: Pairs that count.
        exact_accuracy: The share of equal pairs. None without a pair.
        value_rmse: The root mean squared difference of values. None without a pair that has values.
        value_mae: The mean absolute difference of values. None without a pair that has values.
        value_spearman: Spearman's correlation of values. None where one side is constant.
        value_pearson: Pearson's correlation of values. None where one side is constant.
        kappa: Cohen's kappa. None except on binary criteria, and where both sides are one same class.
        phi: The correlation of MET against the rest. None except on binary criteria, and where one side is constant.
        precision: The share of MET verdicts that are right. None except on binary criteria, and without a MET verdict.
        recall: The share of true MET that are found. None except on binary criteria, and without a true MET.
        f1: 2tp/(2tp + fp + fn) of MET. None except on binary criteria, and where MET is neither true nor predicted.
        confusion_matrix: MET against the rest. None except on binary criteria, and without a pair.
        n_abstain: Pairs with an abstention on either side.
        intervals: The intervals of the numbers above, by field name. None without a bootstrap.
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


class SliceMetrics(ResultModel, frozen=True, kw_only=True):
    """The items of one tag; a difference is this slice minus all other items.

    Attributes:
        tag: The tag.
        n_items: Items with this tag.
        n_samples: Pairs of these items that count.
        n_scores: Pairs of a predicted and a true score.
        criterion_accuracy: The share of equal pairs. None without a pair.
        mean_kappa: The mean kappa of the criteria. None where no criterion has one.
        score_rmse: The root mean squared difference of item scores. None without a pair of scores.
        bias: The mean of predicted minus true score. None without a pair of scores.
        accuracy_difference: Accuracy here minus elsewhere. None where either is.
        kappa_difference: Mean kappa here minus elsewhere. None where either is.
        rmse_difference: Score RMSE here minus elsewhere. None where either is.
        bias_difference: Bias here minus elsewhere. None where either is.
        intervals: The intervals of the numbers above, by field name. None without a bootstrap, and below ten items.
    """

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


class ReferenceAgreement(ResultModel, frozen=True, kw_only=True):
    """How one annotator, judge or panel agrees with the consensus of people it is not part of.

    Attributes:
        name: The annotator or judge, or "panel" for the final verdicts.
        accuracy: The share of equal pairs. None without a pair.
        mean_kappa: The mean kappa of the criteria; of numeric ones the concordance with the mean of the other people.
            None where no criterion has one.
        n_samples: Pairs; for judges and panel summed over the annotators that were left out in turn.
    """

    name: str
    accuracy: float | None
    mean_kappa: float | None
    n_samples: int


class HumanCriterion(ResultModel, frozen=True, kw_only=True):
    """How annotators agree among each other on one criterion.

    Attributes:
        name: The criterion.
        index: Its place among the criteria, from 0.
        criterion_type: Its kind.
        krippendorff_alpha: The annotators' alpha, by distance on an ordinal scale. None below two cells with two
            labels, and where all labels are equal.
        n_units: Cells with two labels or more.
    """

    name: str
    index: int
    criterion_type: CriterionType
    krippendorff_alpha: float | None
    n_units: int


class DisputedCell(ResultModel, frozen=True):
    """A cell on which annotators are tied.

    Attributes:
        item: The item.
        criterion: The criterion.
        labels: What each annotator said.
    """

    item: str
    criterion: str
    labels: dict[str, str]


class HumanAgreement(ResultModel, frozen=True, kw_only=True):
    """What people reach among themselves, and how far the judges are from it.

    Attributes:
        n_annotators: People with at least one label.
        n_items: Items with two annotators or more.
        krippendorff_alpha: The mean of the criteria's alphas. None where no criterion has one.
        per_criterion: The alphas.
        annotators: Each person against the consensus of the others.
        ceiling_accuracy: The mean accuracy of `annotators`. None where none of them has one.
        ceiling_kappa: The mean kappa of `annotators`. None where none of them has one.
        panel: The final verdicts against the same references.
        judges: Each judge against the same references.
        accuracy_gap: The panel's accuracy minus the ceiling. None where either is.
        kappa_gap: The panel's kappa minus the ceiling. None where either is.
        pairwise_kappa: Kappa over all pairs of two people's labels of one cell, the mean over criteria. It looks at
            every cell that two people labelled, those they do not agree on included. None where no criterion has one.
        panel_pairwise_kappa: The same over all pairs of the panel's verdict and a person's label of these cells. None
            where no criterion has one.
        pairwise_kappa_gap: The second minus the first: from 0 on, the panel agrees with people as they do. None where
            either is.
        n_cells: Cells that two people or more labelled, which these numbers rest on.
        n_labelled_cells: All cells with a label.
        disputed: The cells on which people are tied, for someone to decide.
        annotator_tests: The alternative annotator test of each criterion by name. None below three annotators.
        intervals: The intervals of the numbers above, by field name. None without a bootstrap.
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
    annotator_tests: dict[str, AlternativeAnnotator] | None = None
    intervals: Intervals = None


class PositionBias(ResultModel, frozen=True, kw_only=True):
    """Verdicts on pairs that were shown in both orders: whether a place is preferred to an answer.

    Attributes:
        criterion: The criterion.
        judge_id: The judge. None for the final verdicts.
        n_pairs: Pairs with a verdict in both orders.
        consistency: The share of them on which both verdicts prefer the same answer. None without such a pair.
        consistency_ci: Its interval. None without such a pair.
        favours_first: Pairs on which the place shown first is favoured.
        favours_second: Pairs on which the place shown second is favoured.
        p_value: Of the null hypothesis that both places are favoured equally often. None where neither is.
    """

    criterion: str
    judge_id: str | None
    n_pairs: int
    consistency: float | None
    consistency_ci: ConfidenceInterval | None
    favours_first: int
    favours_second: int
    p_value: float | None


class JudgeConsistency(ResultModel, frozen=True, kw_only=True):
    """How one judge repeats itself, over the cells it was asked more than once.

    Attributes:
        judge_id: The judge.
        n_cells: Cells with two usable repeats or more.
        n_repeats: Usable repeats in them.
        stable_share: The share of cells whose repeats are all equal.
        pairwise_agreement: The mean over cells of the share of equal pairs of repeats.
        krippendorff_alpha: Alpha with the repeats as raters, the mean over criteria. None where no criterion has one.
    """

    judge_id: str
    n_cells: int
    n_repeats: int
    stable_share: float
    pairwise_agreement: float
    krippendorff_alpha: float | None


class CalibrationMetrics(ResultModel, frozen=True, kw_only=True):
    """Whether a judge's probabilities mean what they say.

    Attributes:
        judge_id: The judge. None for all judges together.
        scale: Binary criteria (P(MET)), or multi-choice ones (a probability for each option).
        n_samples: Labelled cells with a probability.
        brier: The mean squared error; multi-choice: summed over options. Never None: without a cell there is no entry.
        calibration_error: The expected calibration error over ten bins of equal width. Never None: without a cell there
            is no entry.
        curve: The bins.
    """

    judge_id: str | None
    scale: Literal["binary", "multi-choice"]
    n_samples: int
    brier: float | None
    calibration_error: float | None
    curve: tuple[CalibrationBin, ...]


class CorrectedScore(ResultModel, frozen=True, kw_only=True):
    """The mean true score over all items, labelled or not, corrected by the labelled ones (PPI++).

    Attributes:
        value: The corrected mean. Never None: without both kinds of items there is no corrected score.
        ci: Its interval. None below two labelled items whose scores are not normalised.
        standard_error: Its standard error. None below two labelled items.
        weight: How much the predictions are trusted, 0 to 1 (the lambda of PPI++). Never None.
        labelled_mean: The mean true score of the labelled items. Never None.
        predicted_mean: The mean predicted score of all items, uncorrected. Never None.
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


class CorrectedMetRate(ResultModel, frozen=True, kw_only=True):
    """The MET rate of one binary criterion, corrected for the judge's errors (Rogan, Gladen).

    Attributes:
        name: The criterion.
        index: Its place among the criteria, from 0.
        value: The corrected rate, clipped to [0, 1]. None where the labels do not tell the judge from chance.
        ci: Its interval. None where the value is, and where the judge's rate contradicts its errors.
        observed_rate: The rate of the judge's MET verdicts on all items. None without a verdict.
        sensitivity: The share of true MET that it calls MET. None without a true MET.
        specificity: The share of true UNMET that it calls UNMET. None without a true UNMET.
        is_clipped: Whether the formula left [0, 1].
        n_samples: Verdicts behind the observed rate.
        n_positive: True MET behind the sensitivity.
        n_negative: True UNMET behind the specificity.
        note: Why there is no value or no interval, or what is doubtful about them. None where nothing is.
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


class CorrectedMeans(ResultModel, frozen=True, kw_only=True):
    """Means over all items, corrected for the judge's errors; right where labelled items were drawn at random.

    Attributes:
        score: The mean true score. None without an item that has both scores, or one that has a predicted score only.
        met_rates: The MET rate of each binary criterion.
    """

    score: CorrectedScore | None
    met_rates: tuple[CorrectedMetRate, ...]


class ItemMetrics(ResultModel, frozen=True, kw_only=True):
    """One item.

    Attributes:
        id: The item.
        difficulty: The share of covered votes that miss the truth. None without such a vote.
        n_votes: Those votes.
        dispute: How far the judges differ among themselves: the mean over criteria of the share of unequal pairs. None
            without a criterion with two votes.
        n_criteria: Criteria with two votes or more.
    """

    id: str
    difficulty: float | None
    n_votes: int
    dispute: float | None
    n_criteria: int


class JudgeDifference(ResultModel, frozen=True, kw_only=True):
    """One number of two judges on the same cells.

    Attributes:
        a: The number of the first judge. None where it is undefined.
        b: The number of the second judge. None where it is undefined.
        difference: The first minus the second, resampled on shared draws.
        n_samples: Cells, or items for a number of scores, that both judges have.
    """

    a: float | None
    b: float | None
    difference: BootstrapResult
    n_samples: int


class CriterionComparison(ResultModel, frozen=True, kw_only=True):
    """Two judges on one criterion: McNemar's exact test over the cells where only one of them is right.

    Attributes:
        name: The criterion.
        index: Its place among the criteria, from 0.
        n_samples: Labelled cells that both judges decided.
        accuracy_a: The accuracy of the first judge. None without such a cell.
        accuracy_b: The accuracy of the second judge. None without such a cell.
        only_a_right: Cells where only the first judge is right.
        only_b_right: Cells where only the second judge is right.
        p_value: The p-value of no difference. None where there is no cell on which only one of them is right.
        adjusted_p_value: The p-value, corrected for the number of criteria (Holm). None where the p-value is.
    """

    name: str
    index: int
    n_samples: int
    accuracy_a: float | None
    accuracy_b: float | None
    only_a_right: int
    only_b_right: int
    p_value: float | None
    adjusted_p_value: float | None


class JudgeComparison(ResultModel, frozen=True, kw_only=True):
    """Two judges against the same truth, over the cells that are covered for both.

    Attributes:
        judge_a: The first judge.
        judge_b: The second judge.
        n_items: Labelled items.
        n_samples: Cells that are covered for both.
        accuracy: The share of right cells.
        mean_kappa: The mean kappa over criteria where both judges have one.
        score_rmse: The root mean squared error of item scores, over items that both scored.
        per_criterion: Every criterion.
        n_bootstrap: Replicates that were drawn.
        confidence_level: The level of the intervals.
        seed: The seed of the draws.
        unit: What was resampled: "item", or the name of the clusters.
        warnings: What a reader has to know, each led by its code.
    """

    judge_a: str
    judge_b: str
    n_items: int
    n_samples: int
    accuracy: JudgeDifference
    mean_kappa: JudgeDifference
    score_rmse: JudgeDifference
    per_criterion: tuple[CriterionComparison, ...]
    n_bootstrap: int
    confidence_level: float
    seed: int
    unit: str
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<JudgeComparison {self.judge_a!r} against {self.judge_b!r}: {self.n_samples:,} cells>"
