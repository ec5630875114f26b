"""The ranking of several runs as a document: JSON, Markdown, HTML, tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from deemster.errors import ReportError, list_names, plural
from deemster.formats.dataframe import dataframe
from deemster.report.ranking import RankedEntry, Ranking
from deemster.text.destination import Destination, write_pieces
from deemster.text.html_page import PageHead, render_page, render_part
from deemster.text.indented_json import json_pieces
from deemster.text.markdown_layout import render_markdown
from deemster.text.number_format import format_change, format_change_interval, format_number
from deemster.text.table_plots import IntervalCell, PlotColumn, drawn_columns, scale_around_zero
from deemster.text.text_sections import DataText, MetricName, SentenceText, TextLine, TextSection, TextTable

if TYPE_CHECKING:
    import pandas as pd

EXTENSIONS = {".json": "json", ".md": "markdown", ".html": "html"}


class RankingReport(Ranking, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Several runs ranked by macro-F1, each compared with the first and with all others.

    The fields are those of `deemster.ranking.v1`, in its order.
    """

    @property
    def verdict(self) -> str:
        """What the comparisons of all pairs decide, in one sentence."""
        return "".join(ranking_verdict(self))

    def to_json(self) -> str:
        """The ranking as canonical JSON: the same runs are the same bytes."""
        return b"".join(self.pieces()).decode()

    def pieces(self) -> Iterator[bytes]:
        """The canonical JSON of the ranking, in pieces."""
        return json_pieces((name, getattr(self, name)) for name in self.__struct_fields__)

    def to_markdown(self) -> str:
        """The ranking as Markdown."""
        return render_markdown(ranking_sections(self))

    def to_html(self) -> str:
        """The ranking as one HTML page that loads nothing."""
        headline, *sections = ranking_sections(self)
        return render_page("deemster ranking", PageHead(headline), sections)

    def to_dataframe(self) -> pd.DataFrame:
        """The ranking as a pandas table with a row for each run.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        rows = []
        for entry in self.runs:
            macro = None if entry.against_first is None else entry.against_first.macro_f1
            low, high = (None, None) if macro is None or macro.interval is None else macro.interval
            rows.append(
                {
                    "run": entry.run.id,
                    "label": entry.run.label,
                    "macro_f1": entry.run.macro_f1,
                    "best_rank": entry.best_rank,
                    "worst_rank": entry.worst_rank,
                    "difference": None if macro is None else macro.difference,
                    "low": low,
                    "high": high,
                }
            )
        return dataframe(rows, of="A ranking")

    def _repr_html_(self) -> str:
        return render_part(ranking_sections(self))

    def save(self, path: str | Path) -> None:
        """Write the ranking, in the format its extension says: .json, .md or .html.

        Raises:
            ReportError: The extension is none of these, or the file cannot be written.
        """
        suffix = Path(path).suffix.lower()
        if suffix not in EXTENSIONS:
            raise ReportError(f"A ranking is written as {list_names(EXTENSIONS)}, not as `{suffix}`.")
        write_ranking(self, Destination(EXTENSIONS[suffix], str(path)))

    def __repr__(self) -> str:
        return f"<RankingReport of {plural(len(self.runs), 'run')}: {self.verdict}>"


RANKING_FORMATS: dict[str, Callable[[RankingReport], Iterable[bytes]]] = {
    "json": lambda ranking: ranking.pieces(),
    "markdown": lambda ranking: (ranking.to_markdown().encode(),),
    "html": lambda ranking: (ranking.to_html().encode(),),
    "github": lambda ranking: (ranking.to_markdown().encode(),),
}


def write_ranking(ranking: RankingReport, destination: Destination) -> None:
    """Write a ranking.

    Raises:
        ReportError: It cannot be written, or not in this format.
    """
    if destination.format not in RANKING_FORMATS:
        known = list_names(RANKING_FORMATS)
        raise ReportError(f"More than two runs are written as {known}, not as {destination.format}.")
    write_pieces(RANKING_FORMATS[destination.format](ranking), destination)


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
    line = f"What the comparisons of all pairs leave open. They hold together with {_level(ranking.confidence)}."
    head = ("run", "macro-F1", "pass-rate", "rank", "samples")
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
    head = ("run", "samples", "first", "this", "change", interval, "newly failing", "newly passing")
    lines: list[TextLine] = [("Macro-F1, over the samples that both have.",)]
    changes = [entry.against_first.macro_f1 for entry in others if entry.against_first is not None]
    reach = [end for number in changes for end in number.interval or (number.difference,)]
    cells = [IntervalCell(number.difference, number.interval) for number in changes]
    plots = drawn_columns(PlotColumn("change", cells, interval, scale_around_zero(reach)))
    title = ("Against the first run, ", DataText(_name(first)))
    return TextSection(title, lines, TextTable(head, rows, ("samples", "first"), plots), after)
