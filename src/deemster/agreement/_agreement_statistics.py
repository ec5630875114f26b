"""Computes every statistic of agreement: of the data, and of the replicates that its interval comes from."""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from inspect import get_annotations
from typing import Any

import msgspec
from numpy.typing import NDArray

from deemster.agreement._bootstrap_replicates import (
    BootstrapSettings,
    bootstrap_results,
    jackknife_statistics,
    replicate_statistics,
)
from deemster.agreement._contingency_counts import ContingencyCounts, count_votes
from deemster.agreement._criterion_columns import Floats, Indices
from deemster.agreement._error_intervals import with_error_intervals
from deemster.agreement._labelled_votes import LabelledVotes
from deemster.agreement._numeric_agreement import Levels
from deemster.agreement._panel_errors import PanelErrors
from deemster.agreement._score_statistics import ScoreSums, sum_scores
from deemster.agreement._tag_slices import SliceEstimates, estimate_slices, read_tags, slice_statistics
from deemster.agreement._verdict_classes import AbstentionModes
from deemster.agreement._verdict_statistics import Key, Values, verdict_statistics
from deemster.agreement.result_models import BootstrapResult, Intervals


@dataclass(frozen=True, slots=True)
class Options:
    """What the caller asks for.

    Attributes:
        modes: What an abstention counts as.
        bootstrap: How numbers get their intervals.
        per_judge: Whether each judge is compared with the truth.
        per_slice: Whether each tag has numbers of its own.
    """

    modes: AbstentionModes
    bootstrap: BootstrapSettings
    per_judge: bool
    per_slice: bool


@dataclass(frozen=True, eq=False)
class Statistics:
    """Every statistic, and what it rests on.

    Attributes:
        votes: The labelled votes.
        options: What the caller asked for.
        layout: Where the counts stand.
        counts: Counts of the data themselves, cells × 1.
        scores: Score-level sums and correlations.
        estimates: The statistics of the data by key; None where undefined.
        intervals: Their intervals by key; None without a bootstrap.
        slices: The slices; None where they are not asked for.
        panel: The errors of the panel; None where nothing is known of them.
        levels: How items are grouped for correlations of numbers.
    """

    votes: LabelledVotes
    options: Options
    layout: ContingencyCounts
    counts: Floats
    scores: ScoreSums
    estimates: Mapping[Key, float | None]
    intervals: Mapping[Key, BootstrapResult] | None
    slices: SliceEstimates | None
    panel: PanelErrors | None
    levels: Levels

    @property
    def bootstrap(self) -> BootstrapSettings:
        """How numbers get their intervals."""
        return self.options.bootstrap

    def value(self, *key: Any) -> float | None:
        """A statistic by its key; None where it is undefined or does not exist."""
        return self.estimates.get(key)

    def numbers_of(self, model: type[msgspec.Struct], *scope: Any) -> dict[str, Any]:
        """The statistics of a scope that a model has a field for, by name; None where undefined."""
        return {name: self.value(*scope, name) for name in _number_fields(model)}

    def scope_intervals(self, *scope: Any) -> Intervals:
        """The intervals of all statistics of a scope, by name."""
        return None if self.intervals is None else self._intervals_by_scope.get(scope, {})

    @cached_property
    def _intervals_by_scope(self) -> dict[Key, dict[str, BootstrapResult]]:
        by_scope: dict[Key, dict[str, BootstrapResult]] = {}
        for key, interval in (self.intervals or {}).items():
            *scope, name = key
            by_scope.setdefault(tuple(scope), {})[name] = interval
        return by_scope


@cache
def _number_fields(model: type[msgspec.Struct]) -> tuple[str, ...]:
    """The fields of a model that hold a number or None, in order."""
    # As they are written: to look up the types of a model takes a millisecond.
    written = ChainMap(*map(get_annotations, model.__mro__))
    return tuple(name for name in model.__struct_fields__ if written[name] == "float | None")


