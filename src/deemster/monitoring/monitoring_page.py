"""Monitoring as an HTML page: whether the rate has drifted, and the pass-rate over time with its control limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deemster.errors import plural
from deemster.monitoring.monitoring_report import drift_words, monitoring_sections
from deemster.text.html_page import PageHead, Tile, rate_tile, render_page
from deemster.text.number_format import format_interval, format_number
from deemster.text.svg_plots import PlotArea
from deemster.text.text_sections import Figure, TextSection

if TYPE_CHECKING:
    from deemster.monitoring.pass_rate_over_time import PassRateHistory, Period

# The last so many periods are drawn.
_MOST_PERIODS = 120
# So many days, or so many times of a day, stand side by side on a narrow screen.
_MOST_NAMES = {10: 3, 16: 2}


def monitoring_page(shown: PassRateHistory) -> str:
    """A pass rate over time as a page; text from data is escaped and stands inside code elements.

    Args:
        shown: The pass rate over time.
    """
    section, *others = monitoring_sections(shown)
    words = drift_words(shown)
    verdict, _, evidence = words.partition(". ")
    facts = [(evidence,) if line == (words,) else line for line in section.lines if evidence or line != (words,)]
    headline = TextSection(section.title, facts)
    kind = "inconclusive"
    if shown.drift is not None:
        kind = {None: "pass", "down": "fail", "up": "inconclusive"}[shown.drift.direction]
    head = PageHead(headline, kind, (f"{verdict.removesuffix('.')}.",), [*_tiles(shown)])
    parts = [TextSection(("Periods",), table=section.table, folds=len(shown.periods) > _MOST_PERIODS), *others]
    if (plot := _plot(shown)) is not None:
        parts.insert(0, TextSection(("Pass-rate over time",), figures=[plot]))
    return render_page(f"deemster monitor: {shown.dataset}", head, parts)


def _tiles(shown: PassRateHistory) -> Iterator[Tile]:
    last = next((period for period in reversed(shown.periods) if period.pass_rate is not None), None)
    if last is not None:
        yield rate_tile(
            f"pass-rate since {_name(last, shown)}",
            last.pass_rate,
            last.interval,
            shown=format_number(last.pass_rate),
            about=f"95% interval {format_interval(last.interval)}",
        )
    if shown.baseline_rate is not None:
        about = f"the first {shown.baseline:,} scored records"
        yield Tile("baseline", format_number(shown.baseline_rate), about)
    outside = sum(period.outside for period in shown.periods)
    yield Tile("outside the limits", f"{outside:,}", f"of {plural(len(shown.periods), 'period')}")
    yield Tile("records", f"{shown.n:,}", f"{shown.unscored:,} without a score")


def _name(period: Period, shown: PassRateHistory) -> str:
    return period.start[:10] if shown.every in ("day", "week", "month") else period.start[:16].replace("T", " ")


def _plot(shown: PassRateHistory) -> Figure | None:
    """The last periods: the rate with its interval as a line, the control limits as a band."""
    periods = shown.periods[-_MOST_PERIODS:]
    if not any(period.pass_rate is not None for period in periods):
        return None
    area = PlotArea(across=(-0.5, len(periods) - 0.5), height=320)
    names = [_name(period, shown) for period in periods]
    step = max(1, -(-len(names) // _MOST_NAMES[len(names[0])]))
    area.add_grid((place, names[place]) for place in range(step // 2, len(names), step))
    area.add_names("beginning of the period (UTC)", "pass-rate")
    before: tuple[float, float] | None = None
    for place, period in enumerate(periods):
        if period.limits is not None:
            area.add_band((place - 0.5, place + 0.5), period.limits)
        if period.pass_rate is None:
            continue
        at = (float(place), period.pass_rate)
        if before is not None:
            area.add_line(before, at, "trend plain")
        if period.interval is not None:
            area.add_interval(at[0], period.interval, "plain")
        before = at
    for place, period in enumerate(periods):
        if period.pass_rate is not None:
            told = f"{_name(period, shown)}: {period.pass_rate:.4f}, {plural(period.n, 'record')}"
            kind = "outside" if period.outside else "dot"
            area.add_point(
                (float(place), period.pass_rate), radius=5.0 if period.outside else 3.5, kind=kind, told=told
            )
    many = f"The last {len(periods):,} of {len(shown.periods):,} periods" if len(periods) < len(shown.periods) else ""
    caption = (
        f"{many or plural(len(periods), 'period')}: the pass-rate with its 95% interval; the band is what is expected."
    )
    outside = sum(period.outside for period in periods)
    told = f"{caption} {plural(outside, 'period')} outside the band."
    return Figure(told, area.draw("rate", f"Pass-rate of {shown.dataset} over time", told))
