"""The text summary of an alignment result, for a terminal of a hundred columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from deemster.alignment.result_models import (
    AnyCriterion,
    BootstrapResults,
    CannotAssessStats,
    ConfusionMatrix,
    CorrelationResult,
    CriterionMetrics,
    JudgeMetrics,
    NAStats,
    NominalCriterionMetrics,
    NumericCriterionMetrics,
    OrdinalCriterionMetrics,
)
from deemster.errors import plural, visible
from deemster.stats.systematic_bias import SIGNIFICANCE, BiasResult
from deemster.text.number_format import count_criteria, format_number, format_percent, state_p_value

if TYPE_CHECKING:
    from deemster.alignment.metrics_result import MetricsResult

WIDTH = 100
_GAP = "  "
_INDENT = "  "
PHI_NOTE = (
    "Note 1: for two classes phi, Matthews' coefficient, Pearson, Spearman and Kendall are the same number, so none of "
    "them confirms another. Kappa minus phi shows only how far the judge's rate of MET has drifted from people's."
)
FLEISS_NOTE = (
    "Note 2: ordinal alpha counts how far apart two grades lie, Fleiss' kappa only whether they are equal. They answer "
    "different questions and need not be close."
)
ALPHA_NOTE = (
    "Note 3: without an order of the labels alpha is Fleiss' kappa with a correction for few votes, "
    "alpha = K + (1 - K) / (N R) for N items and R judges. It is one statistic, so Fleiss' kappa is left out."
)
DEGENERATE = "degenerate: truth and verdicts hold one and the same class, so kappa is undefined"
NO_SPREAD = "degenerate: neither truth nor verdicts vary, so concordance is undefined"
NO_PAIRS = "no pair of truth and verdict"
_INTERVALS = (
    ("Accuracy (micro)", "criterion_accuracy"),
    ("Mean kappa (macro)", "mean_kappa"),
    ("Mean concordance", "mean_concordance"),
    ("Score RMSE", "score_rmse"),
    ("F1 (micro)", "criterion_f1"),
    ("Phi (micro)", "criterion_phi"),
    ("Mean alpha (macro)", "mean_krippendorff_alpha"),
    ("Score Spearman", "score_spearman"),
    ("Score Kendall", "score_kendall"),
    ("Score Pearson", "score_pearson"),
)


def summary_text(result: MetricsResult, *, verbose: bool = False) -> str:
    """The blocks of a summary, one under the other.

    Args:
        result: What to tell.
        verbose: Show errors, correlations and the confusion matrix of each judge too.
    """
    lines = [
        *_head(result),
        *_block("CRITERION LEVEL", _criterion_level(result)),
    ]
    if has_scores(result):
        lines += _block("SCORE LEVEL", _score_level(result))
    for title, stats in (("NOT APPLICABLE", result.na_stats), ("CANNOT ASSESS", result.cannot_assess_stats)):
        if stats is not None:
            lines += _block(title, _abstention(stats))
    if result.bootstrap is not None:
        lines += _block("INTERVALS", _intervals(result, result.bootstrap))
    if result.per_judge is not None:
        judges = [result.per_judge[key] for key in sorted(result.per_judge)]
        lines += _block("JUDGES", _judges(judges, verbose=verbose))
    lines += _criteria(result)
    return "\n".join(lines) + "\n"


def has_scores(result: MetricsResult) -> bool:
    """Whether items could have a score: not where all criteria are nominal and none of their options has a value."""
    only_choices = result.n_samples > 0 and result.n_nominal_criteria == result.n_criteria
    told = result.bias.n_samples > 0 or any(warning.startswith("no-scores:") for warning in result.warnings)
    return told or not only_choices


def count_kinds(result: MetricsResult) -> list[str]:
    """The kinds of criteria with their counts, such as `2 binary`."""
    counts = {
        "binary": result.n_binary_criteria,
        "ordinal": result.n_ordinal_criteria,
        "nominal": result.n_nominal_criteria,
        "numeric": result.n_numeric_criteria,
    }
    return [f"{count:,} {kind}" for kind, count in counts.items() if count]


def _head(result: MetricsResult) -> Iterator[str]:
    mix = count_kinds(result)
    by_kind = f" ({', '.join(mix)})" if len(mix) > 1 else ""
    yield "JUDGE ALIGNMENT"
    yield (
        f"  {plural(result.n_items, 'item')}, {count_criteria(result.n_criteria)}{by_kind}, "
        f"{plural(result.n_judges, 'judge')}, {plural(result.n_samples, 'pair')}"
    )
    yield f"  CANNOT_ASSESS: {result.cannot_assess_mode}; NA: {result.na_mode}"
    if result.warnings:
        yield f"  {plural(len(result.warnings), 'warning')}:"
        for warning in result.warnings:
            yield from _wrap(warning, indent="    ")


def _criterion_level(result: MetricsResult) -> Iterator[str]:
    entries = [
        ("Accuracy (micro)", format_percent(result.criterion_accuracy), ""),
        ("Accuracy (macro)", format_percent(result.macro_accuracy), ""),
    ]
    if result.n_binary_criteria and len(count_kinds(result)) > 1:
        entries.append(("Accuracy (binary)", format_percent(result.binary_accuracy), ""))
    if result.n_binary_criteria:
        entries += [
            ("Precision (micro)", format_number(result.criterion_precision), ""),
            ("Recall (micro)", format_number(result.criterion_recall), ""),
            ("F1 (micro)", format_number(result.criterion_f1), ""),
        ]
    entries += [("Mean kappa (macro)", format_number(result.mean_kappa), "")]
    if result.n_numeric_criteria:
        entries.append(("Mean concordance", format_number(result.mean_concordance), "numeric criteria"))
    entries += [("Kappa (micro)", format_number(result.micro_kappa), "")]
    if result.n_binary_criteria:
        entries.append(("Phi (micro)", format_number(result.criterion_phi), "note 1"))
    entries.append(("Mean alpha (macro)", format_number(result.mean_krippendorff_alpha), ""))
    cover = result.coverage_stats
    if cover is not None:
        entries.append(
            ("Coverage", format_percent(cover.coverage), f"{cover.n_covered:,} of {cover.n_total:,} labelled pairs")
        )
        if cover.judge_abstain_rate or cover.gt_abstain_rate:
            entries.append(("  judge abstains", format_percent(cover.judge_abstain_rate), ""))
            entries.append(("  people abstain", format_percent(cover.gt_abstain_rate), ""))
        if cover.n_errored:
            entries.append(("  errored", format_percent(cover.error_rate), plural(cover.n_errored, "pair")))
    yield from _facts(entries)
    if result.n_binary_criteria:
        yield from _wrap(PHI_NOTE)


def _score_level(result: MetricsResult) -> list[str]:
    return _facts(
        [
            ("RMSE", format_number(result.score_rmse), f"n = {result.bias.n_samples:,}"),
            ("MAE", format_number(result.score_mae), ""),
            *(
                (name, format_number(found.coefficient), _correlation(found))
                for name, found in (
                    ("Spearman", result.score_spearman),
                    ("Kendall", result.score_kendall),
                    ("Pearson", result.score_pearson),
                )
            ),
            ("Bias", format_number(result.bias.mean_bias), _bias(result.bias)),
        ]
    )


def _correlation(found: CorrelationResult) -> str:
    p_value = "" if found.p_value is None else f", {state_p_value(found.p_value)}"
    return f"{found.interpretation}{p_value}"


def _bias(bias: BiasResult) -> str:
    if bias.mean_bias is None:
        return "no scores"
    if bias.p_value is None:
        return f"{bias.direction}, not tested"
    test = "significant" if bias.is_significant else "not significant"
    doubt = " (too few items differ)" if bias.p_value < SIGNIFICANCE and not bias.is_significant else ""
    return f"{bias.direction}, {test}, {state_p_value(bias.p_value)}{doubt}"


def _abstention(stats: NAStats | CannotAssessStats) -> list[str]:
    if isinstance(stats, NAStats):
        counts = (stats.na_count_true, stats.na_count_pred, stats.na_false_positive, stats.na_false_negative)
        kappa, word = stats.na_kappa, stats.na_kappa_interpretation
    else:
        counts = (stats.ca_count_true, stats.ca_count_pred, stats.ca_false_positive, stats.ca_false_negative)
        kappa, word = stats.ca_kappa, stats.ca_kappa_interpretation
    true, judged, only_judge, only_truth = counts
    entries = [
        ("Truth / judge", f"{true:,} / {judged:,}", ""),
        ("Kappa", format_number(kappa), word or ""),
    ]
    if only_judge:
        entries.append(("False positives", f"{only_judge:,}", "the judge abstains, the truth does not"))
    if only_truth:
        entries.append(("False negatives", f"{only_truth:,}", "the truth abstains, the judge does not"))
    return _facts(entries)


def _intervals(result: MetricsResult, drawn: BootstrapResults) -> Iterator[str]:
    level = format_number(drawn.confidence_level * 100, places=1).removesuffix(".0")
    how = (
        f"{level} %, {drawn.method}, {plural(drawn.n_bootstrap, 'replicate')} drawn by {drawn.unit}, seed {drawn.seed}"
    )
    yield from _wrap(how)
    rows = []
    for name, field in _INTERVALS:
        found = (result.intervals or {}).get(field)
        if found is not None and (has_scores(result) or not field.startswith("score_")):
            ends = (None, None) if found.ci is None else (found.ci.lower, found.ci.upper)
            cells = [
                format_number(found.estimate),
                *map(format_number, ends),
                format_number(found.standard_error),
                str(found.n_bootstrap),
            ]
            rows.append(_Row(name, cells))
    if rows:
        yield from _table(["", "Estimate", "Low", "High", "SE", "Defined"], rows)
        return
    for name, pair in (("Accuracy", drawn.accuracy_ci), ("Mean kappa", drawn.kappa_ci), ("RMSE", drawn.rmse_ci)):
        rows.append(_Row(name, [format_number(end) for end in pair or (None, None)]))
    yield from _table(["", "Low", "High"], rows)


def _judges(judges: Sequence[JudgeMetrics], *, verbose: bool) -> Iterator[str]:
    head = ["Judge", "n", "Accuracy", "Mean kappa", "Phi"] + ["RMSE", "Spearman", "MAE"] * verbose
    rows = []
    for judge in judges:
        cells = [
            str(judge.n_samples),
            format_percent(judge.criterion_accuracy),
            format_number(judge.mean_kappa),
            format_number(judge.phi),
        ]
        if verbose:
            cells += [
                format_number(judge.score_rmse),
                format_number(judge.score_spearman.coefficient),
                format_number(judge.score_mae),
            ]
        rows.append(_Row(judge.judge_id, cells))
    yield from _table(head, rows)
    for judge in judges if verbose else ():
        if judge.confusion_matrix is not None:
            yield from _wrap(f"{judge.judge_id}, binary votes (rows are the truth):")
            yield from _confusion(judge.confusion_matrix)


def _confusion(matrix: ConfusionMatrix) -> list[str]:
    rows = [_Row(label, [str(count) for count in row]) for label, row in zip(matrix.labels, matrix.matrix, strict=True)]
    return _table(["", *matrix.labels], rows)


def _criteria(result: MetricsResult) -> list[str]:
    binary = [part for part in result.per_criterion if isinstance(part, CriterionMetrics)]
    ordinal = [part for part in result.per_criterion if isinstance(part, OrdinalCriterionMetrics)]
    nominal = [part for part in result.per_criterion if isinstance(part, NominalCriterionMetrics)]
    lines: list[str] = []
    if binary:
        lines += _block("BINARY CRITERIA", _binary_table(binary))
    if ordinal:
        lines += _block("ORDINAL CRITERIA", _ordinal_table(ordinal))
    if nominal:
        lines += _block("NOMINAL CRITERIA", _nominal_table(nominal, explain=not _has_alpha(binary)))
    numeric = [part for part in result.per_criterion if isinstance(part, NumericCriterionMetrics)]
    if numeric:
        lines += _block("NUMERIC CRITERIA", _numeric_tables(numeric))
    return lines


def _has_alpha(criteria: Sequence[CriterionMetrics | NominalCriterionMetrics]) -> bool:
    return any(part.krippendorff_alpha is not None for part in criteria)


def _binary_table(criteria: Sequence[CriterionMetrics]) -> Iterator[str]:
    panel = _has_alpha(criteria)
    head = ["Criterion", "n", "Acc", "Prec", "Rec", "F1", "Kappa", "Phi", "FP", "FN", "FPR", "FNR"]
    rows = []
    for part in criteria:
        matrix = part.confusion_matrix
        wrong = ("n/a", "n/a") if matrix is None else (str(matrix.fp), str(matrix.fn))
        before = (part.accuracy, part.precision, part.recall, part.f1, part.kappa, part.phi)
        cells = [str(part.n_samples), *map(_short, before), *wrong, *map(_short, (part.fpr, part.fnr))]
        rows.append(_Row(part.name, cells + [_short(part.krippendorff_alpha)] * panel, _remark(part)))
    yield from _table(head + ["Kripp-α"] * panel, rows)
    if panel:
        yield from _wrap(ALPHA_NOTE)


def _ordinal_table(criteria: Sequence[OrdinalCriterionMetrics]) -> Iterator[str]:
    panel = any(part.krippendorff_alpha is not None or part.fleiss_kappa is not None for part in criteria)
    head = ["Criterion", "n", "Exact", "Adj", "WKappa", "Spearman", "RMSE"]
    rows = []
    for part in criteria:
        values = (
            part.exact_accuracy,
            part.adjacent_accuracy,
            part.weighted_kappa,
            part.spearman.coefficient,
            part.rmse,
        )
        cells = [str(part.n_samples), *map(_short, values)]
        if panel:
            cells += [_short(part.krippendorff_alpha), _short(part.fleiss_kappa)]
        rows.append(_Row(part.name, cells, _remark(part)))
    yield from _table(head + ["Kripp-α", "Fleiss"] * panel, rows)
    if panel:
        yield from _wrap(FLEISS_NOTE)


def _nominal_table(criteria: Sequence[NominalCriterionMetrics], *, explain: bool) -> Iterator[str]:
    panel = _has_alpha(criteria)
    rows = []
    for part in criteria:
        cells = [str(part.n_samples), _short(part.exact_accuracy), _short(part.kappa), part.kappa_interpretation]
        rows.append(_Row(part.name, cells + [_short(part.krippendorff_alpha)] * panel, _remark(part)))
    yield from _table(["Criterion", "n", "Accuracy", "Kappa", "Interpretation"] + ["Kripp-α"] * panel, rows)
    if panel and explain:
        yield from _wrap(ALPHA_NOTE)


def _numeric_tables(criteria: Sequence[NumericCriterionMetrics]) -> Iterator[str]:
    panel = any(part.krippendorff_alpha is not None for part in criteria)
    head = ["Criterion", "n", "Conc", "ICC(2,1)", "RMSE", "MAE", "Bias", "Lower", "Upper"]
    rows = []
    for part in criteria:
        limits = (None, None) if part.limits is None else (part.limits.lower, part.limits.upper)
        values = (part.concordance, part.icc.icc_2_1, part.rmse, part.mae, part.bias.mean_bias, *limits)
        cells = [str(part.n_samples), *map(_short, values), *[_short(part.krippendorff_alpha)] * panel]
        rows.append(_Row(part.name, cells, _remark(part)))
    yield from _table(head + ["Kripp-α"] * panel, rows)
    rows = []
    for part in criteria:
        every = (part.pearson.coefficient, part.spearman.coefficient, part.kendall.coefficient)
        rows.append(_Row(f"{part.name}, dataset", [str(part.n_samples), *map(_short, every)]))
        for name, level in (("sample", part.sample_level), ("system", part.system_level)):
            if level is not None:
                found = (level.pearson, level.spearman, level.kendall)
                rows.append(_Row(f"{part.name}, {name}", [str(level.n_groups), *map(_short, found)]))
    yield from _table(["Correlation, level", "n", "Pearson", "Spearman", "Kendall"], rows)


def _remark(part: AnyCriterion) -> str:
    if part.is_degenerate and isinstance(part, NumericCriterionMetrics):
        return NO_SPREAD
    if part.is_degenerate:
        return DEGENERATE
    return "" if part.n_samples else NO_PAIRS


def _short(value: float | None) -> str:
    return format_number(value, places=3)


class _Row(NamedTuple):
    """A line of a table: its name, its cells, and a remark below them."""

    name: str
    cells: Sequence[str]
    remark: str = ""


def _facts(entries: Sequence[tuple[str, str, str]]) -> list[str]:
    """Lines of a name, a value and a remark, in columns."""
    names = max((len(name) for name, _, _ in entries), default=0)
    values = max((len(value) for _, value, _ in entries), default=0)
    return [
        f"{_INDENT}{name:<{names}}{_GAP}{value:>{values}}{_GAP}{visible(remark)}".rstrip()
        for name, value, remark in entries
    ]


def _table(head: Sequence[str], rows: Sequence[_Row]) -> list[str]:
    """Rows under their head, numbers to the right; a name that has no room stands on a line of its own."""
    head = [visible(title) for title in head]
    rows = [row._replace(cells=[visible(text) for text in row.cells]) for row in rows]
    names = [visible(row.name, limit=WIDTH - len(_INDENT)) for row in rows]
    widths = [
        max(cell_len(text) for text in (title, *(row.cells[place] for row in rows)))
        for place, title in enumerate(head[1:])
    ]
    room = WIDTH - len(_INDENT) - sum(len(_GAP) + width for width in widths)
    first = max([cell_len(head[0]), *(width for width in map(cell_len, names) if width <= room)])
    lines = [_line(head[0], head[1:], first, widths)]
    for name, row in zip(names, rows, strict=True):
        if cell_len(name) > first:
            lines.append(_INDENT + name)
            name = ""  # noqa: PLW2901 - the name has been said
        lines.append(_line(name, row.cells, first, widths))
        if row.remark:
            lines.extend(_wrap(row.remark, indent=_INDENT * 2))
    return lines


def _wrap(text: str, *, indent: str = _INDENT) -> list[str]:
    """A sentence on as many lines as it needs; text from data in it is made harmless."""
    following = indent + _INDENT
    return textwrap.wrap(
        visible(text), WIDTH, initial_indent=indent, subsequent_indent=following, break_on_hyphens=False
    )


def _block(title: str, lines: Iterable[str]) -> list[str]:
    """Lines under a title, after an empty line."""
    return ["", title, *lines]


def _line(name: str, cells: Sequence[str], first: int, widths: Sequence[int]) -> str:
    padded = [name + " " * (first - cell_len(name))]
    padded += [" " * (width - cell_len(text)) + text for text, width in zip(cells, widths, strict=True)]
    return (_INDENT + _GAP.join(padded)).rstrip()
