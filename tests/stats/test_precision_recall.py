from __future__ import annotations

import pytest

from deemster.stats import (
    precision_recall_f1,
)


def test_class_that_occurs_nowhere_has_no_precision_recall_or_f1():
    result = precision_recall_f1([0, 0, 0], [0, 0, 0])
    assert (result.precision, result.recall, result.f1, result.tn) == (None, None, None, 3)
    named = precision_recall_f1(["UNMET"], ["UNMET"], positive="MET", labels=["MET", "UNMET"])
    assert (named.precision, named.recall, named.f1) == (None, None, None)


def test_precision_and_recall_carry_wilson_intervals():
    result = precision_recall_f1([1] * 4 + [0] * 6, [1, 1, 1, 0, 1, 0, 0, 0, 0, 0])
    assert (result.tp, result.fn, result.fp, result.tn) == (3, 1, 1, 5)
    assert (result.precision_interval.lower, result.precision_interval.upper) == pytest.approx(
        (0.3006, 0.9544), abs=5e-5
    )
