"""Ranks several runs by macro-F1: each against the first, and the ranks that all pairs together leave open."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import msgspec

from deemster.results.compare_columns import ComparisonSettings, compare_columns
from deemster.results.comparison import Comparison, Difference, PassTable, SampleCounts
from deemster.results.run_columns import ComparedRun, RunColumns
from deemster.stats.run_ranking import pair_confidence, rank_ranges

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


class Ranking(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Several runs, each compared with the first and with all others.

    Attributes:
        schema_version: `deemster.ranking.v1`.
        tool_version: The version of this package.
        confidence: The level at which all intervals hold together, and all ranks.
        interval_confidence: The level of each interval against the first run, which makes that true.
        cluster: The metadata key whose equal values make one unit; None where each sample is one.
        seed: The seed of what is drawn.
        runs: The runs, in the order in which they were given.
    """

    schema_version: str = SCHEMA
    tool_version: str
    confidence: float
    interval_confidence: float
    cluster: str | None
    seed: int
    runs: tuple[RankedEntry, ...]


def rank_columns(runs: Sequence[RunColumns], *, settings: ComparisonSettings, tool_version: str) -> Ranking:
    """Rank several runs by macro-F1, on the samples that each two of them share.

    By Bonferroni's inequality all intervals against the first run hold together with the given confidence, and so do
    all ranges of ranks.

    Raises:
        ReportError: Two of the runs share no sample.
    """
    level = 1 - (1 - settings.confidence) / (len(runs) - 1)

    def compare(first: int, second: int, confidence: float) -> Comparison:
        chosen = settings._replace(confidence=confidence)
        return compare_columns(runs[first], runs[second], settings=chosen, tool_version=tool_version)

    pairs = pair_confidence(len(runs), settings.confidence)
    intervals = {pair: compare(*pair, pairs).macro_f1.interval for pair in combinations(range(len(runs)), 2)}
    against = [None, *(_against(compare(0, place, level)) for place in range(1, len(runs)))]
    ranks = rank_ranges(len(runs), intervals)
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
