"""Cohen's kappa, weighted kappa, Scott's pi and PABAK of two raters; the confusion matrix."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from deemster.stats import confusion_tables as tables
from deemster.stats._label_codes import pair_table
from deemster.stats.agreement_from_sums import disagreement
from deemster.stats.confidence_interval import ConfidenceInterval, normal_quantile
from deemster.stats.nan_arithmetic import Floats, float_or_none

Side = Sequence[Hashable] | NDArray[Any]
Weights = Literal["linear", "quadratic"] | ArrayLike | None


class Confusion(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of pairs: a row for each label of the first rater, a column for each of the second."""

    matrix: tuple[tuple[int, ...], ...]
    labels: tuple[Hashable, ...]
    n: int
    missing: int


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """A chance-corrected agreement with what it is made of.

    Attributes:
        value: (observed - expected)/(1 - expected); 1 is full agreement, 0 chance, below 0 worse than chance.
        n: Pairs, or units, it rests on.
        observed: Observed agreement, weighted where weights are used.
        expected: The agreement that chance would give.
        standard_error: The standard error of the value, for large samples.
        interval: The value ± z standard errors, kept within [-1, 1]; None where the standard error is 0 or unknown.
        missing: Pairs, or units, left out for want of a label.
    """

    value: float | None = None
    n: int
    observed: float | None = None
    expected: float | None = None
    standard_error: float | None = None
    interval: ConfidenceInterval | None = None
    missing: int


class Kappa(Agreement, frozen=True, kw_only=True):
    """Cohen's kappa; beside its parts the standard error where only chance is at work, and the test of that.

    Attributes:
        null_error: The standard error if kappa were 0.
        p_value: Two-sided, of value/null_error taken for a normal.
    """

    null_error: float | None = None
    p_value: float | None = None


def confusion(a: Side, b: Side, *, labels: Iterable[Hashable] | None = None) -> Confusion:
    """How often the first rater's label meets each of the second's: T_ij, the pairs (i, j).

    Full agreement leaves all pairs on the diagonal. Without a pair every count is 0; it is never undefined.

    Args:
        a: Labels of the first rater (the truth); any hashable, None or NaN is missing.
        b: Labels of the second, paired with them.
        labels: The full scale in order; what occurs, sorted, where not given.

    Reference: K. Pearson, On the theory of contingency and its relation to association and normal correlation (1904).

    Raises:
        ValueError: The sequences differ in length, or a label is none of ``labels``.

    >>> confusion(["yes", "yes", "no"], ["yes", "no", "no"], labels=["yes", "no"]).matrix
    ((1, 1), (0, 1))
    """
    table, scale, missing = pair_table(a, b, labels=labels)
    counts = tuple(tuple(int(cell) for cell in row) for row in table)
    return Confusion(matrix=counts, labels=scale, n=int(table.sum()), missing=missing)


def cohen_kappa(
    a: Side, b: Side, *, weights: Weights = None, labels: Iterable[Hashable] | None = None, confidence: float = 0.95
) -> Kappa:
    """Cohen's kappa of two raters, plain or weighted: 1 - Σw·p_ij/Σw·p_i·p_j.

    w are disagreement weights: [i≠j] where not given, the distance of positions in ``labels`` (``linear``), its square
    (``quadratic``), or a matrix with 0 on the diagonal. 1 is full agreement, 0 what the raters' own margins give by
    chance. Undefined (None) without a pair, and where both raters gave one same label throughout. Standard errors are
    those of Fleiss, Cohen and Everitt. Weighted forms need the full scale: labels that no rater used keep their place.

    Args:
        a: Labels of the first rater; any hashable, None or NaN is missing.
        b: Labels of the second, paired with them.
        weights: ``None``, ``linear``, ``quadratic`` or a matrix of disagreement weights.
        labels: The full scale in order; what occurs, sorted, where not given.
        confidence: The level of the interval.

    Reference: J. Cohen, A coefficient of agreement for nominal scales, Educational and Psychological Measurement 20
    (1960), and Weighted kappa, Psychological Bulletin 70 (1968); J. L. Fleiss, J. Cohen, B. S. Everitt, Large sample
    standard errors of kappa and weighted kappa, Psychological Bulletin 72 (1969).

    Raises:
        ValueError: The sequences differ in length, a label is none of ``labels``, or the weights do not fit.

    >>> h, j = [1, 2, 2, 3, 4, 4, 5, 5, 3, 1], [1, 1, 2, 3, 3, 4, 5, 4, 3, 2]
    >>> cohen_kappa(h, j).value, round(cohen_kappa(h, j, weights="quadratic").value, 4)
    (0.5, 0.8889)
    """
    table, _, missing = pair_table(a, b, labels=labels)
    return kappa_from_table(table, weights=weights, confidence=confidence, missing=missing)


