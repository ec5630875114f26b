"""Agreement among the human annotators: the ceiling that a judge is measured against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deemster.alignment._bootstrap_draws import (
    alpha_of,
    class_counts,
    mean,
    number,
    one_hot,
    replicated,
    resampled,
    units_of,
)
from deemster.alignment._joint_counts import patterns_of
from deemster.alignment._labelled_votes import Codes, Column, Floats, Panel, Places
from deemster.alignment._table_measures import kappa_of, mean_of
from deemster.alignment._verdict_classes import Classes
from deemster.alignment.metrics_result import HumanAgreement, HumanCriterion, Intervals, ReferenceAgreement
from deemster.datasets.label_codebook import consensus
from deemster.rubrics import MISSING, Criterion
from deemster.stats.agreement_from_sums import contribution, quotient


@dataclass(frozen=True, slots=True, eq=False)
class People:
    """Annotators with at least one label on the items of a panel.

    Attributes:
        names: Who they are, in order of the alphabet.
        labels: For each column of the panel: codes ``[rows, annotators]``.
    """

    names: tuple[str, ...]
    labels: tuple[Codes, ...]


def people(whole: Panel) -> People:
    """The annotators of a panel and what they said."""
    blocks = whole.votes.blocks
    known = sorted({name for block in blocks for name in block.annotations})
    labels = []
    for column in whole.columns:
        codes = np.full((len(column.rows), len(known)), MISSING, dtype=np.int16)
        for index, place in column.sources:
            block = blocks[index]
            outside = whole.place[block.items]
            inside = np.flatnonzero(outside >= 0)
            rows = np.searchsorted(column.rows, outside[inside])
            for person, name in enumerate(known):
                if name in block.annotations:
                    codes[rows, person] = block.annotations[name][inside, place]
        labels.append(codes)
    said = np.zeros(len(known), dtype=bool)
    for codes in labels:
        said |= (codes != MISSING).any(axis=0)
    names = tuple(name for name, spoke in zip(known, said.tolist(), strict=True) if spoke)
    return People(names, tuple(codes[:, said] for codes in labels))


def agreed(criterion: Criterion, codes: Codes) -> Codes:
    """The consensus of each row of labels; missing where there is none."""
    # Few distinct rows recur often: each is settled once.
    distinct, which = np.unique(codes, axis=0, return_inverse=True)
    settled = np.array([consensus(criterion, row) for row in distinct.tolist()], dtype=np.int16)
    return settled[which.reshape(-1)]


HEADLINES = (
    "krippendorff_alpha",
    "ceiling_accuracy",
    "ceiling_kappa",
    "panel.accuracy",
    "panel.mean_kappa",
    "accuracy_gap",
    "kappa_gap",
)


class _Part:
    """One criterion: distinct rows of labels and votes, and what each of them adds to every sum."""

    def __init__(self, whole: Panel, column: Column, classes: Classes, labels: Codes) -> None:
        from scipy.sparse import csr_array  # noqa: PLC0415 - scipy takes a tenth of a second to load

        self.classes = classes
        found = patterns_of(
            [np.maximum(row, MISSING) for row in (*labels.T, column.final, *column.votes.T)], column.worst
        )
        frequency = np.bincount(found.number, minlength=found.size)
        self._units = one_hot(found.number, units_of(whole)[column.rows], size=found.size, n_units=whole.n_units)
        people = found.codes[:, : labels.shape[1]]
        said = classes.of(found.codes, found.worst)
        votes = class_counts(said[:, : labels.shape[1]], classes.size)
        paired = votes.sum(axis=1) >= 2
        pairs = contribution(votes).reshape(found.size, classes.size**2)
        self._coincidences = csr_array(np.concatenate([pairs, paired[:, None]], axis=1).T)
        self.n_units = int(frequency[paired].sum())
        self._sides = []
        self.counts = []
        for person in range(labels.shape[1]):
            others = classes.of(agreed(column.criterion, np.delete(people, person, axis=1)), found.worst)
            cells = _cells(others, said[:, person], said[:, labels.shape[1] :], classes.size)
            self.counts.append([int(count) for count in frequency @ (cells >= 0)])
            flat = np.where(cells >= 0, cells + classes.size**2 * np.arange(cells.shape[1]), -1)
            holders = np.repeat(np.arange(found.size), cells.shape[1])
            size = cells.shape[1] * classes.size**2
            self._sides.append(one_hot(flat.ravel(), holders, size=size, n_units=found.size))

    def drawn(self, draws: Floats) -> Floats:
        """How often each distinct row is drawn."""
        return np.asarray(self._units @ draws)

    def alpha(self, drawn: Floats) -> Floats:
        """Krippendorff's alpha of the annotators."""
        *pairs, units = self._coincidences @ drawn
        tables = np.moveaxis(np.reshape(pairs, (self.classes.size, self.classes.size, -1)), -1, 0)
        return alpha_of(tables, units, self.classes)

    def tables(self, drawn: Floats, person: int) -> Floats:
        """Person, panel and judges against the consensus of the others, ``[sides, b, K, K]``."""
        cells = np.asarray(self._sides[person] @ drawn)
        return np.moveaxis(cells.reshape(-1, self.classes.size, self.classes.size, drawn.shape[1]), -1, 1)


def _cells(others: Codes, own: Codes, judged: Codes, size: int) -> Places:
    """The place of each pair in a flat table, -1 for none: the person and whoever judged against the others."""
    reference = np.where(own >= 0, others, -1).astype(np.intp)[:, None]
    sides = np.column_stack([own, judged])
    return np.where((reference >= 0) & (sides >= 0), reference * size + sides, -1)


class References:
    """Everything that is summed over items, ready for any draw of them.

    Attributes:
        parts: The criteria.
    """

    def __init__(self, whole: Panel, classes: tuple[Classes, ...], known: People) -> None:
        self._people = len(known.names)
        self.parts = [
            _Part(whole, column, kinds, known.labels[column.index])
            for column, kinds in zip(whole.columns, classes, strict=True)
        ]

    def counts(self) -> list[tuple[int, ...]]:
        """For each person: pairs of the person, the panel and every judge."""
        rows = ([part.counts[person] for part in self.parts] for person in range(self._people))
        return [tuple(map(sum, zip(*row, strict=True))) for row in rows]

    def values(self, draws: Floats) -> Floats:
        """The headline numbers, the alphas, then accuracy and kappa of every person and side."""
        drawn = [part.drawn(draws) for part in self.parts]
        alphas = np.stack([part.alpha(rows) for part, rows in zip(self.parts, drawn, strict=True)])
        per_person = np.stack([self._agreement(person, drawn) for person in range(self._people)])
        ceiling, panel = mean_of(per_person[:, 0]), mean_of(per_person[:, 1])
        head = np.stack([mean_of(alphas), *ceiling, *panel, *(panel - ceiling)])
        return np.concatenate([head, alphas, per_person.reshape(-1, draws.shape[1])])

    def _agreement(self, person: int, drawn: list[Floats]) -> Floats:
        """Accuracy and mean kappa ``[sides, 2, b]`` against the references of one person."""
        tables = [part.tables(rows, person) for part, rows in zip(self.parts, drawn, strict=True)]
        right = np.sum([np.einsum("...ii->...", table) for table in tables], axis=0)
        total = np.sum([table.sum(axis=(-1, -2)) for table in tables], axis=0)
        kappas = [kappa_of(part.classes.kind, table) for part, table in zip(self.parts, tables, strict=True)]
        return np.stack([quotient(right, total), mean_of(np.stack(kappas))], axis=1)


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
