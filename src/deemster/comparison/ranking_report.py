"""What a ranking of several runs says to people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from deemster.errors import plural
from deemster.text.number_format import format_change, format_change_interval, format_number
from deemster.text.table_plots import IntervalCell, PlotColumn, drawn_columns, scale_around_zero
from deemster.text.text_sections import DataText, MetricName, SentenceText, TextLine, TextSection, TextTable

if TYPE_CHECKING:
    from deemster.comparison.ranking import RankedEntry, Ranking


def ranking_verdict(ranking: Ranking) -> TextLine:
    """What the comparisons of all pairs decide, in one sentence; the rest stands below it."""
    best = [entry for entry in ranking.runs if entry.worst_rank == 1]
    if best:
        return ("The best run is ", DataText(_name(best[0])), ".")
    decided = list(_decided(ranking))
    if not decided:
        return (f"No run can be told apart from another with {_samples([pair.n for pair in ranking.pairs])}.",)
    first, *others = decided
    return (*first, *(part for line in others for part in ("; ", *line)), ".")


def _decided(ranking: Ranking) -> Iterator[TextLine]:
    """For each run that is worse than others, which these are."""
    for place, entry in enumerate(ranking.runs):
        pairs = [pair for pair in ranking.pairs if pair.worse == place]
        if pairs:
            better = [pair.first + pair.second - place for pair in pairs]
            yield (DataText(_name(entry)), " is worse than ", *_names(ranking, better))


def _open(ranking: Ranking) -> Iterator[TextLine]:
    """For each run, those after it that cannot be told apart from it."""
    for place, entry in enumerate(ranking.runs):
        pairs = [pair for pair in ranking.pairs if pair.first == place and pair.worse is None]
        if pairs:
            others = _names(ranking, [pair.second for pair in pairs])
            size = _samples([pair.n for pair in pairs])
            if len(pairs) == 1:
                yield (DataText(_name(entry)), " and ", *others, f" cannot be told apart with {size}")
            else:
                yield (DataText(_name(entry)), " cannot be told apart from ", *others, f" with {size}")


def _names(ranking: Ranking, places: Sequence[int]) -> TextLine:
    names = [DataText(_name(ranking.runs[place])) for place in places]
    joints = [*([", "] * (len(names) - 2)), " and "][: len(names) - 1]
    return (names[0], *(part for pair in zip(joints, names[1:], strict=True) for part in pair))


def _samples(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return plural(low, "sample") if low == high else f"{low:,} to {high:,} samples"


def ranking_sections(ranking: Ranking) -> list[TextSection]:
    """What a ranking says, in order."""
    found = [entry.against_first for entry in ranking.runs if entry.against_first is not None]
    warnings = dict.fromkeys(warning for against in found for warning in against.warnings)
    verdict = ranking_verdict(ranking)
    lines: list[TextLine] = [("Warning: ", SentenceText(warning)) for warning in warnings]
    # What the verdict says already is not said again.
    if any(entry.worst_rank == 1 for entry in ranking.runs):
        lines += ((*line, ".") for line in _decided(ranking))
    if any(pair.worse is not None for pair in ranking.pairs):
        lines += ((*line, ".") for line in _open(ranking))
    return [TextSection(verdict, lines), _ranks(ranking), _against_first(ranking)]


def _name(entry: RankedEntry) -> str:
    return entry.run.label or entry.run.id


def _level(confidence: float) -> str:
    return f"{100 * confidence:.4g}%"


def _ranks(ranking: Ranking) -> TextSection:
    ordered = sorted(ranking.runs, key=lambda entry: -1.0 if entry.run.macro_f1 is None else -entry.run.macro_f1)
    rows = [
        (
            DataText(_name(entry)),
            format_number(entry.run.macro_f1),
            format_number(entry.run.pass_rate),
            str(entry.best_rank) if entry.best_rank == entry.worst_rank else f"{entry.best_rank} to {entry.worst_rank}",
            f"{entry.run.samples:,}",
        )
        for entry in ordered
    ]
    line = (
        f"The ranks that a run may have, by comparing every two runs: all are right with {_level(ranking.confidence)}."
    )
    head = ("run", "mean pass-rate", "pass-rate", "rank", "samples")
    return TextSection(("Ranks",), [(line,)], TextTable(head, rows, ("samples", "pass-rate")))


def _against_first(ranking: Ranking) -> TextSection:
    first, *others = ranking.runs
    rows: list[TextLine] = []
    after: list[TextLine] = []
    for entry in others:
        found = entry.against_first
        if found is None:
            continue
        rows.append(
            (
                DataText(_name(entry)),
                f"{found.samples.paired:,}",
                format_number(found.macro_f1.baseline),
                format_number(found.macro_f1.candidate),
                format_change(found.macro_f1.difference),
                format_change_interval(found.macro_f1.interval),
                f"{found.table.newly_failing:,}",
                f"{found.table.newly_passing:,}",
            )
        )
        after += (
            ("Not compared: ", DataText(_name(entry)), ", ", MetricName(name), ": ", SentenceText(why), ".")
            for name, why in found.not_comparable.items()
        )
    interval = f"{_level(ranking.confidence)} simultaneous interval"
    head = ("run", "samples", "first", "this", "change", interval, "broke", "fixed")
    lines: list[TextLine] = [("Mean pass-rate, over the samples that both have.",)]
    changes = [entry.against_first.macro_f1 for entry in others if entry.against_first is not None]
    reach = [end for number in changes for end in number.interval or (number.difference,)]
    cells = [IntervalCell(number.difference, number.interval) for number in changes]
    plots = drawn_columns(PlotColumn("change", cells, interval, scale_around_zero(reach)))
    title = ("Against the first run, ", DataText(_name(first)))
    return TextSection(title, lines, TextTable(head, rows, ("samples", "first"), plots), after)
