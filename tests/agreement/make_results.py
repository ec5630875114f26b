"""Results of alignment made by hand: one with something of everything, one in which nothing is defined."""

from __future__ import annotations

import msgspec

from deemster.agreement import (
    AbstentionStats,
    BiasResult,
    BootstrapResult,
    BootstrapResults,
    CalibrationBin,
    CalibrationMetrics,
    ConfidenceInterval,
    ConfusionMatrix,
    CorrectedMeans,
    CorrectedMetRate,
    CorrectedScore,
    CorrelationResult,
    CoverageStats,
    CriterionMetrics,
    DisputedCell,
    HumanAgreement,
    HumanCriterion,
    ItemMetrics,
    JudgeConsistency,
    JudgeMetrics,
    MetricsResult,
    NominalCriterionMetrics,
    OptionMetrics,
    OrdinalCriterionMetrics,
    PooledScaleMetrics,
    ReferenceAgreement,
    ScoreICC,
    ScoreLimits,
    SliceMetrics,
)

MET = ("MET", "UNMET")
KINDS = ("binary", "ordinal", "nominal")


def interval(lower: float, upper: float, method: str = "percentile") -> ConfidenceInterval:
    return ConfidenceInterval(lower=lower, upper=upper, confidence=0.95, method=method)


def resampled(estimate: float, lower: float, upper: float, **changes) -> BootstrapResult:
    fields = {"standard_error": (upper - lower) / 4, "n_bootstrap": 1000} | changes
    return BootstrapResult(estimate=estimate, ci=interval(lower, upper), **fields)


def correlation(method: str, value: float | None = None, **changes) -> CorrelationResult:
    fields = {"p_value": None, "ci": None, "interpretation": "undefined", "n_samples": 0} | changes
    return CorrelationResult(coefficient=value, method=method, **fields)


def bias(mean: float | None = None, **changes) -> BiasResult:
    fields = {
        "std_bias": None,
        "is_significant": False,
        "p_value": None,
        "direction": "none",
        "effect_size": None,
        "ci": None,
        "n_samples": 0,
    }
    return BiasResult(mean_bias=mean, **(fields | changes))


def coverage(total: int, covered: int, errored: int = 0) -> CoverageStats:
    return CoverageStats(
        n_total=total,
        n_covered=covered,
        coverage=covered / total,
        judge_abstain_rate=0.0125,
        gt_abstain_rate=0.025,
        union_exclusion_rate=1 - covered / total,
        n_errored=errored,
        error_rate=errored / total,
    )


UNDEFINED = {
    "kappa_interpretation": "undefined",
    "krippendorff_alpha": None,
    "fleiss_kappa": None,
    "confusion_matrix": None,
    "is_degenerate": False,
    "coverage_stats": None,
    "balanced_accuracy": None,
    "scott_pi": None,
    "pabak": None,
    "gwet_ac": None,
    "panel_gwet_ac": None,
}


def binary(name: str = "facts", index: int = 0, **changes) -> CriterionMetrics:
    numbers = dict.fromkeys(("accuracy", "precision", "recall", "f1", "kappa", "phi", "fpr", "fnr"))
    counts = {"n_samples": 0, "support_true": 0, "support_pred": 0}
    return CriterionMetrics(name=name, index=index, **(UNDEFINED | numbers | counts | changes))


def ordinal(name: str = "depth", index: int = 1, **changes) -> OrdinalCriterionMetrics:
    numbers = dict.fromkeys(
        ("exact_accuracy", "adjacent_accuracy", "weighted_kappa", "linear_kappa", "rmse", "mae"),
    )
    rest = {"n_samples": 0, "n_options": 3, "per_option": ()}
    ranks = {"spearman": correlation("spearman"), "kendall": correlation("kendall")}
    return OrdinalCriterionMetrics(name=name, index=index, **(UNDEFINED | numbers | rest | ranks | changes))


def nominal(name: str = "tone", index: int = 2, **changes) -> NominalCriterionMetrics:
    rest = {"n_samples": 0, "n_options": 4, "per_option": (), "exact_accuracy": None, "kappa": None}
    return NominalCriterionMetrics(name=name, index=index, **(UNDEFINED | rest | changes))


def judge(name: str = "a", **changes) -> JudgeMetrics:
    names = "criterion_accuracy criterion_precision criterion_recall criterion_f1 mean_kappa phi confusion_matrix "
    numbers = dict.fromkeys(f"{names} score_rmse score_mae binary_accuracy".split())
    rest = {
        "score_spearman": correlation("spearman"),
        "score_kendall": correlation("kendall"),
        "score_pearson": correlation("pearson"),
        "bias": bias(),
        "n_samples": 0,
        "n_failed": 0,
        "n_abstained": 0,
    }
    return JudgeMetrics(judge_id=name, **(numbers | rest | changes))


