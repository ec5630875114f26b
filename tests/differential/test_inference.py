"""Intervals, tests and corrections against scipy, statsmodels, scikit-learn, ppi-python and crowd-kit."""

import gc
import json
import math
import subprocess
import warnings
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bench.environments import python
from deemster.stats import (
    LabelledSide,
    alternative_annotator_test,
    benjamini_hochberg,
    benjamini_yekutieli,
    bootstrap,
    brier,
    calibration_error,
    clopper_pearson,
    corrected_difference,
    dawid_skene,
    detectable_difference,
    holm,
    mcnemar,
    newcombe,
    ppi_mean,
    sample_size,
    sign_flip,
    systematic_bias,
    wilson,
)
from tests.builders.published_numbers import ends

scipy_stats = pytest.importorskip("scipy.stats")
proportion = pytest.importorskip("statsmodels.stats.proportion")
multitest = pytest.importorskip("statsmodels.stats.multitest")
contingency = pytest.importorskip("statsmodels.stats.contingency_tables")
statsmodels = pytest.importorskip("statsmodels.api")
sklearn_metrics = pytest.importorskip("sklearn.metrics")

shares = st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
levels = st.sampled_from([0.8, 0.9, 0.95, 0.99])
binary = st.integers(0, 1)


@given(shares, levels)
def test_intervals_of_a_share_equal_statsmodels(counts, confidence):
    x, n = counts
    for ours, method in ((wilson, "wilson"), (clopper_pearson, "beta")):
        expected = proportion.proportion_confint(x, n, alpha=1 - confidence, method=method)
        assert ends(ours(x, n, confidence=confidence)) == pytest.approx(expected, abs=1e-9)


@given(shares, levels)
def test_exact_interval_equals_scipys(counts, confidence):
    expected = scipy_stats.binomtest(*counts).proportion_ci(confidence, method="exact")
    assert ends(clopper_pearson(*counts, confidence=confidence)) == pytest.approx(expected, abs=1e-9)


@given(shares, shares, levels)
def test_interval_of_a_difference_equals_statsmodels(first, second, confidence):
    expected = proportion.confint_proportions_2indep(
        *first, *second, compare="diff", method="newcomb", alpha=1 - confidence
    )
    assert ends(newcombe(*first, *second, confidence=confidence)) == pytest.approx(expected, abs=1e-9)


@given(st.integers(0, 300), st.integers(0, 300))
def test_mcnemar_equals_statsmodels(b, c):
    ours = mcnemar(b, c)
    if b + c == 0:
        return
    table = [[5, b], [c, 7]]
    assert ours.p_value == pytest.approx(contingency.mcnemar(table, exact=True).pvalue, abs=1e-12)
    plain = contingency.mcnemar(table, exact=False, correction=False)
    assert [ours.chi2, ours.chi2_p] == pytest.approx([plain.statistic, plain.pvalue], abs=1e-12)
    if b != c:
        # At b = c statsmodels takes |0 - 1|² for the corrected difference.
        corrected = contingency.mcnemar(table, exact=False, correction=True)
        assert [ours.corrected_chi2, ours.corrected_p] == pytest.approx(
            [corrected.statistic, corrected.pvalue], abs=1e-12
        )


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), levels)
def test_corrections_equal_statsmodels(raw, confidence):
    level = 1 - confidence
    for ours, method in ((holm, "holm"), (benjamini_hochberg, "fdr_bh"), (benjamini_yekutieli, "fdr_by")):
        # It collects garbage at the end of Holm's correction, which takes long in a process that has loaded all tests.
        with mock.patch.object(gc, "collect"):
            rejected, adjusted, _, _ = multitest.multipletests(raw, alpha=level, method=method)
        result = ours(raw, level=level)
        assert list(result.adjusted) == pytest.approx(adjusted.tolist(), abs=1e-12)
        clear = [abs(q - level) > 1e-9 for q in adjusted]
        assert [r for r, far in zip(result.rejected, clear, strict=True) if far] == rejected[clear].tolist()


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 3)), min_size=2, max_size=8), st.booleans())
def test_few_flips_equal_scipys_exact_permutation_test(pairs, whole):
    values = [value if whole else value / 4 for value, _ in pairs]
    for alternative in ("two-sided", "less", "greater"):
        expected = scipy_stats.permutation_test(
            (np.array(values), np.zeros(len(values))),
            lambda x, y, axis: np.sum(x - y, axis=axis),
            permutation_type="samples",
            vectorized=True,
            n_resamples=np.inf,
            alternative=alternative,
        )
        assert sign_flip(values, alternative=alternative).p_value == pytest.approx(expected.pvalue, abs=1e-12)


