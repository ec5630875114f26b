"""Statistics of every table at once, for the data as they are and for replicates alike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from deemster.alignment._joint_counts import Cells, Shelf
from deemster.alignment._labelled_votes import Floats
from deemster.stats import agreement_from_sums as coincidence
from deemster.stats import confusion_tables as tables

Key: TypeAlias = tuple[Any, ...]
# Values by what they belong to and their name; each has one number for every replicate, NaN where undefined.
Sheet: TypeAlias = dict[Key, Floats]


def mean_of(rows: Floats) -> Floats:
    """The mean over the first axis of what is defined; NaN where nothing is."""
    known = ~np.isnan(rows)
    return coincidence.quotient(np.where(known, rows, 0.0).sum(axis=0), known.sum(axis=0))


def tables_at(counts: Floats, first: int, shape: tuple[int, ...]) -> Floats:
    """Tables as ``[..., replicates, K, K]``, from cells that stand as ``[K, K, ...]``.

    The view keeps replicates side by side in memory, so sums over classes run along them.
    """
    size = math.prod(shape)
    held = counts[first : first + size].reshape(*shape, counts.shape[1])
    return np.moveaxis(held, (0, 1), (-2, -1))


def pairs_of(shelf: Shelf, counts: Floats) -> Floats:
    """The tables truth × final of a shelf, ``[columns, replicates, K, K]``."""
    return tables_at(counts, shelf.pairs, (shelf.size, shelf.size, len(shelf.columns)))


def values_of(shelf: Shelf) -> list[Floats]:
    """What the classes of each column are worth; NaN for an abstention."""
    return [np.array(classes.values, dtype=np.float64) for classes in shelf.classes]


def met_against_rest(pairs: Floats) -> Floats:
    """2×2 tables of MET against everything else."""
    if pairs.shape[-1] == 2:
        return pairs
    hits = pairs[..., 0, 0]
    missed, extra = pairs[..., 0, :].sum(axis=-1) - hits, pairs[..., :, 0].sum(axis=-1) - hits
    rest = pairs.sum(axis=(-1, -2)) - hits - missed - extra
    return np.moveaxis(np.array([[hits, missed], [extra, rest]]), (0, 1), (-2, -1))


def kappa_of(kind: str, pairs: Floats) -> Floats:
    """The kappa of a kind: quadratic for ordinal criteria, else Cohen's."""
    weighting: tables.Weighting = "quadratic" if kind == "ordinal" else "nominal"
    return tables.weighted_kappa(pairs, tables.disagreement(pairs.shape[-1], weighting))


def table_measures(cells: Cells, counts: Floats, *, judges: int, coverage: bool) -> Sheet:
    """Everything that follows from counts of verdicts.

    Args:
        cells: Where the counts stand.
        counts: Cells × replicates.
        judges: How many judges are compared with the truth one by one.
        coverage: Whether abstentions are left out, so that coverage is told.
    """
    sheet: Sheet = {}
    shape = (sum(len(shelf.columns) for shelf in cells.shelves), counts.shape[1])
    found = {name: np.full(shape, np.nan) for name in ("accuracy", "kappa", "alpha", "hits", "pairs")}
    for shelf in cells.shelves:
        pairs = pairs_of(shelf, counts)
        columns = list(shelf.columns)
        found["hits"][columns] = np.einsum("...ii->...", pairs)
        found["pairs"][columns] = pairs.sum(axis=(-1, -2))
        found["accuracy"][columns] = tables.accuracy(pairs)
        found["kappa"][columns] = kappa_of(shelf.classes[0].kind, pairs)
        _criteria(sheet, shelf, pairs, found)
    every = range(shape[0])
    if cells.ballots is not None:
        among = cells.ballots.measures(counts)
        found["alpha"] = among["krippendorff_alpha"]
        _keep(sheet, "criterion", every, among)
    _overall(sheet, cells, counts, found)
    for judge in range(judges):
        _judge(sheet, cells, counts, judge, judges)
    if coverage:
        _coverage(sheet, cells, counts, found["pairs"])
    for name in ("ca", "na"):
        sheet["abstaining", name, "kappa"] = kappa_of("binary", abstaining_at(cells, counts, name))
    return sheet


def abstaining_at(cells: Cells, counts: Floats, name: str) -> Floats:
    """The 2×2 tables of who abstains, truth × final, as ``[replicates, 2, 2]``.

    Args:
        cells: Where the counts stand.
        counts: Cells × replicates.
        name: ``ca`` for all binary columns together, ``na`` for all others.
    """
    chosen = [
        place
        for shelf in cells.shelves
        if (shelf.classes[0].kind == "binary") == (name == "ca")
        for place in shelf.columns
    ]
    every = counts[cells.abstaining : cells.abstaining + 4 * len(cells.lost)].reshape(len(cells.lost), 2, 2, -1)
    return np.moveaxis(every[chosen].sum(axis=0), -1, 0)


def _keep(sheet: Sheet, scope: str, places: Sequence[int], values: dict[str, Floats]) -> None:
    for name, rows in values.items():
        for place, row in zip(places, rows, strict=True):
            sheet[scope, place, name] = row


