"""How far a person may be from the judge on each sample, by what the judge itself shows of its doubts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from deemster.calibration.label_sheet import DrawnSample, answered_samples
from deemster.calibration.people_labels import LabelTask
from deemster.records import MetricScore
from deemster.report.report_entries import ScoreEntry
from deemster.stats.nan_arithmetic import Floats, mean_defined
from deemster.stats.unequal_sampling import inclusion_probabilities, pivotal_sample, sampling_sizes

if TYPE_CHECKING:
    from deemster.report.report_document import Report


class Opinion(NamedTuple):
    """What one answer of a judge says of a person's answer, 0 worst to 1 best: its mean, and that of the square."""

    mean: float
    square: float


def mark_opinions(mark: MetricScore | ScoreEntry, task: LabelTask) -> Iterator[Opinion]:
    """What a mark shows of a person's answer to a question: an opinion for each vote, or one by its score.

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
            yield from vote_opinions(vote.get("verdict"), vote.get("p"), task)
        return

    # Votes on a metric's own scale have no pass mark.
    scores = [vote["score"] for vote in votes if vote.get("score") is not None] if mark.rubric_score is None else []
    for score in scores or [mark.score]:
        chance = _chance_to_pass(score, mark.threshold)
        yield Opinion(chance, chance)


def _chance_to_pass(score: float, threshold: float) -> float:
    if score < threshold:
        return 0.5 * score / threshold
    return 1.0 if threshold >= 1 else 0.5 + 0.5 * (score - threshold) / (1 - threshold)


def vote_opinions(verdict: str | None, probabilities: Sequence[float] | None, task: LabelTask) -> Iterator[Opinion]:
    """What a vote on a criterion shows of a person's verdict: nothing where it abstains.

    Args:
        verdict: The vote.
        probabilities: P(MET), or one for every scored option; None where the judge states none.
        task: The criterion.
    """
    criterion = task.definition
    if criterion is not None and probabilities is not None and criterion.kind != "numeric":
        is_binary = criterion.kind == "binary"
        shares = [probabilities[0], 1 - probabilities[0]] if is_binary else probabilities
        worths = [1.0, 0.0] if is_binary else [criterion.values[code] or 0.0 for code in criterion.scored]
        first = sum(share * worth for share, worth in zip(shares, worths, strict=True))
        yield Opinion(first, sum(share * worth**2 for share, worth in zip(shares, worths, strict=True)))
        return

    worth = None if verdict is None else task.worth(verdict)
    if worth is not None:
        yield Opinion(worth, worth**2)


def estimated_spread(opinions: Sequence[Opinion]) -> float:
    """The standard deviation of a person's answer by the opinions of the judge; NaN without any.

    >>> estimated_spread([Opinion(1.0, 1.0), Opinion(0.0, 0.0)]), estimated_spread([Opinion(0.8, 0.8)])
    (0.5, 0.4)
    """
    if not opinions:
        return math.nan
    first = sum(opinion.mean for opinion in opinions) / len(opinions)
    second = sum(opinion.square for opinion in opinions) / len(opinions)
    return round(math.sqrt(max(0.0, second - first**2)), 12)


def sample_spreads(opinions: Iterable[Sequence[Sequence[Opinion]]]) -> Floats:
    """The spread of each sample: the mean over its questions; NaN where the judge says nothing.

    Args:
        opinions: For each sample those on each question.
    """
    spreads = [[estimated_spread(answers) for answers in questions] for questions in opinions]
    return mean_defined(np.array(spreads, dtype=np.float64).T)


def run_opinions(repetitions: Sequence[Mapping[str, object]], tasks: Sequence[LabelTask]) -> list[list[Opinion]]:
    """The opinions on each question about one sample.

    Args:
        repetitions: The marks of each repetition, by metric.
        tasks: The questions.
    """
    return [
        [
            opinion
            for marks in repetitions
            if isinstance(mark := marks.get(task.metric), (MetricScore, ScoreEntry))
            for opinion in mark_opinions(mark, task)
        ]
        for task in tasks
    ]


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
    spreads = sample_spreads(run_opinions(repetitions, tasks) for repetitions in marks.values())
    chances = draw_efficiently(spreads, n, seed=seed)
    return [DrawnSample(samples[place], 1, chances[place]) for place in sorted(chances)]