@dataclass(frozen=True, slots=True, eq=False)
class _Formulas:
    """From counts of verdicts and sums of scores to every statistic; see `Compute`.

    Attributes:
        layout: Where the counts stand.
        scores: Where the sums stand.
        coverage: Whether the share of verdicts that are no abstention is a statistic.
        pooled: Whether criteria of one scale are also counted together.
        large_tags: The tags whose slices have statistics of their own.
    """

    layout: ContingencyCounts
    scores: ScoreSums
    coverage: bool
    pooled: bool
    large_tags: Indices | None

    def __call__(self, counts: Floats, sums: Floats, draws: NDArray[Any] | None, imagined: Floats | None) -> Values:
        values = verdict_statistics(self.layout, counts, coverage=self.coverage, pooled=self.pooled)
        values |= self.scores.statistics(sums, draws, imagined)
        if self.large_tags is not None:
            is_twice = imagined is not None
            values |= slice_statistics(self.layout, self.scores, counts, sums, numbers=self.large_tags, twice=is_twice)
        return values


def compute_statistics(votes: LabelledVotes, options: Options, levels: Levels) -> Statistics:
    """Compute every statistic of the data and, for a bootstrap, of the replicates.

    Args:
        votes: The labelled votes.
        options: What the caller asks for.
        levels: How items are grouped for correlations of numbers.
    """
    bootstrap = options.bootstrap
    is_drawn = bootstrap.replicates > 0
    tags = read_tags(votes) if options.per_slice else None
    # Only slices with enough items have replicates.
    drawn_tags = tags if tags is not None and is_drawn and len(tags.large) else None
    members = None if drawn_tags is None else drawn_tags.large_members(len(votes.ids))

    layout = count_votes(votes, per_judge=options.per_judge, slices=members)
    scores = sum_scores(votes, per_judge=options.per_judge, slices=members, confidence=bootstrap.confidence)
    formulas = _Formulas(
        layout,
        scores,
        coverage=options.modes.exclude_all,
        pooled=votes.mixed_rubrics,
        large_tags=None if drawn_tags is None else drawn_tags.large,
    )

    counts = layout.count_cells(layout.pattern_totals())
    estimates = {key: float(values[0]) for key, values in formulas(counts, scores.totals(), None, None).items()}
    estimates |= scores.exact_correlations()
    panel = PanelErrors.of(votes)
    if panel is not None:
        estimates |= {key: float(values[0]) for key, values in panel.statistics(panel.totals()).items()}
    slices = None if tags is None else estimate_slices(tags, votes, layout, scores, counts)
    if slices is not None:
        estimates |= slices.by_key()

    intervals = _intervals(formulas, panel, estimates, bootstrap, units=votes.n_units) if is_drawn else None
    if intervals is not None and bootstrap.method == "smoothed":
        intervals = with_error_intervals(intervals, votes, scores, drawn_tags)

    return Statistics(
        votes=votes,
        options=options,
        layout=layout,
        counts=counts,
        scores=scores,
        estimates={key: None if math.isnan(value) else value for key, value in estimates.items()},
        intervals=intervals,
        slices=slices,
        panel=panel,
        levels=levels,
    )


def _intervals(
    formulas: _Formulas,
    panel: PanelErrors | None,
    estimates: Mapping[Key, float],
    bootstrap: BootstrapSettings,
    *,
    units: int,
) -> dict[Key, BootstrapResult]:
    """The interval of every statistic, from its replicates."""
    layout = formulas.layout
    scores = formulas.scores
    replicates = replicate_statistics(
        layout, scores, panel, formulas, n=bootstrap.replicates, seed=bootstrap.seed, method=bootstrap.method
    )

    needs_jackknife = bootstrap.method == "bca" and units > 1
    jackknife = jackknife_statistics(layout, scores, panel, formulas) if needs_jackknife else None
    return bootstrap_results(
        estimates,
        replicates,
        jackknife,
        method=bootstrap.method,
        units=units,
        confidence=bootstrap.confidence,
        expanded=scores.expanded_keys(),
    )
