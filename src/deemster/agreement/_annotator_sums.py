"""Sums of what people, the panel and judges said, from which their agreement follows for any draw of the units."""

from __future__ import annotations

from typing import Any

import numpy as np

from deemster.agreement._annotators import Annotators
from deemster.agreement._contingency_counts import count_by_unit, find_patterns
from deemster.agreement._criterion_columns import CriterionColumn, Floats, Indices
from deemster.agreement._imagined_units import imagined_votes, table_shapes, unit_size, vote_shapes
from deemster.agreement._labelled_votes import LabelledVotes
from deemster.agreement._numeric_agreement import imagine_numbers
from deemster.agreement._score_statistics import weighted_sums
from deemster.agreement._verdict_classes import Codes
from deemster.datasets.label_codebook import consensus_rows
from deemster.rubrics.criterion import MISSING
from deemster.stats import confusion_tables as tables
from deemster.stats.agreement_from_sums import Level, alpha_from_coincidences, coincidence_shares
from deemster.stats.bootstrap_resampling import imagined_weights
from deemster.stats.krippendorff_alpha import interval_alpha, spread_features
from deemster.stats.nan_arithmetic import mean_defined, quotient
from deemster.stats.paired_score_sums import (
    known_mean,
    predicted_features,
    score_scale,
    score_statistics,
    true_features,
)
from deemster.stats.sparse_rows import SparseRows


class _CriterionSums:
    """One criterion: the distinct rows of labels and votes, and what each adds to the tables and coincidences."""

    def __init__(
        self, votes: LabelledVotes, column: CriterionColumn, labels: Codes, numbers: Floats | None = None
    ) -> None:
        classes = column.classes
        size = classes.size
        n_people = labels.shape[1]
        unit_of_row = votes.unit_of_item[column.rows]
        self.classes = classes
        self._n_people = n_people
        self._unit_of_row = unit_of_row
        self._unit_size = unit_size(votes, column)

        # Alpha of numbers: what each row adds, and the unit it belongs to.
        self._spreads = None if numbers is None else spread_features(numbers - known_mean(numbers)).T
        self._table_shapes = table_shapes(size)
        imagined = coincidence_shares(imagined_votes(n_people, size))
        self._imagined_coincidences = SparseRows.of(imagined.reshape(2 * size, size**2).T)
        self._vote_shapes = vote_shapes(size)

        patterns = find_patterns(
            [np.maximum(row, MISSING) for row in (*labels.T, column.final, *column.votes.T)], column.worst_codes
        )
        frequency = np.bincount(patterns.of_row, minlength=patterns.size)
        self._patterns_by_unit = count_by_unit(
            patterns.of_row, unit_of_row, n_cells=patterns.size, n_units=votes.n_units
        )

        of_pattern = classes.from_codes(patterns.codes, patterns.worst_codes)
        counts = classes.count(of_pattern[:, :n_people])
        n_labels = counts.sum(axis=1)
        is_paired = n_labels >= 2
        self.n_units = int(frequency[is_paired].sum())
        self.n_labelled = int(frequency[n_labels >= 1].sum())

        pairs = coincidence_shares(counts).reshape(patterns.size, size**2)
        self._coincidences = SparseRows.of(pairs.T)
        self._paired = SparseRows.of(is_paired[None, :])
        final = of_pattern[:, n_people]
        answered = (final[:, None] == np.arange(size)) & is_paired[:, None]
        against = (counts[:, :, None] * answered[:, None, :]).reshape(patterns.size, size**2)
        self._against_panel = SparseRows.of(against.T.astype(np.float64))

        self._cells_by_person = []
        self.n_pairs = []
        for person in range(n_people):
            other_people = np.delete(patterns.codes[:, :n_people], person, axis=1)
            consensus = classes.from_codes(consensus_rows(column.criterion, other_people), patterns.worst_codes)
            cells = _cells(consensus, of_pattern[:, person], of_pattern[:, n_people:], size)
            self.n_pairs.append(frequency @ (cells >= 0))
            self._cells_by_person.append(_count_cells(cells, size))

        self._numbers = None if numbers is None else _NumberSums(votes, column, numbers, self._unit_size)
        if self._numbers is not None:
            self.n_pairs = self._numbers.n_pairs

    def count_patterns(self, draws: Floats) -> Floats:
        """How often each distinct row is drawn."""
        return self._patterns_by_unit @ draws

    def alpha(self, patterns: Floats, draws: Floats, rng: np.random.Generator | None) -> Floats:
        """Krippendorff's alpha of the annotators; of numbers the interval alpha."""
        if self._spreads is not None:
            return interval_alpha(np.moveaxis(weighted_sums(self._spreads, draws[self._unit_of_row]), 0, -1))

        pairs = self._coincidences @ patterns
        if rng is not None:
            weights = self._unit_size * imagined_weights(self._vote_shapes, patterns.shape[1], rng)
            pairs += self._imagined_coincidences @ weights

        coincidences = np.moveaxis(pairs.reshape(self.classes.size, self.classes.size, -1), -1, 0)
        level: Level = "ordinal" if self.classes.kind == "ordinal" else "nominal"
        return alpha_from_coincidences(coincidences, level, units=(self._paired @ patterns)[0])

    def concordances(self, draws: Floats, rng: np.random.Generator | None) -> Floats | None:
        """What numbers have in place of kappa, ``[people, sides, b]``; None for a criterion of another kind."""
        return None if self._numbers is None else self._numbers.concordances(draws, rng)

    def pairwise_kappas(self, patterns: Floats, rng: np.random.Generator | None) -> Floats:
        """Kappa over all pairs of two labels of a cell, and over all pairs of a label and the verdict, ``[2, b]``."""
        kappas = []
        for cells_by_pattern in (self._coincidences, self._against_panel):
            cells = cells_by_pattern @ patterns
            if rng is not None:
                # An imagined unit has as many pairs as there are people.
                weights = imagined_weights(self._table_shapes, cells.shape[1], rng)
                cells += self._n_people * self._unit_size * weights
            table = np.moveaxis(cells.reshape(self.classes.size, self.classes.size, -1), -1, 0)
            kappas.append(tables.kappa(table, self.classes.kind))
        return np.stack(kappas)

    def tables(self, patterns: Floats, person: int, rng: np.random.Generator | None) -> Floats:
        """Person, panel and judges against the consensus of the others, ``[sides, b, K, K]``."""
        cells = self._cells_by_person[person] @ patterns
        cells = cells.reshape(-1, self.classes.size**2, patterns.shape[1])
        if rng is not None:
            cells = cells + self._unit_size * imagined_weights(self._table_shapes, patterns.shape[1], rng)
        return np.moveaxis(cells.reshape(-1, self.classes.size, self.classes.size, patterns.shape[1]), -1, 1)


