"""What each item of a cascade would be and cost at each threshold, laid out from stored votes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from deemster.alignment._labelled_votes import Floats, Indices
from deemster.alignment._verdict_classes import Codes
from deemster.datasets import Votes
from deemster.datasets.votes import Block
from deemster.errors import InputError, visible
from deemster.rubrics.criterion import MISSING, Criterion
from deemster.rubrics.vote_aggregation import Rules, aggregate

# More thresholds than this say nothing more; they are thinned by rank.
MOST: Final = 100
_DIGITS: Final = 9


@dataclass(frozen=True, slots=True, eq=False)
class Deferral:
    """Counts by item and threshold.

    Attributes:
        thresholds: Rising; None, which escalates everything, is last.
        cells: Cells that count, by item.
        right: Cells whose verdict is the truth, items × thresholds.
        escalated: Cells that escalate, likewise.
        spent: Cost, likewise.
        unanswered: Cells without a verdict, by threshold.
        cheap_right: Cells that the cheap judge alone gets right.
        cheap_cost: What the cheap judge alone costs per item.
        step: What escalating a cell costs on average.
        left_out: Labelled cells that a judge was not asked about.
        forced: Cells that escalate at every threshold.
    """

    thresholds: tuple[float | None, ...]
    cells: Floats
    right: Floats
    escalated: Floats
    spent: Floats
    unanswered: Indices
    cheap_right: int
    cheap_cost: float
    step: float
    left_out: int
    forced: int

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
        surety: The cheap judge's confidence; -1 where the cell escalates whatever the threshold.
        cheap_right: Whether the cheap judge has the truth.
        strong_right: Whether the strong panel has it.
        silent: Whether the strong panel gave no verdict.
        asked: How many answers the cheap judge was asked for.
        price: What the strong panel's answers cost.
    """

    items: Indices
    surety: Floats
    cheap_right: Floats
    strong_right: Floats
    silent: Floats
    asked: Floats
    price: Floats


def deferral_of(votes: Votes, *, cheap: str, strong: Sequence[str], costs: Mapping[str, float]) -> Deferral:
    """Lay out a cascade.

    Args:
        votes: Votes with truth.
        cheap: The judge that is asked first.
        strong: The judges that are asked where it is not believed.
        costs: What one answer costs, by judge.

    Raises:
        InputError: No labelled cell has a vote of both, or the cheap judge states no confidence anywhere.
    """
    place = {judge.id: number for number, judge in enumerate(votes.judges)}
    weights = [votes.judges[place[judge]].weight for judge in strong]
    parts, left_out = [], 0
    for block in votes.blocks:
        surety, asked = _surety(block, place[cheap])
        prices = _prices(block, {place[judge]: float(costs[judge]) for judge in strong})
        for number, criterion in enumerate(block.rubric.criteria):
            truth, first = block.truth[:, number], block.votes[:, number, place[cheap]]
            panel = block.votes[:, number][:, [place[judge] for judge in strong]]
            labelled = np.isin(truth, criterion.scored) & (block.checks[:, number] == MISSING)
            used = labelled & (first != MISSING) & (panel != MISSING).any(axis=1)
            left_out += int((labelled & ~used).sum())
            joined = _joined(criterion, panel[used], votes.rules, weights)
            spoken = np.isin(first[used], criterion.scored)
            parts.append(
                _Cells(
                    items=block.items[used],
                    surety=np.where(spoken, surety[used, number], -1.0),
                    cheap_right=(first[used] == truth[used]).astype(np.float64),
                    strong_right=(joined == truth[used]).astype(np.float64),
                    silent=(~np.isin(joined, criterion.scored)).astype(np.float64),
                    asked=asked[used, number],
                    price=prices[used, number],
                )
            )
    cells = _Cells(*(np.concatenate(held) for held in zip(*parts, strict=True)))
    _refuse(cells, cheap, left_out)
    # By id, so that the order of the file does not reach the draws.
    rank = np.empty(len(votes.ids), dtype=np.intp)
    rank[sorted(range(len(votes.ids)), key=votes.ids.__getitem__)] = np.arange(len(votes.ids))
    items = rank[cells.items]
    order = np.argsort(items, kind="stable")
    ranked = _Cells(items[order], *(part[order] for part in cells[1:]))
    return _laid_out(ranked, float(costs[cheap]), left_out)