@given(st.lists(st.integers(-4, 9), min_size=22, max_size=60), st.integers(0, 1000))
def test_drawn_and_convolved_flips_are_near_scipys_draws(values, seed):
    ours = sign_flip(np.array(values) * 0.1)
    theirs = scipy_stats.permutation_test(
        (np.array(values), np.zeros(len(values))),
        lambda x, y, axis: np.sum(x - y, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=4000,
        rng=seed,
    )
    # scipy doubles the smaller tail, whose share of 4,000 draws is what is noisy, also where p is 1.
    tail = ours.p_value / 2
    noise = 2 * math.sqrt(tail * (1 - tail) / 4000)
    assert theirs.pvalue == pytest.approx(ours.p_value, abs=6 * noise + 0.005)


@given(
    st.lists(st.integers(0, 5), min_size=3, max_size=25).filter(lambda values: len(set(values)) > 1),
    st.sampled_from(["percentile", "bca"]),
    levels,
    st.integers(0, 10**6),
)
@example([1, 1, 3, 3], "bca", 0.99, 1)
def test_interval_ends_equal_scipys_on_the_same_replicates(values, method, confidence, seed):
    data = np.array(values, dtype=float)

    def variance(x, axis=-1):
        return np.var(x, axis=axis)

    ours = bootstrap(variance, data, method=method, seed=seed, n_resamples=200, confidence=confidence, keep=True)
    drawn = SimpleNamespace(bootstrap_distribution=np.array(ours.distribution))
    # If all units have the same influence, scipy divides 0 by 0 and gives no answer to compare with.
    with np.errstate(invalid="ignore"), warnings.catch_warnings(action="ignore"):
        theirs = scipy_stats.bootstrap(
            (data,),
            variance,
            n_resamples=0,
            bootstrap_result=drawn,
            method={"bca": "BCa"}.get(method, method),
            confidence_level=confidence,
        )
    if ours.note is None and np.isfinite(theirs.confidence_interval.low):
        # scipy takes values that differ in the last bit only for different: replicates that tie with the estimate, and
        # values without one unit, whose spread it then divides by itself. For us they are equal.
        close = np.abs(drawn.bootstrap_distribution - ours.value) < 1e-9
        without_one = [variance(np.delete(data, place)) for place in range(len(data))]
        same = (drawn.bootstrap_distribution[close] == ours.value).all() and not 0 < np.ptp(without_one) < 1e-9
        if method == "percentile" or same:
            assert ends(ours) == pytest.approx(theirs.confidence_interval, rel=1e-9, abs=1e-12)
    assert ours.standard_error == pytest.approx(theirs.standard_error)


@given(
    st.integers(1, 5).flatmap(
        lambda size: st.lists(st.lists(st.integers(-5, 5), min_size=size, max_size=size), min_size=2, max_size=8)
    )
)
def test_errors_of_clusters_of_one_size_equal_statsmodels(groups):
    values, clusters = np.array(groups, dtype=float).ravel(), np.repeat(np.arange(len(groups)), len(groups[0]))
    ours = systematic_bias(values, np.zeros(len(values)), clusters=clusters)
    if ours.ci is None:
        return
    fit = statsmodels.OLS(values, np.ones_like(values)).fit(
        cov_type="cluster", cov_kwds={"groups": clusters}, use_t=True
    )
    assert ours.mean_bias == pytest.approx(fit.params[0], abs=1e-12)
    # CR2 is CR1 where all clusters are of one size, and so are the degrees of freedom.
    assert [ours.ci.lower, ours.ci.upper] == pytest.approx(fit.conf_int()[0].tolist(), rel=1e-9, abs=1e-9)
    assert ours.p_value == pytest.approx(fit.pvalues[0], rel=1e-6, abs=1e-12)


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=3, max_size=40),
    st.lists(st.floats(0, 1), min_size=2, max_size=60),
    st.sampled_from([None, 0.0, 0.5, 1.0]),
)
def test_prediction_powered_means_equal_ppi_pythons(labelled, unlabelled, lam):
    ppi = pytest.importorskip("ppi_py")
    y, known, others = np.array(labelled)[:, 0], np.array(labelled)[:, 1], np.array(unlabelled)
    if np.ptp(known) < 1e-3 or np.ptp(others) < 1e-3 or np.ptp(y) < 1e-3:
        return
    ours = ppi_mean(y, known, others, lam=lam, confidence=0.9)
    point = ppi.ppi_mean_pointestimate(y, known, others, lam=lam)
    low, high = ppi.ppi_mean_ci(y, known, others, alpha=0.1, lam=lam)
    assert ours.value == pytest.approx(float(point[0]), abs=1e-9)
    assert ends(ours) == pytest.approx([float(low[0]), float(high[0])], abs=1e-9)


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0.1, 10)), min_size=3, max_size=40),
    st.lists(st.floats(0, 1), min_size=2, max_size=60),
    st.sampled_from([0.0, 0.5, 1.0]),
)
def test_weighted_prediction_powered_means_equal_ppi_pythons(labelled, unlabelled, lam):
    ppi = pytest.importorskip("ppi_py")
    y, known, weights = np.array(labelled).T
    others = np.array(unlabelled)
    point = ppi.ppi_mean_pointestimate(y, known, others, lam=lam, w=weights)
    assert ppi_mean(y, known, others, lam=lam, weights=weights).value == pytest.approx(float(point[0]), abs=1e-9)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0.1, 10)), min_size=3, max_size=40))
