"""Accuracy and cost of a judge cascade on each item, at each threshold, from stored votes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from deemster.agreement._criterion_columns import Floats, Indices
from deemster.datasets import Votes
from deemster.datasets.vote_block import Block
from deemster.errors import InputError, visible
from deemster.rubrics.criterion import MISSING, Criterion
from deemster.rubrics.vote_aggregation import aggregate

# More thresholds than this add nothing; they are thinned by rank.
MOST_THRESHOLDS: Final = 100
_DIGITS: Final = 9


@dataclass(frozen=True, slots=True, eq=False)
class CascadeOutcomes:
    """Right verdicts, escalations and costs of a cascade, by item and threshold.

    Attributes:
        thresholds: Rising; None, which escalates everything, is last.
        cells: Cells that count, by item.
        right: Cells whose verdict is the truth, items × thresholds.
        escalated: Cells that escalate, likewise.
        spent: Cost, likewise.
        unanswered: Cells without a verdict, by threshold.
        cheap_right: Cells that the cheap judge alone gets right.
        cheap_cost: What the cheap judge alone costs per item.
        mean_strong_cost: What escalating a cell costs on average.
        n_left_out: Labelled cells that a judge was not asked about.
        n_forced: Cells that escalate at every threshold.
    """

    thresholds: tuple[float | None, ...]
    cells: Floats
    right: Floats
    escalated: Floats
    spent: Floats
    unanswered: Indices
    cheap_right: int
    cheap_cost: float
    mean_strong_cost: float
    n_left_out: int
    n_forced: int

    @property
    def accuracy(self) -> Floats:
        """The share of cells that are right, by threshold."""
        found: Floats = self.right.sum(axis=0) / self.cells.sum()
        return found

    @property
    def share(self) -> Floats:
        """The share of cells that escalate, by threshold."""
        found: Floats = self.escalated.sum(axis=0) / self.cells.sum()
        return found

    @property
    def cost(self) -> Floats:
        """The mean cost of an item, by threshold."""
        found: Floats = self.spent.mean(axis=0)
        return found


class _Cells(NamedTuple):
    """Cells that count, one after another.

    Attributes:
        items: The place of the item in the votes.
        confidence: The cheap judge's confidence; -1 where the cell escalates at every threshold.
        cheap_right: Whether the cheap judge has the truth.
        strong_right: Whether the strong panel has it.
        no_verdict: Whether the strong panel gave no verdict.
        n_answers: How many answers the cheap judge was asked for.
        strong_cost: What the strong panel's answers cost.
    """

    items: Indices
    confidence: Floats
    cheap_right: Floats
    strong_right: Floats
    no_verdict: Floats
    n_answers: Floats
    strong_cost: Floats


def cascade_outcomes(votes: Votes, *, cheap: str, strong: Sequence[str], costs: Mapping[str, float]) -> CascadeOutcomes:
    """Compute the outcomes of a cascade on every item at every threshold.

    Args:
        votes: Votes with truth.
        cheap: The judge that is asked first.
        strong: The judges that are asked where it is not believed.
        costs: What one answer costs, by judge.

    Raises:
        InputError: No labelled cell has a vote of both, the cheap judge states no confidence anywhere, or all criteria
            are numeric.
    """
    place = {judge.id: number for number, judge in enumerate(votes.judges)}
    weights = [votes.judges[place[judge]].weight for judge in strong]
    parts, n_left_out = [], 0
    for block in votes.blocks:
        confidence, n_answers = _confidences(block, place[cheap])
        costs_of_cells = _strong_costs(block, {place[judge]: float(costs[judge]) for judge in strong})
        for number, criterion in enumerate(block.rubric.criteria):
            if criterion.kind == "numeric":
                # A number is neither right nor wrong.
                continue
            truth, first = block.truth.codes[:, number], block.votes.codes[:, number, place[cheap]]
            panel = block.votes.codes[:, number][:, [place[judge] for judge in strong]]
            labelled = np.isin(truth, criterion.scored) & (block.checks.codes[:, number] == MISSING)
            used = labelled & (first != MISSING) & (panel != MISSING).any(axis=1)
            n_left_out += int((labelled & ~used).sum())
            joined = aggregate(criterion, panel[used], rule=votes.rules.rule_for(criterion), weights=weights).codes
            voted = np.isin(first[used], criterion.scored)
            parts.append(
                _Cells(
                    items=block.items[used],
                    confidence=np.where(voted, confidence[used, number], -1.0),
                    cheap_right=(first[used] == truth[used]).astype(np.float64),
                    strong_right=(joined == truth[used]).astype(np.float64),
                    no_verdict=(~np.isin(joined, criterion.scored)).astype(np.float64),
                    n_answers=n_answers[used, number],
                    strong_cost=costs_of_cells[used, number],
                )
            )
    if not parts:
        raise InputError("A cascade is calibrated by verdicts that are right or wrong; all criteria here are numeric.")
    cells = _Cells(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    _require_cells(cells, cheap, n_left_out)
    # By id, so that the order of the file cannot change the draws.
    rank = np.empty(len(votes.ids), dtype=np.intp)
    rank[sorted(range(len(votes.ids)), key=votes.ids.__getitem__)] = np.arange(len(votes.ids))
    items = rank[cells.items]
    order = np.argsort(items, kind="stable")
    ranked = _Cells(items[order], *(part[order] for part in cells[1:]))
    return _sum_by_item(ranked, float(costs[cheap]), n_left_out)


def _require_cells(cells: _Cells, cheap: str, n_left_out: int) -> None:
    if not len(cells.items):
        raise InputError(
            f"No labelled criterion has votes of both the cheap judge and the strong panel ({n_left_out:,} have not)."
        )
    if (cells.confidence < 0).all():
        name = visible(cheap, limit=60)
        message = f"`{name}` never says how sure it is: its votes need `p`, or repeats (ask it several times)."
        raise InputError(message)


def _confidences(block: Block, judge: int) -> tuple[Floats, Floats]:
    """How sure a judge is of each vote, -1 where it does not say; and how many answers each took."""
    items, criteria = block.votes.codes.shape[:2]
    confidence, n_answers = np.full((items, criteria), -1.0), np.ones((items, criteria))
    for repeat in block.repeats:
        if repeat.judge == judge:
            voted_code = int(block.votes.codes[repeat.item, repeat.criterion, judge])
            # Repeats that failed or abstained agree with nothing.
            confidence[repeat.item, repeat.criterion] = repeat.codes.count(voted_code) / len(repeat.codes)
            n_answers[repeat.item, repeat.criterion] = len(repeat.codes)
    for stated in block.probabilities:
        if stated.judge == judge:
            criterion = block.rubric.criteria[stated.criterion]
            code = int(block.votes.codes[stated.item, stated.criterion, judge])
            confidence[stated.item, stated.criterion] = _probability(criterion, code, stated.p)
    # Rounded, so that 1 - 0.41 and 0.59 are one confidence.
    return confidence.round(_DIGITS), n_answers


def _probability(criterion: Criterion, code: int, p: Sequence[float]) -> float:
    """The probability that a judge gave to what it voted for; -1 where it voted for nothing."""
    if code not in criterion.scored:
        return -1.0
    if criterion.kind == "binary":
        return p[0] if code == criterion.scored[0] else 1 - p[0]
    return p[criterion.scored.index(code)]


def _strong_costs(block: Block, costs: Mapping[int, float]) -> Floats:
    """What the strong panel's answers cost by cell; a judge that was not asked there would be asked in a cascade."""
    items, criteria = block.votes.codes.shape[:2]
    costs_of_cells = np.full((items, criteria), sum(costs.values()))
    for repeat in block.repeats:
        if repeat.judge in costs:
            costs_of_cells[repeat.item, repeat.criterion] += costs[repeat.judge] * (len(repeat.codes) - 1)
    return costs_of_cells


