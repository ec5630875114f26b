"""Statistics of verdicts from contingency counts, with one formula for the data and for every replicate.

A statistic has a key: what it belongs to, then its name, as in ``("criterion", 2, "kappa")``. Its values are one number
for each replicate, NaN where undefined.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from deemster.alignment._contingency_counts import ContingencyCounts, CriterionGroup
from deemster.alignment._labelled_votes import Floats
from deemster.alignment._verdict_classes import Codes
from deemster.alignment.result_models import CriterionType
from deemster.stats import confusion_tables as tables
from deemster.stats.agreement_from_sums import alpha_from_coincidences
from deemster.stats.nan_arithmetic import mean_defined, quotient

Key: TypeAlias = tuple[Any, ...]
Values: TypeAlias = dict[Key, Floats]

KINDS: tuple[CriterionType, ...] = ("binary", "ordinal", "nominal")
COVERAGE_RATES = ("coverage", "judge_abstain_rate", "gt_abstain_rate", "union_exclusion_rate", "error_rate")
MET_NAMES = ("precision", "recall", "f1", "phi", "fpr", "fnr")
POOLED_NAMES = ("exact_accuracy", "value_rmse", "value_mae", "value_spearman", "value_pearson")
POOLED_BINARY_NAMES = ("kappa", "phi", "precision", "recall", "f1")


def verdict_statistics(layout: ContingencyCounts, counts: Floats, *, coverage: bool, pooled: bool) -> Values:
    """Every statistic that follows from counts of verdicts.

    Args:
        layout: Where the counts stand.
        counts: Cells × replicates.
        coverage: Whether abstentions are left out, so that coverage is reported.
        pooled: Whether criteria of one kind are pooled too, as items have different rubrics.
    """
    values: Values = {}
    shape = (sum(len(group.columns) for group in layout.groups), counts.shape[1])
    found = {name: np.full(shape, np.nan) for name in ("accuracy", "kappa", "alpha", "hits", "pairs")}
    for group in layout.groups:
        pairs = group.final_tables(counts)
        columns = list(group.columns)
        found["hits"][columns] = np.einsum("...ii->...", pairs)
        found["pairs"][columns] = pairs.sum(axis=(-1, -2))
        found["accuracy"][columns] = tables.accuracy(pairs)
        found["kappa"][columns] = kappa_for_kind(group.kind, pairs)
        _add_criteria(values, group, pairs, found)
    if layout.judge_agreement is not None:
        among_judges = layout.judge_agreement.statistics(counts)
        found["alpha"] = among_judges["krippendorff_alpha"]
        _add_columns(values, range(shape[0]), among_judges)
    _add_overall(values, layout, counts, found)
    _add_judges(values, layout, counts)
    if coverage:
        _add_coverage(values, layout, counts, found["pairs"])
    for name in ("ca", "na"):
        abstentions = layout.abstention_tables(counts, binary=name == "ca")
        values["abstaining", name, "kappa"] = kappa_for_kind("binary", abstentions)
    if pooled:
        _add_pooled(values, layout, counts)
    return values


def kappa_for_kind(kind: str, pairs: Floats) -> Floats:
    """The kappa for a kind of criterion: quadratically weighted for ordinal ones, else Cohen's."""
    weighting: tables.Weighting = "quadratic" if kind == "ordinal" else "nominal"
    return tables.weighted_kappa(pairs, tables.disagreement(pairs.shape[-1], weighting))


def alpha_for_kind(kind: str, coincidences: Floats, units: Floats) -> Floats:
    """Krippendorff's alpha for a kind of criterion: at the ordinal level for ordinal ones, else nominal."""
    return alpha_from_coincidences(coincidences, "ordinal" if kind == "ordinal" else "nominal", units=units)


def class_counts(votes: Codes, size: int) -> Floats:
    """How many votes of each row fall on each class; -1 is no vote.

    >>> class_counts(np.array([[0, 1, 1], [-1, 0, -1]]), 2)
    array([[1., 2.],
           [1., 0.]])
    """
    return np.stack([(votes == place).sum(axis=1, dtype=np.float64) for place in range(size)], axis=1)


