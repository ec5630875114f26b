"""The errors of judges on labelled cells, of their panel, and how far they are shared."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from deemster.agreement._criterion_columns import CriterionColumn, Floats, Indices
from deemster.agreement._imagined_units import AGREEMENT, DISAGREEMENT
from deemster.agreement._labelled_votes import LabelledVotes
from deemster.agreement._score_statistics import weighted_sums
from deemster.agreement._verdict_classes import Codes
from deemster.agreement._verdict_statistics import Values
from deemster.rubrics.criterion import MISSING
from deemster.rubrics.vote_aggregation import aggregate, weighs_votes
from deemster.stats.bootstrap_resampling import imagined_weights
from deemster.stats.effective_votes import effective_votes, error_correlations


class CellErrors(NamedTuple):
    """The errors on the cells where every judge gave a verdict.

    Attributes:
        units: The unit of each cell.
        judges: The error of each judge, ``[cells, judges]``.
        centred: The same less its mean on the criterion.
        panel: That of the panel.
        without: That of the panel without each judge, ``[cells, judges]``.
    """

    units: Indices
    judges: Floats
    centred: Floats
    panel: Floats
    without: Floats


@dataclass(frozen=True, slots=True, eq=False)
class PanelErrors:
    """The errors of a panel, and the sums over units that tell how far its judges share them.

    Attributes:
        cells: The errors.
        weights: What the vote of each judge counts.
        products: The errors of each two judges multiplied, judges² × units.
        imagined: The same on imagined units of the average size: one on which all judges err, and one for each that
            errs alone.
    """

    cells: CellErrors
    weights: Floats
    products: Floats
    imagined: Floats

    @classmethod
    def of(cls, votes: LabelledVotes) -> Self | None:
        """The errors of a panel; None below two judges, and where no labelled cell has a verdict of each."""
        columns = [column for column in votes.columns if column.criterion.kind != "numeric"]
        if len(votes.judges) < 2 or not columns:
            return None
        cells = CellErrors(*map(np.concatenate, zip(*(_errors(votes, column) for column in columns), strict=True)))
        if not len(cells.units):
            return None

        n = len(votes.judges)
        centred = cells.centred.T
        products = [np.bincount(cells.units, a * b, minlength=votes.n_units) for a in centred for b in centred]
        patterns = np.vstack([np.ones(n), np.eye(n)]) - cells.judges.mean(axis=0)
        size = len(cells.units) / len(np.unique(cells.units))
        imagined = np.einsum("ui,uj->iju", patterns, patterns).reshape(n * n, n + 1) * size
        return cls(cells, _vote_weights(votes, columns), np.array(products), imagined)

    def replicates(self, draws: NDArray[Any], rng: np.random.Generator | None) -> Values:
        """The statistics of replicates; with a generator once more, with the imagined units.

        Args:
            draws: How often each unit is drawn, or its weight, units × replicates.
            rng: Draws the weights of imagined units.
        """
        sums = weighted_sums(self.products, draws)
        if rng is not None:
            shapes = np.array([AGREEMENT, *[DISAGREEMENT] * len(self.weights)])
            more = weighted_sums(self.imagined, imagined_weights(shapes, draws.shape[1], rng))
            sums = np.concatenate([sums, sums + more], axis=1)
        return self.statistics(sums)

    def totals(self) -> Floats:
        """Sums of the products in the data themselves, judges² × 1."""
        found: Floats = self.products.sum(axis=1, keepdims=True)
        return found

    def statistics(self, sums: Floats) -> Values:
        """The effective votes, and the correlation of the errors of each two judges, from sums of products."""
        n = len(self.weights)
        correlations = error_correlations(sums.reshape(n, n, -1))
        of_pairs = {("pair", *pair, "error_correlation"): correlations[pair] for pair in combinations(range(n), 2)}
        return {("panel", "effective_votes"): effective_votes(correlations, self.weights)} | of_pairs


def _errors(votes: LabelledVotes, column: CriterionColumn) -> CellErrors:
    """The errors on one criterion."""
    complete = (column.truth_classes >= 0) & (column.vote_classes >= 0).all(axis=1)
    truth = column.truth_classes[complete, None]

    def error(classes: Codes) -> Floats:
        if column.criterion.kind != "ordinal":
            return np.asarray(classes != truth, dtype=np.float64)
        distance: Floats = np.abs(classes.astype(np.float64) - truth) / max(1, column.classes.size - 1)
        distance[classes < 0] = 1.0
        return distance

    weights = np.array([judge.weight for judge in votes.votes.judges])
    n = len(weights)
    # The panel, then the panel without each judge.
    panels = np.repeat(column.votes[complete][:, None], 1 + n, axis=1)
    panels[:, np.arange(n) + 1, np.arange(n)] = MISSING
    rule = votes.votes.rules.rule_for(column.criterion)
    verdicts = aggregate(column.criterion, panels.reshape(-1, n), rule=rule, weights=weights).codes.reshape(-1, 1 + n)
    of_panels = error(column.classes.from_codes(verdicts, column.worst_codes[complete]))

    judges = error(column.vote_classes[complete])
    return CellErrors(
        units=votes.unit_of_item[column.rows[complete]],
        judges=judges,
        centred=judges - judges.sum(axis=0) / max(1, len(judges)),
        panel=of_panels[:, 0],
        without=of_panels[:, 1:],
    )


def _vote_weights(votes: LabelledVotes, columns: list[CriterionColumn]) -> Floats:
    """What the vote of each judge counts: all alike unless every rule weighs votes."""
    is_weighted = all(weighs_votes(votes.votes.rules.rule_for(column.criterion)) for column in columns)
    return np.array([judge.weight if is_weighted else 1.0 for judge in votes.votes.judges])
