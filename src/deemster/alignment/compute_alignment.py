"""`compute_metrics`: agreement of judges with people and with each other."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from deemster.alignment._bootstrap_replicates import Method, left_out, replicates_of, results_of
from deemster.alignment._build_result import (
    Findings,
    abstaining_of,
    bias_of,
    correlation_of,
    coverage_of,
    criteria_of,
    grouped,
    icc_of,
    judges_of,
    limits_of,
)
from deemster.alignment._clusters import Cluster, checked_draws
from deemster.alignment._corrected_means import corrected
from deemster.alignment._human_agreement import human
from deemster.alignment._item_difficulty import items
from deemster.alignment._joint_counts import cells_of
from deemster.alignment._judge_calibration import calibration
from deemster.alignment._judge_consistency import consistency
from deemster.alignment._labelled_votes import Floats, Graded, Panel, panel
from deemster.alignment._pooled_scales import pooled_measures, pooled_of
from deemster.alignment._score_statistics import CORRELATIONS, Moments, moments_of
from deemster.alignment._slices import plain_slices, slice_measures, slices_of, tagged_of
from deemster.alignment._table_measures import Key, Sheet, table_measures
from deemster.alignment._verdict_classes import Classes, Modes, classes_by_column
from deemster.alignment.metrics_result import BootstrapResults, MetricsResult, Mode
from deemster.datasets import RubricDataset, Votes
from deemster.errors import InputError, did_you_mean, listing, visible


def beyond(
    whole: Panel, classes: tuple[Classes, ...], *, confidence: float, told: BootstrapResults | None
) -> dict[str, Any]:
    """The additions to a result by field name, each None where it does not apply.

    Args:
        whole: The panel.
        classes: The classes of each column.
        confidence: The level of the intervals.
        told: How intervals are drawn; None for a result without.
    """
    replicates, seed = (0, 0) if told is None else (told.n_bootstrap, told.seed)
    return {
        "human": human(whole, classes, replicates=replicates, seed=seed, confidence=confidence),
        "consistency": consistency(whole, classes),
        "calibration": calibration(whole, classes, confidence=confidence),
        "corrected": corrected(whole, classes, confidence=confidence),
        "items": items(whole, classes),
    }


# A statistic that is undefined in more than this share of the replicates is pointed out.
_UNDEFINED = 0.05
_NUMBERS = (
    "criterion_accuracy",
    "binary_accuracy",
    "criterion_precision",
    "criterion_recall",
    "criterion_f1",
    "macro_accuracy",
    "mean_kappa",
    "micro_kappa",
    "criterion_phi",
    "mean_krippendorff_alpha",
    "score_rmse",
    "score_mae",
    "score_concordance",
    "score_alpha",
)


def compute_metrics(
    result: Votes | Graded | str | Path,
    dataset: RubricDataset | str | Path | None = None,
    *,
    bootstrap: bool | Method = False,
    n_bootstrap: int = 1000,
    per_judge: bool = False,
    cannot_assess: Mode = "exclude",
    na_mode: Mode = "exclude",
    confidence_level: float = 0.95,
    seed: int | None = None,
    cluster: Cluster | None = None,
    per_slice: bool = False,
    judges: Collection[str] | None = None,
) -> MetricsResult:
    """Compare final verdicts, votes and scores with the truth, and the judges with each other.

    Items are matched by id. What is undefined is None; `warnings` say what a reader has to know.

    Args:
        result: Votes, a grading, or the path of a votes file.
        dataset: Where the truth comes from; None where the votes carry it. Items it does not label keep the labels of
            the votes.
        bootstrap: Give every number an interval: True or "percentile", or "bca".
        n_bootstrap: How many replicates are drawn.
        per_judge: Compare each judge with the truth too.
        cannot_assess: What an abstention counts as on binary criteria: "exclude", "as_unmet" or "as_category".
        na_mode: What an abstention counts as on multi-choice criteria.
        confidence_level: Of all intervals.
        seed: Of the draws; None draws one, and the result tells it.
        cluster: A metadata key, or the cluster of each item by id; whole clusters are resampled.
        per_slice: Headline numbers for each tag.
        judges: The judges that make up the panel, by id; what was recorded of the whole panel is then derived anew.
            None for all.

    Raises:
        InputError: An argument is not as described, there is no such judge, no labelled item was graded, or
            ``as_category`` meets an ordinal criterion with an abstention. It is a ValueError too.
    """
    modes = Modes(cannot_assess, na_mode)
    method = _method(bootstrap)
    draws = checked_draws(n_bootstrap=n_bootstrap, confidence_level=confidence_level, seed=seed)
    asked = _Asked(
        method=method,
        replicates=draws.replicates,
        seed=draws.seed,
        confidence=draws.confidence,
        per_judge=per_judge,
        per_slice=per_slice,
    )
    whole = panel(result, dataset, cluster=cluster, judges=judges)
    classes = classes_by_column(whole.columns, modes)
    findings = _findings(whole, classes, modes, asked)
    told = _told(findings, asked)
    more = beyond(whole, classes, confidence=draws.confidence, told=told)
    return _result(findings, modes, asked, told, more)


align = compute_metrics


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a caller wants to know, and how sure."""

    method: Method | None
    replicates: int
    seed: int
    confidence: float
    per_judge: bool
    per_slice: bool


