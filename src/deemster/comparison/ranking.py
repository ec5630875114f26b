"""Ranks several runs by pass-rate: each against the first, and the ranks that all pairs together leave open."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import msgspec

from deemster.comparison.compare_columns import (
    ComparisonSettings,
    compare_columns,
    compare_pass_rates,
    repetition_warnings,
    role_warnings,
    run_warnings,
)
from deemster.comparison.comparison import Comparison
from deemster.comparison.ranked_figures import RankedFigures, ranked_figures
from deemster.comparison.ranking_report import (
    MOST_IN_WORDS,
    MOST_NAMED,
    csv_lines,
    ranking_rows,
    ranking_sections,
    ranking_verdict,
)
from deemster.errors import plural
from deemster.formats.dataframe import dataframe
from deemster.results.compared_numbers import Difference, PassTable, SampleCounts
from deemster.results.run_columns import ComparedRun, RunColumns
from deemster.stats import Interval
from deemster.stats.power_analysis import PairedNoise, samples_to_detect
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
        figures: Its own numbers.
        against_first: The comparison with the first run; None for the first run itself.
    """

    run: ComparedRun
    best_rank: int
    worst_rank: int
    figures: RankedFigures
    against_first: AgainstFirst | None


class RankedPair(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What two of the ranked runs say of each other.

    Attributes:
        first: The place of one run in the list of runs, from 0.
        second: The place of the other.
        n: The samples that both have.
        difference: The second's pass-rate minus the first's, over these.
        interval: Its interval, which holds together with those of all other pairs.
        worse: The place of the run that is worse; None where the interval holds 0.
        samples_needed: With so many samples the two are told apart four times out of five, if the true difference is
            what was seen; None where they are told apart already, where nothing was seen, and where that is beyond ten
            million. Of more than four runs only the highest one and the six after it have it.
    """

    first: int
    second: int
    n: int
    difference: float | None
    interval: Interval | None
    worse: int | None
    samples_needed: int | None = None

    @property
    def places(self) -> tuple[int, int]:
        """The places of both runs."""
        return self.first, self.second


class Ranking(RenderedRecord, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Several runs, each compared with the first and with all others.

    Attributes:
        schema_version: `deemster.ranking.v1`.
        ranked_by: The number that pairs and ranks are about. Versions up to 0.2.0 ranked by macro-F1.
        tool_version: The version of this package.
        confidence: The level at which the intervals of all pairs hold together, and so do all ranks.
        interval_confidence: The level of each interval, which makes that true.
        cluster: The metadata key whose equal values make one unit; None where each sample is one.
        seed: The seed of what is drawn.
        warnings: What a reader must know before believing the ranks.
        runs: The runs, in the order in which they were given.
        pairs: What each two of them say of each other.
    """

    schema_version: str = SCHEMA
    ranked_by: Literal["pass-rate"] = "pass-rate"
    tool_version: str
    confidence: float
    interval_confidence: float
    cluster: str | None
    seed: int
    warnings: tuple[str, ...]
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
        return dataframe(ranking_rows(self), of="A ranking")

    def forms(self) -> Forms:
        """By the name of a format, what makes the bytes of a file."""
        return {
            **super().forms(),
            "csv": lambda: csv_lines(ranking_rows(self)),
            "github": lambda: (self.to_markdown().encode(),),
        }

    def __repr__(self) -> str:
        return f"<Ranking of {plural(len(self.runs), 'run')}: {self.verdict}>"


def rank_columns(runs: Sequence[RunColumns], *, settings: ComparisonSettings, tool_version: str) -> Ranking:
    """Rank several runs by pass-rate, on the samples that each two of them share.

    By Bonferroni's inequality the intervals of all pairs hold together with the given confidence, and so does all that
    they decide: which run is worse than which, and the ranges of ranks.

    Raises:
        ReportError: Two of the runs share no sample.
    """
    level = pair_confidence(len(runs), settings.confidence)
    pair_settings = msgspec.structs.replace(settings, confidence=level)

    with_first = [compare_columns(runs[0], run, settings=pair_settings, tool_version=tool_version) for run in runs[1:]]
    differences = {(0, place): comparison.pass_rate for place, comparison in enumerate(with_first, 1)}
    for first, second in combinations(range(1, len(runs)), 2):
        differences[first, second] = compare_pass_rates(runs[first], runs[second], settings=pair_settings)

    entries = [
        RankedEntry(
            run=columns.run,
            best_rank=best,
            worst_rank=worst,
            figures=ranked_figures(columns),
            against_first=None if place == 0 else _against(with_first[place - 1]),
        )
        for place, (columns, (best, worst)) in enumerate(zip(runs, _rank_ranges(len(runs), differences), strict=True))
    ]
    asks_about = _pairs_to_decide(runs)
    pairs = []
    for places, difference in differences.items():
        pair = _pair(places, difference)
        if pair.worse is None and places in asks_about:
            needed = _samples_needed(runs, places, difference, level)
            pair = msgspec.structs.replace(pair, samples_needed=needed)
        pairs.append(pair)

    return Ranking(
        tool_version=tool_version,
        confidence=settings.confidence,
        interval_confidence=level,
        cluster=settings.cluster,
        seed=settings.seed,
        warnings=tuple(_warnings(runs, with_first)),
        runs=tuple(entries),
        pairs=tuple(pairs),
    )


def _warnings(runs: Sequence[RunColumns], with_first: Sequence[Comparison]) -> Iterator[str]:
    """What a reader must know, each thing once: of each run by its name, and of all together."""
    described = list(runs)
    part = runs[0].run.part
    if part is not None and len(runs) > 1 and all(columns.run.part == part for columns in runs):
        yield f"All ran the same part of the dataset: {part.samples:,} of {part.of:,} samples."
        described = [columns._replace(run=msgspec.structs.replace(columns.run, part=None)) for columns in runs]

    for columns in described:
        yield from run_warnings(columns, f"`{columns.run.label or columns.run.id}`")
    yield from repetition_warnings(runs)

    said: set[str] = set()
    for columns, comparison in zip(runs[1:], with_first, strict=True):
        said |= {*role_warnings(runs[0], columns), *repetition_warnings([runs[0], columns])}
        for warning in comparison.warnings:
            if warning not in said:
                said.add(warning)
                yield warning


def _rank_ranges(runs: int, differences: Mapping[tuple[int, int], Difference]) -> tuple[tuple[int, int], ...]:
    return rank_ranges(runs, {places: difference.interval for places, difference in differences.items()})


def _pairs_to_decide(runs: Sequence[RunColumns]) -> set[tuple[int, int]]:
    """The pairs of which it is worked out how many samples would tell them apart; that takes its time."""
    pairs = set(combinations(range(len(runs)), 2))
    if len(runs) <= MOST_IN_WORDS:
        return pairs
    best, *others = sorted(range(len(runs)), key=lambda place: -(runs[place].run.pass_rate or 0.0))
    return {(min(best, other), max(best, other)) for other in others[:MOST_NAMED]}


def _pair(places: tuple[int, int], difference: Difference) -> RankedPair:
    first, second = places
    worse = None
    interval = difference.interval
    if interval is not None and interval.leaves_out_zero:
        worse = first if interval.low > 0 else second
    return RankedPair(
        first=first,
        second=second,
        n=difference.n,
        difference=difference.difference,
        interval=interval,
        worse=worse,
    )


def _samples_needed(
    runs: Sequence[RunColumns], places: tuple[int, int], difference: Difference, confidence: float
) -> int | None:
    """How many samples tell two runs apart four times out of five, if they differ in truth as they did here."""
    if not difference.difference or difference.effect is None:
        return None

    is_flip = difference.units == difference.n and all(runs[place].marks.repetitions == 1 for place in places)
    if is_flip:
        noise = PairedNoise(flip_rate=2 * min(difference.better, difference.worse) / difference.n)
    else:
        noise = PairedNoise(sd=abs(difference.difference / difference.effect))

    units = samples_to_detect(abs(difference.difference), noise, confidence=confidence)
    return None if units is None else max(difference.n + 1, math.ceil(units * difference.n / difference.units))


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
