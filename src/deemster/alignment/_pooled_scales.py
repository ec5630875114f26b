"""All pairs of one kind of criterion together, where items have different rubrics."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from deemster.alignment._joint_counts import Cells, Shelf
from deemster.alignment._labelled_votes import Floats, Panel
from deemster.alignment._result_parts import BootstrapResult, ConfusionMatrix, CriterionType, PooledScaleMetrics
from deemster.alignment._table_measures import Key, Sheet, kappa_of, met_against_rest, pairs_of
from deemster.stats import confusion_tables as tables
from deemster.stats.agreement_from_sums import quotient

KINDS: tuple[CriterionType, ...] = ("binary", "ordinal", "nominal")
_EVERY = ("exact_accuracy", "value_rmse", "value_mae", "value_spearman", "value_pearson")
_BINARY = ("kappa", "phi", "precision", "recall", "f1")


def pooled_measures(cells: Cells, counts: Floats) -> Sheet:
    """Agreement of each kind over all its criteria; errors and correlations are on option values.

    Args:
        cells: Where the counts stand.
        counts: Cells × replicates.
    """
    sheet: Sheet = {}
    for kind in KINDS:
        shelves = [shelf for shelf in cells.shelves if shelf.classes[0].kind == kind]
        if not shelves:
            continue
        every = [pairs_of(shelf, counts) for shelf in shelves]
        hits = sum(np.einsum("...ii->...", pairs).sum(axis=0) for pairs in every)
        total = sum(pairs.sum(axis=(0, -1, -2)) for pairs in every)
        sheet["pooled", kind, "exact_accuracy"] = quotient(hits, total)
        worth, table = _by_value(shelves, every)
        sheet["pooled", kind, "value_rmse"] = tables.rmse(table, worth)
        sheet["pooled", kind, "value_mae"] = tables.mae(table, worth)
        sheet["pooled", kind, "value_spearman"] = tables.spearman_of(table, worth)
        sheet["pooled", kind, "value_pearson"] = _pearson(table, worth)
        if kind == "binary":
            together = every[0].sum(axis=0)
            met = met_against_rest(together)
            sheet["pooled", kind, "kappa"] = kappa_of(kind, together)
            for name in _BINARY[1:]:
                sheet["pooled", kind, name] = getattr(tables, name)(met)
    return sheet


def _by_value(shelves: list[Shelf], every: list[Floats]) -> tuple[Floats, Floats]:
    """One table over the distinct values of all criteria; a class without a value is left out."""
    worth = sorted({value for shelf in shelves for one in shelf.classes for value in one.values if value is not None})
    place = {value: number for number, value in enumerate(worth)}
    table = np.zeros((len(worth), len(worth), every[0].shape[1]))
    for shelf, pairs in zip(shelves, every, strict=True):
        for one, cells in zip(shelf.classes, pairs, strict=True):
            numbers = [None if value is None else place[value] for value in one.values]
            for row, i in enumerate(numbers):
                for column, j in enumerate(numbers):
                    if i is not None and j is not None:
                        table[i, j] += cells[:, row, column]
    return np.array(worth), np.moveaxis(table, (0, 1), (-2, -1))


def _pearson(table: Floats, worth: Floats) -> Floats:
    rows, columns = table.sum(axis=-1), table.sum(axis=-2)
    n = rows.sum(axis=-1)
    x, y = worth - quotient(rows @ worth, n)[..., None], worth - quotient(columns @ worth, n)[..., None]
    joint = np.einsum("...i,...ij,...j->...", x, table, y)
    varied = (n >= 3) & ((rows > 0).sum(axis=-1) > 1) & ((columns > 0).sum(axis=-1) > 1)
    spread = np.sqrt((rows * x * x).sum(axis=-1)) * np.sqrt((columns * y * y).sum(axis=-1))
    return np.clip(quotient(joint, np.where(varied, spread, 0.0)), -1, 1)


def pooled_of(
    whole: Panel,
    cells: Cells,
    counts: Floats,
    estimates: Mapping[Key, float | None],
    intervals: Mapping[Key, BootstrapResult] | None,
) -> tuple[PooledScaleMetrics, ...]:
    """The pooled block of each kind that occurs.

    Args:
        whole: The panel.
        cells: Where the counts stand.
        counts: Of the data as they are, cells × 1.
        estimates: Their numbers.
        intervals: Of the numbers, where there are any.
    """
    found = []
    for kind in KINDS:
        shelves = [shelf for shelf in cells.shelves if shelf.classes[0].kind == kind]
        if not shelves:
            continue
        names = _EVERY + (_BINARY if kind == "binary" else ())
        numbers = dict.fromkeys(_EVERY + _BINARY) | {name: estimates["pooled", kind, name] for name in names}
        points = sum(int(pairs_of(shelf, counts).sum()) for shelf in shelves)
        matrix = None
        if kind == "binary" and points:
            met = met_against_rest(pairs_of(shelves[0], counts)[:, 0].sum(axis=0))
            matrix = ConfusionMatrix(matrix=whole_numbers(met), labels=("MET", "UNMET"))
        known = None if intervals is None else {name: intervals["pooled", kind, name] for name in names}
        found.append(
            PooledScaleMetrics(
                scale_type=kind,
                n_points=points,
                confusion_matrix=matrix,
                n_abstain=_abstentions(whole, kind),
                intervals=known,
                **numbers,
            )
        )
    return tuple(found)


def whole_numbers(table: Floats) -> tuple[tuple[int, ...], ...]:
    """A table of counts as plain whole numbers."""
    return tuple(tuple(int(cell) for cell in row) for row in table)


def _abstentions(whole: Panel, kind: str) -> int:
    """Labelled and judged pairs with an abstention on either side."""
    found = 0
    for column in whole.columns:
        if column.criterion.kind == kind:
            silent = list(column.criterion.abstentions)
            judged = (column.truth >= 0) & (column.final >= 0)
            found += int((judged & (np.isin(column.truth, silent) | np.isin(column.final, silent))).sum())
    return found