def kappa_from_table(table: ArrayLike, *, weights: Weights = None, confidence: float = 0.95, missing: int = 0) -> Kappa:
    """Cohen's kappa of a table of pairs; see ``cohen_kappa``.

    Raises:
        ValueError: The table is not square, holds a negative or no finite count, or the weights do not fit.

    >>> cohen = [[88, 14, 18], [10, 40, 10], [2, 6, 12]]
    >>> round(kappa_from_table(cohen, weights=[[0, 1, 3], [1, 0, 6], [3, 6, 0]]).value, 4)
    0.3478
    """
    t = check_table(table)
    w = disagreement_weights(weights, len(t))
    z = normal_quantile(confidence)
    value, n = float_or_none(tables.weighted_kappa(t, w)), float(t.sum())
    if value is None:
        return Kappa(n=int(n), observed=_agreeing(t, w), missing=missing)
    p = t / n
    rows, columns = p.sum(axis=1), p.sum(axis=0)
    chance = np.outer(rows, columns)
    seen, expected = float((w * p).sum()), float((w * chance).sum())
    # How the expected disagreement moves with each cell.
    slope = (w @ columns)[:, None] + (rows @ w)[None, :]
    error = _delta(p, -w / expected + seen / expected**2 * slope, n)
    null_error = _delta(chance, (slope - w) / expected, n)
    return Kappa(
        value=value,
        n=int(n),
        observed=_agreeing(t, w),
        expected=1 - expected / float(w.max()),
        standard_error=error,
        interval=normal_interval(value, error, z=z, confidence=confidence),
        missing=missing,
        null_error=null_error,
        p_value=math.erfc(abs(value) / null_error / math.sqrt(2)) if null_error > 0 else None,
    )


def scott_pi(a: Side, b: Side, *, labels: Iterable[Hashable] | None = None, confidence: float = 0.95) -> Agreement:
    """Scott's pi of two raters: (p_o - Σπ²)/(1 - Σπ²), π the mean of both raters' margins.

    Chance here draws both raters from one common distribution, so a difference of margins counts as disagreement.
    Undefined (None) without a pair and where all labels are one.

    Args:
        a: Labels of the first rater; any hashable, None or NaN is missing.
        b: Labels of the second, paired with them.
        labels: The full scale; it changes nothing but the check of labels.
        confidence: The level of the interval.

    Reference: W. A. Scott, Reliability of content analysis, Public Opinion Quarterly 19 (1955).

    Raises:
        ValueError: The sequences differ in length, or a label is none of ``labels``.

    >>> round(scott_pi([1, 1, 0, 0, 1], [1, 0, 0, 0, 1]).value, 4)
    0.6
    """
    table, _, missing = pair_table(a, b, labels=labels)
    z = normal_quantile(confidence)
    value, n = float_or_none(tables.scott_pi(table)), float(table.sum())
    observed = float_or_none(tables.accuracy(table))
    if value is None or observed is None:
        return Agreement(n=int(n), observed=observed, missing=missing)
    p = table / n
    margins = (p.sum(axis=1) + p.sum(axis=0)) / 2
    rest = 1 - float(np.square(margins).sum())
    slope = -(margins[:, None] + margins[None, :])
    error = _delta(p, -(1 - np.eye(len(p))) / rest + (1 - observed) / rest**2 * slope, n)
    return Agreement(
        value=value,
        n=int(n),
        observed=observed,
        expected=1 - rest,
        standard_error=error,
        interval=normal_interval(value, error, z=z, confidence=confidence),
        missing=missing,
    )


