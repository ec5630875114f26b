"""Intervals of the smoothed bootstrap: imagined units, widths, ranges and coverage."""

from __future__ import annotations

import math
import random

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as reference

from deemster.agreement import BootstrapSettings, compute_metrics
from deemster.agreement._imagined_units import table_shapes
from deemster.datasets import Votes
from deemster.stats.bootstrap_resampling import bayesian_weight_blocks
from tests.agreement import make_votes as ballots
from tests.agreement.make_votes import FACTS, JUDGES, votes_value
from tests.agreement.test_compute_agreement import CRITERIA, random_value

WORDS = {True: "MET", False: "UNMET"}
# Numbers without bounds: what remains lies in [-1, 1], and all but agreement beyond chance in [0, 1].
UNBOUNDED = ("effect_size", "score_limits", "score_icc", "bias")
SIGNED = ("kappa", "alpha", "phi", "pi", "pabak", "gwet_ac", "spearman", "kendall", "pearson", "concordance")


def votes_of(truth, verdicts, *, criteria=(FACTS,), judges=("j",)):
    """Votes on items with one row of answers for each; every judge of the panel says the same."""
    items = [
        {"id": f"i{place:03d}", "ground_truth": list(true), "votes": {judge: list(said) for judge in judges}}
        for place, (true, said) in enumerate(zip(truth, verdicts, strict=True))
    ]
    return Votes.parse(votes_value(items, criteria=criteria, judges=judges))


def one_criterion(truth, verdicts, **more):
    return votes_of([[WORDS[bool(one)]] for one in truth], [[WORDS[bool(one)]] for one in verdicts], **more)


def found_intervals(value):
    """Every interval in a result, with its name."""
    if isinstance(value, msgspec.Struct):
        for name, one in (getattr(value, "intervals", None) or {}).items():
            yield name, one
        for name in value.__struct_fields__:
            if name != "intervals":
                yield from found_intervals(getattr(value, name))
    elif isinstance(value, dict):
        for one in value.values():
            yield from found_intervals(one)
    elif isinstance(value, tuple | list):
        for one in value:
            yield from found_intervals(one)


def out_of_range(name, interval):
    if name.startswith(UNBOUNDED):
        return False
    apart = name.endswith(("_difference", "_gap"))
    most = 2 if apart else 1
    least = -most if apart or any(word in name for word in SIGNED) else 0
    if "gwet_ac" in name:
        # With three ordered classes, chance may explain more than half of the agreement.
        least = -2
    if "rmse" in name or "mae" in name:
        least, most = (-math.inf if apart else 0), math.inf
    return not least - 1e-12 <= interval.lower < interval.upper <= most + 1e-12


def test_kappa_interval_holds_that_of_weighted_tables_with_and_without_imagined_cells():
    truth, verdicts = [1] * 6 + [0] * 14, [1] * 5 + [0] * 14 + [1]
    found = compute_metrics(
        one_criterion(truth, verdicts), bootstrap=BootstrapSettings(replicates=200, seed=4)
    ).intervals["mean_kappa"]
    weights = np.concatenate(list(bayesian_weight_blocks(20, 200, 4, dtype=np.float32)), axis=1)
    rng = np.random.default_rng((4, 1))
    # Unit after unit: the cells of the table come first.
    cells = rng.standard_gamma(table_shapes(2)[:, None], (4, 200))
    real, imagined = [], []
    for replicate in range(200):
        table = np.zeros((2, 2))
        for true, said, weight in zip(truth, verdicts, weights[:, replicate], strict=True):
            table[1 - true, 1 - said] += weight
        real.append(kappa(table))
        imagined.append(kappa(table + cells[:, replicate].reshape(2, 2)))
    level = reference.norm.cdf(math.sqrt(20 / 19) * reference.t.ppf(0.025, 19))
    ends = [np.quantile(side, [level, 1 - level]) for side in (real, imagined)]
    assert found.ci.lower == pytest.approx(min(ends[0][0], ends[1][0]), abs=1e-6)
    assert found.ci.upper == pytest.approx(max(ends[0][1], ends[1][1]), abs=1e-6)
    assert found.standard_error == pytest.approx(np.std(real, ddof=1), abs=1e-6)


def test_panel_of_one_judge_and_its_judge_have_the_same_intervals():
    rng = random.Random(5)
    rows = [[[rng.choice(ballots.labels_of(one)) for one in ballots.CRITERIA] for _ in range(30)] for _ in range(2)]
    votes = votes_of(*rows, criteria=ballots.CRITERIA, judges=("a",))
    result = compute_metrics(votes, per_judge=True, bootstrap=BootstrapSettings(replicates=200))
    judge = result.per_judge["a"].intervals
    for name in ("criterion_accuracy", "mean_kappa", "binary_accuracy", "criterion_f1", "score_rmse"):
        assert judge[name] == result.intervals[name]


