"""Judge consistency: whether a judge that is asked again gives the same verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from deemster.agreement._criterion_columns import Floats
from deemster.agreement._labelled_votes import LabelledVotes
from deemster.agreement._verdict_classes import Codes, VerdictClasses
from deemster.agreement.result_models import JudgeConsistency
from deemster.rubrics.criterion import MISSING
from deemster.stats.agreement_from_sums import Level, alpha_from_coincidences, coincidence_shares


class _Cell(NamedTuple):
    """What a judge said of a cell, and the code of the worst verdict there."""

    codes: tuple[int, ...]
    worst: int


def judge_consistency(votes: LabelledVotes) -> tuple[JudgeConsistency, ...] | None:
    """How consistently each judge repeats its verdicts, over the cells with two usable repeats or more.

    Failed repeats are left out; the mode decides about abstentions. Alpha takes the repeats of a cell as raters,
    criterion by criterion, and is the mean over criteria. Numeric criteria do not count.

    Returns:
        None where no judge was asked twice.

    Reference: R. Stureborg et al., Large language models are inconsistent and biased evaluators, arXiv:2405.01724
    (2024).
    """
    if not any(block.repeats for block in votes.votes.blocks):
        return None
    counts = _repeat_counts(votes)
    found = []
    for place, name in enumerate(votes.judges):
        own = [
            (votes.columns[column].classes, table)
            for (column, judge), table in counts.items()
            if judge == place and len(table)
        ]
        if not own:
            continue
        cells = [table.sum(axis=1) for _, table in own]
        totals = np.concatenate(cells)
        equal = np.concatenate([(table * (table - 1)).sum(axis=1) for _, table in own])
        shares = equal / (totals * (totals - 1))
        alphas = [_alpha(classes, table) for classes, table in own]
        defined = [alpha for alpha in alphas if not math.isnan(alpha)]
        found.append(
            JudgeConsistency(
                judge_id=name,
                n_cells=len(totals),
                n_repeats=int(totals.sum()),
                stable_share=float((shares == 1).mean()),
                pairwise_agreement=float(shares.mean()),
                krippendorff_alpha=sum(defined) / len(defined) if defined else None,
            )
        )
    return tuple(found) or None


def _alpha(classes: VerdictClasses, table: Floats) -> float:
    """Krippendorff's alpha of repeats by cell and class; NaN where it is undefined."""
    level: Level = "ordinal" if classes.kind == "ordinal" else "nominal"
    return float(alpha_from_coincidences(coincidence_shares(table).sum(axis=0), level, units=len(table)))


def _repeat_counts(votes: LabelledVotes) -> dict[tuple[int, int], Floats]:
    """For each column and judge: repeats by class ``[cells, K]``, of the cells with two usable repeats or more."""
    columns = {source: column.index for column in votes.columns for source in column.sources}
    cells: dict[tuple[int, int], list[_Cell]] = {}
    for part, block in enumerate(votes.votes.blocks):
        used = (votes.item_index[block.items] >= 0).tolist()
        for item, criterion, judge, repeats in block.repeats:
            if used[item] and criterion not in block.votes.numbers:
                cell = _Cell(tuple(map(int, repeats)), block.rubric.criteria[criterion].worst)
                cells.setdefault((columns[part, criterion], judge), []).append(cell)
    return {key: _count_classes(found, votes.columns[key[0]].classes) for key, found in sorted(cells.items())}


def _count_classes(cells: Sequence[_Cell], classes: VerdictClasses) -> Floats:
    width = max(len(cell.codes) for cell in cells)
    padded: Codes = np.array([(*codes, *(MISSING,) * (width - len(codes))) for codes, _ in cells], dtype=np.int16)
    found = classes.from_codes(padded, np.array([cell.worst for cell in cells], dtype=np.int16))
    table = classes.count(found).astype(np.float64)
    several: Floats = table[table.sum(axis=1) >= 2]
    # Sorted, so that the order of the file cannot change the last digit of a sum.
    return several[np.lexsort(several.T)]