def pabak(a: Side, b: Side, *, labels: Iterable[Hashable] | None = None, confidence: float = 0.95) -> Agreement:
    """Kappa adjusted for prevalence and bias: (K·p_o - 1)/(K - 1), chance being 1/K.

    It is a straight line of the accuracy, so it neither falls nor rises with the margins; K is the number of labels
    of the scale, so give ``labels`` where some may not occur. Undefined (None) without a pair or with one label.

    Args:
        a: Labels of the first rater; any hashable, None or NaN is missing.
        b: Labels of the second, paired with them.
        labels: The full scale; what occurs where not given.
        confidence: The level of the interval.

    Reference: T. Byrt, J. Bishop, J. B. Carlin, Bias, prevalence and kappa, Journal of Clinical Epidemiology 46
    (1993); R. L. Brennan, D. J. Prediger, Coefficient kappa, Educational and Psychological Measurement 41 (1981).

    Raises:
        ValueError: The sequences differ in length, or a label is none of ``labels``.

    >>> round(pabak([1, 1, 0, 0, 1], [1, 0, 0, 0, 1]).value, 4)
    0.6
    """
    table, scale, missing = pair_table(a, b, labels=labels)
    z = normal_quantile(confidence)
    value, n, observed = float_or_none(tables.pabak(table)), float(table.sum()), float_or_none(tables.accuracy(table))
    if value is None or observed is None:
        return Agreement(n=int(n), observed=observed, missing=missing)
    size = len(scale)
    error = size / (size - 1) * math.sqrt(observed * (1 - observed) / n)
    return Agreement(
        value=value,
        n=int(n),
        observed=observed,
        expected=1 / size,
        standard_error=error,
        interval=normal_interval(value, error, z=z, confidence=confidence),
        missing=missing,
    )


def disagreement_weights(weights: Weights, size: int) -> Floats:
    """Disagreement weights by name or as a checked matrix.

    Raises:
        ValueError: The name is unknown, or the matrix is not square of this size, not finite, negative, or not 0 on its
            diagonal.

    >>> disagreement_weights("linear", 3)[0]
    array([0., 1., 2.])
    """
    if weights is None:
        return disagreement(size, "nominal")
    if isinstance(weights, str):
        if weights not in {"linear", "quadratic"}:
            raise ValueError(f"Weights are None, `linear`, `quadratic` or a matrix, not {weights!r}.")
        return disagreement(size, weights)  # type: ignore[arg-type]  # the two names that are left
    try:
        matrix = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("Weights are None, `linear`, `quadratic` or a square matrix of numbers.") from None
    if matrix.shape != (size, size):
        raise ValueError(f"There are {size} labels, so weights are {size} × {size}, not {matrix.shape}.")
    if not np.isfinite(matrix).all() or (matrix < 0).any():
        raise ValueError("Disagreement weights are finite and not negative.")
    if np.diagonal(matrix).any():
        raise ValueError("Weights are of disagreement: 0 on the diagonal, larger the worse.")
    return matrix


def check_table(table: ArrayLike) -> Floats:
    """One square table of counts, checked.

    Raises:
        ValueError: It is not one square table, or holds a negative or no finite count.

    >>> check_table([[1, 0], [0, 2]]).sum().item()
    3.0
    """
    counts = tables.Tables(table).cells
    if counts.ndim != 2:
        raise ValueError(f"This takes one table of pairs, not {counts.ndim} dimensions of them.")
    if not np.isfinite(counts).all() or (counts < 0).any():
        raise ValueError("A table of pairs holds finite counts, none negative.")
    return counts


def normal_interval(value: float, error: float, *, z: float, confidence: float) -> ConfidenceInterval | None:
    """The value ± z standard errors within [-1, 1], or None where the standard error is 0 and so says nothing.

    >>> normal_interval(0.5, 0.1, z=2.0, confidence=0.95).upper
    0.7
    """
    if not error > 0:
        return None
    return ConfidenceInterval(max(-1.0, value - z * error), min(1.0, value + z * error), confidence, "normal")


def _delta(p: Floats, gradient: Floats, n: float) -> float:
    """The standard error of a function of multinomial shares, by its gradient."""
    mean, square = float((p * gradient).sum()), float((p * np.square(gradient)).sum())
    variance = square - mean * mean
    # A variance within rounding errors counts as 0.
    return math.sqrt(variance / n) if variance > 1e-14 * square else 0.0


def _agreeing(table: Floats, weights: Floats) -> float | None:
    n, worst = float(table.sum()), float(weights.max(initial=0.0))
    if not n:
        return None
    return 1 - float((weights * table).sum()) / n / worst if worst else 1.0
