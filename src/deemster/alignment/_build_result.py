"""From numbers by key to the models of a result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from deemster.alignment._joint_counts import Cells, Shelf
from deemster.alignment._labelled_votes import FAILED_BELOW, Floats, Panel
from deemster.alignment._pooled_scales import whole_numbers
from deemster.alignment._score_statistics import CORRELATIONS, FORMS, Duel, Moments
from deemster.alignment._slices import Plain
from deemster.alignment._table_measures import Key, abstaining_at, met_against_rest, pairs_of, tables_at
from deemster.alignment.metrics_result import (
    AnyCriterion,
    BiasResult,
    BootstrapResult,
    CannotAssessStats,
    ConfusionMatrix,
    CorrelationResult,
    CoverageStats,
    CriterionMetrics,
    Intervals,
    JudgeMetrics,
    NAStats,
    NominalCriterionMetrics,
    OptionMetrics,
    OrdinalCriterionMetrics,
    ScoreICC,
    ScoreLimits,
)
from deemster.stats.correlation import Correlation, kendall, spearman
from deemster.stats.interpretation import interpret_correlation, interpret_kappa
from deemster.stats.proportion_intervals import ConfidenceInterval
from deemster.stats.systematic_bias import systematic_bias

_VERDICTS = ("MET", "UNMET", "CANNOT_ASSESS")
_SHARED = (
    "krippendorff_alpha",
    "fleiss_kappa",
    "balanced_accuracy",
    "scott_pi",
    "pabak",
    "gwet_ac",
    "panel_gwet_ac",
)
_JUDGE = (
    "criterion_accuracy",
    "criterion_precision",
    "criterion_recall",
    "criterion_f1",
    "mean_kappa",
    "phi",
    "score_rmse",
    "score_mae",
    "binary_accuracy",
)
_RATES = ("coverage", "judge_abstain_rate", "gt_abstain_rate", "union_exclusion_rate", "error_rate")


@dataclass(frozen=True, slots=True, eq=False)
class Findings:
    """Everything that was computed, for the models to be filled from.

    Attributes:
        whole: The panel.
        cells: Where the counts stand.
        moments: Score-level sums and correlations.
        counts: Cells of the data as they are, cells × 1.
        estimates: Numbers by key; None where undefined.
        intervals: Intervals by key; None without a bootstrap.
        groups: The same by what they belong to, then by name.
        confidence: The level of intervals.
        coverage: Whether coverage is told.
        plain: The slices; None where they are not asked for.
    """

    whole: Panel
    cells: Cells
    moments: Moments
    counts: Floats
    estimates: Mapping[Key, float | None]
    intervals: Mapping[Key, BootstrapResult] | None
    groups: Mapping[Key, dict[str, BootstrapResult]] | None
    confidence: float
    coverage: bool
    plain: Plain | None

    def number(self, *key: Any) -> float | None:
        """A number by its key; None where it is undefined or does not exist."""
        return self.estimates.get(key)

    def within(self, *scope: Any) -> Intervals:
        """The intervals of all numbers of a scope, by name."""
        return None if self.groups is None else self.groups.get(scope, {})


def grouped(intervals: Mapping[Key, BootstrapResult]) -> dict[Key, dict[str, BootstrapResult]]:
    """Intervals by what they belong to, then by name."""
    found: dict[Key, dict[str, BootstrapResult]] = {}
    for key, value in intervals.items():
        found.setdefault(key[:-1], {})[key[-1]] = value
    return found


def correlation_of(found: Correlation) -> CorrelationResult:
    """A correlation with its word."""
    word = interpret_correlation(found.value) if found.value is not None else "undefined"
    return CorrelationResult(
        coefficient=found.value,
        p_value=found.p_value,
        ci=found.interval,
        interpretation=word if found.n >= 3 else "insufficient data",
        n_samples=found.n,
        method=found.method,
    )


def bias_of(duel: Duel, confidence: float) -> BiasResult:
    """How far the scores of a duel lie above the true ones."""
    found = systematic_bias(duel.x, duel.t, confidence=confidence)
    return BiasResult(**{name: getattr(found, name) for name in BiasResult.__struct_fields__})


def limits_of(findings: Findings) -> ScoreLimits | None:
    """The limits of agreement, with an interval of each; None without a pair of scores."""
    duel = findings.moments.duels[0]
    n = len(duel.x)
    if not n:
        return None
    mean, lower, upper = (findings.number("all", f"score_limits.{name}") for name in ("mean", "lower", "upper"))
    deviation = findings.number("all", "bias.std_bias")
    ends: list[ConfidenceInterval | None] = [None, None]
    if deviation and lower is not None and upper is not None:
        z = findings.moments.z
        half = z * deviation * float(np.sqrt(1 / n + z * z / (2 * (n - 1))))
        ends = [ConfidenceInterval(end - half, end + half, findings.confidence, "normal") for end in (lower, upper)]
    return ScoreLimits(mean=mean, lower=lower, upper=upper, lower_ci=ends[0], upper_ci=ends[1], n_samples=n)


def icc_of(findings: Findings) -> ScoreICC | None:
    """The intraclass correlations of the judges' scores; None below two judges."""
    judges = len(findings.whole.judges)
    if judges < 2:
        return None
    complete = ~np.isnan(findings.whole.judge_scores).any(axis=1)
    forms = {name: findings.number("all", f"score_icc.{name}") for name in FORMS}
    return ScoreICC(n_items=int(complete.sum()), n_judges=judges, **forms)


