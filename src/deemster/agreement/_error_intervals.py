"""Intervals of how far scores lie from the true ones: bias, MAE and RMSE are means of bounded numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec
import numpy as np

from deemster.agreement._criterion_columns import Floats, Indices
from deemster.agreement._labelled_votes import LabelledVotes
from deemster.agreement._score_statistics import RANK_CORRELATIONS, PairedScores, ScoreSums
from deemster.agreement._tag_slices import Tags
from deemster.agreement._verdict_statistics import Key
from deemster.agreement.result_models import BootstrapResult
from deemster.stats.bounded_mean import bounded_units
from deemster.stats.confidence_interval import ConfidenceInterval
from deemster.stats.systematic_bias import BiasResult


def error_intervals(
    differences: Floats, units: Indices, *, span: float, confidence: float
) -> dict[str, ConfidenceInterval]:
    """The intervals of the bias, the MAE and the RMSE of scores; none below two units.

    Each is that of a mean of bounded numbers: of d, of |d|, and the root of that of the mean of d². The few large
    errors that make an RMSE are too few for Student's t, so there it is the empirical likelihood throughout.

    Args:
        differences: Predicted minus true, score by score.
        units: The item or cluster of each.
        span: How wide the range of scores is.
        confidence: The level of the intervals.

    >>> found = error_intervals(np.zeros(60), np.arange(60), span=1.0, confidence=0.95)
    >>> found["rmse"].lower, round(found["rmse"].upper, 3)
    (0.0, 0.265)
    """
    every = np.bincount(units)
    used = every > 0
    if used.sum() < 2:
        return {}
    sizes = every[used].astype(np.float64) if every.max() > 1 else None
    # Differences that are equal but for rounding are one kind.
    d = differences.round(12)

    def interval(values: Floats, low: float, high: float, *, likelihood: bool = False) -> ConfidenceInterval:
        totals = np.bincount(units, weights=values)[used]
        found = bounded_units(totals, sizes, low=low, high=high, likelihood=likelihood)
        if found is None:
            raise ValueError("no units")
        return found.interval(confidence)

    squared = interval(d * d, 0.0, span * span, likelihood=True)
    lower, upper = (math.sqrt(max(0.0, end)) for end in (squared.lower, squared.upper))
    return {
        "bias": interval(d, -span, span),
        "mae": interval(np.abs(d), 0.0, span),
        "rmse": ConfidenceInterval(lower, upper, confidence, squared.method),
    }


def hull(one: ConfidenceInterval | None, other: ConfidenceInterval | None) -> ConfidenceInterval | None:
    """The smallest interval that holds two; the first where it holds the second."""
    if one is None or other is None:
        return one or other
    lower, upper = min(one.lower, other.lower), max(one.upper, other.upper)
    method = one.method if (lower, upper) == (one.lower, one.upper) else f"{one.method} and {other.method}"
    return ConfidenceInterval(lower, upper, one.confidence, method)


def bias_with_interval(bias: BiasResult, interval: ConfidenceInterval | None) -> BiasResult:
    """A bias whose interval holds that of its t test and that of a bounded mean, for which few units are enough.

    It is significant where the p-value of the t test is below 0.05 and the interval leaves out 0.
    """
    ci = hull(bias.ci, interval)
    if bias.ci is None or ci is None:
        return bias
    outside = not ci.lower <= 0 <= ci.upper
    return msgspec.structs.replace(bias, is_significant=bias.is_significant and outside, ci=ci)


def with_exact_ends(
    drawn: Mapping[str, BootstrapResult], pairs: PairedScores, *, span: float, ranks: bool
) -> dict[str, BootstrapResult]:
    """The smoothed intervals of scores by name, with those that hold their level where few pairs differ.

    Student's t misses a judge that errs rarely and far, and weights pull rank correlations that are near 1 down. So the
    interval of the MAE is joined to the smoothed one, and those of rank correlations to their closed forms.

    Args:
        drawn: The smoothed intervals of bias, MAE, RMSE and rank correlations.
        pairs: The scores.
        span: How wide their range is.
        ranks: Whether rank correlations are joined to their closed forms too.
    """
    ends = error_intervals(pairs.predicted - pairs.true, pairs.units, span=span, confidence=pairs.confidence)
    known = {name: ends.get(name, drawn[name].ci) for name in ("bias", "rmse")}
    known["mae"] = hull(drawn["mae"].ci, ends.get("mae"))
    if ranks:
        known |= {name: hull(drawn[name].ci, pairs.correlations[name].interval) for name in RANK_CORRELATIONS}
    return {name: msgspec.structs.replace(drawn[name], ci=ci) for name, ci in known.items()}


def with_error_intervals(
    intervals: Mapping[Key, BootstrapResult], votes: LabelledVotes, scores: ScoreSums, tags: Tags | None
) -> dict[Key, BootstrapResult]:
    """The intervals with those of bias, MAE and RMSE in place of the smoothed ones: of the panel, judges and slices."""
    found = dict(intervals)
    span = scores.imagined.span
    for each in scores.comparisons:
        fields = {"bias": "bias"} | {name: f"score_{name}" for name in ("rmse", "mae", *RANK_CORRELATIONS)}
        drawn = {name: found[*each.scope, field] for name, field in fields.items()}
        for name, one in with_exact_ends(drawn, each.pairs, span=span, ranks=not each.pairs.is_linear).items():
            found[*each.scope, fields[name]] = one
    if tags is None:
        return found

    def place(scope: Key, ends: Mapping[str, ConfidenceInterval], names: Mapping[str, str]) -> None:
        for name, field in names.items():
            if name in ends:
                found[*scope, field] = msgspec.structs.replace(found[*scope, field], ci=ends[name])

    def intervals_of(apart: Floats, units: Indices) -> dict[str, ConfidenceInterval]:
        return error_intervals(apart, units, span=span, confidence=scores.confidence)

    panel = scores.comparisons[0]
    apart, units = panel.pairs.predicted - panel.pairs.true, panel.pairs.units
    for number, members in zip(tags.large.tolist(), tags.large_members(len(votes.ids)).T, strict=True):
        scope, inside = ("slice", number), members[panel.scored]
        here, there = intervals_of(apart[inside], units[inside]), intervals_of(apart[~inside], units[~inside])
        place(scope, here, {"bias": "bias", "rmse": "score_rmse"})
        for name, field, own in (("bias", "bias_difference", "bias"), ("rmse", "rmse_difference", "score_rmse")):
            value, difference = found[*scope, own].estimate, found[*scope, field].estimate
            if name in here and name in there and value is not None and difference is not None:
                apart_ends = _difference(value, here[name], value - difference, there[name])
                place(scope, {name: apart_ends}, {name: field})
    return found


def _difference(value: float, own: ConfidenceInterval, other: float, rest: ConfidenceInterval) -> ConfidenceInterval:
    """The interval of value - other from the intervals of both.

    Reference: G. Y. Zou, A. Donner, Construction of confidence limits about effect measures, Statistics in Medicine 27
    (2008).
    """
    below = math.hypot(value - own.lower, rest.upper - other)
    above = math.hypot(own.upper - value, other - rest.lower)
    return ConfidenceInterval(value - other - below, value - other + above, own.confidence, "hybrid")