def _findings(whole: Panel, classes: tuple[Classes, ...], modes: Modes, asked: _Asked) -> Findings:
    ranked = asked.method is not None
    tagged = tagged_of(whole) if asked.per_slice else None
    members = tagged.members(len(whole.ids)) if tagged is not None and ranked and len(tagged.large) else None
    cells = cells_of(whole, classes, per_judge=asked.per_judge, slices=members)
    moments = moments_of(whole, per_judge=asked.per_judge, ranked=ranked, slices=members, confidence=asked.confidence)

    def measure(counts: Floats, sums: Floats, drawn: Any) -> Sheet:
        judges = len(whole.judges) if asked.per_judge else 0
        sheet = table_measures(cells, counts, judges=judges, coverage=modes.exclude)
        sheet |= moments.measures(sums, drawn)
        if tagged is not None and members is not None:
            sheet |= slice_measures(cells, moments, counts, sums, numbers=tagged.large)
        if whole.mixed:
            sheet |= pooled_measures(cells, counts)
        return sheet

    counts = cells.summed(cells.totals())
    found = {key: float(values[0]) for key, values in measure(counts, moments.totals(), None).items()}
    _restate(found, moments)
    plain = None if tagged is None else plain_slices(tagged, whole, cells, moments, counts)
    found |= {} if plain is None else dict(plain.estimates())
    intervals = None
    if asked.method is not None:
        replicates = replicates_of(cells, moments, measure, n=asked.replicates, seed=asked.seed)
        without = left_out(cells, moments, measure) if asked.method == "bca" and whole.n_units > 1 else None
        linear = _linear(moments)
        intervals = results_of(found, replicates, without, confidence=asked.confidence, linear=linear)
    return Findings(
        whole=whole,
        cells=cells,
        moments=moments,
        counts=counts,
        estimates={key: None if math.isnan(value) else value for key, value in found.items()},
        intervals=intervals,
        groups=None if intervals is None else grouped(intervals),
        confidence=asked.confidence,
        coverage=modes.exclude,
        plain=plain,
    )


def _method(bootstrap: bool | Method) -> Method | None:  # noqa: FBT001 - the argument of the public call
    if bootstrap is False:
        return None
    if bootstrap is True:
        return "percentile"
    if bootstrap not in ("percentile", "bca"):
        name = visible(str(bootstrap), limit=60)
        raise InputError(f"`bootstrap` has no method {name!r}. {did_you_mean(name, ('percentile', 'bca'))}")
    return bootstrap


def _restate(found: dict[Key, float], moments: Moments) -> None:
    """Correlations as they are told, rather than from sums of squares."""
    for duel in moments.duels:
        for name in CORRELATIONS:
            value = duel.correlations[name].value
            found[*duel.scope, f"score_{name}"] = math.nan if value is None else value


def _linear(moments: Moments) -> frozenset[Key]:
    names = ("score_spearman", "score_kendall")
    return frozenset((*duel.scope, name) for duel in moments.duels if duel.linear for name in names)


def _undefined(findings: Findings, asked: _Asked) -> list[str]:
    every = findings.intervals or {}
    fewest = (1 - _UNDEFINED) * asked.replicates
    scarce = [key for key, one in every.items() if one.estimate is not None and one.n_bootstrap < fewest]
    if not scarce:
        return []
    names = listing(sorted({str(key[-1]) for key in scarce}), limit=5)
    share = f"{len(scarce)} of {len(every)} numbers are undefined in more than 5 % of the replicates"
    return [f"undefined-replicates: {share}, among them {names}; their intervals rest on the others."]


