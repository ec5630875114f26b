"""Inter-annotator agreement of people: the ceiling for any judge, and the judge's gap to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deemster.agreement._bootstrap_replicates import BootstrapSettings, smoothed_results
from deemster.agreement._contingency_counts import count_by_unit, find_patterns
from deemster.agreement._criterion_columns import CriterionColumn, Floats, Indices
from deemster.agreement._imagined_units import imagined_votes, table_shapes, unit_size, vote_shapes
from deemster.agreement._labelled_votes import LabelledVotes
from deemster.agreement._numeric_agreement import imagine_numbers
from deemster.agreement._score_statistics import weighted_sums
from deemster.agreement._verdict_classes import Codes
from deemster.agreement.result_models import (
    BootstrapResult,
    DisputedCell,
    HumanAgreement,
    HumanCriterion,
    Intervals,
    ReferenceAgreement,
)
from deemster.datasets.label_codebook import consensus_rows
from deemster.rubrics.criterion import MISSING
from deemster.stats import confusion_tables as tables
from deemster.stats.agreement_from_sums import Level, alpha_from_coincidences, coincidence_shares
from deemster.stats.alternative_annotator_test import FEWEST_ANNOTATORS, AlternativeAnnotator, annotator_trials
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


@dataclass(frozen=True, slots=True, eq=False)
class Annotators:
    """The people with at least one label on the labelled items.

    Attributes:
        names: Their names, in alphabetical order.
        labels: For each column: codes ``[rows, annotators]``.
        numbers: For each column the numbers ``[rows, annotators]``, NaN where there is none; None unless it is numeric.
    """

    names: tuple[str, ...]
    labels: tuple[Codes, ...]
    numbers: tuple[Floats | None, ...]


def read_annotators(votes: LabelledVotes) -> Annotators:
    """Read who labelled the items, and how."""
    blocks = votes.votes.blocks
    known = sorted({name for block in blocks for name in block.annotations})
    labels: list[Codes] = []
    every: list[Floats | None] = []
    for column in votes.columns:
        codes = np.full((len(column.rows), len(known)), MISSING, dtype=np.int16)
        numbers = np.full(codes.shape, np.nan)
        for index, place in column.sources:
            block = blocks[index]
            items = votes.item_index[block.items]
            used = np.flatnonzero(items >= 0)
            rows = np.searchsorted(column.rows, items[used])
            for person, name in enumerate(known):
                if name in block.annotations:
                    given = block.annotations[name]
                    codes[rows, person] = given.codes[used, place]
                    if place in given.numbers:
                        numbers[rows, person] = given.numbers[place][used]
        labels.append(codes)
        every.append(None if column.numbers is None else numbers)
    active = np.zeros(len(known), dtype=bool)
    for codes in labels:
        active |= (codes != MISSING).any(axis=0)
    names = tuple(name for name, labelled in zip(known, active.tolist(), strict=True) if labelled)
    return Annotators(
        names,
        tuple(codes[:, active] for codes in labels),
        tuple(None if numbers is None else numbers[:, active] for numbers in every),
    )


_HEADLINES = (
    "krippendorff_alpha",
    "ceiling_accuracy",
    "ceiling_kappa",
    "panel.accuracy",
    "panel.mean_kappa",
    "accuracy_gap",
    "kappa_gap",
    "pairwise_kappa",
    "panel_pairwise_kappa",
    "pairwise_kappa_gap",
)


class _CriterionSums:
    """One criterion: the distinct rows of labels and votes, and what each adds to the tables and coincidences."""

    def __init__(
        self, votes: LabelledVotes, column: CriterionColumn, labels: Codes, numbers: Floats | None = None
    ) -> None:
        from scipy.sparse import csr_array  # noqa: PLC0415 - scipy takes a tenth of a second to load

        self.classes = classes = column.classes
        # Alpha of numbers: what each row adds, and the unit it belongs to.
        self._spreads = None if numbers is None else csr_array(spread_features(numbers - known_mean(numbers)).T)
        self._unit_of_row = votes.unit_of_item[column.rows]
        self._n_people = n_people = labels.shape[1]
        self._unit_size = unit_size(votes, column)
        self._table_shapes = table_shapes(classes.size)
        imagined = coincidence_shares(imagined_votes(n_people, classes.size))
        # A sparse product adds unit after unit, so that neither threads nor blocks change the last digit.
        self._imagined_coincidences = csr_array(imagined.reshape(2 * classes.size, classes.size**2).T)
        self._vote_shapes = vote_shapes(classes.size)
        patterns = find_patterns(
            [np.maximum(row, MISSING) for row in (*labels.T, column.final, *column.votes.T)], column.worst_codes
        )
        frequency = np.bincount(patterns.of_row, minlength=patterns.size)
        self._patterns_by_unit = count_by_unit(
            patterns.of_row, votes.unit_of_item[column.rows], n_cells=patterns.size, n_units=votes.n_units
        )
        found = classes.from_codes(patterns.codes, patterns.worst_codes)
        counts = classes.count(found[:, :n_people])
        paired = counts.sum(axis=1) >= 2
        pairs = coincidence_shares(counts).reshape(patterns.size, classes.size**2)
        self._coincidences = csr_array(np.concatenate([pairs, paired[:, None]], axis=1).T)
        self._numbers = None if numbers is None else _NumberSums(votes, column, numbers, self._unit_size)
        self.n_units = int(frequency[paired].sum())
        self.n_labelled = int(frequency[counts.sum(axis=1) >= 1].sum())
        final = found[:, n_people]
        answered = (final[:, None] == np.arange(classes.size)) & paired[:, None]
        against = (counts[:, :, None] * answered[:, None, :]).reshape(patterns.size, classes.size**2)
        self._against_panel = csr_array(against.T.astype(np.float64))
        self._cells_by_person = []
        self.n_pairs = []
        for person in range(n_people):
            codes = consensus_rows(column.criterion, np.delete(patterns.codes[:, :n_people], person, axis=1))
            others = classes.from_codes(codes, patterns.worst_codes)
            cells = _cells(others, found[:, person], found[:, n_people:], classes.size)
            self.n_pairs.append(frequency @ (cells >= 0))
            sides = cells.shape[1]
            flat = np.where(cells >= 0, cells + classes.size**2 * np.arange(sides), -1)
            owners = np.repeat(np.arange(patterns.size), sides)
            self._cells_by_person.append(
                count_by_unit(flat.ravel(), owners, n_cells=sides * classes.size**2, n_units=patterns.size)
            )
        if self._numbers is not None:
            self.n_pairs = self._numbers.n_pairs

    def count_patterns(self, draws: Floats) -> Floats:
        """How often each distinct row is drawn."""
        return np.asarray(self._patterns_by_unit @ draws)

    def alpha(self, patterns: Floats, draws: Floats, rng: np.random.Generator | None) -> Floats:
        """Krippendorff's alpha of the annotators; of numbers the interval alpha."""
        if self._spreads is not None:
            return interval_alpha(np.moveaxis(self._spreads @ draws[self._unit_of_row], 0, -1))
        summed = self._coincidences @ patterns
        if rng is not None:
            weights = self._unit_size * imagined_weights(self._vote_shapes, patterns.shape[1], rng)
            summed[:-1] += self._imagined_coincidences @ weights
        *pairs, units = summed
        coincidences = np.moveaxis(np.reshape(pairs, (self.classes.size, self.classes.size, -1)), -1, 0)
        level: Level = "ordinal" if self.classes.kind == "ordinal" else "nominal"
        return alpha_from_coincidences(coincidences, level, units=units)

    def concordances(self, draws: Floats, rng: np.random.Generator | None) -> Floats | None:
        """What numbers have in place of kappa, ``[people, sides, b]``; None for a criterion of another kind."""
        return None if self._numbers is None else self._numbers.concordances(draws, rng)

    def pairwise_kappas(self, patterns: Floats, rng: np.random.Generator | None) -> Floats:
        """Kappa over all pairs of two labels of a cell, and over all pairs of a label and the verdict, ``[2, b]``."""
        found = []
        for sums in (self._coincidences[:-1], self._against_panel):
            cells = sums @ patterns
            if rng is not None:
                # An imagined unit has as many pairs as there are people.
                weights = imagined_weights(self._table_shapes, cells.shape[1], rng)
                cells += self._n_people * self._unit_size * weights
            table = np.moveaxis(cells.reshape(self.classes.size, self.classes.size, -1), -1, 0)
            found.append(tables.kappa(table, self.classes.kind))
        return np.stack(found)

    def tables(self, patterns: Floats, person: int, rng: np.random.Generator | None) -> Floats:
        """Person, panel and judges against the consensus of the others, ``[sides, b, K, K]``."""
        cells = np.asarray(self._cells_by_person[person] @ patterns)
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
        self._imagined = imagined = imagine_numbers(column, unit_size)
        units = votes.unit_of_item[column.rows]
        judged: list[Floats] = [] if column.numbers is None else list(column.numbers[:, 1:].T)
        self.n_pairs, self._scales, rows, more = [], [], [], []
        for person, own in enumerate(people.T):
            others = mean_defined(np.delete(people, person, axis=1).T)
            pairs = []
            for side in (own, *judged):
                both = ~np.isnan(own + others + side)
                x, t = side[both], others[both]
                pairs.append(int(both.sum()))
                features = np.concatenate([true_features(t), predicted_features(x, t)])
                rows += [np.bincount(units[both], weights=row, minlength=votes.n_units) for row in features]
                of_truth = true_features(imagined.true, mean=known_mean(t))
                more += [of_truth, predicted_features(imagined.predicted, imagined.true, mean=known_mean(x))]
                self._scales.append(score_scale(x, t))
            self.n_pairs.append(np.array(pairs))
        self._features: Floats = np.array(rows, dtype=np.float64)
        self._imagined_features = np.concatenate(more)

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
        every = sums.reshape(len(self._scales), -1, draws.shape[1])
        found = [
            score_statistics(own, scale, z=1.0)["concordance"] for own, scale in zip(every, self._scales, strict=True)
        ]
        return np.stack(found).reshape(len(self.n_pairs), -1, draws.shape[1])