class _NumberSums:
    """Person, panel and judges against the mean of the other people, on one numeric criterion.

    Attributes:
        n_pairs: Pairs of each person: of their own numbers, the panel's and every judge's.
    """

    def __init__(self, votes: LabelledVotes, column: CriterionColumn, people: Floats, unit_size: float) -> None:
        self._imagined = imagine_numbers(column, unit_size)
        self._scales = []
        self.n_pairs = []
        judged: list[Floats] = [] if column.numbers is None else list(column.numbers[:, 1:].T)
        units = votes.unit_of_item[column.rows]
        features_by_unit: list[Any] = []
        imagined_features: list[Floats] = []

        for person, numbers in enumerate(people.T):
            others = mean_defined(np.delete(people, person, axis=1).T)
            n_pairs = []
            for side in (numbers, *judged):
                is_pair = ~np.isnan(numbers + others + side)
                x = side[is_pair]
                t = others[is_pair]
                n_pairs.append(int(is_pair.sum()))
                self._scales.append(score_scale(x, t))

                features = np.concatenate([true_features(t), predicted_features(x, t)])
                features_by_unit += [
                    np.bincount(units[is_pair], weights=feature, minlength=votes.n_units) for feature in features
                ]
                imagined = self._imagined
                imagined_features += [
                    true_features(imagined.true, mean=known_mean(t)),
                    predicted_features(imagined.predicted, imagined.true, mean=known_mean(x)),
                ]
            self.n_pairs.append(np.array(n_pairs))

        self._features: Floats = np.array(features_by_unit, dtype=np.float64)
        self._imagined_features = np.concatenate(imagined_features)

    def concordances(self, draws: Floats, rng: np.random.Generator | None) -> Floats:
        """The concordance of each, ``[people, sides, b]``.

        Args:
            draws: Units × replicates.
            rng: Draws the weights of imagined items; None for real items alone.
        """
        sums = weighted_sums(self._features, draws)
        if rng is not None:
            weights = imagined_weights(self._imagined.shapes, draws.shape[1], rng)
            sums += self._imagined.size * np.einsum("fi,ib->fb", self._imagined_features, weights)

        sums_by_side = sums.reshape(len(self._scales), -1, draws.shape[1])
        concordances = [
            score_statistics(side, scale, z=1.0)["concordance"]
            for side, scale in zip(sums_by_side, self._scales, strict=True)
        ]
        return np.stack(concordances).reshape(len(self.n_pairs), -1, draws.shape[1])


