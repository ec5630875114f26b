"""How far a person may be from the judge on each sample, by what the judge itself shows of its doubts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from deemster.calibration.label_sheet import DrawnSample, answered_samples
from deemster.calibration.people_labels import LabelTask
from deemster.records import MetricScore
from deemster.report.report_entries import ScoreEntry
from deemster.stats.nan_arithmetic import Floats
from deemster.stats.unequal_sampling import inclusion_probabilities, pivotal_sample, sampling_sizes

if TYPE_CHECKING:
    from deemster.report.report_document import Report


class LikelyAnswer(NamedTuple):
    """An answer that a person may give: what it is worth, 0 worst to 1 best, and how likely the judge makes it."""

    worth: float
    share: float


def likely_answers(mark: MetricScore | ScoreEntry, task: LabelTask) -> Iterator[LikelyAnswer]:
    """The answers that a mark makes likely, by its votes, or by its score.

    A score is read as the chance to pass: half at the pass mark, 0 and 1 at the ends.

    Args:
        mark: The mark.
        task: The question.
    """
    votes = [
        vote
        for vote in mark.details.get("votes") or ()
        if isinstance(vote, Mapping) and vote.get("criterion", "") == task.criterion and "cause" not in vote
    ]
    if task.criterion:
        for vote in votes:
            yield from _answers_of_vote(vote, task)
        return

    # Votes on a metric's own scale have no pass mark.
    scores = [vote["score"] for vote in votes if vote.get("score") is not None] if mark.rubric_score is None else []
    for score in scores or [mark.score]:
        chance = float(np.interp(score, [0.0, mark.threshold, 1.0], [0.0, 0.5, 1.0]))
        yield LikelyAnswer(1.0, chance)
        yield LikelyAnswer(0.0, 1 - chance)


def _answers_of_vote(vote: Mapping[str, Any], task: LabelTask) -> Iterator[LikelyAnswer]:
    """Every option by the probabilities of a vote; without these its verdict, and nothing where it abstains."""
    shares, criterion = vote.get("p"), task.definition
    if shares is not None and criterion is not None:
        # P(MET) alone stands for both verdicts.
        shares = [shares[0], 1 - shares[0]] if len(shares) == 1 else shares
        for code, share in zip(criterion.scored, shares, strict=True):
            yield LikelyAnswer(criterion.values[code] or 0.0, share)
        return

    worth = None if vote.get("verdict") is None else task.worth(vote["verdict"])
    if worth is not None:
        yield LikelyAnswer(worth, 1.0)


def sample_spread(repetitions: Sequence[Mapping[str, object]], tasks: Sequence[LabelTask]) -> float:
    """The standard deviation of a person's answers on one sample, the mean over questions; NaN where nothing is known.

    Args:
        repetitions: The marks of each repetition, by metric.
        tasks: The questions.
    """
    spreads = []
    for task in tasks:
        marks = [mark for metrics in repetitions if (mark := metrics.get(task.metric)) is not None]
        scored = [mark for mark in marks if isinstance(mark, (MetricScore, ScoreEntry))]
        answers = [answer for mark in scored for answer in likely_answers(mark, task)]
        if answers:
            worths, shares = np.array(answers).T
            mean = np.average(worths, weights=shares)
            spreads.append(round(math.sqrt(np.average(np.square(worths - mean), weights=shares)), 12))
    return sum(spreads) / len(spreads) if spreads else math.nan


def draw_efficiently(spreads: Floats, n: int, *, seed: int) -> dict[int, float]:
    """Draw items at random, more of those with a large spread, in random order: each with its inclusion probability.

    Args:
        spreads: The spread of each item; NaN, where nothing is known, counts as the mean.
        n: How many; all where there are fewer.
        seed: The seed of the draw.
    """
    known = spreads[~np.isnan(spreads)]
    filled = np.where(np.isnan(spreads), known.mean() if len(known) else 1.0, spreads)
    chances = inclusion_probabilities(sampling_sizes(filled), n)
    return {item: float(chances[item]) for item in pivotal_sample(chances, seed=seed)}


def draw_unsure_samples(report: Report, metrics: Sequence[str], n: int, *, seed: int) -> list[DrawnSample]:
    """Draw samples of a report at random, more of those of which judges are not sure, in the order of the report.

    Args:
        report: The run.
        metrics: What people judge.
        n: How many; all samples where there are fewer.
        seed: The seed of the draw.
    """
    samples = answered_samples(report)
    marks: dict[str, list[Mapping[str, object]]] = {sample.id: [] for sample in samples}
    for execution in report.executions:
        if execution.id in marks:
            marks[execution.id].append(execution.marks)

    tasks = [LabelTask(metric) for metric in metrics]
    spreads = np.array([sample_spread(repetitions, tasks) for repetitions in marks.values()])
    chances = draw_efficiently(spreads, n, seed=seed)
    return [DrawnSample(samples[place], 1, chances[place]) for place in sorted(chances)]
