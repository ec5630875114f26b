"""Correlation, reliability of numbers and distributions against scipy and pingouin."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy import stats

from deemster.stats import confusion_tables as tables
from deemster.stats import (
    earth_movers_distance,
    icc,
    kendall,
    ks_test,
    pearson,
    score_distribution,
    spearman,
    systematic_bias,
)
from deemster.stats.krippendorff_alpha import interval_alpha, spread_features
from deemster.stats.rank_correlation import weighted_kendall, weighted_spearman
from tests.differential.peers import quiet

scores = st.one_of(
    st.integers(0, 4).map(float),
    st.integers(0, 100).map(lambda share: share / 100),
    st.floats(-1000, 1000).map(lambda value: round(value, 3)),
)
paired = st.lists(st.tuples(scores, scores), min_size=3, max_size=45).map(
    lambda pairs: tuple(map(list, zip(*pairs, strict=True)))
)


@given(paired)
@example(([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]))
@example(([1.0, 2.0, 3.0, 4.0], [2.0, 1.0, 4.0, 3.0]))
def test_correlations_and_p_values_equal_scipy(data):
    x, y = data
    constant = len(set(x)) < 2 or len(set(y)) < 2
    for ours, theirs in ((pearson, stats.pearsonr), (spearman, stats.spearmanr), (kendall, stats.kendalltau)):
        found, known = ours(x, y), quiet(theirs, x, y)
        if constant:
            assert (found.value, found.p_value) == (None, None)
            continue
        assert found.value == pytest.approx(known.statistic, abs=1e-10)
        if ours is spearman and len(x) <= 9:
            # Exact where scipy takes Student's t; all orders are gone through in the tests of the function.
            assert 0 < found.p_value <= 1
        elif abs(known.statistic) < 1 - 1e-9:
            assert found.p_value == pytest.approx(known.pvalue, rel=1e-6, abs=1e-12)
        else:
            # At ±1 the p-value hangs on the last digit of the coefficient.
            assert found.p_value <= known.pvalue + 1e-6


@pytest.mark.parametrize("n", [3, 4, 5, 8, 20, 33, 34, 60])
def test_kendall_without_ties_has_the_exact_p_value_of_scipy(n):
    rng = np.random.default_rng(n)
    for noise in (0.0, 0.05, 0.3, 5.0):
        x = rng.permutation(n).astype(float)
        y = x + noise * n * rng.normal(size=n)
        for sign in (1, -1):
            found, known = kendall(x, sign * y), stats.kendalltau(x, sign * y)
            assert found.value == pytest.approx(known.statistic, abs=1e-12)
            assert found.p_value == pytest.approx(known.pvalue, rel=1e-9)


def test_kendall_of_ten_thousand_scores_equals_scipy():
    rng = np.random.default_rng(1)
    x = np.round(rng.random(10_000), 2)
    y = np.round(x + rng.normal(size=10_000) * 0.5, 2)
    found, known = kendall(x, y), stats.kendalltau(x, y)
    assert found.value == pytest.approx(known.statistic, abs=1e-12)
    assert spearman(x, y).value == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)


@given(st.integers(2, 5), st.data())
def test_rank_correlations_of_table_equal_those_of_pairs(size, data):
    cells = data.draw(st.lists(st.integers(0, 4), min_size=size * size, max_size=size * size))
    table = np.array(cells).reshape(size, size)
    x, y = (np.repeat(side.ravel(), table.ravel()) for side in np.indices(table.shape))
    ours = tables.spearman(table).item(), tables.kendall(table).item()
    if len(x) < 3 or len(set(x)) < 2 or len(set(y)) < 2:
        assert np.isnan(ours).all()
    else:
        assert ours == pytest.approx((stats.spearmanr(x, y)[0], stats.kendalltau(x, y)[0]), abs=1e-12)


@given(paired, st.randoms(use_true_random=False))
def test_weighted_replicates_equal_correlations_of_drawn_items(data, random):
    x, y = map(np.array, data)
    n = len(x)
    draws = np.array([[random.randrange(n) for _ in range(n)] for _ in range(4)])
    weights = np.stack([np.bincount(draw, minlength=n) for draw in draws], axis=1)
    found = weighted_spearman(x, y, weights), weighted_kendall(x, y, weights)
    for column, draw in enumerate(draws):
        u, v = x[draw], y[draw]
        if len(set(u)) < 2 or len(set(v)) < 2:
            assert np.isnan([side[column] for side in found]).all()
        else:
            known = stats.spearmanr(u, v)[0], stats.kendalltau(u, v)[0]
            assert [side[column] for side in found] == pytest.approx(known, abs=1e-10)


@given(
    st.tuples(st.integers(2, 8), st.integers(2, 5)).flatmap(
        lambda shape: st.lists(
            st.lists(st.integers(0, 10), min_size=shape[1], max_size=shape[1]), min_size=shape[0], max_size=shape[0]
        )
    )
)
def test_icc_equals_analysis_of_variance_by_loops(ratings):
    x = np.array(ratings, dtype=float)
    n, k = x.shape
    grand = x.mean()
    b = k * sum((row.mean() - grand) ** 2 for row in x) / (n - 1)
    w = sum(((row - row.mean()) ** 2).sum() for row in x) / (n * (k - 1))
    j = n * sum((column.mean() - grand) ** 2 for column in x.T) / (k - 1)
    e = sum((x[i, c] - x[i].mean() - x[:, c].mean() + grand) ** 2 for i in range(n) for c in range(k)) / (
        (n - 1) * (k - 1)
    )
    assume(b > 1e-9)
    found = icc(ratings)
    assert found.icc_1_1.value == pytest.approx((b - w) / (b + (k - 1) * w), abs=1e-9)
    assert found.icc_3_1.value == pytest.approx((b - e) / (b + (k - 1) * e), abs=1e-9)
    assert found.icc_1_k.value == pytest.approx((b - w) / b, abs=1e-9)
    assert found.icc_3_k.value == pytest.approx((b - e) / b, abs=1e-9)
    for value, below, above in (
        (found.icc_2_1.value, b + (k - 1) * e + k * (j - e) / n, b - e),
        (found.icc_2_k.value, b + (j - e) / n, b - e),
    ):
        if abs(below) > 1e-9:
            assert value == pytest.approx(above / below, rel=1e-6, abs=1e-9)


def test_icc_tests_and_intervals_equal_pingouin():
    pandas = pytest.importorskip("pandas")
    pingouin = quiet(pytest.importorskip, "pingouin")
    rng = np.random.default_rng(8)
    for n, k, noise in ((6, 3, 0.5), (12, 4, 1.0), (30, 2, 2.0)):
        ratings = rng.normal(size=(n, 1)) + noise * rng.normal(size=(n, k)) + 0.4 * np.arange(k)
        long = pandas.DataFrame(
            {
                "unit": np.repeat(np.arange(n), k),
                "rater": np.tile(np.arange(k), n),
                "score": ratings.ravel(),
            }
        )
        theirs = quiet(pingouin.intraclass_corr, data=long, targets="unit", raters="rater", ratings="score")
        found = icc(ratings)
        forms = [found.icc_1_1, found.icc_2_1, found.icc_3_1, found.icc_1_k, found.icc_2_k, found.icc_3_k]
        bounds = theirs[next(name for name in theirs.columns if name.startswith("CI95"))]
        for place, form in enumerate(forms):
            row = theirs.iloc[place]
            assert form.value == pytest.approx(row["ICC"], abs=1e-9)
            assert form.f == pytest.approx(row["F"], rel=1e-9)
            assert form.p_value == pytest.approx(row[next(c for c in theirs.columns if c.startswith("p"))], rel=1e-6)
            assert (form.df1, form.df2) == (row["df1"], row["df2"])
            # pingouin rounds the ends to two digits.
            assert (form.interval.lower, form.interval.upper) == pytest.approx(tuple(bounds.iloc[place]), abs=0.0051)


@given(st.lists(st.integers(0, 100), min_size=1, max_size=20), st.lists(st.integers(0, 100), min_size=1, max_size=20))
def test_distances_and_distribution_tests_equal_scipy(a, b):
    a, b = np.array(a) / 100, np.array(b) / 100
    assert earth_movers_distance(a, b).emd == pytest.approx(stats.wasserstein_distance(a, b), abs=1e-12)
    found, known = ks_test(a, b), quiet(stats.ks_2samp, a, b)
    assert (found.statistic, found.p_value) == pytest.approx((known.statistic, known.pvalue))


def test_normality_test_equals_lilliefors():
    lilliefors = pytest.importorskip("statsmodels.stats.diagnostic").lilliefors
    rng = np.random.default_rng(12)
    for size, shape in ((15, 3.0), (40, 2.0), (60, 6.0)):
        sample = rng.gamma(shape, size=size)
        statistic, p_value = lilliefors(sample, pvalmethod="table")
        found = ks_test(sample, seed=3)
        assert found.statistic == pytest.approx(statistic)
        if 0.002 < p_value < 0.19:
            assert found.p_value == pytest.approx(p_value, abs=0.03)


@given(st.lists(st.integers(0, 50).map(lambda value: value / 50), min_size=4, max_size=30))
def test_skewness_and_kurtosis_equal_scipy(sample):
    found = score_distribution(sample)
    if len(set(sample)) < 2:
        assert (found.skewness, found.kurtosis) == (None, None)
        return
    assert found.skewness == pytest.approx(stats.skew(sample), abs=1e-9)
    assert found.kurtosis == pytest.approx(stats.kurtosis(sample), abs=1e-9)
    assert (found.q25, found.median, found.q75) == pytest.approx(tuple(np.percentile(sample, [25, 50, 75])))
    assert found.std == pytest.approx(np.std(sample, ddof=1))


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=2, max_size=30))
def test_bias_test_equals_scipy_t_test_with_spread(pairs):
    a, b = (np.array(side) / 40 for side in zip(*pairs, strict=True))
    found = systematic_bias(a, b)
    if len({x - y for x, y in pairs}) < 2:
        assert (found.p_value, found.ci, found.effect_size) == (None, None, None)
    else:
        known = stats.ttest_rel(a, b)
        interval = known.confidence_interval(0.95)
        assert found.p_value == pytest.approx(known.pvalue, rel=1e-8, abs=1e-12)
        assert (found.ci.lower, found.ci.upper) == pytest.approx((interval.low, interval.high), abs=1e-10)
    welch = systematic_bias(a, b, paired=False)
    if len(set(a)) < 2 and len(set(b)) < 2:
        assert welch.p_value is None
    else:
        known = quiet(stats.ttest_ind, a, b, equal_var=False)
        interval = known.confidence_interval(0.95)
        assert welch.p_value == pytest.approx(known.pvalue, rel=1e-8, abs=1e-12)
        assert (welch.ci.lower, welch.ci.upper) == pytest.approx((interval.low, interval.high), abs=1e-10)


def test_interval_alpha_from_sums_equals_resampled_units():
    import krippendorff

    rng = np.random.default_rng(6)
    values = rng.random((30, 3)) + rng.random((30, 1))
    values[rng.random(values.shape) < 0.2] = np.nan
    counts = np.stack([np.bincount(rng.integers(0, 30, 30), minlength=30) for _ in range(5)])
    centred = values - np.nanmean(values)
    found = interval_alpha(counts @ spread_features(centred))
    for row, ours in zip(counts, found, strict=True):
        drawn = np.repeat(values, row, axis=0).T
        known = krippendorff.alpha(reliability_data=drawn, level_of_measurement="interval")
        assert ours == pytest.approx(known, abs=1e-9)
    assert math.isnan(interval_alpha(spread_features(np.zeros((4, 2))).sum(axis=0)).item())