def test_errors_of_weighted_labels_equal_those_of_a_robust_regression(labelled):
    y, weights = np.array(labelled).T
    fit = statsmodels.WLS(y, np.ones(len(y)), weights=weights).fit(cov_type="HC0")
    ours = ppi_mean(y, np.zeros(len(y)), [0.0], weights=weights)
    assert ours.classical == pytest.approx(fit.params[0], abs=1e-9)
    assert ours.classical_error == pytest.approx(fit.bse[0], abs=1e-9)


@given(st.integers(0, 2**31), st.sampled_from([20, 60]))
def test_corrected_difference_is_that_of_two_prediction_powered_means(seed, n):
    ppi = pytest.importorskip("ppi_py")
    rng = np.random.default_rng(seed)
    truth = rng.random((2, 200))
    judged = np.clip(truth + rng.normal(0.1, 0.2, (2, 200)), 0, 1)
    places = [rng.choice(200, n, replace=False) for _ in range(2)]
    sides = [LabelledSide(judged[at], places[at], truth[at][places[at]], judged[at][places[at]]) for at in range(2)]
    means = [
        float(ppi.ppi_mean_pointestimate(one.truth, one.judged, one.predicted, lam=weight)[0])
        for one, weight in zip(sides, corrected_difference(*sides).weights, strict=True)
    ]
    assert corrected_difference(*sides).value == pytest.approx(means[1] - means[0], abs=1e-9)


@given(st.lists(st.tuples(binary, st.floats(0, 1)), min_size=2, max_size=40))
def test_brier_equals_scikit_learns(pairs):
    outcomes, stated = [y for y, _ in pairs], [p for _, p in pairs]
    expected = sklearn_metrics.brier_score_loss(outcomes, stated, pos_label=1)
    assert brier(outcomes, stated).value == pytest.approx(expected, abs=1e-12)


@given(st.lists(st.tuples(st.integers(0, 2), st.tuples(*[st.floats(0.01, 1)] * 3)), min_size=2, max_size=30))
def test_brier_of_several_classes_equals_scikit_learns(pairs):
    outcomes, stated = [y for y, _ in pairs], np.array([row for _, row in pairs])
    stated /= stated.sum(axis=1, keepdims=True)
    expected = sklearn_metrics.brier_score_loss(outcomes, stated, labels=[0, 1, 2], scale_by_half=False)
    assert brier(outcomes, stated).value == pytest.approx(expected, abs=1e-9)


