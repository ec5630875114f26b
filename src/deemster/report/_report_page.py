"""The report of a run as an HTML page: the verdict first, then the samples that did not pass, tables and plots."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from deemster.errors import plural
from deemster.report.failing_samples import executed_samples
from deemster.report.gate_sections import format_observed, gate_verdict
from deemster.report.overview import overview_sections
from deemster.report.usage_sections import format_cost
from deemster.results.sample_summary import SampleEntries
from deemster.results.score_by_length import LengthGroup, LengthProfile, score_by_length
from deemster.stats import Interval
from deemster.text.html_page import PageHead, Tile, rate_tile, render_page, render_part
from deemster.text.number_format import format_change_interval, format_interval, format_number, supported_places
from deemster.text.svg_plots import PlotArea
from deemster.text.text_sections import (
    DataText,
    Figure,
    MetricName,
    SentenceText,
    TextLine,
    TextSection,
    TextTable,
    in_order,
    without_keys,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from deemster.report.report_document import Report

# The order of a page: what a reader asks first.
_ORDER = (
    "attacks",
    "attack-frameworks",
    "samples",
    "gate",
    "metrics",
    "corrected",
    "macro-f1",
    "criteria",
    "cohorts",
    "aggregate",
    "aggregate-samples",
    "failures",
    "unstable",
    "histograms",
    "usage",
    "length",
)
# So many metrics are drawn against length, and so many findings shown.
_MOST_LENGTH_PLOTS = 6
_MOST_FINDINGS = 6
# A cohort with fewer samples is not called the lowest.
_FEWEST_SAMPLES = 5
_LENGTH_TICKS = tuple(digit * 10**power for power in range(7) for digit in (1, 3))


def html_page(report: Report) -> str:
    """The whole report as a page; text from data is escaped and stands inside code elements."""
    headline, *sections = report.sections()
    told = without_keys(sections, frozenset(_silent(report)))
    ordered = in_order([*told, *_length_section(report)], _ORDER)
    return render_page(f"deemster report: {report.run.suite or report.dataset.name}", _head(report, headline), ordered)


def _silent(report: Report) -> Iterator[str]:
    """The keys of the sections that say nothing of this run."""
    if report.gate is None or not report.gate.checks:
        yield "gate"
    if report.precision is None:
        yield "unstable"
    if not report.totals.unscored:
        yield "failures"
    usage = report.usage.total
    if not usage.calls and not usage.cached_calls and usage.latency_ms is None and report.budget is None:
        yield "usage"
    if all(figures.mean == figures.pass_rate for figures in report.metrics.values()):
        yield "histograms"


def notebook_html(report: Report) -> str:
    """The report as a part of a page, for a notebook: what a reader looks for first."""
    return render_part(overview_sections(report, whole='`report.save("report.html")`'))


def _head(report: Report, headline: TextSection) -> PageHead:
    gate, totals = report.gate, report.totals
    tiles = [
        _share_tile("mean pass-rate", report.macro_f1, report.macro_f1_interval),
        _share_tile("every metric passed", report.pass_rate, report.pass_rate_interval),
        *_attack_tiles(report),
        Tile("samples", f"{totals.samples:,}", plural(totals.repetitions, "repetition")),
        Tile("unscored", f"{totals.unscored:,}", f"of {plural(totals.marks, 'score')}"),
    ]
    if report.cost is not None:
        tiles.append(Tile("cost", format_cost(report.cost), plural(report.cost.calls, "call")))
    kind = gate.decision if gate is not None and gate.is_decided else ""
    verdict = ("No gate was applied.",) if gate is None else (gate_verdict(gate, report.run.part),)
    findings = list(islice(_findings(report), _MOST_FINDINGS))
    question = "What failed, and why" if kind == "fail" else "What to look at"
    return PageHead(headline, kind, verdict, tiles, question, findings)


def _attack_tiles(report: Report) -> list[Tile]:
    """The attack success rate of a run that has attacks among its samples."""
    if report.adversarial is None:
        return []
    overall = report.adversarial.overall
    return [_share_tile("attack success", overall.attack_success_rate, overall.interval, note=", lower is better")]


def _share_tile(label: str, share: float | None, interval: Interval | None, *, note: str = "") -> Tile:
    """A share with its interval, with the decimals that this supports."""
    places = supported_places(interval)
    about = f"95% interval {format_interval(interval, places=places)}{note}"
    return rate_tile(label, share, interval, shown=format_number(share, places=places), about=about)


def _findings(report: Report) -> Iterator[TextLine]:
    """The checks that did not pass, the attacks that got through, what is unscored, and where pass-rates are lowest."""
    checks = () if report.gate is None else report.gate.checks
    for check in checks:
        if check.status in ("fail", "inconclusive"):
            numbers = f" is {format_observed(check)}, required is {check.required:.4g}: "
            yield (f"{check.status}: ", DataText(check.name), numbers, SentenceText(check.because), ".")
    if report.adversarial is not None and report.adversarial.overall.successes:
        overall = report.adversarial.overall
        worst = "" if overall.worst_severity is None else f", the worst of severity {overall.worst_severity}"
        where = [figures.name for figures in report.adversarial.categories if figures.successes]
        told = f"{overall.successes:,} of {plural(overall.executions, 'attack')} got through{worst}: "
        yield (told, DataText(", ".join(where)), ".")
    causes: Counter[str] = Counter()
    for figures in report.metrics.values():
        causes.update(figures.unscored_by_cause)
    if causes:
        told = ", ".join(f"{cause} {count:,}" for cause, count in causes.most_common())
        yield (f"{plural(causes.total(), 'score')} missing: ", told, ".")
    rates = {name: rate for name in report.metric_order if (rate := report.metrics[name].pass_rate) is not None}
    if len(rates) > 1:
        name = min(rates, key=lambda each: rates[each])
        numbers = f": {_share(rates[name], report.metrics[name].pass_rate_interval)}."
        yield ("The lowest pass-rate of a metric is that of ", MetricName(name), numbers)
    large = {
        cohort.label: (cohort.macro_f1, cohort)
        for cohort in report.cohort_list
        if cohort.macro_f1 is not None and cohort.samples >= _FEWEST_SAMPLES
    }
    if len(large) > 1:
        label = min(large, key=lambda each: large[each][0])
        rate, cohort = large[label]
        numbers = f": {_share(rate, cohort.macro_f1_interval)}, "
        count = plural(cohort.samples, "sample")
        yield ("The lowest mean pass-rate of a cohort is that of ", DataText(label), f"{numbers}{count}.")


def _share(share: float | None, interval: Interval | None) -> str:
    places = supported_places(interval)
    return f"{format_number(share, places=places)} ({format_interval(interval, places=places)})"


def _length_section(report: Report) -> list[TextSection]:
    """The scores of each metric against the length of outputs; nothing where these do not vary."""
    names = [name for name in report.metric_order if report.metrics[name].n_scored]
    profiles = _length_profiles(report, names[:_MOST_LENGTH_PLOTS])
    if not profiles:
        return []
    lines: list[TextLine] = [
        ("Points: samples, those at one place as a larger circle. Line: the mean of samples of about one length.",)
    ]
    more = len(names) - _MOST_LENGTH_PLOTS
    if more > 0:
        lines.append(
            (f"Only the first {_MOST_LENGTH_PLOTS} metrics are drawn; {plural(more, 'metric')} more are not.",)
        )
    figures = [_length_plot(name, number, profile) for number, (name, profile) in enumerate(profiles.items(), 1)]
    return [TextSection(("Score against length",), lines, key="length", figures=figures)]


def _length_profiles(report: Report, names: list[str]) -> dict[str, LengthProfile]:
    lengths, scores = _lengths_and_scores(report, names)
    found = {name: score_by_length(lengths, scores[name]) for name in names}
    # Where all lengths or all scores are equal there is nothing to see.
    return {name: one for name, one in found.items() if one is not None and one.correlation is not None}


def _lengths_and_scores(report: Report, names: list[str]) -> tuple[ArrayLike, dict[str, list[float | None]]]:
    """The length of each sample's output, and its scores by metric."""
    samples = report.samples
    if isinstance(samples, SampleEntries):
        return samples.output_chars(), {name: samples.mean_scores(name) for name in names}

    lengths: list[float] = []
    scores: dict[str, list[float | None]] = {name: [] for name in names}
    for _, sample, executions in executed_samples(report):
        chars = [execution.output_chars for execution in executions]
        lengths.append(sum(chars) / max(1, len(chars)))
        for name in names:
            spread = sample.metrics.get(name)
            scores[name].append(None if spread is None else spread.mean)
    return lengths, scores


