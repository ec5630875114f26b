"""The agreement of judges with people as an HTML page: the answer, criteria, confusion matrices, reliability."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from deemster.agreement.agreement_report import short_agreement_sections
from deemster.agreement.result_models import CalibrationMetrics, ConfusionMatrix, NumericCriterionMetrics, interval_of
from deemster.agreement.trust_verdict import kappa_interval
from deemster.errors import plural
from deemster.stats.confidence_interval import ConfidenceInterval, Interval, interval_ends
from deemster.text.html_page import PageHead, Tile, rate_tile, render_page, render_part
from deemster.text.number_format import format_number, format_percent
from deemster.text.svg_plots import square_plot
from deemster.text.table_plots import IntervalCell, PlotColumn, drawn_columns, scale_up_to_one
from deemster.text.text_sections import (
    DataText,
    Figure,
    ShadedNumber,
    TextLine,
    TextSection,
    TextTable,
    in_order,
    with_keys,
)

if TYPE_CHECKING:
    from deemster.agreement.inter_judge_agreement import JudgePair
    from deemster.agreement.metrics_result import MetricsResult

_KINDS = {"yes": "pass", "with care": "inconclusive", "not yet": "fail"}
# What a reader asks first, and what a page shows that is about more than agreement.
_ORDER = (
    *("next-steps", "criteria", "matrices", "judge-pairs", "judges", "agreement", "scores"),
    *("binary", "ordinal", "numeric", "correlations", "judge-scores", "judge-votes", "abstentions", "kinds", "slices"),
    *("people", "annotator-tests", "position-bias", "consistency", "probabilities", "corrected", "items", "reading"),
)
_SHORT = ("criteria", "judges", "slices", "position-bias", "next-steps")
_MAIN = ("headline", "next-steps", "criteria", "matrices", "probabilities", "items")
# So many confusion matrices, reliability curves and pairs of judges are shown.
_MOST_MATRICES = 24
_MOST_CURVES = 8
_MOST_PAIRS = 45


def agreement_page(result: MetricsResult, pairs: Sequence[JudgePair] = ()) -> str:
    """A result of agreement as a page; text from data is escaped and stands inside code elements.

    Args:
        result: The result.
        pairs: How often each two judges agree.
    """
    headline, *sections = result.sections()
    # The first line is the answer, the second says why.
    answer, why, *facts = headline.lines
    kind = _KINDS.get(result.verdict.answer or "", "inconclusive")
    head = PageHead(headline._replace(lines=facts), kind, answer, [*_tiles(result)], "Why", [why[1:]])
    drawn = [*_with_curves(result, sections), *_matrices(result), *_judge_pairs(pairs)]
    return render_page("deemster agreement", head, in_order(drawn, _ORDER))


def agreement_notebook(result: MetricsResult) -> str:
    """The short form of a result as a part of a page, for a notebook."""
    more = "All tables: `summary()`. Every number: `to_json()`."
    headline, *sections = short_agreement_sections(result, more=more)
    return render_part([headline, *in_order(sections, _SHORT)])


def agreement_parts(result: MetricsResult) -> list[TextSection]:
    """The main sections of a result, for a page that is about more than agreement."""
    drawn = [*_with_curves(result, result.sections()), *_matrices(result)]
    return in_order(with_keys(drawn, _MAIN), _MAIN)


def _with_curves(result: MetricsResult, sections: Sequence[TextSection]) -> list[TextSection]:
    """The sections, that of probabilities with its reliability curves."""
    return [
        section._replace(figures=_curves(result)) if section.key == "probabilities" else section for section in sections
    ]


def _tiles(result: MetricsResult) -> Iterator[Tile]:
    ends = kappa_interval(result)
    yield Tile(
        "mean kappa",
        format_number(result.mean_kappa),
        f"interval {format_number(ends.low)} to {format_number(ends.high)}" if ends is not None else "",
        next(iter(_kappa_plot(result.mean_kappa, ends)), None),
    )
    ci = interval_of(result.intervals, "criterion_accuracy")
    yield rate_tile(
        "accuracy",
        result.criterion_accuracy,
        interval_ends(ci),
        shown=format_percent(result.criterion_accuracy),
        about="" if ci is None else f"interval {_percents(ci)}",
    )
    if result.human is not None and result.human.ceiling_kappa is not None:
        yield Tile("kappa that people reach", format_number(result.human.ceiling_kappa), "the ceiling")
    yield Tile("items", f"{result.n_items:,}", plural(result.n_samples, "pair"))
    yield Tile("judges", f"{result.n_judges:,}", f"{result.n_criteria:,} criteria")


def _kappa_plot(value: float | None, ends: Interval | None) -> list[PlotColumn]:
    cell = IntervalCell(value, ends)
    return drawn_columns(PlotColumn("mean kappa", [cell], "mean kappa", scale_up_to_one([value, *(ends or ())])))


def _matrices(result: MetricsResult) -> Iterator[TextSection]:
    """The confusion matrix of each criterion, shaded by the share of its row."""
    known = [
        (part.name, part.confusion_matrix)
        for part in result.per_criterion
        if not isinstance(part, NumericCriterionMetrics) and part.confusion_matrix is not None and part.n_samples
    ]
    if not known:
        return
    lines: list[TextLine] = [("A row for each true label, a column for each verdict; shaded by the share of the row.",)]
    if len(known) > _MOST_MATRICES:
        lines.append((f"The first {_MOST_MATRICES} of {len(known):,} criteria.",))
    figures = [_matrix(name, matrix) for name, matrix in known[:_MOST_MATRICES]]
    yield TextSection(("Confusion matrices",), lines, key="matrices", figures=figures)


def _matrix(name: str, matrix: ConfusionMatrix) -> Figure:
    rows: list[TextLine] = []
    for label, counts in zip(matrix.labels, matrix.matrix, strict=True):
        total = sum(counts)
        cells = (ShadedNumber(f"{count:,}", count / total if total else None) for count in counts)
        rows.append((DataText(label), *cells))
    head = ("truth", *map(DataText, matrix.labels))
    return Figure(f"{name}: {plural(matrix.total, 'pair')}", "", TextTable(head, rows))


def _judge_pairs(pairs: Sequence[JudgePair]) -> Iterator[TextSection]:
    if not pairs:
        return
    ranked = sorted(pairs, key=lambda pair: 2.0 if pair.agreement is None else pair.agreement)[:_MOST_PAIRS]
    rows = [
        (
            DataText(f"{pair.judge_a} and {pair.judge_b}"),
            f"{pair.n_samples:,}",
            format_percent(pair.agreement),
            _percents(pair.ci),
        )
        for pair in ranked
    ]
    cells = [IntervalCell(pair.agreement, interval_ends(pair.ci)) for pair in ranked]
    plots = drawn_columns(PlotColumn("equal verdicts", cells, "interval"))
    lines: list[TextLine] = [("How often two judges give the same verdict, whatever the truth is; the lowest first.",)]
    if len(pairs) > _MOST_PAIRS:
        lines.append((f"{_MOST_PAIRS} of {len(pairs):,} pairs.",))
    table = TextTable(("judges", "n", "equal verdicts", "interval"), rows, plots=plots)
    yield TextSection(("Judge against judge",), lines, table, key="judge-pairs")


def _percents(ci: ConfidenceInterval | None) -> str:
    return "n/a" if ci is None else f"{format_percent(ci.lower)} to {format_percent(ci.upper)}"


def _curves(result: MetricsResult) -> list[Figure]:
    """The reliability curve of each judge that states probabilities."""
    return [_curve(number, part) for number, part in enumerate((result.calibration or ())[:_MOST_CURVES], 1)]


def _curve(number: int, part: CalibrationMetrics) -> Figure:
    area = square_plot("stated probability", "share that came true")
    rows: list[TextLine] = []
    before: tuple[float, float] | None = None
    for each in part.curve:
        if each.mean_probability is None or each.observed_share is None:
            continue
        at = (each.mean_probability, each.observed_share)
        if before is not None:
            area.add_line(before, at, "trend plain")
        if (ends := interval_ends(each.ci)) is not None:
            area.add_interval(at[0], ends, "trend plain")
        told = f"stated {at[0]:.2f}, true {at[1]:.2f}, {each.n_samples:,} probabilities"
        area.add_point(at, radius=4.5, kind="dot", told=told)
        shown = (f"{each.n_samples:,}", format_number(at[0]), format_number(at[1]), _percents(each.ci))
        rows.append((f"{each.lower:.1f} to {each.upper:.1f}", *shown))
        before = at
    who = "All judges" if part.judge_id is None else part.judge_id
    error = f"calibration error {format_number(part.calibration_error)}"
    caption = (
        f"{who}, {part.scale}: {error}, {part.n_samples:,} probabilities. On the diagonal they mean what they say."
    )
    table = TextTable(("probability", "n", "stated", "came true", "interval"), rows)
    title = f"Reliability curve of {who}, {part.scale} criteria"
    return Figure(caption, area.draw(f"curve-{number}", title, caption), table, is_square=True)
