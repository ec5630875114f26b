"""What stands beside the rank of a run: its metrics, what it costs, how long it takes, and what it lacks."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.comparison._paired_marks import cluster_codes
from deemster.records import BROKEN_OFF, CAUSES, BrokenOff
from deemster.results.mark_table import MarkTable
from deemster.results.metric_summary import NOT_RUN, OUTSIDE, SCORED, share_interval
from deemster.results.repetition_precision import repeated_passes
from deemster.results.run_columns import RunColumns
from deemster.results.run_summary import count_passes
from deemster.results.usage_and_cost import USAGE
from deemster.stats import Interval

_TARGET_FAILED = 1 + CAUSES.index("target_failed")


class RankedFigures(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The numbers of a ranked run that are its own, whatever it is compared with.

    Attributes:
        pass_rate_interval: The 95% interval of its pass-rate.
        pass_at_k: The chance that at least one of all repetitions passes; None without repetitions.
        pass_hat_k: The chance that all of them pass.
        metrics: By metric, the mean score over what was scored; None where nothing was.
        cost_per_100: What a hundred outputs cost, in dollars; None where no price is known, or all came from a cache.
        latency_p50_ms: The time within which half of its outputs came.
        failed: Outputs that the target failed to give.
        not_run: Outputs that are missing since the run ended early.
        unscored: Outputs with a mark that could not be made.
        cut: Outputs that were cut at the most tokens.
        refused: Outputs that a filter of the provider stopped.
    """

    pass_rate_interval: Interval | None
    pass_at_k: float | None
    pass_hat_k: float | None
    metrics: dict[str, float | None]
    cost_per_100: float | None
    latency_p50_ms: float | None
    failed: int
    not_run: int
    unscored: int
    cut: int = 0
    refused: int = 0


def ranked_figures(columns: RunColumns) -> RankedFigures:
    """The numbers of a run, from its columns."""
    marks = columns.marks
    cost, _, latency = _known_usage(columns)
    unscored = ~np.isin(marks.causes, (SCORED, NOT_RUN, OUTSIDE, _TARGET_FAILED))

    passes = count_passes(marks)
    is_rated = marks.applies_to(slice(None)).any(axis=1)
    clusters = None if columns.clusters is None else cluster_codes(columns.clusters)[is_rated]
    repeated = None
    if marks.repetitions > 1 and len(passes):
        repeated = repeated_passes(passes, repetitions=marks.repetitions, k=marks.repetitions)

    return RankedFigures(
        pass_rate_interval=share_interval(passes, marks.repetitions, clusters),
        pass_at_k=None if repeated is None else repeated.pass_at_k,
        pass_hat_k=None if repeated is None else repeated.pass_hat_k,
        metrics={card.name: _mean_score(marks, column) for column, card in enumerate(marks.cards)},
        cost_per_100=100 * float(cost.mean()) if len(cost) else None,
        latency_p50_ms=float(np.median(latency)) if len(latency) else None,
        failed=_count_outputs(marks.causes == _TARGET_FAILED),
        not_run=_count_outputs(marks.causes == NOT_RUN),
        unscored=_count_outputs(unscored),
        cut=_count_broken_off(marks, "length"),
        refused=_count_broken_off(marks, "content_filter"),
    )


def _mean_score(marks: MarkTable, column: int) -> float | None:
    scores = marks.scores[:, :, column][marks.causes[:, :, column] == SCORED]
    return float(scores.mean()) if scores.size else None


def _known_usage(columns: RunColumns) -> list[NDArray[np.float64]]:
    """What the target used, for each output of which it is known, by place in `USAGE`.

    An answer from a cache cost nothing and took no time, this once: what it costs to ask is not known.
    """
    usage = columns.usage()
    if usage is None:
        return [np.zeros(0) for _ in USAGE]
    numbers = usage.reshape(-1, len(USAGE)).T.copy()
    cost, _, latency = numbers
    cost[(cost == 0) & np.isnan(latency)] = np.nan
    return [values[~np.isnan(values)] for values in numbers]


def _count_broken_off(marks: MarkTable, reason: BrokenOff) -> int:
    return int(np.count_nonzero(marks.broken_off == 1 + BROKEN_OFF.index(reason)))


def _count_outputs(marks: NDArray[np.bool_]) -> int:
    """How many outputs have one of these marks."""
    return int(np.count_nonzero(marks.any(axis=2)))