def coverage_of(findings: Findings, column: int, covered: int) -> CoverageStats | None:
    """Which pairs of a column are covered; -1 is all columns."""
    if not findings.coverage:
        return None
    columns = len(findings.cells.lost)
    first = findings.cells.coverage
    held = findings.counts[first : first + 4 * columns, 0].reshape(columns, 4)
    chosen = slice(None) if column < 0 else slice(column, column + 1)
    lost = findings.cells.lost[chosen].sum()
    rates = {name: findings.number("coverage", column, name) for name in _RATES}
    return CoverageStats(
        n_total=int(held[chosen, 0].sum() + lost),
        n_covered=covered,
        n_errored=int(held[chosen, 3].sum() + lost),
        intervals=findings.within("coverage", column),
        **rates,
    )


def abstaining_of(findings: Findings) -> tuple[NAStats | None, CannotAssessStats | None]:
    """Agreement about abstaining, on multi-choice and on binary columns."""
    kinds = {column.criterion.kind for column in findings.whole.columns}
    found: list[Any] = []
    models: tuple[tuple[str, Any], ...] = (("ca", CannotAssessStats), ("na", NAStats))
    for name, model in models:
        if (name == "ca" and "binary" not in kinds) or (name == "na" and not kinds - {"binary"}):
            found.append(None)
            continue
        (both, missed), (extra, _) = abstaining_at(findings.cells, findings.counts, name)[0].astype(int).tolist()
        kappa = findings.number("abstaining", name, "kappa")
        fields = {
            "count_true": both + missed,
            "count_pred": both + extra,
            "kappa": kappa,
            "kappa_interpretation": interpret_kappa(kappa),
            "false_positive": extra,
            "false_negative": missed,
        }
        intervals = findings.within("abstaining", name)
        if intervals is not None:
            intervals = {f"{name}_kappa": intervals["kappa"]}
        found.append(model(**{f"{name}_{field}": value for field, value in fields.items()}, intervals=intervals))
    return found[1], found[0]


def criteria_of(findings: Findings) -> tuple[AnyCriterion, ...]:
    """Every criterion, in order."""
    found: dict[int, AnyCriterion] = {}
    for shelf in findings.cells.shelves:
        every = pairs_of(shelf, findings.counts)[:, 0]
        for slot, column in enumerate(shelf.columns):
            found[column] = _criterion(findings, shelf, slot, every[slot])
    return tuple(found[column] for column in sorted(found))


