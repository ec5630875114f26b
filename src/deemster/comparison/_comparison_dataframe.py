"""A comparison as a pandas data frame: the numbers that were compared, or the samples that changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from deemster.errors import ReportError, did_you_mean
from deemster.formats.dataframe import dataframe

if TYPE_CHECKING:
    import pandas as pd

    from deemster.comparison.comparison import Comparison
    from deemster.results.compared_numbers import Difference

FORMS = ("metrics", "samples")
_FIELDS = ("n", "units", "baseline", "candidate", "difference")
_MORE = ("p_value", "effect", "better", "equal", "worse", "lower_bound", "upper_bound", "certifiable", "detectable")


def comparison_dataframe(comparison: Comparison, form: str) -> pd.DataFrame:
    """The comparison as a table: a row for each number, or a row for each sample that changed.

    Raises:
        ReportError: There is no such form.
        MissingExtraError: pandas is not installed.
    """
    if form not in FORMS:
        raise ReportError(f"A comparison has no table {form!r}. {did_you_mean(form, FORMS)}")
    return dataframe(_number_rows(comparison) if form == "metrics" else _sample_rows(comparison), of="A comparison")


def _number_rows(comparison: Comparison) -> Iterator[dict[str, Any]]:
    yield _row(None, None, "macro_f1", comparison.macro_f1)
    yield _row(None, None, "pass_rate", comparison.pass_rate)
    for name, metric in comparison.metrics.items():
        yield _row(None, name, "pass_rate", metric.pass_rate)
        yield _row(None, name, "mean", metric.mean)
    for cohort in comparison.cohorts:
        yield _row(cohort.label, None, "macro_f1", cohort.macro_f1)
        yield _row(cohort.label, None, "pass_rate", cohort.pass_rate)
        for name, rate in cohort.metrics.items():
            yield _row(cohort.label, name, "pass_rate", rate)


def _row(cohort: str | None, metric: str | None, number: str, found: Difference) -> dict[str, Any]:
    low, high = found.interval or (None, None)
    fields = {name: getattr(found, name) for name in _FIELDS}
    more = {name: getattr(found, name) for name in _MORE}
    return {"cohort": cohort, "metric": metric, "number": number, **fields, "low": low, "high": high, **more}


def _sample_rows(comparison: Comparison) -> Iterator[dict[str, Any]]:
    for change in comparison.changes:
        sides = {"baseline": change.baseline, "candidate": change.candidate}
        row: dict[str, Any] = {
            "sample_id": next(side.id for side in (change.candidate, change.baseline) if side is not None),
            "status": change.status,
            "row_hash": change.row_hash,
            "p_value": change.p_value,
            "confident": change.confident,
        }
        for name, side in sides.items():
            row[f"{name}_passed"] = None if side is None else side.passed
            row[f"{name}_repetitions"] = None if side is None else side.repetitions
        for metric in comparison.metrics:
            for name, side in sides.items():
                row[f"{metric}_{name}"] = None if side is None else side.scores[metric]
        yield row