def _cells(others: Codes, own: Codes, judged: Codes, size: int) -> Indices:
    """The cell of each pair in a flat table, -1 for none: the person, the panel and the judges against the others."""
    reference = np.where(own >= 0, others, -1).astype(np.intp)[:, None]
    sides = np.column_stack([own, judged])
    return np.where((reference >= 0) & (sides >= 0), reference * size + sides, -1)


class _AnnotatorSums:
    """The sums of all criteria, ready for any draw of the resampling units.

    Attributes:
        criteria: The sums of each criterion.
        n_pairs: Pairs of each person, and of the panel and every judge against the same references.
    """

    def __init__(self, votes: LabelledVotes, annotators: Annotators) -> None:
        self._people = len(annotators.names)
        self.criteria = [
            _CriterionSums(votes, column, annotators.labels[column.index], annotators.numbers[column.index])
            for column in votes.columns
        ]
        self.n_pairs: Indices = np.sum([each.n_pairs for each in self.criteria], axis=0)

    def values(self, draws: Floats, rng: np.random.Generator | None = None) -> Floats:
        """The headline numbers, the alphas, then accuracy and kappa: of the panel, every judge and every person.

        Args:
            draws: Units × replicates.
            rng: Draws the weights of imagined units; None for real units alone.
        """
        patterns = [each.count_patterns(draws) for each in self.criteria]
        alphas = np.stack([each.alpha(rows, draws, rng) for each, rows in zip(self.criteria, patterns, strict=True)])
        numbers = [each.concordances(draws, rng) for each in self.criteria]
        per_person = np.stack([self._agreement(person, patterns, numbers, rng) for person in range(self._people)])
        ceiling, *judged = mean_defined(per_person)
        panel = judged[0]
        pairwise = [each.pairwise_kappas(rows, rng) for each, rows in zip(self.criteria, patterns, strict=True)]
        among, against = mean_defined(np.stack(pairwise))
        head = [mean_defined(alphas), *ceiling, *panel, *(panel - ceiling), among, against, against - among]
        return np.stack([*head, *alphas, *np.concatenate(judged), *np.concatenate(per_person[:, 0])])

    def _agreement(
        self, person: int, patterns: list[Floats], numbers: list[Floats | None], rng: np.random.Generator | None
    ) -> Floats:
        """Accuracy and mean kappa ``[sides, 2, b]`` against the references of one person."""
        found = [each.tables(rows, person, rng) for each, rows in zip(self.criteria, patterns, strict=True)]
        # Numbers are neither right nor wrong.
        counts = [each.classes.kind != "numeric" for each in self.criteria]
        right = np.sum([np.einsum("...ii->...", table) * on for table, on in zip(found, counts, strict=True)], axis=0)
        total = np.sum([table.sum(axis=(-1, -2)) * on for table, on in zip(found, counts, strict=True)], axis=0)
        kappas = [
            tables.kappa(table, each.classes.kind) if own is None else own[person]
            for each, table, own in zip(self.criteria, found, numbers, strict=True)
        ]
        return np.stack([quotient(right, total), mean_defined(np.stack(kappas))], axis=1)


