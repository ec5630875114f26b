"""Ranks several runs by macro-F1: each against the first, and the ranks that all pairs together leave open."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import msgspec

from deemster.comparison.compare_columns import ComparisonSettings, compare_columns
from deemster.comparison.comparison import Comparison
from deemster.comparison.ranking_report import ranking_sections, ranking_verdict
from deemster.errors import plural
from deemster.formats.dataframe import dataframe
from deemster.results.compared_numbers import Difference, PassTable, SampleCounts
from deemster.results.run_columns import ComparedRun, RunColumns
from deemster.stats import Interval
from deemster.stats.run_ranking import pair_confidence, rank_ranges
from deemster.text.rendered import Forms, RenderedRecord
from deemster.text.text_sections import TextSection

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = "deemster.ranking.v1"


class AgainstFirst(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run compared with the first one.

    Attributes:
        samples: How many samples were joined.
        macro_f1: The difference of macro-F1.
        pass_rate: The difference of the share of executions in which all metrics passed.
        table: Samples by whether all metrics passed in the first run and in this one.
        metrics: The difference of each metric's pass-rate.
        warnings: What a reader must know before believing the numbers.
        not_comparable: Metrics that cannot be compared, and why.
    """

    samples: SampleCounts
    macro_f1: Difference
    pass_rate: Difference
    table: PassTable
    metrics: dict[str, Difference]
    warnings: tuple[str, ...]
    not_comparable: dict[str, str]


class RankedEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of the ranked runs.

    Attributes:
        run: The run.
        best_rank: The best rank, from 1, that the comparisons with all other runs leave open.
        worst_rank: The worst one.
        against_first: The comparison with the first run; None for the first run itself.
    """

    run: ComparedRun
    best_rank: int
    worst_rank: int
    against_first: AgainstFirst | None


class RankedPair(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What two of the ranked runs say of each other.

    Attributes:
        first: The place of one run in the list of runs, from 0.
        second: The place of the other.
        n: The samples that both have.
        difference: The second's macro-F1 minus the first's, over these.
        interval: Its interval, which holds together with those of all other pairs.
        worse: The place of the run that is worse; None where the interval holds 0.
    """

    first: int
    second: int
    n: int
    difference: float | None
    interval: Interval | None
    worse: int | None


class Ranking(RenderedRecord, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Several runs, each compared with the first and with all others.

    Attributes:
        schema_version: `deemster.ranking.v1`.
        tool_version: The version of this package.
        confidence: The level at which the intervals of all pairs hold together, and so do all ranks.
        interval_confidence: The level of each interval, which makes that true.
        cluster: The metadata key whose equal values make one unit; None where each sample is one.
        seed: The seed of what is drawn.
        runs: The runs, in the order in which they were given.
        pairs: What each two of them say of each other.
    """

    schema_version: str = SCHEMA
    tool_version: str
    confidence: float
    interval_confidence: float
    cluster: str | None
    seed: int
    runs: tuple[RankedEntry, ...]
    pairs: tuple[RankedPair, ...]

    @property
    def verdict(self) -> str:
        """What the comparisons of all pairs decide, in one sentence."""
        return "".join(ranking_verdict(self))

    def sections(self) -> list[TextSection]:
        """What it says to people, in order."""
        return ranking_sections(self)

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

    def forms(self) -> Forms:
        """By the name of a format, what makes the bytes of a file."""
        return {**super().forms(), "github": lambda: (self.to_markdown().encode(),)}

    def __repr__(self) -> str:
        return f"<Ranking of {plural(len(self.runs), 'run')}: {self.verdict}>"


def rank_columns(runs: Sequence[RunColumns], *, settings: ComparisonSettings, tool_version: str) -> Ranking:
    """Rank several runs by macro-F1, on the samples that each two of them share.

    By Bonferroni's inequality the intervals of all pairs hold together with the given confidence, and so does all that
    they decide: which run is worse than which, and the ranges of ranks.

    Raises:
        ReportError: Two of the runs share no sample.
    """
    level = pair_confidence(len(runs), settings.confidence)
    chosen = msgspec.structs.replace(settings, confidence=level)
    against: list[AgainstFirst | None] = [None]
    pairs = []
    for first, second in combinations(range(len(runs)), 2):
        found = compare_columns(runs[first], runs[second], settings=chosen, tool_version=tool_version)
        pairs.append(_pair(first, second, found.macro_f1))
        if not first:
            against.append(_against(found))
    ranks = rank_ranges(len(runs), {(pair.first, pair.second): pair.interval for pair in pairs})
    entries = zip(runs, ranks, against, strict=True)
    return Ranking(
        tool_version=tool_version,
        confidence=settings.confidence,
        interval_confidence=level,
        cluster=settings.cluster,
        seed=settings.seed,
        runs=tuple(
            RankedEntry(run=columns.run, best_rank=best, worst_rank=worst, against_first=found)
            for columns, (best, worst), found in entries
        ),
        pairs=tuple(pairs),
    )


def _pair(first: int, second: int, macro: Difference) -> RankedPair:
    worse = None
    if macro.interval is not None and not macro.interval.low <= 0 <= macro.interval.high:
        worse = first if macro.interval.low > 0 else second
    return RankedPair(
        first=first, second=second, n=macro.n, difference=macro.difference, interval=macro.interval, worse=worse
    )


def _against(comparison: Comparison) -> AgainstFirst:
    return AgainstFirst(
        samples=comparison.samples,
        macro_f1=comparison.macro_f1,
        pass_rate=comparison.pass_rate,
        table=comparison.table,
        metrics={name: metric.pass_rate for name, metric in comparison.metrics.items()},
        warnings=comparison.warnings,
        not_comparable=comparison.not_comparable,
    )