def _told(findings: Findings, asked: _Asked) -> BootstrapResults | None:
    if findings.intervals is None or asked.method is None:
        return None
    ends: dict[str, tuple[float, float] | None] = {}
    for name in ("criterion_accuracy", "mean_kappa", "score_rmse"):
        interval = findings.intervals["all", name].ci
        ends[name] = None if interval is None else (interval.lower, interval.upper)
    return BootstrapResults(
        accuracy_ci=ends["criterion_accuracy"],
        kappa_ci=ends["mean_kappa"],
        rmse_ci=ends["score_rmse"],
        n_bootstrap=asked.replicates,
        confidence_level=asked.confidence,
        seed=asked.seed,
        method=asked.method,
        unit=findings.whole.unit,
    )


def _result(
    findings: Findings, modes: Modes, asked: _Asked, told: BootstrapResults | None, more: dict[str, Any]
) -> MetricsResult:
    whole, number = findings.whole, findings.number
    duel = findings.moments.duels[0]
    criteria = criteria_of(findings)
    covered = sum(one.n_samples for one in criteria)
    kinds = [column.criterion.kind for column in whole.columns]
    bias = bias_of(duel, findings.confidence)
    na_stats, cannot_assess_stats = abstaining_of(findings)
    parts = (whole, findings.cells, findings.counts, findings.estimates, findings.intervals)
    numbers: dict[str, Any] = {name: number("all", name) for name in _NUMBERS}
    numbers |= {f"score_{name}": correlation_of(duel.correlations[name]) for name in CORRELATIONS}
    warnings = [*whole.warnings, *_undefined(findings, asked)]
    warnings += _data_warnings(whole, duel, bias, [one.name for one in criteria if one.is_degenerate])
    return MetricsResult(
        mean_kappa_by_kind={kind: number("all", f"mean_kappa_by_kind.{kind}") for kind in dict.fromkeys(kinds)},
        bias=bias,
        score_limits=limits_of(findings),
        score_icc=icc_of(findings),
        per_criterion=criteria,
        per_judge=judges_of(findings) if asked.per_judge else None,
        bootstrap=told,
        n_items=len(whole.ids),
        n_judges=len(whole.judges),
        n_criteria=len(kinds),
        n_binary_criteria=kinds.count("binary"),
        n_ordinal_criteria=kinds.count("ordinal"),
        n_nominal_criteria=kinds.count("nominal"),
        n_samples=covered,
        cannot_assess_mode=modes.cannot_assess,
        na_mode=modes.na_mode,
        na_stats=na_stats,
        cannot_assess_stats=cannot_assess_stats,
        coverage_stats=coverage_of(findings, -1, covered),
        pooled_by_scale=pooled_of(*parts) if whole.mixed else None,
        slices=None if findings.plain is None else slices_of(findings.plain, findings.estimates, findings.intervals),
        warnings=tuple(warnings),
        intervals=findings.within("all"),
        **numbers,
        **more,
    )


def _data_warnings(whole: Panel, duel: Any, bias: Any, degenerate: list[str]) -> list[str]:
    notes = []
    if not len(duel.x):
        notes.append("no-scores: no item has both a predicted and a true score; score-level numbers are undefined.")
    elif len(np.unique(duel.t)) <= 2:
        notes.append("score-collapse: true scores take at most 2 values; correlations of scores say nothing.")
    if degenerate:
        shown = listing((visible(name, limit=60) for name in degenerate), limit=10)
        notes.append(f"degenerate: one class only, so no kappa, on {shown}.")
    if bias.std_bias == 0 and bias.mean_bias is not None and abs(bias.mean_bias) > 1e-12 * duel.largest:
        notes.append("constant-shift: every predicted score differs from the true one by the same amount.")
    for judge, name in enumerate(whole.judges):
        if not any((column.votes[:, judge] >= 0).any() for column in whole.columns):
            notes.append(f"judge-silent: `{visible(name, limit=60)}` has no usable vote.")
    if len(whole.ids) == 1:
        notes.append("one-item: everything rests on one item; intervals have no width and mean nothing.")
    return notes
