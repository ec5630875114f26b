"""Whether a judge that is asked again says the same."""

from __future__ import annotations

import numpy as np

from deemster.alignment._bootstrap_draws import alpha_of, class_counts, mean, number
from deemster.alignment._labelled_votes import Codes, Floats, Panel
from deemster.alignment._verdict_classes import Classes
from deemster.alignment.metrics_result import JudgeConsistency
from deemster.rubrics import MISSING
from deemster.stats.agreement_from_sums import contribution


def consistency(whole: Panel, classes: tuple[Classes, ...]) -> tuple[JudgeConsistency, ...] | None:
    """How each judge repeats itself, over the cells where two of its repeats or more count.

    Failed repeats do not count, and abstentions by the mode. Alpha takes the repeats of a cell as raters, criterion by
    criterion, and is the mean over criteria.

    Returns:
        None where no judge was asked twice.

    Reference: R. Stureborg et al., Large language models are inconsistent and biased evaluators, arXiv:2405.01724
    (2024).
    """
    if not any(block.repeats for block in whole.votes.blocks):
        return None
    counts = _repeat_counts(whole, classes)
    found = []
    for place, name in enumerate(whole.judges):
        mine = [(kinds, tables[place]) for kinds, tables in zip(classes, counts, strict=True) if len(tables[place])]
        if not mine:
            continue
        cells = [table.sum(axis=1) for _, table in mine]
        totals = np.concatenate(cells)
        equal = np.concatenate([(table * (table - 1)).sum(axis=1) for _, table in mine])
        shares = equal / (totals * (totals - 1))
        alphas = [
            number(alpha_of(contribution(table).sum(axis=0), np.array(len(table), dtype=np.float64), kinds))
            for kinds, table in mine
        ]
        found.append(
            JudgeConsistency(
                judge_id=name,
                n_cells=len(totals),
                n_repeats=int(totals.sum()),
                stable_share=float((shares == 1).mean()),
                pairwise_agreement=float(shares.mean()),
                krippendorff_alpha=mean(alphas),
            )
        )
    return tuple(found) or None


def _repeat_counts(whole: Panel, classes: tuple[Classes, ...]) -> list[list[Floats]]:
    """For each column and judge: repeats by class ``[cells, K]``, of the cells with two that count or more."""
    columns = {source: column.index for column in whole.columns for source in column.sources}
    codes: list[list[list[tuple[int, ...]]]] = [[[] for _ in whole.judges] for _ in classes]
    worst: list[list[list[int]]] = [[[] for _ in whole.judges] for _ in classes]
    for part, block in enumerate(whole.votes.blocks):
        used = (whole.place[block.items] >= 0).tolist()
        for item, criterion, judge, said in block.repeats:
            if used[item]:
                at = columns[part, criterion]
                codes[at][judge].append(said)
                worst[at][judge].append(block.rubric.criteria[criterion].worst)
    return [
        [_counted(codes[at][judge], worst[at][judge], kinds) for judge in range(len(whole.judges))]
        for at, kinds in enumerate(classes)
    ]


def _counted(cells: list[tuple[int, ...]], worst: list[int], classes: Classes) -> Floats:
    if not cells:
        return np.zeros((0, classes.size))
    width = max(map(len, cells))
    padded: Codes = np.array([(*said, *(MISSING,) * (width - len(said))) for said in cells], dtype=np.int16)
    found = classes.of(padded, np.array(worst, dtype=np.int16))
    table = class_counts(found, classes.size)
    several: Floats = table[table.sum(axis=1) >= 2]
    # In an order of their own, so that the order of the file does not reach the last digit of a sum.
    return several[np.lexsort(several.T)]