def annotator_trials_by_criterion(
    votes: LabelledVotes,
    annotators: Annotators,
    *,
    judge: int | None = None,
    epsilon: float = 0.2,
    q: float = 0.05,
    min_items: int = 30,
) -> dict[str, AlternativeAnnotator]:
    """The alternative annotator test of each criterion; ordinal ones are compared by value, numeric ones by number.

    Args:
        votes: The labelled votes.
        annotators: Three people or more, and their labels.
        judge: The place of who is tested; None tests the final verdicts of the panel.
        epsilon: How much worse than a person the judge may be.
        q: The false discovery rate over annotators.
        min_items: The fewest items an annotator is tested on.
    """
    tests = {}
    for column in votes.columns:
        people = annotators.numbers[column.index]
        if column.numbers is not None and people is not None:
            tests[column.name] = annotator_trials(
                column.numbers[:, 1 if judge is None else 2 + judge],
                people.T,
                annotators.names,
                ordinal=True,
                epsilon=epsilon,
                q=q,
                min_items=min_items,
            )
            continue
        ordinal = column.classes.kind == "ordinal"
        of_class = [value if ordinal else float(place) for place, value in enumerate(column.classes.values)]
        numbers = np.array([*of_class, None], dtype=np.float64)
        verdicts = column.final_classes if judge is None else column.vote_classes[:, judge]
        people_classes = column.classes.from_codes(annotators.labels[column.index], column.worst_codes)
        tests[column.name] = annotator_trials(
            numbers[verdicts],
            numbers[people_classes].T,
            annotators.names,
            ordinal=ordinal,
            epsilon=epsilon,
            q=q,
            min_items=min_items,
        )
    return tests


