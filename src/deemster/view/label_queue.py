"""The queue of samples that a person labels: drawn at random, or the disputed or the uncertain first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.calibration.label_sheet import draw_places
from deemster.calibration.label_uncertainty import draw_efficiently
from deemster.calibration.people_labels import LabelTask
from deemster.errors import InputError, did_you_mean
from deemster.store.run_facts import LabelFacts, LabelOrder
from deemster.view.opened_run import OpenedRun

ORDERS: tuple[LabelOrder, ...] = get_args(LabelOrder)
_SAID = {
    "all": "All {total:,} samples that have an output, in random order. Numbers from these labels hold for the whole"
    " run.",
    "random": "{n:,} of {total:,} samples, drawn at random with seed {seed}: each had the probability {share:.4g} to be"
    " drawn. Numbers from these labels hold for the whole run.",
    "efficient": "{n:,} of {total:,} samples, drawn at random with seed {seed}, more of those of which the judge is not"
    " sure: each had a probability of its own, from {low:.2g} to {high:.2g}, and numbers are weighted by it. They hold"
    " for the whole run.",
    "disputed": "The disputed samples first: people disagree with each other or with the judge, then repetitions or"
    " judges disagree. They were not drawn at random: numbers from these labels do not hold for the whole run.",
    "uncertain": "The samples first whose scores lie nearest to the threshold. They were not drawn at random: numbers"
    " from these labels do not hold for the whole run.",
    "chosen": "The samples in the order of the dataset. They were not drawn at random: numbers from these labels do not"
    " hold for the whole run.",
}


class QueueRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the samples of a run come to a person, as a page asks for it.

    Attributes:
        run: The run.
        order: Drawn at random, evenly or more where the judge is unsure; the disputed or the uncertain first; or in the
            order of the dataset for a person who chooses.
        metrics: The metrics that are labelled; empty for the usual ones.
        n: How many samples the queue has at most.
        seed: The seed of the draw.
    """

    run: str
    order: str = "random"
    metrics: tuple[str, ...] = ()
    n: int = 50
    seed: int = 0

    def check(self) -> None:
        """Refuse an order that there is not, and a queue that is too long.

        Raises:
            InputError: It is one of them.
        """
        if self.order not in ORDERS:
            raise InputError(f"`order` is one of {', '.join(ORDERS)}, not {self.order!r:.40}.")
        if not 1 <= self.n <= 10_000:
            raise InputError(f"A queue has 1 to 10,000 samples, not {self.n:,}.")


class LabelQueue(NamedTuple):
    """The samples that a person labels.

    Attributes:
        positions: Their places, in order.
        probabilities: How probable it was that each is drawn; empty where they were not drawn at random.
        said: How they were chosen, in words.
    """

    positions: list[int]
    probabilities: dict[int, float]
    said: str


def choose_tasks(run: OpenedRun, tasks: Sequence[LabelTask], metrics: Sequence[str]) -> list[LabelTask]:
    """The questions that a person is asked: the named ones, else those of judges, else all.

    Args:
        run: The run.
        tasks: Every question.
        metrics: The metrics or criteria that are asked for.

    Raises:
        InputError: There is no such metric or criterion.
    """
    known = [task.title for task in tasks]
    for name in metrics:
        if name not in known:
            raise InputError(f"The run has no metric or criterion {name!r:.100}. {did_you_mean(name, known)}")
    if metrics:
        return [task for task in tasks if task.title in metrics or task.metric in metrics]
    judged = {card.name for card in run.cards if card.roles}
    return [task for task in tasks if task.metric in judged] or list(tasks)


def draw_queue(
    run: OpenedRun, settings: QueueRequest, tasks: Sequence[LabelTask], labels: Sequence[LabelFacts]
) -> LabelQueue:
    """The samples that a person labels: of those that have an output, since nothing can be said of others.

    Args:
        run: The run.
        settings: How they are chosen.
        tasks: What is asked of each.
        labels: What people said already.

    Raises:
        InputError: The labels of a grading are not weighted, so no draw of them is unequal.
        StoreError: The store fails.
    """
    if settings.order == "efficient" and not run.has_passes:
        raise InputError("A grading is labelled in random order: its numbers do not weigh labels.")
    answered = run.answered()
    total = len(answered)
    n = min(settings.n, total)
    if settings.order == "random" or (settings.order == "efficient" and n == total):
        drawn = draw_places([answered], n, seed=settings.seed)
        said = _SAID["all" if n == total else "random"].format(
            n=n, total=total, seed=settings.seed, share=n / total if total else 0
        )
        return LabelQueue(list(drawn), {place: share for place, (_, share) in drawn.items()}, said)
    if settings.order == "efficient":
        return _draw_efficiently(run, settings, tasks, answered)
    if settings.order == "chosen":
        return LabelQueue(answered[:n], {}, _SAID[settings.order])
    names = dict.fromkeys(task.metric or task.criterion for task in tasks)
    places = [run.names.index(name) for name in names]
    distance = _distances(run, places)
    keys = [distance]
    if settings.order == "disputed":
        keys += [-run.disputes(places), -_label_disputes(run, tasks, labels)]
    has_output = set(answered)
    ranked = [position for position in np.lexsort(keys).tolist() if position in has_output]
    return LabelQueue(ranked[:n], {}, _SAID[settings.order])


def _draw_efficiently(
    run: OpenedRun, settings: QueueRequest, tasks: Sequence[LabelTask], answered: Sequence[int]
) -> LabelQueue:
    """A random part of the samples, with more of those about which the judge is not sure.

    Raises:
        StoreError: The store fails.
    """
    drawn = draw_efficiently(run.label_spreads(tasks)[list(answered)], settings.n, seed=settings.seed)
    chances = {answered[item]: chance for item, chance in drawn.items()}
    said = _SAID["efficient"].format(
        n=len(chances),
        total=len(answered),
        seed=settings.seed,
        low=min(chances.values(), default=0),
        high=max(chances.values(), default=0),
    )
    return LabelQueue(list(chances), chances, said)


def _distances(run: OpenedRun, places: Sequence[int]) -> NDArray[np.float64]:
    """How far the scores of each sample lie from the pass mark, at the least."""
    found = np.full(run.row.samples, np.inf)
    for place in places:
        threshold = run.cards[place].threshold
        apart = np.abs(run.mean_scores(place) - (0.5 if threshold is None else threshold))
        found = np.fmin(found, apart)
    return found


def _label_disputes(run: OpenedRun, tasks: Sequence[LabelTask], labels: Sequence[LabelFacts]) -> NDArray[np.float64]:
    """Whether people disagree about a sample, with each other or with the judge."""
    found = np.zeros(run.row.samples)
    asked = {task.key: task for task in tasks}
    said: dict[tuple[int, int, tuple[str, str]], set[str]] = {}
    for label in labels:
        key = (label.metric, label.criterion)
        if label.verdict is not None and key in asked:
            said.setdefault((label.position, label.repetition, key), set()).add(label.verdict)
    for (position, repetition, key), verdicts in said.items():
        judged = run.verdict(position, repetition, asked[key])
        found[position] = max(found[position], len(verdicts | ({judged} if judged else set())) > 1)
    return found


def task_entry(task: LabelTask) -> dict[str, Any]:
    """A question as a page shows it."""
    one = task.definition
    return {
        "metric": task.metric or None,
        "criterion": task.criterion or None,
        "title": task.title,
        "requirement": None if one is None else one.requirement,
        "options": [{"value": value, "label": label} for value, label in task.options],
        "minimum": None if one is None else one.minimum,
        "maximum": None if one is None else one.maximum,
    }
