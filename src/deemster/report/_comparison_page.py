"""The comparison of two runs as an HTML page: its tables, a plot of all differences, and a plot of the samples."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from deemster.errors import plural, visible
from deemster.report._escaping import escape_markup
from deemster.report._html_report import Figure, render_page, render_part
from deemster.report.comparison_sections import comparison_sections
from deemster.report.text_sections import format_change, format_change_interval
from deemster.results.comparison import Difference
from deemster.results.sample_changes import SampleSide

if TYPE_CHECKING:
    from deemster.report.comparison_report import ComparisonReport

_Scale: TypeAlias = Callable[[float], float]
_NOTEBOOK = ("Gate", "Pass-rates", "Mean scores", "Macro-F1 by cohort", "Newly failing", "Newly passing")
# The plot of differences: the most rows, and its measures in pixels.
_MOST_ROWS = 60
_ROW = 22
_LABELS = 220
_WIDTH = 800
_NUMBERS = 230
# The plot of samples: so many steps from 0 to 1, and its measures.
_STEPS = 50
_SIDE = 320
_EDGE = 48
_STEP_SIZES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5)


def comparison_page(comparison: ComparisonReport) -> str:
    """The whole comparison as a page; text from data is escaped and stands inside code elements."""
    headline, *parts = comparison_sections(comparison)
    names = [run.label or run.id for run in (comparison.baseline, comparison.candidate)]
    figures = [figure for figure in (_interval_plot(comparison), _sample_plot(comparison)) if figure is not None]
    return render_page(f"deemster comparison: {' to '.join(names)}", [headline, *figures, *parts])


def comparison_notebook(comparison: ComparisonReport) -> str:
    """The comparison as a part of a page, for a notebook: what a reader looks for first."""
    headline, *parts = comparison_sections(comparison, full=False)
    return render_part([headline, *(part for part in parts if part.title[0].startswith(_NOTEBOOK))])


class _Row(NamedTuple):
    """A line of the plot of differences."""

    label: str
    number: Difference


def _rows(comparison: ComparisonReport) -> Iterator[_Row]:
    yield _Row("macro-F1", comparison.macro_f1)
    yield _Row("all metrics pass", comparison.pass_rate)
    for name, metric in comparison.metrics.items():
        yield _Row(name, metric.pass_rate)
    for cohort in comparison.cohorts:
        yield _Row(f"macro-F1 of {cohort.label}", cohort.macro_f1)


def _interval_plot(comparison: ComparisonReport) -> Figure | None:
    """Every difference with its interval, on one scale; the tables say the same in numbers."""
    every = [row for row in _rows(comparison) if row.number.difference is not None]
    rows = every[:_MOST_ROWS]
    if not rows:
        return None
    margin = comparison.margin
    ends = [abs(end) for row in rows for end in (row.number.interval or (row.number.difference or 0.0,))]
    reach = max(*ends, margin or 0.0, 0.01)
    step = next((size for size in _STEP_SIZES if reach / size <= 4), _STEP_SIZES[-1])
    limit = min(1.0, step * math.ceil(reach / step))
    plot = _WIDTH - _LABELS - _NUMBERS

    def across(value: float) -> float:
        return _LABELS + plot * (max(-limit, min(limit, value)) + limit) / (2 * limit)

    bottom = 30 + _ROW * len(rows)
    title = f"Differences with {100 * comparison.confidence:.4g}% intervals: left of 0 is worse, right of 0 is better"
    more = f", and {len(every) - len(rows):,} more in the tables" if len(every) > len(rows) else ""
    parts = [_opening("differences", _WIDTH, bottom + 24, title, f"{plural(len(rows), 'difference')}{more}.")]
    for number in range(-round(limit / step), round(limit / step) + 1):
        x, kind = across(number * step), "zero" if not number else "grid"
        parts.append(f'<line class="{kind}" x1="{x:.1f}" y1="24" x2="{x:.1f}" y2="{bottom}"/>')
        parts.append(_text(x, bottom + 16, f"{number * step:+.2f}" if number else "0", "middle"))
    if margin is not None:
        x = across(-margin)
        parts.append(f'<line class="margin" x1="{x:.1f}" y1="18" x2="{x:.1f}" y2="{bottom}"/>')
        parts.append(_text(x, 14, f"margin {margin:.4g}", "middle"))
    for place, row in enumerate(rows):
        parts += _draw_row(row, 24 + _ROW * place + _ROW / 2, across)
    return Figure("\n".join([*parts, "</svg>"]))


def _draw_row(row: _Row, y: float, across: _Scale) -> Iterator[str]:
    number, label = row.number, visible(row.label, limit=200)
    interval = number.interval
    kind = "same"
    if interval is not None and (interval.high < 0 or interval.low > 0):
        kind = "worse" if interval.high < 0 else "better"
    numbers = f"{format_change(number.difference)} ({format_change_interval(interval)})"
    told = f"{label}: {numbers}; {plural(number.n, 'sample')}"
    yield f'<g class="{kind}"><title>{escape_markup(told)}</title>'
    yield _text(_LABELS - 10, y + 4, visible(label, limit=32), "end")
    if interval is not None:
        low, high = map(across, interval)
        yield f'<line class="bar" x1="{low:.1f}" y1="{y:.1f}" x2="{high:.1f}" y2="{y:.1f}"/>'
        yield f'<line class="bar" x1="{low:.1f}" y1="{y - 4:.1f}" x2="{low:.1f}" y2="{y + 4:.1f}"/>'
        yield f'<line class="bar" x1="{high:.1f}" y1="{y - 4:.1f}" x2="{high:.1f}" y2="{y + 4:.1f}"/>'
    yield f'<circle class="dot" cx="{across(number.difference or 0.0):.1f}" cy="{y:.1f}" r="4"/>'
    yield _text(_WIDTH, y + 4, numbers, "end")
    yield "</g>"


def _sample_plot(comparison: ComparisonReport) -> Figure | None:
    """The mean score of every sample that changed, before and now; samples at one place are one larger circle."""
    places: Counter[tuple[int, int]] = Counter()
    for change in comparison.changes:
        if change.baseline is not None and change.candidate is not None:
            before, now = (_quality(comparison, side) for side in (change.baseline, change.candidate))
            if before is not None and now is not None:
                places[round(before * _STEPS), round(now * _STEPS)] += 1
    if not places:
        return None
    low, high = _EDGE, _EDGE + _SIDE

    def along(value: float) -> float:
        return low + _SIDE * value

    drawn, stable = places.total(), comparison.statuses.get("stable", 0)
    title = "Mean score of each sample, before (across) and now (up): below the diagonal it got worse"
    told = f"{plural(drawn, 'sample')} that changed; {stable:,} that did not are not drawn."
    parts = [_opening("samples", high + 160, high + 44, title, told)]
    parts.append(f'<line class="zero" x1="{low}" y1="{high}" x2="{high}" y2="{low}"/>')
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = along(tick), low + high - along(tick)
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="{low}" x2="{x:.1f}" y2="{high}"/>')
        parts.append(f'<line class="grid" x1="{low}" y1="{y:.1f}" x2="{high}" y2="{y:.1f}"/>')
        parts.append(_text(x, high + 16, f"{tick:.2f}", "middle"))
        parts.append(_text(low - 6, y + 4, f"{tick:.2f}", "end"))
    parts.append(_text((low + high) / 2, high + 36, "before", "middle"))
    parts.append(_text(low - 6, low - 14, "now", "end"))
    most = max(places.values())
    for (before, now), count in sorted(places.items()):
        kind = "worse" if now < before else "better" if now > before else "same"
        radius = 2.5 + 7.5 * math.sqrt((count - 1) / most)
        x, y = along(before / _STEPS), low + high - along(now / _STEPS)
        label = f"{plural(count, 'sample')}: {before / _STEPS:.2f} to {now / _STEPS:.2f}"
        circle = f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>'
        parts.append(f'<g class="{kind}"><title>{label}</title>{circle}</g>')
    return Figure("\n".join([*parts, "</svg>"]))


def _quality(comparison: ComparisonReport, side: SampleSide) -> float | None:
    """The mean score of a sample over its metrics, where 1 is best."""
    scores = [
        score if comparison.metrics[name].higher_is_better else 1 - score
        for name, score in side.scores.items()
        if score is not None and name in comparison.metrics
    ]
    return min(1.0, max(0.0, math.fsum(scores) / len(scores))) if scores else None


def _opening(name: str, width: float, height: float, title: str, description: str) -> str:
    return (
        f"<figcaption>{escape_markup(title)}. {escape_markup(description)}</figcaption>\n"
        f'<svg role="img" aria-labelledby="{name}-title {name}-about" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" xmlns="http://www.w3.org/2000/svg">\n'
        f'<title id="{name}-title">{escape_markup(title)}</title>'
        f'<desc id="{name}-about">{escape_markup(description)}</desc>'
    )


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape_markup(words)}</text>'