def _criterion(findings: Findings, shelf: Shelf, slot: int, table: Floats) -> AnyCriterion:
    place = shelf.columns[slot]
    kind, n = shelf.classes[slot].kind, int(table.sum())
    names = ["accuracy" if kind == "binary" else "exact_accuracy", *_SHARED]
    kappa_name = "weighted_kappa" if kind == "ordinal" else "kappa"
    kappa = findings.number("criterion", place, kappa_name)
    fields: dict[str, Any] = {
        "name": findings.whole.columns[place].name,
        "index": place,
        "n_samples": n,
        kappa_name: kappa,
        "kappa_interpretation": interpret_kappa(kappa),
        "is_degenerate": n > 0 and kappa is None,
        "coverage_stats": coverage_of(findings, place, n),
        "intervals": findings.within("criterion", place),
    }
    if kind == "binary":
        met = met_against_rest(table[None])[0]
        names += ["precision", "recall", "f1", "phi", "fpr", "fnr"]
        fields |= {
            "support_true": int(met[0].sum()),
            "support_pred": int(met[:, 0].sum()),
            "confusion_matrix": ConfusionMatrix(matrix=whole_numbers(met), labels=_VERDICTS[:2]) if n else None,
        }
    else:
        fields |= _choices(findings, shelf, slot, table)
    if kind == "ordinal":
        names += ["adjacent_accuracy", "linear_kappa", "rmse", "mae"]
        truth, final = _classed(findings, shelf, slot)
        fields["spearman"] = correlation_of(spearman(truth, final, confidence=findings.confidence))
        fields["kendall"] = correlation_of(kendall(truth, final, confidence=findings.confidence))
    fields |= {name: findings.number("criterion", place, name) for name in names}
    models = {"binary": CriterionMetrics, "ordinal": OrdinalCriterionMetrics, "nominal": NominalCriterionMetrics}
    found: AnyCriterion = models[kind](**fields)
    return found


def _classed(findings: Findings, shelf: Shelf, slot: int) -> tuple[Any, Any]:
    """The classes of truth and final verdict of the covered pairs of a column."""
    column, classes = findings.whole.columns[shelf.columns[slot]], shelf.classes[slot]
    truth, final = classes.of(column.truth, column.worst), classes.of(column.final, column.worst)
    both = (truth >= 0) & (final >= 0)
    return truth[both], final[both]


def _choices(findings: Findings, shelf: Shelf, slot: int, table: Floats) -> dict[str, Any]:
    """Options and table in the author's order."""
    place, classes = shelf.columns[slot], shelf.classes[slot]
    shown = list(classes.shown)
    labels = tuple(classes.labels[one] for one in shown)
    options = tuple(
        OptionMetrics(
            label=classes.labels[one],
            index=classes.codes[one],
            precision=findings.number("option", place, one, "precision"),
            recall=findings.number("option", place, one, "recall"),
            f1=findings.number("option", place, one, "f1"),
            support_true=int(table[one].sum()),
            support_pred=int(table[:, one].sum()),
            intervals=findings.within("option", place, one),
        )
        for one in shown
    )
    matrix = ConfusionMatrix(matrix=whole_numbers(table[np.ix_(shown, shown)]), labels=labels) if table.sum() else None
    return {"n_options": classes.size, "per_option": options, "confusion_matrix": matrix}


def judges_of(findings: Findings) -> dict[str, JudgeMetrics]:
    """Every judge against the truth, by id."""
    whole = findings.whole
    found = {}
    for judge, name in enumerate(whole.judges):
        duel = findings.moments.duels[1 + judge]
        pairs = 0
        for shelf in findings.cells.shelves:
            shape = (shelf.size, shelf.size, len(whole.judges), len(shelf.columns))
            pairs += int(tables_at(findings.counts, shelf.judges, shape)[judge].sum())
        raw, failed, silent = _votes_of(whole, judge)
        numbers: dict[str, Any] = {each: findings.number("judge", judge, each) for each in _JUDGE}
        numbers |= {f"score_{each}": correlation_of(duel.correlations[each]) for each in CORRELATIONS}
        found[name] = JudgeMetrics(
            judge_id=name,
            confusion_matrix=ConfusionMatrix(matrix=whole_numbers(raw), labels=_VERDICTS) if raw.sum() else None,
            bias=bias_of(duel, findings.confidence),
            n_samples=pairs,
            n_failed=failed,
            n_abstained=silent,
            intervals=findings.within("judge", judge),
            **numbers,
        )
    return found


def _votes_of(whole: Panel, judge: int) -> tuple[Floats, int, int]:
    """Raw binary votes against the truth, and how many votes on labelled cells failed or abstained."""
    raw = np.zeros(9)
    failed = silent = 0
    for column in whole.columns:
        labelled = column.truth >= 0
        truth, votes = column.truth[labelled], column.votes[labelled, judge]
        failed += int((votes < FAILED_BELOW).sum())
        for code in column.criterion.abstentions:
            silent += int((votes == code).sum())
        if column.criterion.kind == "binary":
            cast = votes >= 0
            raw += np.bincount(truth[cast].astype(np.intp) * 3 + votes[cast], minlength=9)
    return raw.reshape(3, 3), failed, silent
