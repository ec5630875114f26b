"""Forms of input: numpy scalars, frames, missing values, and values that are not numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import msgspec
import numpy as np
import pandas as pd
import pytest

from deemster import stats

NAN = math.nan


@pytest.mark.parametrize(
    "side",
    [
        ["a", None, "b"],
        np.array(["a", None, "b"], dtype=object),
        pd.Series(["a", None, "b"]),
        pd.Series(["a", pd.NA, "b"], dtype="string"),
    ],
)
def test_missing_word_is_missing_in_every_form(side):
    result = stats.confusion(side, ["a", "b", "b"])
    assert (result.matrix, result.labels, result.n, result.missing) == (((1, 0), (0, 1)), ("a", "b"), 2, 1)


@pytest.mark.parametrize(
    "side",
    [
        [1, None, 2],
        [1.0, NAN, 2.0],
        [np.float32(1), np.float32("nan"), np.float32(2)],
        list(np.array([1, NAN, 2])),
        pd.Series([1, None, 2], dtype="Int64"),
    ],
)
def test_missing_number_is_missing_in_every_form(side):
    result = stats.confusion(side, [1, 2, 2])
    assert (result.matrix, result.labels, result.n, result.missing) == (((1, 0), (0, 1)), (1, 2), 2, 1)
    assert all(type(label) in {int, float} for label in result.labels)


@pytest.mark.parametrize("level", ["ordinal", "interval", "ratio"])
def test_numpy_scalars_are_numbers(level):
    plain, boxed = [[1, 2, 3], [1, 2, 2]], [list(np.array([1, 2, 3])), list(np.array([1, 2, 2]))]
    assert stats.krippendorff_alpha(boxed, level=level) == stats.krippendorff_alpha(plain, level=level)
    people = [[np.int64(1), np.int64(2)] * 20] * 3
    result = stats.alternative_annotator_test(people[0], people, ordinal=True)
    assert result.value == 1.0


def test_dawid_skene_sorts_labels_of_any_number_type():
    votes = [[np.int64(10), np.int64(10)], [np.int64(9), np.int64(9)]]
    assert stats.dawid_skene(votes).classes == (9, 10)


@pytest.mark.parametrize("statistic", [stats.krippendorff_alpha, stats.gwet_ac, stats.dawid_skene])
@pytest.mark.parametrize("rows", [[1, 2, 3], pd.DataFrame({"ann1": [1, 2, 3], "ann2": [1, 2, 2]}), ["yes", "no "]])
def test_scalar_in_place_of_row_is_error(statistic, rows):
    with pytest.raises(ValueError, match="a word or a number is no row"):
        statistic(rows)


@pytest.mark.parametrize("statistic", [stats.icc, stats.fleiss_kappa])
def test_rows_of_different_length_are_value_error(statistic):
    with pytest.raises(ValueError, match="rows of different length"):
        statistic([[1, 2], [1]])
    assert statistic([]).n == 0


@pytest.mark.parametrize(
    "act",
    [
        lambda: stats.pearson([10**400, 1, 2], [1, 2, 3]),
        lambda: stats.sign_flip(["a"]),
        lambda: stats.ppi_mean(["a"], [1], [1]),
    ],
)
def test_non_number_is_error_with_its_name(act):
    with pytest.raises(ValueError, match=r"holds? something that is no number"):
        act()


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda: stats.cohen_kappa([1, 2], [1, 2], weights=[["a", "b"], ["c", "d"]]), "square matrix of numbers"),
        (lambda: stats.sign_flip([1, 2], clusters=[None, 1]), "None and NaN are none"),
        (lambda: stats.sign_flip([1, 2], clusters=np.array([NAN, 1])), "None and NaN are none"),
        (lambda: stats.bootstrap(np.mean, [1, 2], seed=1.5), "whole number from 0 on"),
        (lambda: stats.ppi_mean([1, 0], [1, 0], [1], lam=NAN), "finite number"),
        (
            lambda: stats.rogan_gladen(0.5, n=NAN, sensitivity=0.9, positives=9, specificity=0.9, negatives=9),
            "at least one item",
        ),
        (lambda: stats.detectable_difference(1, NAN), "at least one sample"),
        (lambda: stats.sample_size(math.inf, 0.1), "finite and at least 0; given: inf"),
        (lambda: stats.sample_size(1, 1e-200), "more samples than can be counted"),
        (lambda: stats.earth_movers_distance([0.5], [0.2], scale=(0, math.inf)), "two ends"),
        (lambda: stats.pass_at_k([1, 2], attempts=[5, 5, 5], k=1), "2 tasks and 3 attempts"),
        (lambda: stats.pass_at_k("a", attempts=5, k=1), "whole numbers"),
        (lambda: stats.pass_at_k(None, attempts=5, k=1), "whole numbers"),
        (lambda: stats.pass_at_k(1, attempts=5, k=1.5), "whole number of attempts"),
    ],
)
def test_impossible_argument_is_error(act, said):
    with pytest.raises(ValueError, match=said):
        act()


def test_results_hold_plain_python_numbers():
    x, n = np.int64(3), np.int64(5)
    for result in (stats.wilson(x, n), stats.clopper_pearson(x, n), stats.newcombe(x, n, x, n)):
        # The encoder knows no number of numpy's.
        assert msgspec.json.decode(msgspec.json.encode(result))["interval"]["confidence"] == 0.95
    assert stats.wilson(x, n) == stats.wilson(3, 5)


def test_every_statistic_can_be_bootstrapped():
    truth, judge = ["x", "y", "x", "y", "x", "y"], ["x", "y", "y", "y", "x", "x"]
    bare = stats.bootstrap(stats.cohen_kappa, truth, judge, seed=3, n_resamples=60)
    assert bare == stats.bootstrap(lambda a, b: stats.cohen_kappa(a, b).value, truth, judge, seed=3, n_resamples=60)
    assert bare.value == pytest.approx(1 / 3)


def test_scores_that_differ_by_rounding_have_a_histogram():
    result = stats.score_distribution([0.3, 0.1 + 0.2, 0.3])
    assert sum(result.histogram[0]) == 3
    assert len(result.histogram[1]) == 11


def test_constant_shift_has_limits_without_width_and_no_interval_of_rounding():
    result = stats.limits_of_agreement([0.6, 0.7, 0.8], [0.5, 0.6, 0.7])
    assert (result.sd, result.lower, result.upper) == (0.0, result.value, result.value)
    assert (result.interval, result.lower_interval, result.upper_interval) == (None, None, None)


def test_exact_and_mid_p_of_many_pairs_are_right_to_the_last_digits():
    b, c = 10_000, 10_400
    ways = math.comb(b + c, b)
    at, tail = ways, 0
    for k in range(b, b - 3000, -1):
        tail += ways
        ways = ways * k // (b + c - k + 1)
    result = stats.mcnemar(b, c)
    assert result.p_value == pytest.approx(float(Fraction(2 * tail, 2 ** (b + c))), rel=1e-12)
    assert result.mid_p == pytest.approx(float(Fraction(2 * tail - at, 2 ** (b + c))), rel=1e-12)


STATISTICS = [
    "cohen_kappa",
    "scott_pi",
    "pabak",
    "gwet_ac",
    "fleiss_kappa",
    "krippendorff_alpha",
    "icc",
    "phi",
    "precision_recall_f1",
    "balanced_accuracy",
    "confusion",
    "pearson",
    "spearman",
    "kendall",
    "concordance",
    "limits_of_agreement",
    "wilson",
    "clopper_pearson",
    "newcombe",
    "mcnemar",
    "sign_flip",
    "bootstrap",
    "holm",
    "benjamini_hochberg",
    "benjamini_yekutieli",
    "ppi_mean",
    "rogan_gladen",
    "dawid_skene",
    "brier",
    "calibration_error",
    "alternative_annotator_test",
    "earth_movers_distance",
    "ks_test",
    "score_distribution",
    "systematic_bias",
    "sample_size",
    "detectable_difference",
    "pass_at_k",
]


@pytest.mark.parametrize("name", STATISTICS)
def test_every_statistic_names_its_source_its_limits_and_an_example(name):
    text = " ".join(getattr(stats, name).__doc__.split())
    assert "Reference" in text
    assert "Raises: ValueError" in text
    assert ">>>" in text
    assert "ndefined" in text or "defined for every" in text
