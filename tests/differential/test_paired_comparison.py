"""Comparisons of two runs against scipy, statsmodels, statgate, evalstats and direct optimisation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from deemster.stats import fisher_exact, holm, mcnemar, paired_difference, sign_flip, tango

scipy_stats = pytest.importorskip("scipy.stats")
contingency = pytest.importorskip("statsmodels.stats.contingency_tables")
multitest = pytest.importorskip("statsmodels.stats.multitest")

counts = st.integers(0, 25).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(counts, counts, st.sampled_from(["two-sided", "less", "greater"]))
def test_fishers_test_equals_scipys(before, after, alternative):
    (x, n), (y, m) = before, after
    expected = scipy_stats.fisher_exact([[y, m - y], [x, n - x]], alternative=alternative).pvalue if n and m else 1.0
    assert fisher_exact(x, n, y, m, alternative=alternative)[0] == pytest.approx(expected, abs=1e-12)


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0]), min_size=2, max_size=9))
def test_the_sign_flip_test_equals_scipys_permutation_test(differences):
    expected = scipy_stats.permutation_test(
        (np.array(differences),),
        np.mean,
        permutation_type="samples",
        n_resamples=np.inf,
    ).pvalue
    # scipy doubles the smaller tail, which is the same for a symmetric law.
    assert sign_flip(differences).p_value == pytest.approx(expected)


@given(st.integers(0, 40), st.integers(0, 40))
def test_mcnemars_exact_test_equals_statsmodels(worse, better):
    if worse + better:
        expected = contingency.mcnemar([[5, worse], [better, 5]], exact=True).pvalue
        assert mcnemar(worse, better).p_value == pytest.approx(expected)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_failing_after_holms_correction_equals_statsmodels(p_values):
    rejected, adjusted, *_ = multitest.multipletests(p_values, alpha=0.05, method="holm")
    ours = holm(p_values)
    assert ours.adjusted == pytest.approx(adjusted)
    assert list(ours.rejected) == rejected.tolist()


@given(st.lists(st.floats(0.01, 1), min_size=50, max_size=80, unique=True), st.floats(-0.1, 0.1))
def test_bounds_of_many_symmetric_changes_equal_scipys_t_test(sizes, margin):
    differences = np.array([*sizes, *(-size for size in sizes)])
    ours = paired_difference(differences)
    if ours.interval.method == "empirical likelihood":
        return
    expected = scipy_stats.ttest_1samp(differences, 0).confidence_interval(0.95)
    assert (ours.interval.lower, ours.interval.upper) == pytest.approx((expected.low, expected.high))
    test = scipy_stats.ttest_1samp(differences, -abs(margin), alternative="less")
    assert paired_difference(differences, margin=abs(margin)).p_beyond == pytest.approx(test.pvalue, abs=1e-12)


def tango_by_optimisation(gained, lost, n, z):
    """The ends where the score test with the constrained maximum of the likelihood is exactly z."""

    def score(delta):
        low, high = max(0.0, -delta), (1 - delta) / 2

        def loss(share):
            """Minus the log-likelihood of the flips, where gains are more by delta."""
            parts = ((lost, share), (gained, share + delta), (n - lost - gained, 1 - 2 * share - delta))
            return -sum(count * math.log(max(chance, 1e-300)) for count, chance in parts if count)

        share = optimize.minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-12}).x
        return (gained - lost - n * delta) / math.sqrt(n * (2 * share + delta - delta**2))

    value = (gained - lost) / n
    return (
        optimize.brentq(lambda delta: score(delta) - z, -1 + 1e-9, value - 1e-9),
        optimize.brentq(lambda delta: score(delta) + z, value + 1e-9, 1 - 1e-9),
    )


@pytest.mark.parametrize(("gained", "lost", "n"), [(1, 7, 21), (5, 3, 40), (12, 30, 100), (2, 0, 15), (0, 4, 60)])
def test_tangos_interval_equals_its_definition(gained, lost, n):
    interval = tango(gained, lost, n).interval
    expected = tango_by_optimisation(gained, lost, n, scipy_stats.norm.ppf(0.975))
    assert (interval.lower, interval.upper) == pytest.approx(expected, abs=2e-5)