def kappa(table):
    table = table / table.sum()
    by_chance = table.sum(axis=0) @ table.sum(axis=1)
    return (np.trace(table) - by_chance) / (1 - by_chance)


@pytest.mark.parametrize("size", [2, 12, 60])
@pytest.mark.parametrize("judges", [("a",), ("a", "b", "c")])
def test_no_interval_of_a_panel_that_is_never_wrong_has_width_zero(size, judges):
    rng = random.Random(size)
    rows = [[rng.choice(ballots.labels_of(one)) for one in ballots.CRITERIA] for _ in range(size)]
    votes = votes_of(rows, rows, criteria=ballots.CRITERIA, judges=judges)
    result = compute_metrics(votes, per_judge=True, bootstrap=BootstrapSettings(replicates=200))
    every = list(found_intervals(result))
    assert len(every) > 50
    widths = {name: one.ci.width for name, one in every if one.ci is not None}
    assert min(widths.values()) > 0.01
    for name in ("criterion_accuracy", "mean_kappa", "score_rmse"):
        assert name in widths
    # Where each verdict is right, only the test of a bias has nothing to go by.
    missing = {name for name, one in every if one.ci is None and one.estimate is not None}
    assert missing <= {"bias", "bias.std_bias", "bias.effect_size"}


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 30), st.sampled_from(ballots.MODES))
def test_ends_lie_in_range_of_their_statistic(seed, size, modes):
    votes = Votes.parse(random_value(seed, size=size, tags=("x", "y")))
    result = compute_metrics(
        votes,
        cannot_assess=modes.cannot_assess,
        na_mode=modes.na_mode,
        per_judge=True,
        per_slice=True,
        bootstrap=BootstrapSettings(replicates=40),
    )
    wrong = [(name, one) for name, one in found_intervals(result) if one.ci is not None and out_of_range(name, one.ci)]
    assert not wrong


@given(ballots.panels(), st.integers(0, 99))
def test_ends_of_panels_with_gaps_and_people_lie_in_range(value, seed):
    result = compute_metrics(Votes.parse(value), bootstrap=BootstrapSettings(replicates=40, seed=seed), per_judge=True)
    wrong = [(name, one) for name, one in found_intervals(result) if one.ci is not None and out_of_range(name, one.ci)]
    assert not wrong