def _sum_by_item(cells: _Cells, cost: float, n_left_out: int) -> CascadeOutcomes:
    """Sum cells that stand item by item."""
    levels = np.unique(cells.confidence[cells.confidence >= 0])
    if len(levels) > MOST_THRESHOLDS:
        chosen = np.linspace(0, len(levels) - 1, MOST_THRESHOLDS).round().astype(np.intp)
        levels = levels[np.unique(chosen)]
    n_thresholds = len(levels) + 1
    first = np.flatnonzero(np.diff(cells.items, prepend=-1))
    # The cheap vote stands at every threshold up to its own confidence.
    up_to = np.searchsorted(levels, cells.confidence, side="right")
    stays = np.arange(n_thresholds) < up_to[:, None]
    right = np.where(stays, cells.cheap_right[:, None], cells.strong_right[:, None])
    escalated = (~stays).astype(np.float64)
    spent = cells.n_answers[:, None] * cost + escalated * cells.strong_cost[:, None]

    def sum_items(values: Floats) -> Floats:
        return np.add.reduceat(values, first, axis=0)

    return CascadeOutcomes(
        thresholds=(*levels.tolist(), None),
        cells=sum_items(np.ones(len(cells.items))),
        right=sum_items(right),
        escalated=sum_items(escalated),
        spent=sum_items(spent),
        unanswered=(escalated * cells.no_verdict[:, None]).sum(axis=0).astype(np.intp),
        cheap_right=int(cells.cheap_right.sum()),
        cheap_cost=float(cells.n_answers.sum()) * cost / len(first),
        mean_strong_cost=float(cells.strong_cost.mean()),
        n_left_out=n_left_out,
        n_forced=int((cells.confidence < 0).sum()),
    )
