"""The sections about criteria: the weakest first, by kind, numeric ones, and their correlations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from deemster.agreement._agreement_tables import (
    Column,
    cell_text,
    format_ends,
    format_span,
    interval_column,
    interval_plots,
    table_of,
)
from deemster.agreement.agreement_sentences import kappa_in_words
from deemster.agreement.result_models import (
    AnyCriterion,
    CriterionMetrics,
    NumericCriterionMetrics,
    ScoreLimits,
    interval_of,
)
from deemster.agreement.trust_verdict import (
    MODERATE,
    criterion_interval,
    criterion_kappa,
    fewest_labels,
)
from deemster.errors import plural
from deemster.stats.confidence_interval import Interval
from deemster.text.number_format import count_criteria, format_number, format_percent
from deemster.text.text_sections import DataText, TextLine, TextSection, TextTable

if TYPE_CHECKING:
    from deemster.agreement.metrics_result import MetricsResult

# Of a class with fewer labels, the number is shown beside kappa.
_FEW_LABELS = 5


def _count_of_errors(name: str) -> Callable[[CriterionMetrics], str]:
    """A column of one cell of the confusion matrices, which only a table of MET against UNMET has."""

    def count(part: CriterionMetrics) -> str:
        matrix = part.confusion_matrix
        return cell_text(None if matrix is None or matrix.labels != ("MET", "UNMET") else getattr(matrix, name))

    return count


def limits_interval(limits: ScoreLimits | None) -> Interval | None:
    """The limits of agreement; None where there are none."""
    if limits is None or limits.lower is None or limits.upper is None:
        return None
    return Interval(limits.lower, limits.upper)


# What is told of criteria of one kind, beside what is told of all.
_COLUMNS_OF_KIND: dict[str, tuple[Column, ...]] = {
    "binary": (
        ("criterion", "name"),
        ("precision", "precision"),
        ("recall", "recall"),
        ("F1", "f1"),
        ("phi", "phi"),
        ("false MET", _count_of_errors("fp")),
        ("missed MET", _count_of_errors("fn")),
        ("FPR", "fpr"),
        ("FNR", "fnr"),
    ),
    "ordinal": (
        ("criterion", "name"),
        ("at most one off", "adjacent_accuracy"),
        ("Spearman", "spearman.coefficient"),
        ("RMSE", "rmse"),
        ("Fleiss' kappa", "fleiss_kappa"),
    ),
}
_NUMERIC: tuple[Column, ...] = (
    ("criterion", "name"),
    ("n", "n_samples"),
    ("ICC(2,1)", "icc.icc_2_1"),
    ("interval", interval_column("icc.icc_2_1")),
    ("bias", "bias.mean_bias"),
    ("interval", interval_column("bias")),
    ("RMSE", "rmse"),
    ("MAE", "mae"),
    ("limits of agreement", lambda part: format_span(limits_interval(part.limits))),
)


def criteria_section(result: MetricsResult, *, most: int | None = None) -> TextSection:
    """Every criterion, the weakest first."""
    ranked = sorted(result.per_criterion, key=_weakness)
    resampled = any(part.intervals for part in ranked)
    rows = []
    for part in ranked[:most]:
        accuracy: float | None = None
        if not isinstance(part, NumericCriterionMetrics):
            accuracy = part.accuracy if isinstance(part, CriterionMetrics) else part.exact_accuracy
        between = [format_ends(criterion_interval(part))] * resampled
        remark = "of picked items only" if result.sampling == "chosen" else _remark(part)
        shown = [f"{part.n_samples:,}", format_percent(accuracy), format_number(criterion_kappa(part)), *between]
        rows.append((DataText(part.name), part.criterion_type, *shown, format_number(part.krippendorff_alpha), remark))
    head = ("criterion", "kind", "n", "accuracy", "kappa", *["interval"] * resampled, "alpha", "remark")
    plots = interval_plots("kappa", [(criterion_kappa(part), criterion_interval(part)) for part in ranked[:most]])
    table = TextTable(head, rows, ("alpha", "kind"), plots) if rows else None
    left = len(ranked) - len(rows)
    after: list[TextLine] = [(f"{count_criteria(left)} more.",)] if left else []
    return TextSection(("Criteria, the weakest first",), (), table, after, key="criteria")


def sections_of_kinds(result: MetricsResult) -> Iterator[TextSection]:
    """The numbers that only criteria of one kind have, a section for each kind."""
    for kind, columns in _COLUMNS_OF_KIND.items():
        criteria = [part for part in result.per_criterion if part.criterion_type == kind]
        if criteria:
            yield TextSection((f"{kind.capitalize()} criteria",), table=table_of(criteria, columns), key=kind)


def numeric_section(criteria: Sequence[NumericCriterionMetrics]) -> TextSection:
    """Criteria of numbers, in their own unit."""
    lines: list[TextLine] = [
        ("In the unit of each criterion. Their kappa above is the concordance, which quadratic kappa is for numbers.",)
    ]
    return TextSection(("Numeric criteria",), lines, table_of(criteria, _NUMERIC), key="numeric")


def correlation_section(criteria: Sequence[NumericCriterionMetrics]) -> TextSection:
    """How numbers are correlated with those of people, over all pairs, inside groups and between systems."""
    rows: list[TextLine] = []
    for part in criteria:
        every = {
            "dataset": (part.n_samples, part.pearson.coefficient, part.spearman.coefficient, part.kendall.coefficient)
        }
        for name, level in (("sample", part.sample_level), ("system", part.system_level)):
            if level is not None:
                every[name] = (level.n_groups, level.pearson, level.spearman, level.kendall)
        for name, (n, *found) in every.items():
            prefix = "" if name == "dataset" else f"{name}_level."
            known = part.intervals or {}
            ends = format_ends(interval_of(known, f"{prefix}spearman"))
            shown = [format_number(value) for value in found]
            rows.append((DataText(part.name), name, f"{n:,}", *shown, ends))
    head = ("criterion", "level", "n", "Pearson", "Spearman", "Kendall", "interval of Spearman")
    lines: list[TextLine] = [
        ("Dataset: all pairs. Sample: the mean inside the groups of `group`. System: the means of `system`.",)
    ]
    return TextSection(("Correlations of numbers",), lines, TextTable(head, rows), key="correlations")


def _weakness(part: AnyCriterion) -> tuple[bool, float, int]:
    kappa = criterion_kappa(part)
    return kappa is None, kappa or 0.0, part.index


def _remark(part: AnyCriterion) -> str:
    if part.is_degenerate:
        return "degenerate"
    kappa = criterion_kappa(part)
    if kappa is None:
        return "undefined" if part.n_samples else "no pair of truth and verdict"
    remark = f"{kappa_in_words(kappa)}: do not rely on it" if kappa < MODERATE else kappa_in_words(kappa)
    count, label = fewest_labels(part)
    return (
        remark if label is None or count >= _FEW_LABELS else DataText(f"{remark}; {plural(count, 'label')} of {label}")
    )