def empty_result(**changes) -> MetricsResult:
    """A result in which every number is undefined, except the given changes."""
    required = [field.name for field in msgspec.structs.fields(MetricsResult) if field.required]
    numbers = dict.fromkeys(required)
    counts = dict.fromkeys(
        ("n_items", "n_judges", "n_samples", "n_criteria", *(f"n_{kind}_criteria" for kind in KINDS)), 0
    )
    rest = {
        "mean_kappa_by_kind": {},
        "score_spearman": correlation("spearman"),
        "score_kendall": correlation("kendall"),
        "score_pearson": correlation("pearson"),
        "bias": bias(),
        "per_criterion": (),
        "cannot_assess_mode": "exclude",
        "na_mode": "exclude",
    }
    return MetricsResult(**(numbers | counts | rest | changes))


def criteria() -> tuple[CriterionMetrics | OrdinalCriterionMetrics | NominalCriterionMetrics, ...]:
    """Two binary criteria, one of them degenerate, two ordinal ones, one without a pair, and a nominal one."""
    facts = binary(
        n_samples=80,
        accuracy=0.875,
        precision=0.9,
        recall=0.9,
        f1=0.9,
        kappa=0.7333,
        kappa_interpretation="substantial",
        phi=0.7333,
        fpr=0.1667,
        fnr=0.1,
        support_true=50,
        support_pred=50,
        confusion_matrix=ConfusionMatrix(matrix=((45, 5), (5, 25)), labels=MET),
        krippendorff_alpha=0.61,
        fleiss_kappa=0.6084,
        coverage_stats=coverage(86, 80, 4),
        balanced_accuracy=0.8667,
        scott_pi=0.7333,
        pabak=0.75,
        gwet_ac=0.7647,
        panel_gwet_ac=0.64,
        intervals={"accuracy": resampled(0.875, 0.8, 0.9375), "kappa": resampled(0.7333, 0.57, 0.87)},
    )
    name = "the answer never repeats itself, and never repeats what the question has already said in other words"
    padding = binary(
        name,
        1,
        n_samples=80,
        accuracy=1.0,
        fpr=0.0,
        support_true=0,
        support_pred=0,
        confusion_matrix=ConfusionMatrix(matrix=((0, 0), (0, 80)), labels=MET),
        is_degenerate=True,
        krippendorff_alpha=-0.0063,
        pabak=1.0,
        gwet_ac=1.0,
    )
    depth = ordinal(
        index=2,
        n_samples=79,
        exact_accuracy=0.6203,
        adjacent_accuracy=0.962,
        weighted_kappa=0.3912,
        kappa_interpretation="fair",
        krippendorff_alpha=0.4421,
        fleiss_kappa=0.2875,
        spearman=correlation("spearman", 0.41, p_value=0.0002, interpretation="weak positive", n_samples=79),
        kendall=correlation("kendall", 0.37, p_value=0.0003, interpretation="weak positive", n_samples=79),
        rmse=0.3411,
        mae=0.2089,
        per_option=tuple(
            OptionMetrics(
                label=label, index=place, precision=0.6, recall=0.5, f1=6 / 11, support_true=26, support_pred=26
            )
            for place, label in enumerate(("poor", "fair", "good"))
        ),
        confusion_matrix=ConfusionMatrix(matrix=((16, 9, 1), (7, 17, 3), (2, 8, 16)), labels=("poor", "fair", "good")),
        linear_kappa=0.4,
        intervals={"weighted_kappa": resampled(0.3912, 0.19, 0.57), "spearman": resampled(0.41, 0.2, 0.6)},
    )
    tone = nominal(
        index=4,
        n_samples=80,
        exact_accuracy=0.7,
        kappa=0.55,
        kappa_interpretation="moderate",
        krippendorff_alpha=0.5,
        confusion_matrix=ConfusionMatrix(matrix=((56, 12), (12, 0)), labels=("warm", "cold")),
    )
    return facts, padding, depth, ordinal("never asked", 3), tone