@given(st.lists(st.tuples(binary, st.integers(0, 1000)), min_size=1, max_size=60), st.integers(1, 15))
def test_calibration_error_equals_a_loop_over_bins(pairs, bins):
    stated = [p / 1000 for _, p in pairs]
    total = 0.0
    for place in range(bins):
        # In thousandths, so that no edge is a matter of rounding.
        inside = [
            (y, p / 1000)
            for y, p in pairs
            if place * 1000 <= p * bins and (p * bins < (place + 1) * 1000 or place == bins - 1)
        ]
        total += abs(sum(y for y, _ in inside) - sum(p for _, p in inside)) / len(pairs)
    assert calibration_error([y for y, _ in pairs], stated, bins=bins).value == pytest.approx(total, abs=1e-9)


@given(st.lists(st.tuples(*[st.integers(0, 2)] * 4), min_size=30, max_size=50), st.sampled_from([0.0, 0.1, 0.2]))
def test_annotator_test_equals_scipys_t_tests(rows, epsilon):
    judge, people = [row[0] for row in rows], [[row[place] for row in rows] for place in (1, 2, 3)]
    result = alternative_annotator_test(judge, people, epsilon=epsilon)
    for place in range(3):
        others = [labels for other, labels in enumerate(people) if other != place]
        gaps = []
        for item, label in enumerate(judge):
            mine = sum(labels[item] == people[place][item] for labels in others)
            his = sum(labels[item] == label for labels in others)
            gaps.append((mine >= his) - (his >= mine))
        if len(set(gaps)) > 1:
            expected = scipy_stats.ttest_1samp(gaps, epsilon, alternative="less").pvalue
            assert result.trials[place].p_value == pytest.approx(expected, abs=1e-12)


@given(st.floats(0.01, 1), st.floats(0.05, 0.5), st.sampled_from([0.7, 0.8, 0.95]))
def test_size_of_a_sample_equals_statsmodels_normal_power(variance, difference, power):
    stats_power = pytest.importorskip("statsmodels.stats.power")
    effect = difference / math.sqrt(variance)
    found = sample_size(variance, difference, power=power)
    # The formula leaves out the chance to reject on the wrong side, which is below 1e-4 from power .7 on.
    reached = stats_power.normal_power(effect, found.exact, 0.05, sigma=1.0)
    assert reached == pytest.approx(power, abs=1e-4)
    assert detectable_difference(variance, 100, power=power).value == pytest.approx(
        math.sqrt(found.exact / 100) * difference
    )


PEER = """
import json, sys
import pandas as pd
from crowdkit.aggregation import DawidSkene
answers = []
for case in json.load(sys.stdin):
    frame = pd.DataFrame(case["votes"], columns=["task", "worker", "label"])
    model = DawidSkene(n_iter=case["rounds"], tol=-1e18).fit(frame)
    table = model.probas_.sort_index()
    table = table[sorted(table.columns)]
    answers.append({"posterior": table.to_numpy().tolist(), "priors": model.priors_.sort_index().tolist()})
json.dump(answers, sys.stdout)
"""


def test_latent_labels_equal_crowd_kits():
    rng = np.random.default_rng(12)
    cases = []
    for rounds in (1, 2, 5, 20) * 2:
        kinds, judges, items = int(rng.integers(2, 5)), int(rng.integers(3, 7)), 120
        truth = rng.integers(0, kinds, items)
        skills = rng.uniform(0.45, 0.8, judges)
        cases.append(
            {
                "rounds": rounds,
                "votes": [
                    [item, judge, int(truth[item] if rng.random() < skills[judge] else rng.integers(0, kinds))]
                    for item in range(items)
                    for judge in range(judges)
                    if rng.random() < 0.85 or judge == 0
                ],
            }
        )
    answer = subprocess.run(
        [python("crowd-kit"), "-W", "ignore", "-c", PEER],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        check=True,
    )
    for case, expected in zip(cases, json.loads(answer.stdout), strict=True):
        votes = {}
        for item, judge, label in case["votes"]:
            votes.setdefault(item, {})[judge] = label
        ours = dawid_skene(votes, rounds=case["rounds"], tolerance=-math.inf)
        assert np.abs(np.array(ours.posterior) - expected["posterior"]).max() < 1e-6
        assert ours.priors == pytest.approx(expected["priors"], abs=1e-6)
