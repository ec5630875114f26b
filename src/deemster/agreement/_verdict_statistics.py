"""Statistics of verdicts from counts: accuracy, kappa, precision, recall, coverage; per judge, pooled.

A statistic has a key: what it belongs to, then its name, as in ``("criterion", 2, "kappa")``. Its values are one number
for each replicate, NaN where undefined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from deemster.agreement._contingency_counts import ContingencyCounts, CriterionGroup
from deemster.agreement._criterion_columns import Floats
from deemster.agreement.result_models import CriterionType
from deemster.stats import confusion_tables as tables
from deemster.stats.agreement_from_sums import rater_agreement
from deemster.stats.nan_arithmetic import mean_defined, quotient

Key: TypeAlias = tuple[Any, ...]
Values: TypeAlias = dict[Key, Floats]

KINDS: tuple[CriterionType, ...] = ("binary", "ordinal", "nominal")
COVERAGE_RATES = (
    "coverage",
    "judge_abstain_rate",
    "gt_abstain_rate",
    "union_exclusion_rate",
    "error_rate",
    "disputed_rate",
)
# What only classes have.
_OF_CLASSES = ("accuracy", "kappa", "krippendorff_alpha")
_OF_BINARY = ("criterion_precision", "criterion_recall", "criterion_f1", "phi", "binary_accuracy", "micro_kappa")
_POOLED_OF_MET = ("phi", "precision", "recall", "f1")


def verdict_statistics(layout: ContingencyCounts, counts: Floats, *, coverage: bool, pooled: bool) -> Values:
    """Every statistic that follows from counts of verdicts.

    Args:
        layout: Where the counts stand.
        counts: Cells × replicates.
        coverage: Whether abstentions are left out, so that coverage is reported.
        pooled: Whether criteria of one kind are pooled too, as items have different rubrics.
    """
    values: Values = {}
    final = [group.tables.of(counts)[0] for group in layout.groups]
    by_group = []
    for group, pairs in zip(layout.groups, final, strict=True):
        if group.kind == "numeric":
            by_group.append(_numeric_counts(pairs))
            continue
        found = tables.table_statistics(pairs, group.kind, values=group.values)
        found["compared"] = found["pairs"]
        if group.votes is not None:
            sums = group.votes.features @ counts[group.votes.cells]
            found |= rater_agreement(
                sums, size=group.tables.size, raters=layout.n_judges, ordinal=group.kind == "ordinal"
            )
        by_group.append(found)
    for group, found in zip(layout.groups, by_group, strict=True):
        if group.kind != "numeric":
            _add_criteria(values, group, found)
    names = ("hits", "pairs", "compared", "accuracy", "kappa", "krippendorff_alpha")
    by_column = {name: _by_column(layout, by_group, name) for name in names if all(name in found for found in by_group)}
    _add_overall(values, layout, final, by_column)
    _add_judges(values, layout, counts)
    if coverage:
        _add_coverage(values, layout, counts, by_column["pairs"])
    for binary in (True, False):
        abstentions = layout.abstention_tables(counts, binary=binary)
        values["abstaining", binary, "kappa"] = tables.kappa(abstentions, "binary")
    if pooled:
        _add_pooled(values, layout, final)
    return values


def _numeric_counts(pairs: Floats) -> dict[str, Floats]:
    """How many pairs of numbers there are; none of them is right or wrong."""
    total = pairs.sum(axis=(-1, -2))
    nothing = np.full_like(total, np.nan)
    zero = np.zeros_like(total)
    return {"hits": zero, "compared": zero, "pairs": total, **dict.fromkeys(_OF_CLASSES, nothing)}


def accuracy_and_mean_kappa(groups: Sequence[CriterionGroup], by_group: Sequence[Floats]) -> tuple[Floats, Floats]:
    """The accuracy of all pairs together, and the mean over criteria of the kappas that are defined.

    Args:
        groups: The groups of criteria.
        by_group: Tables of each group, ``[columns, ..., K, K]``.
    """
    shape = by_group[0].shape[1:-2]
    hits, total, kappas = np.zeros(shape), np.zeros(shape), [np.full((1, *shape), np.nan)]
    for group, pairs in zip(groups, by_group, strict=True):
        if group.kind != "numeric":
            t = tables.Tables(pairs)
            hits += t.hits.sum(axis=0)
            total += t.pairs.sum(axis=0)
            kappas.append(tables.kappa(t, group.kind))
    return quotient(hits, total), mean_defined(np.concatenate(kappas))


def _by_column(layout: ContingencyCounts, by_group: Sequence[dict[str, Floats]], name: str) -> Floats:
    """One statistic of every column, in the order of the columns."""
    places = [place for group in layout.groups for place in group.tables.columns]
    return np.concatenate([found[name] for found in by_group])[np.argsort(places)]


def _add_columns(values: Values, places: Sequence[int], found: Mapping[str, Floats]) -> None:
    for name, rows in found.items():
        for place, row in zip(places, rows, strict=True):
            values["criterion", place, name] = row


def _add_criteria(values: Values, group: CriterionGroup, found: Mapping[str, Floats]) -> None:
    other_names = {} if group.kind == "binary" else {"accuracy": "exact_accuracy"}
    if group.kind == "ordinal":
        other_names["kappa"] = "weighted_kappa"
    own = {
        name: rows
        for name, rows in found.items()
        if name not in ("hits", "pairs", "compared") and not name.startswith("class_")
    }
    _add_columns(values, group.tables.columns, {other_names.get(name, name): rows for name, rows in own.items()})
    if group.kind != "binary":
        for name in ("precision", "recall", "f1"):
            for place, rows in zip(group.tables.columns, found[f"class_{name}"], strict=True):
                for option in range(group.tables.size):
                    values["option", place, option, name] = rows[:, option]


def _add_overall(
    values: Values, layout: ContingencyCounts, final: Sequence[Floats], by_column: Mapping[str, Floats]
) -> None:
    values["all", "criterion_accuracy"] = quotient(by_column["hits"].sum(axis=0), by_column["compared"].sum(axis=0))
    values["all", "macro_accuracy"] = mean_defined(by_column["accuracy"])
    values["all", "mean_kappa"] = mean_defined(by_column["kappa"])
    for kind in KINDS:
        columns = [place for group in layout.groups if group.kind == kind for place in group.tables.columns]
        if columns:
            values["all", f"mean_kappa_by_kind.{kind}"] = mean_defined(by_column["kappa"][columns])
    undefined = np.full(by_column["hits"].shape[1], np.nan)
    alphas = by_column.get("krippendorff_alpha")
    values["all", "mean_krippendorff_alpha"] = undefined if alphas is None else mean_defined(alphas)
    binary = _binary_together(layout, final)
    values["all", "criterion_phi"] = binary.pop("phi")
    values |= {("all", name): row for name, row in binary.items()}
    for group, pairs in zip(layout.groups, final, strict=True):
        if group.kind == "binary":
            _add_pass_rates(values, group, pairs)


def _binary_together(layout: ContingencyCounts, by_group: Sequence[Floats]) -> dict[str, Floats]:
    """The numbers of all binary criteria together, by name; undefined where there are none.

    Args:
        layout: The groups of criteria.
        by_group: Tables of each group, ``[columns, ..., K, K]``.
    """
    for group, pairs in zip(layout.groups, by_group, strict=True):
        if group.kind == "binary":
            together = tables.Tables(pairs.sum(axis=0))
            met = tables.positive_statistics(together)
            found = {f"criterion_{name}": met[name] for name in ("precision", "recall", "f1")}
            kappa = tables.kappa(together, "binary")
            return found | {"phi": met["phi"], "binary_accuracy": tables.accuracy(together), "micro_kappa": kappa}
    return dict.fromkeys(_OF_BINARY, np.full(by_group[0].shape[1:-2], np.nan))


def _add_pass_rates(values: Values, group: CriterionGroup, pairs: Floats) -> None:
    """Of what people pass, and of what they fail, the share that the judge passes."""
    tables_by_column = tables.positive_against_rest(pairs)
    # MET on a criterion with a negative weight is a fail.
    oriented = np.where(group.negative[:, None, None, None], tables_by_column[..., ::-1, ::-1], tables_by_column)
    together = tables.Tables(oriented.sum(axis=0))
    values["all", "passed_of_passed"] = quotient(together.cells[..., 0, 0], together.rows[..., 0])
    values["all", "passed_of_failed"] = quotient(together.cells[..., 1, 0], together.rows[..., 1])


def _add_judges(values: Values, layout: ContingencyCounts, counts: Floats) -> None:
    judges = layout.groups[0].tables.sides - 1
    if not judges:
        return
    own = [group.tables.of(counts)[1:].swapaxes(0, 1) for group in layout.groups]
    found = _binary_together(layout, own)
    del found["micro_kappa"]
    found["criterion_accuracy"], found["mean_kappa"] = accuracy_and_mean_kappa(layout.groups, own)
    for name, rows in found.items():
        for judge, row in enumerate(rows):
            values["judge", judge, name] = row


def _add_coverage(values: Values, layout: ContingencyCounts, counts: Floats, covered: Floats) -> None:
    cells = layout.coverage_cells(counts)
    errored = layout.n_errored[:, None]
    # Errored items are no units of a replicate: their cells stay as they are.
    total = cells[:, 0] + errored
    parts = np.array([covered, cells[:, 1], cells[:, 2], total - covered, cells[:, 3] + errored, cells[:, 4]])
    overall = quotient(parts.sum(axis=1), total.sum(axis=0))
    for name, row, rows in zip(COVERAGE_RATES, overall, quotient(parts, total), strict=True):
        values |= {("coverage", column, name): each for column, each in enumerate([row, *rows], -1)}


def _add_pooled(values: Values, layout: ContingencyCounts, final: Sequence[Floats]) -> None:
    """Agreement of each kind over all its criteria; errors and correlations are on option values."""
    for kind in KINDS:
        chosen = [place for place, group in enumerate(layout.groups) if group.kind == kind]
        if not chosen:
            continue
        groups, every = [layout.groups[place] for place in chosen], [final[place] for place in chosen]
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
            met = tables.positive_statistics(together)
            own |= {"kappa": tables.kappa(together, kind)} | {name: met[name] for name in _POOLED_OF_MET}
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
