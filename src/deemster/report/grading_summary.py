"""The summary of a grading: the score, every criterion, every judge, and the cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from deemster.judges.vote import known_cost
from deemster.results.mark_table import CriterionColumns
from deemster.results.metric_summary import (
    SCORED,
    CriterionSummary,
    HistogramBin,
    PanelSummary,
    histogram,
    mean_interval,
)
from deemster.stats import Interval, exact_mean

if TYPE_CHECKING:
    from deemster.judges.item_grading import ItemGrading
    from deemster.report.grading_result import Grading


class JudgeSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One judge over a grading.

    Attributes:
        id: Its id.
        model: The model role it asks.
        votes: How many votes it should have cast.
        failed: How many of them failed.
        not_run: How many of those it was never asked for.
        mean_score: The mean of its own scores.
        cost_usd: What its votes cost, in US dollars; None if that is unknown.
    """

    id: str
    model: str
    votes: int
    failed: int
    not_run: int
    mean_score: float | None
    cost_usd: str | None


class GradingSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A grading in numbers.

    Attributes:
        n: Items.
        n_scored: Items with a score.
        n_failed: Items that could not be graded.
        mean_score: The mean of the scores.
        mean_score_interval: The 95 % interval of the mean, if scores lie in [0, 1]; None below two items.
        mean_agreement: The mean of the items' agreements.
        failed_fatal: Items that failed a fatal criterion.
        criteria: Each criterion, in the order of the rubrics.
        judges: Each judge.
        panels: The votes behind the scores, where some lack one or may; None where every score has all.
        n_below_quorum: Items without a score because too few judges of the panel answered.
        calls: Requests that were answered by a model.
        cached_calls: Requests that were answered from a cache.
        prompt_tokens: Tokens sent by the calls; None if no model reported them.
        completion_tokens: Tokens received by the calls; None if no model reported them.
        cached_call_tokens: Tokens of the requests that were answered from a cache; None if they are unknown.
        cost_usd: What the grading cost, in US dollars; None if that is unknown.
    """

    n: int
    n_scored: int
    n_failed: int
    mean_score: float | None
    mean_score_interval: Interval | None
    mean_agreement: float | None
    failed_fatal: int
    criteria: dict[str, CriterionSummary]
    judges: tuple[JudgeSummary, ...]
    panels: PanelSummary | None
    n_below_quorum: int
    calls: int
    cached_calls: int
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_call_tokens: int | None
    cost_usd: str | None


class _ItemTally:
    """What is counted of the items of a grading, in one pass over them."""

    def __init__(self, grading: Grading) -> None:
        # Most items share one rubric object, and comparing rubrics by content is slow.
        rubrics = {id(rubric): rubric for rubric in grading.dataset.rubrics}.values()
        names = list(dict.fromkeys(name for rubric in rubrics for name in rubric.names))
        self.criteria = CriterionColumns(names, samples=len(grading), repetitions=1)
        self.scores: list[float] = []
        self.agreements: list[float] = []
        self.scores_of_judges: dict[str, list[float]] = {judge.id: [] for judge in grading.judges}
        self.n_failed_fatal = 0
        self.n_incomplete = 0

        for position, item in enumerate(grading.items):
            self._add(position, item)

    def _add(self, position: int, item: ItemGrading) -> None:
        if item.score is not None:
            self.scores.append(item.score)
            self.n_incomplete += any(vote.failure is not None for vote in item.votes)
        if item.mean_agreement is not None:
            self.agreements.append(item.mean_agreement)
        self.n_failed_fatal += bool(item.failed_fatal)

        for judge, score in item.judge_scores.items():
            if score is not None:
                self.scores_of_judges[judge].append(score)
        self.criteria.put(position, 0, {criterion.criterion: criterion.counted for criterion in item.criteria})


def summarize_grading(grading: Grading) -> GradingSummary:
    """Summarize a grading."""
    tally = _ItemTally(grading)
    usage = grading.usage
    quorum = grading.settings.get("quorum")
    panels = PanelSummary(n=len(tally.scores), n_incomplete=tally.n_incomplete, quorum=quorum)

    return GradingSummary(
        n=len(grading),
        n_scored=len(tally.scores),
        n_failed=grading.n_failed_items,
        mean_score=_mean(tally.scores),
        mean_score_interval=mean_interval(np.array(tally.scores)) if grading.settings["normalize"] else None,
        mean_agreement=_mean(tally.agreements),
        failed_fatal=tally.n_failed_fatal,
        criteria=tally.criteria.summarize(),
        judges=tuple(
            JudgeSummary(
                id=judge.id,
                model=judge.model,
                votes=judge.votes,
                failed=sum(judge.failures.values()),
                not_run=judge.not_run,
                mean_score=_mean(tally.scores_of_judges[judge.id]),
                cost_usd=_money(judge.usage),
            )
            for judge in grading.judges
        ),
        panels=panels if tally.n_incomplete or quorum is not None else None,
        n_below_quorum=grading.n_below_quorum,
        calls=0 if usage is None else usage.calls,
        cached_calls=0 if usage is None else usage.cached_calls,
        prompt_tokens=None if usage is None else usage.prompt_tokens,
        completion_tokens=None if usage is None else usage.completion_tokens,
        cached_call_tokens=None if usage is None else usage.cached_call_tokens,
        cost_usd=_money(usage),
    )


def score_histogram(grading: Grading) -> tuple[HistogramBin, ...] | None:
    """The scores of a grading in ten bins from 0 to 1. None where scores are weighted sums, which have no bounds."""
    if not grading.settings["normalize"]:
        return None
    scores = np.array([item.score for item in grading.items if item.score is not None], dtype=np.float64)
    return histogram(scores, np.full(scores.shape, SCORED, dtype=np.uint8))


def _mean(values: Sequence[float]) -> float | None:
    return exact_mean(np.sort(np.array(values)))


def _money(usage: Any) -> str | None:
    cost = known_cost(usage)
    return None if cost is None else f"{cost:f}"