def met_against_rest(pairs: Floats) -> Floats:
    """2×2 tables of MET against everything else."""
    return pairs if pairs.shape[-1] == 2 else tables.one_against_rest(pairs)[..., 0, :, :]


def _met_statistics(pairs: Floats) -> dict[str, Floats]:
    met = met_against_rest(pairs)
    return {name: getattr(tables, name)(met) for name in MET_NAMES}


def _add_columns(values: Values, places: Sequence[int], found: dict[str, Floats]) -> None:
    for name, rows in found.items():
        for place, row in zip(places, rows, strict=True):
            values["criterion", place, name] = row


def _add_criteria(values: Values, group: CriterionGroup, pairs: Floats, found: dict[str, Floats]) -> None:
    columns = list(group.columns)
    binary, ordinal = group.kind == "binary", group.kind == "ordinal"
    quadratic = tables.disagreement(group.size, "quadratic")
    own = {
        "accuracy" if binary else "exact_accuracy": found["accuracy"][columns],
        "weighted_kappa" if ordinal else "kappa": found["kappa"][columns],
        "balanced_accuracy": tables.balanced_accuracy(pairs),
        "scott_pi": tables.scott_pi(pairs),
        "pabak": tables.pabak(pairs),
        "gwet_ac": tables.gwet_ac(pairs, tables.agreement(quadratic) if ordinal else None),
    }
    if binary:
        own |= _met_statistics(pairs)
    if ordinal:
        by_value = [
            (table, np.array(classes.values, dtype=np.float64))
            for table, classes in zip(pairs, group.classes, strict=True)
        ]
        own |= {
            "linear_kappa": tables.weighted_kappa(pairs, tables.disagreement(group.size, "linear")),
            "adjacent_accuracy": tables.adjacent_accuracy(pairs),
            "spearman": tables.spearman(pairs),
            "kendall": tables.kendall(pairs),
            "rmse": np.array([tables.rmse(table, class_values) for table, class_values in by_value]),
            "mae": np.array([tables.mae(table, class_values) for table, class_values in by_value]),
        }
    _add_columns(values, group.columns, own)
    if not binary:
        by_option = tables.one_against_rest(pairs)
        for name, statistic in (("precision", tables.precision), ("recall", tables.recall), ("f1", tables.f1)):
            for place, rows in zip(group.columns, statistic(by_option), strict=True):
                for option in range(group.size):
                    values["option", place, option, name] = rows[:, option]


def _add_overall(values: Values, layout: ContingencyCounts, counts: Floats, found: dict[str, Floats]) -> None:
    values["all", "criterion_accuracy"] = quotient(found["hits"].sum(axis=0), found["pairs"].sum(axis=0))
    values["all", "macro_accuracy"] = mean_defined(found["accuracy"])
    values["all", "mean_kappa"] = mean_defined(found["kappa"])
    values["all", "mean_krippendorff_alpha"] = mean_defined(found["alpha"])
    for kind in KINDS:
        columns = [place for group in layout.groups if group.kind == kind for place in group.columns]
        if columns:
            values["all", f"mean_kappa_by_kind.{kind}"] = mean_defined(found["kappa"][columns])
    undefined = np.full(counts.shape[1], np.nan)
    pooled = dict.fromkeys(("binary_accuracy", "micro_kappa"), undefined)
    met = dict.fromkeys(MET_NAMES, undefined)
    for group in layout.groups:
        if group.kind == "binary":
            together = group.final_tables(counts).sum(axis=0)
            met = _met_statistics(together)
            pooled = {
                "binary_accuracy": tables.accuracy(together),
                "micro_kappa": kappa_for_kind("binary", together),
            }
    pooled |= {f"criterion_{name}": met[name] for name in ("precision", "recall", "f1", "phi")}
    for name, row in pooled.items():
        values["all", name] = row


