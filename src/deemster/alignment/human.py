"""What people reach among themselves: the ceiling that a judge is measured against."""

from __future__ import annotations

import numpy as np

from deemster.alignment.draws import mean, number, replicated, resampled
from deemster.alignment.models import HumanAgreement, HumanCriterion, Intervals, ReferenceAgreement
from deemster.alignment.pairs import Classes
from deemster.alignment.panel import Floats, Panel
from deemster.alignment.people import People, people
from deemster.alignment.references import HEADLINES, References
from deemster.rubrics import MISSING


def human(
    whole: Panel, classes: tuple[Classes, ...], *, replicates: int = 0, seed: int = 0, confidence: float = 0.95
) -> HumanAgreement | None:
    """How people agree among each other, and how far the judges are from that.

    Each annotator in turn is compared with the consensus of all others; the ceiling is the mean over annotators. The
    panel and every judge face the same references, on the cells where the annotator who was set aside has a label, and
    are averaged in the same way. An accuracy pools cells; a kappa is the mean over criteria.

    Args:
        whole: The panel.
        classes: The classes of each column.
        replicates: How many times units are resampled; 0 gives no intervals.
        seed: Of the draws.
        confidence: The level of the intervals.

    Returns:
        None with fewer than two annotators.

    Reference: L. Zheng et al., Judging LLM-as-a-judge with MT-Bench and Chatbot Arena, arXiv:2306.05685 (2023).
    """
    if not any(block.annotations for block in whole.votes.blocks):
        return None
    known = people(whole)
    if len(known.names) < 2:
        return None
    sums = References(whole, classes, known)
    values = replicated(sums.values, units=whole.n_units, replicates=replicates, seed=seed)
    intervals: Intervals = None
    if replicates:
        results = resampled(values[: len(HEADLINES)], confidence=confidence)
        intervals = dict(zip(HEADLINES, results, strict=True))
    figures = [number(value) for value in values[:, 0]]
    head = dict(zip(HEADLINES, figures, strict=False))
    alphas = figures[len(HEADLINES) : len(HEADLINES) + len(classes)]
    sides = values[len(HEADLINES) + len(classes) :, 0].reshape(len(known.names), -1, 2)
    panel, *judges = _judged(whole, sides, sums.counts())
    return HumanAgreement(
        n_annotators=len(known.names),
        n_items=_shared_items(whole, known),
        krippendorff_alpha=head["krippendorff_alpha"],
        per_criterion=_criteria(whole, alphas, sums),
        annotators=_annotators(known, sides, sums.counts()),
        ceiling_accuracy=head["ceiling_accuracy"],
        ceiling_kappa=head["ceiling_kappa"],
        panel=panel,
        judges=tuple(judges),
        accuracy_gap=head["accuracy_gap"],
        kappa_gap=head["kappa_gap"],
        intervals=intervals,
    )


def _criteria(whole: Panel, alphas: list[float | None], sums: References) -> tuple[HumanCriterion, ...]:
    return tuple(
        HumanCriterion(
            name=column.name,
            index=column.index,
            criterion_type=column.criterion.kind,
            krippendorff_alpha=alphas[place],
            n_units=sums.parts[place].n_units,
        )
        for place, column in enumerate(whole.columns)
    )


def _annotators(known: People, sides: Floats, counts: list[tuple[int, ...]]) -> tuple[ReferenceAgreement, ...]:
    return tuple(
        ReferenceAgreement(
            name=name,
            accuracy=number(sides[person, 0, 0]),
            mean_kappa=number(sides[person, 0, 1]),
            n_samples=counts[person][0],
        )
        for person, name in enumerate(known.names)
    )


def _judged(whole: Panel, sides: Floats, counts: list[tuple[int, ...]]) -> list[ReferenceAgreement]:
    """The panel and every judge, each as the mean over the people who were set aside."""
    return [
        ReferenceAgreement(
            name=name,
            accuracy=mean(map(number, sides[:, side, 0])),
            mean_kappa=mean(map(number, sides[:, side, 1])),
            n_samples=sum(count[side] for count in counts),
        )
        for side, name in enumerate(("panel", *whole.judges), start=1)
    ]


def _shared_items(whole: Panel, known: People) -> int:
    """Items on which two people or more said something."""
    spoke = np.zeros((len(whole.ids), len(known.names)), dtype=bool)
    for column in whole.columns:
        spoke[column.rows] |= known.labels[column.index] != MISSING
    return int((spoke.sum(axis=1) >= 2).sum())