def _length_plot(name: str, number: int, profile: LengthProfile) -> Figure:
    area = _length_area(profile)
    most = max(point.n for point in profile.points)
    for point in profile.points:
        radius = 2.5 + 6.0 * ((point.n - 1) / most) ** 0.5
        area.add_point((math.log1p(point.chars), point.score), radius=radius, kind="point")
    before: tuple[float, float] | None = None
    for group in profile.groups:
        at = (math.log1p(group.shortest) + math.log1p(group.longest)) / 2
        if before is not None:
            area.add_line(before, (at, group.mean), "trend")
        if group.interval is not None:
            area.add_interval(at, group.interval, "trend")
        told = f"{_span(group)} characters: {group.mean:.4f}, {plural(group.n, 'sample')}"
        area.add_point((at, group.mean), radius=4.5, kind="dot", told=told)
        before = (at, group.mean)
    rows = [
        (_span(group), f"{group.n:,}", format_number(group.mean), format_interval(group.interval))
        for group in profile.groups
    ]
    rank = f"Spearman's correlation {format_number(profile.correlation)}"
    between = f", 95% interval {format_change_interval(profile.interval)}" if profile.interval is not None else ""
    caption = f"{name}: {rank}{between}, {plural(profile.n, 'sample')}."
    title = f"Scores of {name} against the length of outputs"
    table = TextTable(("characters", "samples", "mean score", "95% interval"), rows)
    return Figure(caption, area.draw(f"length-{number}", title, caption), table)


def _span(group: LengthGroup) -> str:
    return f"{group.shortest:,.0f} to {group.longest:,.0f}"


def _length_area(profile: LengthProfile) -> PlotArea:
    """An empty plot of scores against lengths, which stand on a logarithmic scale."""
    ends = (profile.groups[0].shortest, profile.groups[-1].longest)
    low, high = map(math.log1p, ends)
    room = max(0.05, (high - low) * 0.04)
    area = PlotArea(across=(low - room, high + room))
    ticks = [tick for tick in _LENGTH_TICKS if low - room <= math.log1p(tick) <= high + room]
    shown = ticks if len(ticks) > 1 else dict.fromkeys(ends)
    area.add_grid((math.log1p(tick), f"{tick:,.0f}") for tick in shown)
    area.add_names("characters of the output", "score")
    return area
