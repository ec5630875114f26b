"""Judges and people against the consensus of people they are not part of, for any draw of items."""

from __future__ import annotations

import numpy as np

from deemster.alignment.cells import patterns_of
from deemster.alignment.draws import alpha_of, class_counts, one_hot, units_of
from deemster.alignment.measures import kappa_of, mean_of
from deemster.alignment.pairs import Classes
from deemster.alignment.panel import Codes, Column, Floats, Panel, Places
from deemster.alignment.people import People, agreed
from deemster.rubrics import MISSING
from deemster.stats.coincidence import contribution, quotient

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