def _criteria(sheet: Sheet, shelf: Shelf, pairs: Floats, found: dict[str, Floats]) -> None:
    kind, columns = shelf.classes[0].kind, list(shelf.columns)
    binary, ordinal = kind == "binary", kind == "ordinal"
    quadratic = tables.disagreement(shelf.size, "quadratic")
    values = {
        "accuracy" if binary else "exact_accuracy": found["accuracy"][columns],
        "weighted_kappa" if ordinal else "kappa": found["kappa"][columns],
        "balanced_accuracy": tables.balanced_accuracy(pairs),
        "scott_pi": tables.scott_pi(pairs),
        "pabak": tables.pabak(pairs),
        "gwet_ac": tables.gwet(pairs, tables.agreement(quadratic) if ordinal else None),
    }
    if binary:
        values |= _met(met_against_rest(pairs))
    if ordinal:
        values |= {
            "linear_kappa": tables.weighted_kappa(pairs, tables.disagreement(shelf.size, "linear")),
            "adjacent_accuracy": tables.adjacent(pairs),
            "spearman": tables.spearman_of(pairs),
            "kendall": tables.kendall_of(pairs),
            "rmse": np.array([tables.rmse(table, worth) for table, worth in zip(pairs, values_of(shelf), strict=True)]),
            "mae": np.array([tables.mae(table, worth) for table, worth in zip(pairs, values_of(shelf), strict=True)]),
        }
    _keep(sheet, "criterion", shelf.columns, values)
    if not binary:
        singled = tables.one_against_rest(pairs)
        for name, kernel in (("precision", tables.precision), ("recall", tables.recall), ("f1", tables.f1)):
            for place, rows in zip(shelf.columns, kernel(singled), strict=True):
                for option in range(shelf.size):
                    sheet["option", place, option, name] = rows[:, option]


def _met(met: Floats) -> dict[str, Floats]:
    kernels = ("precision", "recall", "f1", "phi", "fpr", "fnr")
    return {name: getattr(tables, name)(met) for name in kernels}


def _overall(sheet: Sheet, cells: Cells, counts: Floats, found: dict[str, Floats]) -> None:
    scope = "all"
    sheet[scope, "criterion_accuracy"] = coincidence.quotient(found["hits"].sum(axis=0), found["pairs"].sum(axis=0))
    sheet[scope, "macro_accuracy"] = mean_of(found["accuracy"])
    sheet[scope, "mean_kappa"] = mean_of(found["kappa"])
    sheet[scope, "mean_krippendorff_alpha"] = mean_of(found["alpha"])
    for kind in ("binary", "ordinal", "nominal"):
        columns = [place for shelf in cells.shelves if shelf.classes[0].kind == kind for place in shelf.columns]
        if columns:
            sheet[scope, f"mean_kappa_by_kind.{kind}"] = mean_of(found["kappa"][columns])
    undefined = np.full(counts.shape[1], np.nan)
    pooled = dict.fromkeys(("binary_accuracy", "micro_kappa", "criterion_phi"), undefined)
    pooled |= {f"criterion_{name}": undefined for name in ("precision", "recall", "f1")}
    for shelf in cells.shelves:
        if shelf.classes[0].kind == "binary":
            together = pairs_of(shelf, counts).sum(axis=0)
            met = _met(met_against_rest(together))
            pooled = {f"criterion_{name}": met[name] for name in ("precision", "recall", "f1", "phi")}
            pooled["binary_accuracy"] = tables.accuracy(together)
            pooled["micro_kappa"] = kappa_of("binary", together)
    for name, values in pooled.items():
        sheet[scope, name] = values


def _judge(sheet: Sheet, cells: Cells, counts: Floats, judge: int, judges: int) -> None:
    replicates = counts.shape[1]
    hits, total = np.zeros(replicates), np.zeros(replicates)
    undefined = np.full(replicates, np.nan)
    met = {f"criterion_{name}": undefined for name in ("precision", "recall", "f1")}
    met |= {"phi": undefined, "binary_accuracy": undefined}
    kappas = []
    for shelf in cells.shelves:
        every = tables_at(counts, shelf.judges, (shelf.size, shelf.size, judges, len(shelf.columns)))
        pairs = every[judge]
        hits += np.einsum("...ii->...", pairs).sum(axis=0)
        total += pairs.sum(axis=(0, -1, -2))
        kappas.append(kappa_of(shelf.classes[0].kind, pairs))
        if shelf.classes[0].kind == "binary":
            together = pairs.sum(axis=0)
            one = _met(met_against_rest(together))
            met = {f"criterion_{name}": one[name] for name in ("precision", "recall", "f1")}
            met |= {"phi": one["phi"], "binary_accuracy": tables.accuracy(together)}
    met["criterion_accuracy"] = coincidence.quotient(hits, total)
    met["mean_kappa"] = mean_of(np.concatenate(kappas))
    for name, values in met.items():
        sheet["judge", judge, name] = values


def _coverage(sheet: Sheet, cells: Cells, counts: Floats, covered: Floats) -> None:
    columns = len(cells.lost)
    held = counts[cells.coverage : cells.coverage + 4 * columns].reshape(columns, 4, counts.shape[1])
    lost = cells.lost[:, None]
    # Items that erred are no unit of a replicate: their pairs stay as they are.
    parts = {
        "n_total": held[:, 0] + lost,
        "n_covered": covered,
        "judge_abstain_rate": held[:, 1],
        "gt_abstain_rate": held[:, 2],
        "n_errored": held[:, 3] + lost,
    }
    for place in range(-1, columns):
        one = {name: rows.sum(axis=0) if place < 0 else rows[place] for name, rows in parts.items()}
        total = one["n_total"]
        share = coincidence.quotient(one["n_covered"], total)
        sheet["coverage", place, "coverage"] = share
        sheet["coverage", place, "judge_abstain_rate"] = coincidence.quotient(one["judge_abstain_rate"], total)
        sheet["coverage", place, "gt_abstain_rate"] = coincidence.quotient(one["gt_abstain_rate"], total)
        sheet["coverage", place, "union_exclusion_rate"] = coincidence.quotient(total - one["n_covered"], total)
        sheet["coverage", place, "error_rate"] = coincidence.quotient(one["n_errored"], total)