def test_shares_of_one_criterion_are_exact_unless_items_come_in_clusters():
    truth, verdicts = [1] * 10 + [0] * 30, [1] * 8 + [0] * 32
    votes = one_criterion(truth, verdicts)
    result = compute_metrics(votes, bootstrap=BootstrapSettings(replicates=100))
    (criterion,) = result.per_criterion
    exact = reference.binomtest(38, 40).proportion_ci(0.95, method="exact")
    for holder, name in ((criterion, "accuracy"), (result, "criterion_accuracy"), (result, "macro_accuracy")):
        interval = holder.intervals[name].ci
        assert (interval.lower, interval.upper) == pytest.approx((exact.low, exact.high))
        assert interval.method == "clopper-pearson"
    exact = reference.binomtest(8, 10).proportion_ci(0.95, method="exact")
    for name in ("recall", "fnr"):
        interval = criterion.intervals[name].ci
        ends = (exact.low, exact.high) if name == "recall" else (1 - exact.high, 1 - exact.low)
        assert (interval.lower, interval.upper) == pytest.approx(ends)
    clusters = {f"i{place:03d}": place // 2 for place in range(40)}
    clustered = compute_metrics(votes, bootstrap=BootstrapSettings(replicates=100), cluster=clusters)
    assert clustered.intervals["criterion_accuracy"].ci.method == "smoothed"
    percentile = compute_metrics(votes, bootstrap=BootstrapSettings(replicates=100, method="percentile"))
    assert percentile.intervals["criterion_accuracy"].ci.method == "percentile"


def test_few_items_are_defined_in_every_replicate():
    # The weights of three items sum to 3 but for rounding, and a correlation needs three.
    rng = random.Random(1)
    rows = [[rng.choice(ballots.labels_of(one)) for one in ballots.CRITERIA] for _ in range(3)]
    votes = votes_of(rows, [rows[0], rows[2], rows[1]], criteria=ballots.CRITERIA, judges=("a", "b"))
    result = compute_metrics(votes, per_judge=True, bootstrap=BootstrapSettings(replicates=200))
    names = ("score_spearman", "score_kendall", "score_pearson", "bias.std_bias", "score_alpha", "score_icc.icc_2_1")
    assert [result.intervals[name].n_bootstrap for name in names] == [200] * len(names)
    assert not any(warning.startswith("undefined-replicates") for warning in result.warnings)


def test_rounding_is_no_width():
    # The scores differ by a tenth throughout, and sums of tenths differ in their last digit.
    criteria = [FACTS | {"name": name, "weight": weight} for name, weight in (("one", 0.1), ("more", 0.9))]
    truth = [["MET", WORDS[place % 2 == 0]] for place in range(30)]
    verdicts = [["UNMET", true[1]] for true in truth]
    result = compute_metrics(
        votes_of(truth, verdicts, criteria=criteria), bootstrap=BootstrapSettings(method="bca", replicates=100)
    )
    assert result.bias.mean_bias == pytest.approx(-0.1)
    assert result.intervals["bias"].ci is None
    assert result.intervals["score_rmse"].ci is None


@pytest.mark.parametrize("n", [1, 3])
def test_plain_percentiles_of_a_perfect_judge_are_those_of_other_tools(n):
    verdicts = ["MET", "UNMET", "MET"][:n]
    rows = [[verdict] for verdict in verdicts]
    result = compute_metrics(
        votes_of(rows, rows, criteria=[FACTS]), bootstrap=BootstrapSettings(method="percentile", replicates=100)
    )
    assert (result.bootstrap.accuracy_ci, result.bootstrap.rmse_ci) == ((1.0, 1.0), (0.0, 0.0))


def test_smoothed_kappa_covers_where_the_percentile_bootstrap_does_not():
    # 20 items, one in ten is MET, and the judge's true kappa is 0.7. Samples of one class have no kappa.
    rng = np.random.default_rng(14)
    hits = {"smoothed": [], "percentile": []}
    while len(hits["smoothed"]) < 150:
        truth = rng.random(20) < 0.1
        verdicts = np.where(rng.random(20) < 0.7, truth, rng.random(20) < 0.1)
        if not truth.any() and not verdicts.any():
            continue
        votes = one_criterion(truth, verdicts)
        for method, covered in hits.items():
            interval = (
                compute_metrics(votes, bootstrap=BootstrapSettings(method=method, replicates=300))
                .intervals["mean_kappa"]
                .ci
            )
            covered.append(interval is not None and interval.lower <= 0.7 <= interval.upper)
    shares = {method: np.mean(covered) for method, covered in hits.items()}
    assert shares["smoothed"] >= 0.92
    assert shares["percentile"] <= 0.8


def clustered_votes(rng, groups=20, size=10):
    """Judge and truth agree but for shifts that all items of a cluster share; no bias in the population."""
    criteria = [FACTS | {"name": f"c{place}", "weight": 1} for place in range(4)]
    truth, verdicts, clusters = [], [], {}
    for group in range(groups):
        shift = rng.choice([-1, 1])
        for _ in range(size):
            true = [bool(rng.integers(2)) for _ in criteria]
            said = [one if rng.random() < 0.6 else shift > 0 for one in true]
            clusters[f"i{len(truth):03d}"] = group
            truth.append([WORDS[one] for one in true])
            verdicts.append([WORDS[one] for one in said])
    return votes_of(truth, verdicts, criteria=criteria), clusters


def test_bias_test_and_interval_follow_clusters_and_agree_with_each_other():
    false_alarms = {"clusters": 0, "items": 0}
    for seed in range(80):
        votes, clusters = clustered_votes(np.random.default_rng(seed))
        for unit, cluster in (("clusters", clusters), ("items", None)):
            result = compute_metrics(votes, cluster=cluster, bootstrap=BootstrapSettings(replicates=20))
            interval = result.intervals["bias"].ci
            assert interval == result.bias.ci
            assert result.bias.is_significant == (not interval.lower <= 0 <= interval.upper)
            # With at most 20 clusters the interval is wider than that of the test; with 200 items it is the test's own.
            assert result.bias.p_value < 0.05 or not result.bias.is_significant
            assert unit == "clusters" or result.bias.is_significant == (result.bias.p_value < 0.05)
            false_alarms[unit] += result.bias.is_significant
    assert false_alarms["clusters"] <= 9
    assert false_alarms["items"] >= 20


@pytest.mark.parametrize("clustered", [False, True])
def test_bias_of_each_judge_has_the_interval_of_its_test(clustered):
    value = random_value(5, size=60, criteria=CRITERIA, judges=JUDGES)
    clusters = {item["id"]: place // 4 for place, item in enumerate(value["items"])} if clustered else None
    result = compute_metrics(
        Votes.parse(value), cluster=clusters, per_judge=True, bootstrap=BootstrapSettings(replicates=20)
    )
    for one in (result, *result.per_judge.values()):
        assert one.intervals["bias"].ci == one.bias.ci is not None


def test_numbers_of_judges_and_slices_change_no_interval_of_the_panel():
    votes = Votes.load("examples/judge_validation/votes.json")
    plain, more = (
        compute_metrics(votes, bootstrap=BootstrapSettings(replicates=100), per_judge=asked, per_slice=asked)
        for asked in (False, True)
    )
    assert plain.intervals == more.intervals
    assert [part.intervals for part in plain.per_criterion] == [part.intervals for part in more.per_criterion]
