"""An alignment result as HTML for a notebook: the answer, the numbers, and each criterion."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deemster.errors import plural
from deemster.formats.notebook_html import notebook_part, notebook_table
from deemster.text.number_format import count_criteria, format_number

if TYPE_CHECKING:
    from deemster.alignment.metrics_result import MetricsResult

_NUMBERS = (
    ("accuracy", "criterion_accuracy"),
    ("mean kappa", "mean_kappa"),
    ("mean concordance", "mean_concordance"),
    ("F1", "criterion_f1"),
    ("mean alpha of the judges", "mean_krippendorff_alpha"),
    ("RMSE of scores", "score_rmse"),
)


def result_html(result: MetricsResult) -> str:
    """The result as a part of a page."""
    answer = result.verdict.answer
    kind = "No answer" if answer is None else f"{answer[0].upper()}{answer[1:]}"
    counts = (
        f"{plural(result.n_items, 'item')}, {count_criteria(result.n_criteria)}, "
        f"{plural(result.n_judges, 'judge')}, {plural(result.n_samples, 'pair')} of truth and verdict."
    )
    lines = [
        f"Can this judge be trusted? {kind}.",
        *(f"Why: {reason}." for reason in result.verdict.reasons),
        counts,
        *(f"Warning: {warning}" for warning in result.warnings),
    ]
    criteria = notebook_table(("criterion", "kind", "n", "accuracy", "kappa or concordance"), _criteria(result))
    tables = [notebook_table(("number", "value", "interval"), _numbers(result)), criteria]
    return notebook_part("Judge alignment", lines=lines, tables=tables)


def _numbers(result: MetricsResult) -> Iterator[tuple[str, str, str]]:
    for label, name in _NUMBERS:
        value = getattr(result, name)
        if value is not None:
            found = (result.intervals or {}).get(name)
            ends = None if found is None else found.ci
            shown = "" if ends is None else f"{format_number(ends.lower)} to {format_number(ends.upper)}"
            yield label, format_number(value), shown


def _criteria(result: MetricsResult) -> Iterator[tuple[str, ...]]:
    for each in result.per_criterion:
        # Of an ordinal criterion it is weighted, and a numeric one has a concordance in its place.
        names = ("kappa", "weighted_kappa", "concordance")
        agreement = next((getattr(each, name) for name in names if hasattr(each, name)), None)
        numbers = map(format_number, (getattr(each, "accuracy", None), agreement))
        yield each.name, str(each.__struct_config__.tag), f"{each.n_samples:,}", *numbers
