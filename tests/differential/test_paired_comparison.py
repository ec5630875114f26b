"""Comparisons of two runs against scipy, statsmodels, statgate, evalstats and direct optimisation."""

import json
import math
import subprocess

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from bench.environments import python
from deemster.stats import fisher_exact, mcnemar, paired_difference, sign_flip, tango

scipy_stats = pytest.importorskip("scipy.stats")
contingency = pytest.importorskip("statsmodels.stats.contingency_tables")

counts = st.integers(0, 25).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(counts, counts, st.sampled_from(["two-sided", "less", "greater"]))
def test_fishers_test_equals_scipys(before, after, alternative):
    (x, n), (y, m) = before, after
    expected = scipy_stats.fisher_exact([[y, m - y], [x, n - x]], alternative=alternative).pvalue if n and m else 1.0
    assert fisher_exact(x, n, y, m, alternative=alternative)[0] == pytest.approx(expected, abs=1e-12)


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0]), min_size=2, max_size=9))
def test_sign_flip_test_equals_scipys_permutation_test(differences):
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


EVALSTATS = """
import json, sys
import numpy as np
from evalstats.core.paired import pairwise_differences

told = []
for before, after in json.load(sys.stdin):
    scores = np.array([after, before])
    row = {}
    for method in ("tango", "t_interval", "permutation"):
        found = pairwise_differences(scores, 0, 1, method=method, rng=np.random.default_rng(0), n_bootstrap=4000)
        row[method] = [float(found.ci_low), float(found.ci_high), float(found.p_value)]
    told.append({**row, "value": float(found.point_diff)})
print(json.dumps(told))
"""
STATGATE = """
import json, sys
from statgate.config import GateSettings
from statgate.records import EvalRecord
from statgate.verdict import evaluate_gate

told = []
for before, after in json.load(sys.stdin):
    runs = [[EvalRecord(case_id=str(place), score=x) for place, x in enumerate(side)] for side in (before, after)]
    report = evaluate_gate(*runs, GateSettings(seed=1, margin=0.02))
    told.append([report.verdict.value, report.mean_diff, report.interval.low, report.interval.high, report.p_value])
print(json.dumps(told))
"""


def ask_peer(peer, code, comparisons):
    done = subprocess.run(
        [python(peer), "-W", "ignore", "-c", code],
        input=json.dumps(comparisons),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def drawn_passes(count=8):
    rng = np.random.default_rng(21)
    comparisons = []
    for _ in range(count):
        n = int(rng.integers(15, 120))
        before = rng.integers(0, 2, n)
        comparisons.append((before.tolist(), np.where(rng.random(n) < 0.3, 1 - before, before).tolist()))
    return comparisons


def test_tangos_interval_and_the_sign_flip_test_equal_those_of_evalstats():
    comparisons = drawn_passes()
    for (before, after), theirs in zip(comparisons, ask_peer("evalstats", EVALSTATS, comparisons), strict=True):
        moved = np.array(after) - np.array(before)
        worse, better, n = int((moved < 0).sum()), int((moved > 0).sum()), len(moved)
        ours = tango(better, worse, n)
        assert ours.value == pytest.approx(theirs["value"])
        assert [ours.interval.lower, ours.interval.upper] == pytest.approx(theirs["tango"][:2], abs=1e-9)
        assert mcnemar(worse, better).mid_p == pytest.approx(theirs["tango"][2], abs=1e-9)
        # Theirs is drawn.
        assert sign_flip(moved).p_value == pytest.approx(theirs["permutation"][2], abs=0.03)
        # Few changes make ours wider than t; many do not, except for the skewness of flips.
        found = paired_difference(moved)
        low, high, _ = theirs["t_interval"]
        assert found.interval.lower <= low + 1e-9
        assert found.interval.upper >= high - 1e-9


def test_same_data_have_the_same_difference_in_statgate_and_a_width_in_ours():
    comparisons = [*drawn_passes(4), ([1] * 20, [1] * 20)]
    answers = ask_peer("statgate", STATGATE, comparisons)
    for (before, after), (_, value, _, _, p_value) in zip(comparisons, answers, strict=True):
        moved = np.array(after, dtype=float) - before
        assert paired_difference(moved).value == pytest.approx(value)
        assert sign_flip(moved).p_value == pytest.approx(p_value, abs=0.03)
    # Nothing flips on 20 samples: their interval has no width and certifies 2 %, ours does not.
    verdict, _, low, high, _ = answers[-1]
    assert (verdict, low, high) == ("SHIP", 0, 0)
    assert paired_difference(np.zeros(20), margin=0.02).p_within > 0.05