def _cells(consensus: Codes, person: Codes, judged: Codes, size: int) -> Indices:
    """The cell of each pair in a flat table, -1 for none: the person, the panel and the judges against the others."""
    reference = np.where(person >= 0, consensus, -1).astype(np.intp)[:, None]
    sides = np.column_stack([person, judged])
    return np.where((reference >= 0) & (sides >= 0), reference * size + sides, -1)


def _count_cells(cells: Indices, size: int) -> SparseRows:
    """How often each cell of each side occurs in a pattern."""
    n_patterns, n_sides = cells.shape
    flat = np.where(cells >= 0, cells + size**2 * np.arange(n_sides), -1)
    patterns = np.repeat(np.arange(n_patterns), n_sides)
    return count_by_unit(flat.ravel(), patterns, n_cells=n_sides * size**2, n_units=n_patterns)


class AnnotatorSums:
    """The sums of all criteria, ready for any draw of the resampling units.

    Attributes:
        criteria: The sums of each criterion.
        n_pairs: Pairs of each person, and of the panel and every judge against the same references.
    """

    def __init__(self, votes: LabelledVotes, annotators: Annotators) -> None:
        self._n_people = len(annotators.names)
        self.criteria = [
            _CriterionSums(votes, column, annotators.labels[column.index], annotators.numbers[column.index])
            for column in votes.columns
        ]
        self.n_pairs: Indices = np.sum([criterion.n_pairs for criterion in self.criteria], axis=0)

    def values(self, draws: Floats, rng: np.random.Generator | None = None) -> Floats:
        """The headline numbers, the alphas, then accuracy and kappa: of the panel, every judge and every person.

        Args:
            draws: Units × replicates.
            rng: Draws the weights of imagined units; None for real units alone.
        """
        patterns = [criterion.count_patterns(draws) for criterion in self.criteria]
        pairs = list(zip(self.criteria, patterns, strict=True))
        alphas = np.stack([criterion.alpha(rows, draws, rng) for criterion, rows in pairs])

        concordances = [criterion.concordances(draws, rng) for criterion in self.criteria]
        by_person = np.stack([self._agreement(person, patterns, concordances, rng) for person in range(self._n_people)])
        ceiling, *judged = mean_defined(by_person)
        panel = judged[0]

        pairwise = [criterion.pairwise_kappas(rows, rng) for criterion, rows in pairs]
        among, against = mean_defined(np.stack(pairwise))
        headlines = [mean_defined(alphas), *ceiling, *panel, *(panel - ceiling), among, against, against - among]
        return np.stack([*headlines, *alphas, *np.concatenate(judged), *np.concatenate(by_person[:, 0])])

    def _agreement(
        self, person: int, patterns: list[Floats], concordances: list[Floats | None], rng: np.random.Generator | None
    ) -> Floats:
        """Accuracy and mean kappa ``[sides, 2, b]`` against the references of one person."""
        by_criterion = [
            criterion.tables(rows, person, rng) for criterion, rows in zip(self.criteria, patterns, strict=True)
        ]
        # Numbers are neither right nor wrong.
        is_counted = [criterion.classes.kind != "numeric" for criterion in self.criteria]
        counted = list(zip(by_criterion, is_counted, strict=True))
        right = np.sum([np.einsum("...ii->...", table) * counts for table, counts in counted], axis=0)
        total = np.sum([table.sum(axis=(-1, -2)) * counts for table, counts in counted], axis=0)

        kappas = [
            tables.kappa(table, criterion.classes.kind) if concordance is None else concordance[person]
            for criterion, table, concordance in zip(self.criteria, by_criterion, concordances, strict=True)
        ]
        return np.stack([quotient(right, total), mean_defined(np.stack(kappas))], axis=1)