def human_agreement(votes: LabelledVotes, drawing: BootstrapSettings, *, epsilon: float = 0.2) -> HumanAgreement | None:
    """Measure how people agree among each other, and how far the judges are from that.

    Each annotator in turn is compared with the consensus of all others; the ceiling is the mean over annotators. The
    panel and every judge are compared with the same references, on the cells where the annotator who was left out has a
    label, and are averaged in the same way. An accuracy pools cells; a kappa is the mean over criteria. Numbers are
    compared with the mean of all others, and have their concordance in place of a kappa.

    Args:
        votes: The labelled votes.
        drawing: How units are resampled.
        epsilon: How much worse than a person the judge may be in the alternative annotator test.

    Returns:
        None with fewer than two annotators.

    Reference: L. Zheng et al., Judging LLM-as-a-judge with MT-Bench and Chatbot Arena, arXiv:2306.05685 (2023).
    """
    if not any(block.annotations for block in votes.votes.blocks):
        return None
    annotators = read_annotators(votes)
    if len(annotators.names) < 2:
        return None
    sums = _AnnotatorSums(votes, annotators)
    results = smoothed_results(sums.values, units=votes.n_units, drawing=drawing)
    intervals = dict(zip(_HEADLINES, results, strict=False)) if drawing.replicates else None
    tests = None
    if len(annotators.names) >= FEWEST_ANNOTATORS:
        tests = annotator_trials_by_criterion(votes, annotators, epsilon=epsilon)
    return _build_agreement(votes, annotators, sums, results, intervals=intervals, tests=tests)


