"""What alignment says beyond agreement: slices, people, repeats, probabilities, corrected means, items, comparisons."""

from __future__ import annotations

from typing import Literal

import msgspec

from deemster.alignment._result_parts import BootstrapResult, CriterionType, Intervals
from deemster.stats.proportion_intervals import ConfidenceInterval


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
        intervals: Of the numbers above, by field name.
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


class ReliabilityBin(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
    curve: tuple[ReliabilityBin, ...]


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


class CorrectedRate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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


class CorrectedMeans(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Means over all items, corrected for the judge's errors; right where labelled items were drawn at random."""

    score: CorrectedScore | None
    met_rates: tuple[CorrectedRate, ...]


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
