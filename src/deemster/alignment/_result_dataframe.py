"""An alignment result as a pandas data frame."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from deemster.alignment.result_models import (
    AnyCriterion,
    CorrelationResult,
    CoverageStats,
    CriterionMetrics,
    Intervals,
    JudgeMetrics,
    NominalCriterionMetrics,
    OrdinalCriterionMetrics,
    SliceMetrics,
)
from deemster.errors import MissingExtraError

if TYPE_CHECKING:
    import pandas as pd

    from deemster.alignment.metrics_result import MetricsResult

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
)
_WORDS = frozenset({"level", "name", "criterion_type", "cannot_assess_mode", "na_mode", "is_degenerate"})
_COUNTS = frozenset({"n_samples", "n_errored"})
_COVERAGE = ("coverage", "judge_abstain_rate", "gt_abstain_rate", "union_exclusion_rate", "error_rate")
# The columns that the aggregate and a judge share, and the fields behind them.
_SHARED = {
    "accuracy_micro": "criterion_accuracy",
    "precision_micro": "criterion_precision",
    "recall_micro": "criterion_recall",
    "f1_micro": "criterion_f1",
    "mean_kappa_macro": "mean_kappa",
    "rmse": "score_rmse",
    "mae": "score_mae",
    "spearman": "score_spearman",
    "kendall": "score_kendall",
    "pearson": "score_pearson",
    "bias": "bias",
    "binary_accuracy": "binary_accuracy",
}
_AGGREGATE = _SHARED | {
    "accuracy_macro": "macro_accuracy",
    "kappa_micro": "micro_kappa",
    "phi_micro": "criterion_phi",
    "mean_krippendorff_alpha": "mean_krippendorff_alpha",
}
_JUDGE = _SHARED | {"phi": "phi"}
_PANEL = ("krippendorff_alpha", "balanced_accuracy", "gwet_ac")
_CRITERION: dict[type[AnyCriterion], dict[str, str]] = {
    CriterionMetrics: {
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
        "accuracy_micro": "exact_accuracy",
        "kappa_micro": "weighted_kappa",
        "weighted_kappa": "weighted_kappa",
        "rmse": "rmse",
        "mae": "mae",
        "spearman": "spearman",
        "kendall": "kendall",
        "adjacent_accuracy": "adjacent_accuracy",
        "fleiss_kappa": "fleiss_kappa",
        "linear_kappa": "linear_kappa",
    },
    NominalCriterionMetrics: {"accuracy_micro": "exact_accuracy", "kappa_micro": "kappa"},
}
_SLICE = {
    "accuracy_micro": "criterion_accuracy",
    "mean_kappa_macro": "mean_kappa",
    "rmse": "score_rmse",
    "bias": "bias",
}


def build_dataframe(result: MetricsResult) -> pd.DataFrame:
    """Build a row for all, for each criterion, each judge and each slice; undefined numbers are missing.

    Columns that end in `_low` and `_high` are the ends of intervals, for each column where any row has one.

    Raises:
        MissingExtraError: pandas is not installed.
    """
    try:
        import pandas as pd  # noqa: PLC0415 - an optional extra, loaded where it is used
    except ImportError:
        raise MissingExtraError("A result as a table of pandas", extra="dataframe") from None

    rows = list(_rows(result))
    bounds = [
        name for column in COLUMNS for name in (f"{column}_low", f"{column}_high") if any(name in row for row in rows)
    ]
    return pd.DataFrame(
        {column: pd.Series([row.get(column) for row in rows], dtype=_dtype(column)) for column in (*COLUMNS, *bounds)}
    )


def _dtype(column: str) -> str:
    if column in _WORDS:
        return "object"
    return "Int64" if column in _COUNTS else "float64"


def _rows(result: MetricsResult) -> Iterator[dict[str, Any]]:
    yield {
        "level": "aggregate",
        "name": "overall",
        "criterion_type": "all",
        "cannot_assess_mode": result.cannot_assess_mode,
        "na_mode": result.na_mode,
        "n_samples": result.n_samples,
        **_numbers(result, _AGGREGATE, result.intervals),
        **_coverage(result.coverage_stats),
    }
    for criterion in result.per_criterion:
        fields = _CRITERION[type(criterion)] | {name: name for name in _PANEL}
        yield {
            "level": "criterion",
            "name": criterion.name,
            "criterion_type": criterion.criterion_type,
            "n_samples": criterion.n_samples,
            "is_degenerate": criterion.is_degenerate,
            **_numbers(criterion, fields, criterion.intervals),
            **_coverage(criterion.coverage_stats),
        }
    for judge in (result.per_judge or {}).values():
        yield {
            "level": "judge",
            "name": judge.judge_id,
            "n_samples": judge.n_samples,
            **_numbers(judge, _JUDGE, judge.intervals),
        }
    for part in result.slices or ():
        yield {
            "level": "slice",
            "name": part.tag,
            "n_samples": part.n_samples,
            **_numbers(part, _SLICE, part.intervals),
        }


def _numbers(
    part: MetricsResult | AnyCriterion | JudgeMetrics | SliceMetrics, fields: dict[str, str], intervals: Intervals
) -> dict[str, float | None]:
    """The columns of a row from the fields of a part, with the ends of their intervals."""
    row: dict[str, float | None] = {}
    for column, field in fields.items():
        value = getattr(part, field)
        if isinstance(value, CorrelationResult):
            value = value.coefficient
        elif field == "bias" and not isinstance(part, SliceMetrics):
            value = value.mean_bias
        row[column] = value
        found = (intervals or {}).get(field)
        if found is not None and found.ci is not None:
            row[f"{column}_low"], row[f"{column}_high"] = found.ci.lower, found.ci.upper
    return row


def _coverage(stats: CoverageStats | None) -> dict[str, float | int | None]:
    if stats is None:
        return {}
    return {"n_errored": stats.n_errored, **{name: getattr(stats, name) for name in _COVERAGE}}