def judges() -> dict[str, JudgeMetrics]:
    table = ConfusionMatrix(matrix=((90, 8, 2), (9, 50, 1), (1, 1, 0)), labels=(*MET, "CANNOT_ASSESS"))
    steady = judge(
        "steady",
        criterion_accuracy=0.85,
        mean_kappa=0.64,
        phi=0.71,
        confusion_matrix=table,
        score_rmse=0.14,
        score_mae=0.09,
        score_spearman=correlation("spearman", 0.7, interpretation="strong positive", n_samples=80),
        bias=bias(0.02, n_samples=80),
        n_samples=317,
        n_failed=2,
        n_abstained=3,
        intervals={"mean_kappa": resampled(0.64, 0.55, 0.72)},
    )
    return {"steady": steady, "erratic": judge("erratic", criterion_accuracy=0.5, mean_kappa=0.02, n_samples=300)}


def additions() -> dict[str, object]:
    """Everything beyond agreement."""
    curve = (
        CalibrationBin(
            lower=0.0,
            upper=0.1,
            n_samples=20,
            mean_probability=0.05,
            observed_share=0.1,
            ci=interval(0.03, 0.3, "wilson"),
        ),
        CalibrationBin(lower=0.1, upper=0.2, n_samples=0, mean_probability=None, observed_share=None, ci=None),
    )
    rate = CorrectedMetRate(
        name="facts",
        index=0,
        value=0.6,
        ci=interval(0.5157, 0.6808, "lang-reiczigel"),
        observed_rate=0.62,
        sensitivity=0.9,
        specificity=0.8,
        is_clipped=False,
        n_samples=1000,
        n_positive=120,
        n_negative=80,
    )
    unknown = CorrectedMetRate(
        name="padding",
        index=1,
        value=None,
        ci=None,
        observed_rate=0.5,
        sensitivity=0.503,
        specificity=0.503,
        is_clipped=False,
        n_samples=1000,
        n_positive=120,
        n_negative=80,
        note="These labels do not tell the judge from chance: sensitivity + specificity - 1 is 0.0060, and its "
        "interval reaches 0.",
    )
    cut = msgspec.structs.replace(
        rate,
        name="tone",
        value=1.0,
        is_clipped=True,
        note="The judge's rate contradicts its measured errors; the corrected rate was cut to [0, 1].",
    )
    score = CorrectedScore(
        value=0.6781,
        ci=interval(0.4315, 0.9247, "ppi++"),
        standard_error=0.1258,
        weight=0.4382,
        labelled_mean=0.7,
        predicted_mean=0.65,
        n_labelled=10,
        n_unlabelled=100,
    )
    return {
        "slices": (
            SliceMetrics(
                tag="billing",
                n_items=40,
                n_samples=160,
                n_scores=39,
                criterion_accuracy=0.75,
                mean_kappa=0.4,
                score_rmse=0.2,
                bias=0.05,
                accuracy_difference=-0.1,
                kappa_difference=-0.2,
                rmse_difference=0.06,
                bias_difference=0.04,
                intervals={"criterion_accuracy": resampled(0.75, 0.66, 0.84)},
            ),
        ),
        "human": HumanAgreement(
            n_annotators=3,
            n_items=60,
            krippendorff_alpha=0.66,
            per_criterion=(
                HumanCriterion(name="facts", index=0, criterion_type="binary", krippendorff_alpha=0.66, n_units=60),
            ),
            annotators=(ReferenceAgreement(name="ann", accuracy=0.9, mean_kappa=0.7, n_samples=120),),
            ceiling_accuracy=0.9,
            ceiling_kappa=0.7,
            panel=ReferenceAgreement(name="panel", accuracy=0.85, mean_kappa=0.6, n_samples=120),
            judges=(ReferenceAgreement(name="steady", accuracy=0.85, mean_kappa=0.62, n_samples=120),),
            accuracy_gap=-0.05,
            kappa_gap=-0.1,
            pairwise_kappa=0.58,
            panel_pairwise_kappa=0.55,
            pairwise_kappa_gap=-0.03,
            n_cells=60,
            n_labelled_cells=80,
            disputed=(DisputedCell("q9", "facts", {"ann": "MET", "bob": "UNMET"}),),
            intervals={"pairwise_kappa_gap": resampled(-0.03, -0.1, 0.04)},
        ),
        "consistency": (
            JudgeConsistency(
                judge_id="steady",
                n_cells=30,
                n_repeats=90,
                stable_share=0.8,
                pairwise_agreement=0.8667,
                krippendorff_alpha=0.71,
            ),
        ),
        "calibration": (
            CalibrationMetrics(
                judge_id="steady", scale="binary", n_samples=20, brier=0.09, calibration_error=0.05, curve=curve
            ),
        ),
        "corrected": CorrectedMeans(score=score, met_rates=(rate, unknown, cut)),
        "items": (ItemMetrics(id="q7", difficulty=0.6667, n_votes=12, dispute=0.5, n_criteria=4),),
    }


