"""A result of agreement as a pandas data frame."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from deemster.agreement.result_models import (
    AnyCriterion,
    CriterionMetrics,
    JudgeMetrics,
    NominalCriterionMetrics,
    NumericCriterionMetrics,
    OrdinalCriterionMetrics,
    SliceMetrics,
    bootstrap_at,
    value_at,
)
from deemster.formats.dataframe import dataframe

if TYPE_CHECKING:
    import pandas as pd

    from deemster.agreement.metrics_result import MetricsResult

COLUMNS = (
    "level",
    "name",
    "criterion_type",
    "accuracy_micro",
    "accuracy_macro",
    "precision_micro",
    "recall_micro",
    "f1_micro",
    "mean_kappa_macro",
    "kappa_micro",
    "phi_micro",
    "mean_krippendorff_alpha",
    "cannot_assess_mode",
    "na_mode",
    "n_samples",
    "rmse",
    "mae",
    "spearman",
    "kendall",
    "pearson",
    "bias",
    "adjacent_accuracy",
    "weighted_kappa",
    "phi",
    "fpr",
    "fnr",
    "is_degenerate",
    "krippendorff_alpha",
    "fleiss_kappa",
    "coverage",
    "judge_abstain_rate",
    "gt_abstain_rate",
    "union_exclusion_rate",
    "n_errored",
    "error_rate",
    "binary_accuracy",
    "balanced_accuracy",
    "gwet_ac",
    "linear_kappa",
    "concordance",
    "icc_2_1",
    "lower_limit",
    "upper_limit",
    "sample_pearson",
    "sample_spearman",
    "sample_kendall",
    "system_pearson",
    "system_spearman",
    "system_kendall",
)
_WORDS = frozenset({"level", "name", "criterion_type", "cannot_assess_mode", "na_mode", "is_degenerate"})
_COUNTS = frozenset({"n_samples", "n_errored"})
_COVERAGE = {
    name: f"coverage_stats.{name}"
    for name in ("coverage", "judge_abstain_rate", "gt_abstain_rate", "union_exclusion_rate", "n_errored", "error_rate")
}
# Which field is behind a column, in the rows of each level. A dotted name is a field of a part.
_SHARED = {
    "n_samples": "n_samples",
    "accuracy_micro": "criterion_accuracy",
    "precision_micro": "criterion_precision",
    "recall_micro": "criterion_recall",
    "f1_micro": "criterion_f1",
    "mean_kappa_macro": "mean_kappa",
    "rmse": "score_rmse",
    "mae": "score_mae",
    "spearman": "score_spearman.coefficient",
    "kendall": "score_kendall.coefficient",
    "pearson": "score_pearson.coefficient",
    "bias": "bias.mean_bias",
    "binary_accuracy": "binary_accuracy",
}
AGGREGATE_FIELDS = {
    **_SHARED,
    "accuracy_macro": "macro_accuracy",
    "kappa_micro": "micro_kappa",
    "phi_micro": "criterion_phi",
    "mean_krippendorff_alpha": "mean_krippendorff_alpha",
    "concordance": "mean_concordance",
    "cannot_assess_mode": "cannot_assess_mode",
    "na_mode": "na_mode",
    **_COVERAGE,
}
JUDGE_FIELDS = {"name": "judge_id", **_SHARED, "phi": "phi"}
SLICE_FIELDS = {
    "name": "tag",
    "n_samples": "n_samples",
    "accuracy_micro": "criterion_accuracy",
    "mean_kappa_macro": "mean_kappa",
    "rmse": "score_rmse",
    "bias": "bias",
}
_ANY_CRITERION = {
    "name": "name",
    "criterion_type": "criterion_type",
    "n_samples": "n_samples",
    "is_degenerate": "is_degenerate",
    "krippendorff_alpha": "krippendorff_alpha",
    "balanced_accuracy": "balanced_accuracy",
    "gwet_ac": "gwet_ac",
    **_COVERAGE,
}
# What numbers do not have.
_OF_CLASSES = ("balanced_accuracy", "gwet_ac")
CRITERION_FIELDS: dict[type[AnyCriterion], dict[str, str]] = {
    CriterionMetrics: {
        **_ANY_CRITERION,
        "accuracy_micro": "accuracy",
        "precision_micro": "precision",
        "recall_micro": "recall",
        "f1_micro": "f1",
        "kappa_micro": "kappa",
        "phi": "phi",
        "fpr": "fpr",
        "fnr": "fnr",
    },
    OrdinalCriterionMetrics: {
        **_ANY_CRITERION,
        "accuracy_micro": "exact_accuracy",
        "kappa_micro": "weighted_kappa",
        "weighted_kappa": "weighted_kappa",
        "rmse": "rmse",
        "mae": "mae",
        "spearman": "spearman.coefficient",
        "kendall": "kendall.coefficient",
        "adjacent_accuracy": "adjacent_accuracy",
        "fleiss_kappa": "fleiss_kappa",
        "linear_kappa": "linear_kappa",
    },
    NominalCriterionMetrics: {**_ANY_CRITERION, "accuracy_micro": "exact_accuracy", "kappa_micro": "kappa"},
    NumericCriterionMetrics: {
        **{column: field for column, field in _ANY_CRITERION.items() if column not in _OF_CLASSES},
        "rmse": "rmse",
        "mae": "mae",
        "spearman": "spearman.coefficient",
        "kendall": "kendall.coefficient",
        "pearson": "pearson.coefficient",
        "bias": "bias.mean_bias",
        "concordance": "concordance",
        "icc_2_1": "icc.icc_2_1",
        "lower_limit": "limits.lower",
        "upper_limit": "limits.upper",
        **{
            f"{level}_{name}": f"{level}_level.{name}"
            for level in ("sample", "system")
            for name in ("pearson", "spearman", "kendall")
        },
    },
}


def build_dataframe(result: MetricsResult) -> pd.DataFrame:
    """Build a row for all, for each criterion, each judge and each slice; undefined numbers are missing.

    Columns that end in `_low` and `_high` are the ends of intervals, for each column where any row has one.

    Raises:
        MissingExtraError: pandas is not installed.
    """
    rows = list(_rows(result))
    bounds = [
        name for column in COLUMNS for name in (f"{column}_low", f"{column}_high") if any(name in row for row in rows)
    ]
    return dataframe(rows, of="A result", types={column: column_type(column) for column in (*COLUMNS, *bounds)})


def column_type(column: str) -> str:
    """The pandas type of a column."""
    if column in _WORDS:
        return "object"
    return "Int64" if column in _COUNTS else "float64"


def _rows(result: MetricsResult) -> Iterator[dict[str, Any]]:
    whole = {"criterion_type": "all"}
    yield {"level": "aggregate", "name": "overall"} | whole | _row(result, AGGREGATE_FIELDS)
    for criterion in result.per_criterion:
        yield {"level": "criterion"} | _row(criterion, CRITERION_FIELDS[type(criterion)])
    for judge in (result.per_judge or {}).values():
        yield {"level": "judge"} | whole | _row(judge, JUDGE_FIELDS)
    for part in result.slices or ():
        yield {"level": "slice"} | whole | _row(part, SLICE_FIELDS)


def _row(part: MetricsResult | AnyCriterion | JudgeMetrics | SliceMetrics, fields: dict[str, str]) -> dict[str, Any]:
    """The columns of a row from the fields of a part, with the ends of their intervals."""
    row: dict[str, Any] = {}
    for column, field in fields.items():
        row[column] = value_at(part, field)
        resample = bootstrap_at(part, field)
        if resample is not None and resample.ci is not None:
            row[f"{column}_low"], row[f"{column}_high"] = resample.ci.lower, resample.ci.upper
    return row