def _refuse(cells: _Cells, cheap: str, left_out: int) -> None:
    if not len(cells.items):
        raise InputError(
            f"No labelled criterion has votes of both the cheap judge and the strong panel ({left_out:,} have not)."
        )
    if (cells.surety < 0).all():
        name = visible(cheap, limit=60)
        message = f"`{name}` never says how sure it is: its votes need `p`, or repeats (ask it several times)."
        raise InputError(message)


def _joined(criterion: Criterion, panel: Codes, rules: Rules, weights: list[float]) -> Codes:
    return aggregate(criterion, panel, rule=rules.of(criterion), weights=weights).codes


def _surety(block: Block, judge: int) -> tuple[Floats, Floats]:
    """How sure a judge is of each vote, -1 where it does not say; and how many answers each took."""
    items, criteria = block.votes.shape[:2]
    surety, asked = np.full((items, criteria), -1.0), np.ones((items, criteria))
    for repeat in block.repeats:
        if repeat.judge == judge:
            said = int(block.votes[repeat.item, repeat.criterion, judge])
            # Repeats that failed or abstained agree with nothing.
            surety[repeat.item, repeat.criterion] = repeat.codes.count(said) / len(repeat.codes)
            asked[repeat.item, repeat.criterion] = len(repeat.codes)
    for stated in block.probabilities:
        if stated.judge == judge:
            criterion = block.rubric.criteria[stated.criterion]
            code = int(block.votes[stated.item, stated.criterion, judge])
            surety[stated.item, stated.criterion] = _probability(criterion, code, stated.p)
    # 1 - 0.41 and 0.59 are one confidence.
    return surety.round(_DIGITS), asked


def _probability(criterion: Criterion, code: int, p: Sequence[float]) -> float:
    """The probability that a judge gave to what it voted for; -1 where it voted for nothing."""
    if code not in criterion.scored:
        return -1.0
    if criterion.kind == "binary":
        return p[0] if code == criterion.scored[0] else 1 - p[0]
    return p[criterion.scored.index(code)]


def _prices(block: Block, costs: Mapping[int, float]) -> Floats:
    """What the strong panel's answers cost by cell; whoever was not asked there would be asked in a cascade."""
    items, criteria = block.votes.shape[:2]
    prices = np.full((items, criteria), sum(costs.values()))
    for repeat in block.repeats:
        if repeat.judge in costs:
            prices[repeat.item, repeat.criterion] += costs[repeat.judge] * (len(repeat.codes) - 1)
    return prices


def _laid_out(cells: _Cells, cost: float, left_out: int) -> Deferral:
    """Sum cells that stand item by item."""
    known = np.unique(cells.surety[cells.surety >= 0])
    if len(known) > MOST:
        known = known[np.unique(np.linspace(0, len(known) - 1, MOST).round().astype(np.intp))]
    levels = np.append(known, np.inf)
    first = np.flatnonzero(np.diff(cells.items, prepend=-1))
    # How many thresholds the vote survives: all from the lowest up to its own surety.
    up_to = np.searchsorted(known, cells.surety, side="right")
    stays = np.arange(len(levels)) < up_to[:, None]
    right = np.where(stays, cells.cheap_right[:, None], cells.strong_right[:, None])
    escalated = (~stays).astype(np.float64)
    spent = cells.asked[:, None] * cost + escalated * cells.price[:, None]

    def summed(values: Floats) -> Floats:
        return np.add.reduceat(values, first, axis=0)

    return Deferral(
        thresholds=(*known.tolist(), None),
        cells=summed(np.ones(len(cells.items))),
        right=summed(right),
        escalated=summed(escalated),
        spent=summed(spent),
        unanswered=(escalated * cells.silent[:, None]).sum(axis=0).astype(np.intp),
        cheap_right=int(cells.cheap_right.sum()),
        cheap_cost=float(cells.asked.sum()) * cost / len(first),
        step=float(cells.price.mean()),
        left_out=left_out,
        forced=int((cells.surety < 0).sum()),
    )