def full_result(**changes) -> MetricsResult:
    """A result with something of everything."""
    fields = {
        "criterion_accuracy": 0.7994,
        "binary_accuracy": 0.9375,
        "criterion_precision": 0.9,
        "criterion_recall": 0.9,
        "criterion_f1": 0.9,
        "macro_accuracy": 0.7988,
        "mean_kappa": 0.5582,
        "mean_kappa_by_kind": {"binary": 0.7333, "ordinal": 0.3912, "nominal": 0.55},
        "micro_kappa": 0.8545,
        "criterion_phi": 0.8545,
        "mean_krippendorff_alpha": 0.3865,
        "score_rmse": 0.1593,
        "score_mae": 0.0938,
        "score_spearman": correlation(
            "spearman",
            0.72,
            p_value=0.00001,
            ci=interval(0.6, 0.81, "fisher"),
            interpretation="strong positive",
            n_samples=80,
        ),
        "score_kendall": correlation(
            "kendall", 0.55, p_value=0.00002, interpretation="moderate positive", n_samples=80
        ),
        "score_pearson": correlation("pearson", 0.7, p_value=0.00003, interpretation="strong positive", n_samples=80),
        "bias": bias(
            -0.0425,
            std_bias=0.15,
            is_significant=True,
            p_value=0.0133,
            direction="negative",
            effect_size=-0.2833,
            ci=interval(-0.0759, -0.0091, "t"),
            n_samples=80,
        ),
        "score_concordance": 0.69,
        "score_limits": ScoreLimits(
            mean=-0.0425,
            lower=-0.3365,
            upper=0.2515,
            lower_ci=None,
            upper_ci=interval(0.2, 0.3, "normal"),
            n_samples=80,
        ),
        "score_icc": ScoreICC(
            icc_1_1=0.5, icc_2_1=0.52, icc_3_1=0.55, icc_1_k=0.66, icc_2_k=0.68, icc_3_k=0.71, n_items=78, n_judges=2
        ),
        "score_alpha": 0.51,
        "per_criterion": criteria(),
        "per_judge": judges(),
        "bootstrap": BootstrapResults(
            accuracy_ci=(0.76, 0.8379),
            kappa_ci=(0.4519, 0.6497),
            rmse_ci=(0.1301, 0.1844),
            n_bootstrap=1000,
            confidence_level=0.95,
            seed=42,
            method="percentile",
            unit="item",
        ),
        "n_items": 80,
        "n_judges": 2,
        "n_criteria": 5,
        "n_binary_criteria": 2,
        "n_ordinal_criteria": 2,
        "n_nominal_criteria": 1,
        "n_samples": 319,
        "na_stats": AbstentionStats(
            count_true=3,
            count_pred=1,
            kappa=0.4935,
            kappa_interpretation="moderate",
            false_positive=0,
            false_negative=2,
        ),
        "cannot_assess_stats": AbstentionStats(
            count_true=0,
            count_pred=1,
            kappa=0.0,
            kappa_interpretation="slight",
            false_positive=1,
            false_negative=0,
        ),
        "coverage_stats": coverage(410, 319, 9),
        "pooled_by_scale": (
            PooledScaleMetrics(
                scale_type="ordinal",
                n_points=79,
                exact_accuracy=0.6203,
                value_rmse=0.3411,
                value_mae=0.2089,
                value_spearman=0.41,
                value_pearson=0.4,
                kappa=None,
                phi=None,
                precision=None,
                recall=None,
                f1=None,
                confusion_matrix=None,
                n_abstain=3,
            ),
        ),
        "warnings": (
            "degenerate: one class only on 1 criterion: `padding`. Its kappa is undefined and left out of the mean.",
            "failed-cells: 9 votes failed and are left out.",
        ),
        "intervals": {
            "criterion_accuracy": resampled(0.7994, 0.76, 0.8379),
            "mean_kappa": resampled(0.5582, 0.4519, 0.6497),
            "score_rmse": resampled(0.1593, 0.1301, 0.1844),
            "criterion_f1": resampled(0.9, 0.84, 0.95),
            "criterion_phi": BootstrapResult(estimate=0.8545, ci=None, standard_error=None, n_bootstrap=400),
            "mean_krippendorff_alpha": resampled(0.3865, 0.3, 0.46, n_bootstrap=981),
            "score_spearman": resampled(0.72, 0.6, 0.81),
            "bias": resampled(-0.0425, -0.075, -0.01, bootstrap_distribution=(-0.04, -0.03)),
        },
    }
    return empty_result(**(fields | additions() | changes))