def _build_agreement(
    votes: LabelledVotes,
    annotators: Annotators,
    sums: _AnnotatorSums,
    results: Sequence[BootstrapResult],
    *,
    intervals: Intervals,
    tests: dict[str, AlternativeAnnotator] | None,
) -> HumanAgreement:
    figures = (each.estimate for each in results)
    head = {name: next(figures) for name in _HEADLINES}
    criteria = [
        HumanCriterion(
            name=column.name,
            index=column.index,
            criterion_type=column.criterion.kind,
            krippendorff_alpha=next(figures),
            n_units=own.n_units,
        )
        for column, own in zip(votes.columns, sums.criteria, strict=True)
    ]
    counts = [*sums.n_pairs[:, 1:].sum(axis=0).tolist(), *sums.n_pairs[:, 0].tolist()]
    panel, *others = [
        ReferenceAgreement(name=name, accuracy=next(figures), mean_kappa=next(figures), n_samples=n)
        for name, n in zip(("panel", *votes.judges, *annotators.names), counts, strict=True)
    ]
    return HumanAgreement(
        n_annotators=len(annotators.names),
        n_items=_shared_items(votes, annotators),
        per_criterion=tuple(criteria),
        annotators=tuple(others[len(votes.judges) :]),
        panel=panel,
        judges=tuple(others[: len(votes.judges)]),
        n_cells=sum(own.n_units for own in sums.criteria),
        n_labelled_cells=sum(own.n_labelled for own in sums.criteria),
        disputed=_disputed_cells(votes, annotators),
        annotator_tests=tests,
        intervals=intervals,
        **{name: head[name] for name in _HEADLINES if "." not in name},
    )


def _disputed_cells(votes: LabelledVotes, annotators: Annotators) -> tuple[DisputedCell, ...]:
    """The cells on which annotators are tied, by item and criterion, with what each of them said."""
    found: dict[tuple[int, int], DisputedCell] = {}
    for column in votes.columns:
        labels = annotators.labels[column.index]
        for row in np.flatnonzero(column.disputed).tolist():
            item = int(column.rows[row])
            said = zip(annotators.names, labels[row].tolist(), strict=True)
            given = {name: column.criterion.labels[code] for name, code in said if code >= 0}
            if (numbers := annotators.numbers[column.index]) is not None:
                told = zip(annotators.names, numbers[row].tolist(), strict=True)
                given |= {name: f"{number:g}" for name, number in told if not np.isnan(number)}
            found[item, column.index] = DisputedCell(votes.ids[item], column.name, given)
    return tuple(found[place] for place in sorted(found))


def _shared_items(votes: LabelledVotes, annotators: Annotators) -> int:
    """How many items have labels of two people or more."""
    labelled = np.zeros((len(votes.ids), len(annotators.names)), dtype=bool)
    for column in votes.columns:
        labelled[column.rows] |= annotators.labels[column.index] != MISSING
    return int((labelled.sum(axis=1) >= 2).sum())
