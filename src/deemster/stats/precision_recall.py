"""Precision, recall, F1, phi and balanced accuracy of predicted labels."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import msgspec
import numpy as np

from deemster.stats import confusion_tables as tables
from deemster.stats._label_codes import pair_table
from deemster.stats.cohen_kappa import Side
from deemster.stats.confidence_interval import ConfidenceInterval, check_confidence
from deemster.stats.nan_arithmetic import float_or_none
from deemster.stats.proportion_intervals import wilson


class TableStatistic(msgspec.Struct, frozen=True, kw_only=True):
    """A number of a table of pairs and how many pairs it rests on."""

    value: float | None
    n: int
    missing: int


class PrecisionRecallF1(msgspec.Struct, frozen=True, kw_only=True):
    """Precision, recall and F1 of one class against the rest, with the counts; shares with Wilson's interval.

    Attributes:
        precision: The share of the predicted positives that are positive.
        recall: The share of the positives that were predicted.
        f1: Their harmonic mean, 2tp/(2tp + fp + fn).
    """

    precision: float | None
    recall: float | None
    f1: float | None
    precision_interval: ConfidenceInterval | None
    recall_interval: ConfidenceInterval | None
    tp: int
    fp: int
    fn: int
    tn: int
    n: int
    missing: int


def phi(a: Side, b: Side, *, labels: Iterable[Hashable] | None = None) -> TableStatistic:
    """The correlation of two two-valued labels: (tp·tn - fp·fn)/√((tp+fp)(tp+fn)(tn+fp)(tn+fn)).

    It is Matthews' coefficient, and on such data Pearson's, Spearman's and Kendall's as well. 1 is full agreement, -1
    full reversal, 0 no relation. Undefined (None) where a side is constant.

    Args:
        a: Labels of one side; None or NaN is missing.
        b: Labels of the other, paired with them.
        labels: The two labels; what occurs where not given.

    Reference: B. W. Matthews, Comparison of the predicted and observed secondary structure of T4 phage lysozyme,
    Biochimica et Biophysica Acta 405 (1975).

    Raises:
        ValueError: The sequences differ in length, or there are more than two labels.

    >>> round(phi([1, 1, 0, 0, 1], [1, 0, 0, 0, 1]).value, 4)
    0.6667
    """
    table, scale, missing = pair_table(a, b, labels=labels)
    if len(scale) > 2:
        raise ValueError(f"Phi is for two labels; here are {len(scale)}.")
    full = np.zeros((2, 2))
    full[: len(scale), : len(scale)] = table
    return TableStatistic(value=float_or_none(tables.phi(full)), n=int(table.sum()), missing=missing)


def precision_recall_f1(
    true: Side,
    predicted: Side,
    *,
    positive: Hashable = 1,
    labels: Iterable[Hashable] | None = None,
    confidence: float = 0.95,
) -> PrecisionRecallF1:
    """Precision tp/(tp+fp), recall tp/(tp+fn) and F1 2tp/(2tp+fp+fn) of one class against the rest.

    Each is undefined (None) where its denominator is 0: nothing predicted positive, nothing positive, or neither.

    Args:
        true: True labels; None or NaN is missing.
        predicted: Predicted labels, paired with them.
        positive: The label that counts as positive.
        labels: The full scale; give it where the positive label may not occur.
        confidence: The level of Wilson's intervals.

    Reference: C. J. van Rijsbergen, Information Retrieval (1979).

    Raises:
        ValueError: The sequences differ in length, or the positive label is neither found nor in ``labels``.

    >>> result = precision_recall_f1([1, 1, 0, 0, 1], [1, 0, 0, 0, 1])
    >>> result.precision, round(result.recall, 4), result.f1
    (1.0, 0.6667, 0.8)
    """
    check_confidence(confidence)
    table, scale, missing = pair_table(true, predicted, labels=labels)
    if positive in scale:
        place = scale.index(positive)
        binary = tables.one_against_rest(table)[place]
    elif labels is None and set(scale) <= {0, 1} and positive == 1:
        binary = np.array([[0.0, 0.0], [0.0, table.sum()]])
    else:
        known = ", ".join(map(repr, scale)) or "none"
        raise ValueError(f"The positive label {positive!r} does not occur; labels: {known}. Say which is `positive`.")
    (tp, fn), (fp, tn) = ((int(cell) for cell in row) for row in binary)
    return PrecisionRecallF1(
        precision=float_or_none(tables.precision(binary)),
        recall=float_or_none(tables.recall(binary)),
        f1=float_or_none(tables.f1(binary)),
        precision_interval=wilson(tp, tp + fp, confidence=confidence).interval,
        recall_interval=wilson(tp, tp + fn, confidence=confidence).interval,
        tp=tp,
        fp=fp,
        fn=fn,
        tn=tn,
        n=int(table.sum()),
        missing=missing,
    )


def balanced_accuracy(true: Side, predicted: Side, *, labels: Iterable[Hashable] | None = None) -> TableStatistic:
    """The mean recall of the labels that occur in the truth, so that a rare one weighs as much as a common one.

    1 is full agreement; a constant answer gets 1/K. Undefined (None) where fewer than two labels occur in the truth.

    Args:
        true: True labels; None or NaN is missing.
        predicted: Predicted labels, paired with them.
        labels: The full scale; it changes nothing but the check of labels.

    Reference: K. H. Brodersen and others, The balanced accuracy and its posterior distribution, ICPR (2010).

    Raises:
        ValueError: The sequences differ in length, or a label is none of ``labels``.

    >>> balanced_accuracy([1, 1, 1, 1, 0], [1, 1, 1, 1, 1]).value
    0.5
    """
    table, _, missing = pair_table(true, predicted, labels=labels)
    return TableStatistic(value=float_or_none(tables.balanced_accuracy(table)), n=int(table.sum()), missing=missing)