def _add_judges(values: Values, layout: ContingencyCounts, counts: Floats) -> None:
    undefined = np.full(counts.shape[1], np.nan)
    for judge in range(layout.groups[0].n_judges):
        hits, total = np.zeros(counts.shape[1]), np.zeros(counts.shape[1])
        met, accuracy = dict.fromkeys(MET_NAMES, undefined), undefined
        kappas = []
        for group in layout.groups:
            pairs = group.judge_tables(counts)[judge]
            hits += np.einsum("...ii->...", pairs).sum(axis=0)
            total += pairs.sum(axis=(0, -1, -2))
            kappas.append(kappa_for_kind(group.kind, pairs))
            if group.kind == "binary":
                together = pairs.sum(axis=0)
                met, accuracy = _met_statistics(together), tables.accuracy(together)
        own = {f"criterion_{name}": met[name] for name in ("precision", "recall", "f1")}
        own |= {"phi": met["phi"], "binary_accuracy": accuracy}
        own["criterion_accuracy"] = quotient(hits, total)
        own["mean_kappa"] = mean_defined(np.concatenate(kappas))
        for name, row in own.items():
            values["judge", judge, name] = row


def _add_coverage(values: Values, layout: ContingencyCounts, counts: Floats, covered: Floats) -> None:
    cells = layout.coverage_cells(counts)
    errored = layout.n_errored[:, None]
    # Errored items are no units of a replicate: their cells stay as they are.
    by_column = (cells[:, 0] + errored, covered, cells[:, 1], cells[:, 2], cells[:, 3] + errored)
    for column in range(-1, len(cells)):
        total, inside, judge_abstains, truth_abstains, failed = (
            rows.sum(axis=0) if column < 0 else rows[column] for rows in by_column
        )
        for name, part in zip(
            COVERAGE_RATES, (inside, judge_abstains, truth_abstains, total - inside, failed), strict=True
        ):
            values["coverage", column, name] = quotient(part, total)


def _add_pooled(values: Values, layout: ContingencyCounts, counts: Floats) -> None:
    """Agreement of each kind over all its criteria; errors and correlations are on option values."""
    for kind in KINDS:
        groups = [group for group in layout.groups if group.kind == kind]
        if not groups:
            continue
        every = [group.final_tables(counts) for group in groups]
        hits = sum(np.einsum("...ii->...", pairs).sum(axis=0) for pairs in every)
        total = sum(pairs.sum(axis=(0, -1, -2)) for pairs in every)
        by_value, table = _table_by_value(groups, every)
        own = {
            "exact_accuracy": quotient(hits, total),
            "value_rmse": tables.rmse(table, by_value),
            "value_mae": tables.mae(table, by_value),
            "value_spearman": tables.spearman(table, by_value),
            "value_pearson": tables.pearson(table, by_value),
        }
        if kind == "binary":
            together = every[0].sum(axis=0)
            met = _met_statistics(together)
            own |= {"kappa": kappa_for_kind(kind, together)} | {name: met[name] for name in POOLED_BINARY_NAMES[1:]}
        for name, row in own.items():
            values["pooled", kind, name] = row


def _table_by_value(groups: list[CriterionGroup], every: list[Floats]) -> tuple[Floats, Floats]:
    """One table over the distinct values of all criteria; a class without a value is left out."""
    known = sorted(
        {value for group in groups for classes in group.classes for value in classes.values if value is not None}
    )
    place = {value: number for number, value in enumerate(known)}
    table = np.zeros((len(known), len(known), every[0].shape[1]))
    for group, pairs in zip(groups, every, strict=True):
        for classes, cells in zip(group.classes, pairs, strict=True):
            numbers = [None if value is None else place[value] for value in classes.values]
            for row, i in enumerate(numbers):
                for column, j in enumerate(numbers):
                    if i is not None and j is not None:
                        table[i, j] += cells[:, row, column]
    return np.array(known), np.moveaxis(table, (0, 1), (-2, -1))
