"""What a ranking of several runs says to people: only what the intervals of its pairs decide."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from deemster.comparison.comparison_verdict import change_cells
from deemster.errors import plural
from deemster.stats.confidence_interval import Interval
from deemster.text.escaping import csv_line, escape_csv_cell
from deemster.text.indented_json import json_number
from deemster.text.number_format import (
    format_change,
    format_change_interval,
    format_interval,
    format_number,
    supported_places,
)
from deemster.text.table_plots import IntervalCell, PlotColumn, drawn_changes, drawn_columns
from deemster.text.text_sections import (
    Column,
    DataText,
    Figure,
    MetricName,
    SentenceText,
    TextLine,
    TextSection,
    TextTable,
    join_parts,
    table_of,
)

if TYPE_CHECKING:
    from deemster.comparison.ranking import RankedEntry, RankedPair, Ranking

# So many runs are told about pair by pair; of more, only the pairs with the best one are.
MOST_IN_WORDS = 4
# A sentence names so many runs; of the others it says how many there are.
MOST_NAMED = 6
# Of more pairs than these no page draws the differences.
_MOST_PAIRS = 60
# Counts of outputs, and the column of each: one that is 0 in all runs is left out.
_LACKING = {"failed": "failed", "not_run": "not run", "unscored": "unscored", "cut": "cut", "refused": "refused"}


def ranking_verdict(ranking: Ranking) -> TextLine:
    """Which run is best, or which may be: no more than the intervals of all pairs decide."""
    is_whole = all(entry.run.status == "complete" for entry in ranking.runs)
    return _verdict(ranking) if is_whole else ("So far: ", *_verdict(ranking))


def _verdict(ranking: Ranking) -> TextLine:
    leaders = _leading_places(ranking)
    if len(ranking.runs) == 1:
        return (_name(ranking, 0), " stands alone: there is nothing to rank.")

    if not any(pair.worse is not None for pair in ranking.pairs):
        return _verdict_without_decision(ranking)

    if len(leaders) == 1:
        return _best(ranking, leaders[0])

    if len(leaders) == 2:
        size = plural(pair_of(ranking, *leaders).n, "sample")
        either = (_name(ranking, leaders[0]), " or ", _name(ranking, leaders[1]))
        return (*either, f" is best: they cannot be told apart with {size}.")

    if leaders:
        size = _samples([pair_of(ranking, leaders[0], place).n for place in leaders[1:]])
        some = _list_names(ranking, leaders[:MOST_NAMED], count=len(leaders))
        return ("One of ", *some, f" is best: they cannot be told apart with {size}.")

    first, *others = _decided(ranking)
    return (*first, *(part for line in others for part in ("; ", *line)), ".")


def _verdict_without_decision(ranking: Ranking) -> TextLine:
    if len(ranking.runs) == 2:
        size = plural(ranking.pairs[0].n, "sample")
        return (_name(ranking, 0), " and ", _name(ranking, 1), f" cannot be told apart with {size}.")
    size = _samples([pair.n for pair in ranking.pairs])
    return (f"No two of the {len(ranking.runs)} can be told apart with {size}.",)


def _best(ranking: Ranking, leader: int) -> TextLine:
    """How far the best run is above the others: so far above each of them, by the intervals of all pairs."""
    leads = [pair.interval for pair in _pairs_with(ranking, leader) if pair.worse is not None]
    others = "the others" if len(leads) > 1 or len(ranking.runs) > 2 else "the other"
    rest = "" if len(leads) == len(ranking.runs) - 1 else " that can be told apart from it"
    return (_name(ranking, leader), f" is best: {format_lead(*leads)} above {others}{rest}.")


def _leading_places(ranking: Ranking) -> list[int]:
    """The places of the runs that are not shown to be worse than any other, by pass-rate."""
    return [place for place in places_by_rate(ranking) if ranking.runs[place].best_rank == 1]


def places_by_rate(ranking: Ranking) -> list[int]:
    """The places of all runs, the highest pass-rate first."""
    rates = [-1.0 if entry.run.pass_rate is None else entry.run.pass_rate for entry in ranking.runs]
    return sorted(range(len(rates)), key=lambda place: -rates[place])


def pair_of(ranking: Ranking, one: int, other: int) -> RankedPair:
    """What two runs say of each other."""
    return next(pair for pair in ranking.pairs if {pair.first, pair.second} == {one, other})


def format_lead(*shown: Interval | None) -> str:
    """How far from 0 differences lie whose intervals leave it out, in points, rounded outwards.

    >>> [format_lead(Interval(low, high)) for low, high in ((-0.1101, -0.0432), (0.00237, 0.051), (0.0003, 0.02))]
    ['4 to 12 points', '0.2 to 6 points', 'up to 2 points']
    >>> format_lead(Interval(0.01, 0.02), Interval(-0.05, -0.04))
    '1 to 5 points'
    """
    ends = [round(100 * abs(end), 9) for interval in shown for end in interval or ()]
    low = min(ends)
    most = math.ceil(max(ends))
    if low < 0.1:
        return f"up to {most} points"
    least = math.floor(low) if low >= 1 else math.floor(low * 10) / 10
    return f"{least} to {most} points"


def _pairs_with(ranking: Ranking, place: int) -> list[RankedPair]:
    return [pair for pair in ranking.pairs if place in pair.places]


def _leading_lines(ranking: Ranking) -> list[TextLine]:
    """What cannot be told apart from the run with the highest pass-rate, and how many samples would tell."""
    if len(ranking.runs) == 1:
        return []
    highest = places_by_rate(ranking)[0]
    others = _not_told_apart(ranking, highest)
    if {highest, *others} == {*_leading_places(ranking)}:
        # The verdict has named them.
        return _samples_that_would_tell(ranking, highest, others)
    return [(*line, ".") for line in _open(ranking, [highest])]


def _samples_that_would_tell(ranking: Ranking, highest: int, others: Sequence[int]) -> list[TextLine]:
    needed = [(other, pair_of(ranking, highest, other).samples_needed) for other in others]
    counts = [(other, _round_up(count)) for other, count in needed if count is not None]
    if not counts:
        return []

    if len(others) == 1:
        about = f"About {counts[0][1]:,} samples would tell them apart"
        return [(f"{about} four times out of five, if the difference is what we saw.",)]

    parts: list[TextLine] = [
        ("from ", _name(ranking, other), f" takes about {count:,} samples" if rank == 0 else f" about {count:,}")
        for rank, (other, count) in enumerate(counts[:MOST_NAMED])
    ]
    power = "four times out of five, if the difference is what we saw"
    if len(parts) > 1:
        power = "each four times out of five, if the differences are what we saw"
    return [("To tell ", _name(ranking, highest), " ", *join_parts(parts), f", {power}.")]


def _further_lines(ranking: Ranking) -> list[TextLine]:
    """What the other pairs decide and leave open; nothing where the verdict says it, and of many runs."""
    leaders = _leading_places(ranking)
    if not 2 < len(ranking.runs) <= MOST_IN_WORDS or len(leaders) in (0, len(ranking.runs)):
        return []

    # How far the best one is above the others is in the verdict.
    said = leaders if len(leaders) == 1 else []
    lines = [*_decided(ranking, without=said), *_open(ranking, places_by_rate(ranking)[1:])]
    return [(*line, ".") for line in lines]


def _decided(ranking: Ranking, *, without: Sequence[int] = ()) -> Iterator[TextLine]:
    """For each run that is worse than others, which these are, and by how much; without the pairs of some runs."""
    pairs_left = [pair for pair in ranking.pairs if not {*pair.places} & {*without}]
    for place in places_by_rate(ranking):
        pairs = [pair for pair in pairs_left if pair.worse == place]
        if not pairs:
            continue
        above = [pair.first + pair.second - place for pair in pairs]
        parts = [
            (_name(ranking, better), f" by {format_lead(pair.interval)}")
            for better, pair in zip(above, pairs, strict=True)
        ]
        yield (_name(ranking, place), " is worse than ", *join_parts(parts))


def _not_told_apart(ranking: Ranking, place: int) -> list[int]:
    """The runs behind one that are not shown to be worse than it, by pass-rate."""
    order = places_by_rate(ranking)
    return [other for other in order[order.index(place) + 1 :] if pair_of(ranking, place, other).worse is None]


def _open(ranking: Ranking, places: Sequence[int]) -> Iterator[TextLine]:
    """For each of some runs, those behind it that cannot be told apart from it, and how many samples would tell."""
    for place in places:
        others = _not_told_apart(ranking, place)
        pairs = [pair_of(ranking, place, other) for other in others]
        if len(pairs) == 1:
            yield (_name(ranking, place), " and ", _name(ranking, others[0]), " ", *_cannot_be_told(pairs[0]))
        elif pairs:
            named = zip(others, pairs[:MOST_NAMED], strict=False)
            parts: list[TextLine] = [(_name(ranking, other), *_needed(pair)) for other, pair in named]
            size = _samples([pair.n for pair in pairs])
            power = ", each four times out of five, if the differences are what we saw"
            condition = (power,) if any(pair.samples_needed for pair in pairs) else ()
            listed = join_parts(parts, more=len(others) - len(parts))
            yield (_name(ranking, place), f" cannot be told apart with {size} from ", *listed, *condition)


def _cannot_be_told(pair: RankedPair) -> TextLine:
    sentence = f"cannot be told apart with {plural(pair.n, 'sample')}"
    if pair.samples_needed is None:
        return (sentence,)
    about = _round_up(pair.samples_needed)
    return (f"{sentence}; about {about:,} would do it four times out of five, if the difference is what we saw",)


def _needed(pair: RankedPair) -> TextLine:
    return () if pair.samples_needed is None else (f" (about {_round_up(pair.samples_needed):,} would)",)


def _round_up(count: int) -> int:
    """A count with two digits that say something, not less than it is.

    >>> _round_up(283), _round_up(47), _round_up(1204)
    (290, 47, 1300)
    """
    step = int(10 ** max(0, len(str(count)) - 2))
    return -(-count // step) * step


def _name(ranking: Ranking, place: int) -> DataText:
    return entry_name(ranking.runs[place])


def entry_name(entry: RankedEntry) -> DataText:
    """How a ranked run is called."""
    return DataText(entry.run.label or entry.run.id)


def _list_names(ranking: Ranking, places: Sequence[int], *, count: int) -> TextLine:
    return join_parts([(_name(ranking, place),) for place in places], more=count - len(places))


def _samples(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return plural(low, "sample") if low == high else f"{low:,} to {high:,} samples"


def ranking_sections(ranking: Ranking) -> list[TextSection]:
    """What a ranking says, in order."""
    return [headline_section(ranking, noun="run"), _against_first(ranking)]


def headline_section(
    ranking: Ranking, *, noun: str, before: Iterable[TextLine] = (), after: Iterable[TextLine] = ()
) -> TextSection:
    """Which run is best, what a reader must know before believing it, and the table of all.

    Args:
        ranking: The ranking.
        noun: What is ranked.
        before: Lines before what is said above the table.
        after: Lines after that.
    """
    warnings: list[TextLine] = [("Warning: ", SentenceText(warning)) for warning in ranking.warnings]
    note = (
        f"All ranks hold together with {_level(ranking.confidence)} confidence. "
        "Under a metric stands its mean score. What has no output or no score counts as not passing."
    )
    costs = [entry.figures.cost_per_100 for entry in ranking.runs]
    if None in costs and any(costs):
        note += (
            " Without a cost are answers from the cache, which `--cache none` asks anew, and models without a price."
        )
    return TextSection(
        ranking_verdict(ranking),
        [*before, *warnings, *_leading_lines(ranking), *after],
        _ranks_table(ranking, noun=noun),
        [*_further_lines(ranking), (note,)],
        key="ranks",
        figures=_pair_figures(ranking),
    )


def in_paragraphs(sections: Sequence[TextSection]) -> list[TextSection]:
    """The sections of a ranking for a terminal: the answer, the table, and what else is decided stand apart."""
    headline, *others = sections
    return [
        headline._replace(table=None, after=()),
        TextSection((), table=headline.table, key="ranks-table"),
        TextSection((), headline.after, key="pairs"),
        *others,
    ]


def _level(confidence: float) -> str:
    return f"{100 * confidence:.4g}%"


def _ranks_table(ranking: Ranking, *, noun: str) -> TextTable:
    """The runs, best first: how many samples pass, which rank they have, and what else speaks for them.

    Args:
        ranking: The ranking.
        noun: What is ranked.
    """
    entries = [ranking.runs[place] for place in places_by_rate(ranking)]
    metrics = list(dict.fromkeys(name for entry in entries for name in entry.figures.metrics))
    interval = "95% interval"

    columns: list[Column[RankedEntry]] = [
        (noun, entry_name),
        ("pass-rate", _rate),
        (interval, lambda entry: format_interval(entry.figures.pass_rate_interval, places=_places(entry))),
        ("rank", _rank),
    ]
    if any(entry.run.macro_f1 != entry.run.pass_rate for entry in entries):
        columns.append(("mean pass-rate", lambda entry: format_number(entry.run.macro_f1, places=_places(entry))))
    repetitions = {entry.run.repetitions for entry in entries}
    attempts: list[Column[RankedEntry]] = []
    if len(repetitions) == 1 and repetitions != {1}:
        count = repetitions.pop()
        attempts = [
            (f"pass@{count}", lambda entry: format_number(entry.figures.pass_at_k, places=2)),
            (f"pass^{count}", lambda entry: format_number(entry.figures.pass_hat_k, places=2)),
        ]
    columns += attempts
    columns += [(MetricName(name), _metric_cell(name)) for name in metrics]
    if any(entry.figures.cost_per_100 is not None for entry in entries):
        columns.append(("$ / 100", lambda entry: format_cost(entry.figures.cost_per_100)))
    if any(entry.figures.latency_p50_ms is not None for entry in entries):
        columns.append(("p50", lambda entry: _format_latency(entry.figures.latency_p50_ms)))
    columns += [
        (heading, _count_cell(field))
        for field, heading in _LACKING.items()
        if any(getattr(entry.figures, field) for entry in entries)
    ]
    columns.append(("samples", lambda entry: f"{entry.run.samples:,}"))

    cells = [IntervalCell(entry.run.pass_rate, entry.figures.pass_rate_interval) for entry in entries]
    return table_of(
        entries,
        columns,
        spare=("samples", "mean pass-rate", *reversed(metrics), *(name for name, _ in attempts)),
        plots=drawn_columns(PlotColumn("pass-rate", cells, interval)),
    )


class DrawnDifference(NamedTuple):
    """A difference with its interval, as a figure draws it."""

    name: str
    value: float | None
    ends: Interval | None


def _pair_figures(ranking: Ranking) -> list[Figure]:
    """By how much each run is above each one below it; nothing of more pairs than a page shows."""
    order = places_by_rate(ranking)
    ordered = [(one, other) for rank, one in enumerate(order) for other in order[rank + 1 :]]
    if len(ordered) > _MOST_PAIRS:
        return []

    differences = []
    for one, other in ordered:
        pair = pair_of(ranking, one, other)
        # A difference of 0 has no sign.
        value = pair.difference if pair.second == one or not pair.difference else -pair.difference
        ends = pair.interval
        if ends is not None and pair.first == one:
            ends = Interval(-ends.high, -ends.low)
        differences.append(DrawnDifference(f"{_name(ranking, one)} over {_name(ranking, other)}", value, ends))
    return difference_figures("By how much the pass-rate of one is above that of another", differences)


def difference_figures(caption: str, differences: Sequence[DrawnDifference]) -> list[Figure]:
    """Differences of pass-rates with intervals that hold together, drawn on one scale; nothing where there are none."""
    if not differences:
        return []
    interval = "simultaneous interval"
    rows = [(DataText(name), format_change(value), format_change_interval(ends)) for name, value, ends in differences]
    cells = [IntervalCell(value, ends) for _, value, ends in differences]
    plots = drawn_changes("difference", cells, beside=interval)
    table = TextTable(("pair", "difference", interval), rows, (), plots)
    return [Figure(f"{caption}: an interval that leaves out 0 decides.", "", table)]


def _places(entry: RankedEntry) -> int:
    return supported_places(entry.figures.pass_rate_interval)


def _rate(entry: RankedEntry) -> str:
    return format_number(entry.run.pass_rate, places=_places(entry))


def _rank(entry: RankedEntry) -> str:
    return str(entry.best_rank) if entry.best_rank == entry.worst_rank else f"{entry.best_rank} to {entry.worst_rank}"


def _metric_cell(name: str) -> Callable[[RankedEntry], str]:
    return lambda entry: format_number(entry.figures.metrics.get(name), places=2)


def _count_cell(field: str) -> Callable[[RankedEntry], str]:
    return lambda entry: f"{getattr(entry.figures, field):,}"


def format_cost(dollars: float | None) -> str:
    """An amount with two digits that say something.

    >>> format_cost(12.3), format_cost(0.214), format_cost(0.0042), format_cost(None)
    ('12.30', '0.21', '0.0042', 'n/a')
    """
    if dollars is None:
        return "n/a"
    return f"{dollars:.2f}" if dollars >= 0.1 or not dollars else f"{dollars:.2g}"


def _format_latency(milliseconds: float | None) -> str:
    if milliseconds is None:
        return "n/a"
    if milliseconds < 1:
        return "<1 ms"
    return f"{milliseconds / 1000:.1f} s" if milliseconds >= 1000 else f"{milliseconds:.0f} ms"


def _against_first(ranking: Ranking) -> TextSection:
    first, *others = ranking.runs
    compared = [(entry, entry.against_first) for entry in others if entry.against_first is not None]
    rows = [
        (
            entry_name(entry),
            f"{found.samples.paired:,}",
            *change_cells(found.pass_rate),
            f"{found.table.newly_failing:,}",
            f"{found.table.newly_passing:,}",
        )
        for entry, found in compared
    ]
    after: list[TextLine] = [
        ("Not compared: ", entry_name(entry), ", ", MetricName(name), ": ", SentenceText(why), ".")
        for entry, found in compared
        for name, why in found.not_comparable.items()
    ]

    interval = f"{_level(ranking.confidence)} simultaneous interval"
    head = ("run", "samples", "first", "this", "change", interval, "broke", "fixed")
    lines: list[TextLine] = [("Pass-rate, over the samples that both have.",)]
    cells = [IntervalCell(found.pass_rate.difference, found.pass_rate.interval) for _, found in compared]
    plots = drawn_changes("change", cells, beside=interval)
    title = ("Against the first run, ", entry_name(first))
    return TextSection(title, lines, TextTable(head, rows, ("samples", "first"), plots), after, key="against-first")


def ranking_rows(ranking: Ranking) -> Iterator[dict[str, Any]]:
    """The numbers of each run as a row, in the order of the runs."""
    for entry in ranking.runs:
        difference = None if entry.against_first is None else entry.against_first.pass_rate
        figures = entry.figures
        yield {
            "run": entry.run.id,
            "label": entry.run.label,
            "pass_rate": entry.run.pass_rate,
            **_ends("pass_rate", figures.pass_rate_interval),
            "macro_f1": entry.run.macro_f1,
            "pass_at_k": figures.pass_at_k,
            "pass_hat_k": figures.pass_hat_k,
            "best_rank": entry.best_rank,
            "worst_rank": entry.worst_rank,
            "difference": None if difference is None else difference.difference,
            **_ends("difference", None if difference is None else difference.interval),
            "cost_per_100": figures.cost_per_100,
            "latency_p50_ms": figures.latency_p50_ms,
            **{field: getattr(figures, field) for field in _LACKING},
            **{f"mean {name}": mean for name, mean in figures.metrics.items()},
        }


def _ends(name: str, interval: Interval | None) -> dict[str, float | None]:
    low, high = interval or (None, None)
    return {f"{name}_low": low, f"{name}_high": high}


def csv_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """Rows with the same columns as the lines of a CSV file, the header first."""
    for number, row in enumerate(rows):
        if number == 0:
            yield csv_line(map(escape_csv_cell, row)).encode()
        yield csv_line(map(_csv_cell, row.values())).encode()


def _csv_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return escape_csv_cell(value)
    return str(value) if isinstance(value, int) else json_number(value)
