from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from deemster.stats import (
    acceleration,
    bootstrap,
    percentile_interval,
)
from deemster.stats.systematic_bias import clustered_error
from tests.builders.published_numbers import PUBLISHED, ends, near


def mean_of_sums(sums):
    return sums[:, 0] / sums[:, 1]


def ratio_of_sums(sums):
    return np.where(sums[:, 1] > 0, sums[:, 0] / sums[:, 1], np.nan)


def loop_interval(values, method, seed, replicates, confidence, clusters=None):
    """The bootstrap of sum x / sum y written out: one unit, one replicate, one quantile at a time."""
    names = list(dict.fromkeys(clusters)) if clusters else list(range(len(values)))
    members = {
        name: [row for place, row in enumerate(values) if (clusters[place] if clusters else place) == name]
        for name in names
    }

    def statistic(units):
        rows = [row for unit in units for row in members[unit]]
        below = sum(y for _, y in rows)
        return sum(x for x, _ in rows) / below if below > 0 else None

    rng = np.random.default_rng(seed)
    draws = [rng.integers(0, len(names), len(names)).tolist() for _ in range(replicates)]
    drawn = [statistic([names[place] for place in draw]) for draw in draws]
    estimate = statistic(names)
    known = sorted(value for value in drawn if value is not None)
    if estimate is None or 2 * len(known) < replicates:
        return estimate, drawn, None
    tail = (1 - confidence) / 2
    levels = [tail, 1 - tail]
    if method == "bca":
        slack = 1e-12 * max(abs(estimate), abs(known[0]), abs(known[-1]))
        ties = sum(abs(value - estimate) <= slack for value in known)
        below = sum(value < estimate - slack for value in known)
        bias = float(ndtri((below + ties / 2) / len(known)))
        left = [statistic([name for name in names if name != out]) for out in names] if len(names) > 1 else []
        left = [value for value in left if value is not None]
        middle = sum(left) / max(1, len(left))
        gaps = [middle - value for value in left]
        gaps = [0.0 if abs(gap) <= 1e-12 * max(map(abs, left)) else gap for gap in gaps]
        squares = sum(gap**2 for gap in gaps)
        speed = sum(gap**3 for gap in gaps) / (6 * squares**1.5) if squares else 0.0
        moved = [bias + float(ndtri(level)) for level in levels]
        if math.isfinite(bias) and all(1 - speed * shift > 0 for shift in moved):
            levels = [float(ndtr(bias + shift / (1 - speed * shift))) for shift in moved]
    return estimate, drawn, [float(np.quantile(known, level)) for level in levels]


tables = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=12)


@given(tables, st.sampled_from(["percentile", "bca"]), st.integers(0, 2**20), st.booleans(), st.data())
def test_vectorised_bootstrap_equals_a_slow_loop(values, method, seed, clustered, data):
    clusters = None
    if clustered:
        clusters = data.draw(st.lists(st.sampled_from("abcd"), min_size=len(values), max_size=len(values)))
    estimate, drawn, expected = loop_interval(values, method, seed, 60, 0.9, clusters)
    result = bootstrap(
        ratio_of_sums,
        table=values,
        method=method,
        clusters=clusters,
        seed=seed,
        n_resamples=60,
        confidence=0.9,
        keep=True,
    )
    assert result.value == (None if estimate is None else pytest.approx(estimate, rel=1e-12))
    assert list(result.distribution) == [None if value is None else pytest.approx(value, rel=1e-12) for value in drawn]
    found = result.interval and [result.interval.lower, result.interval.upper]
    assert found == (None if expected is None else pytest.approx(expected, rel=1e-9, abs=1e-12))


@given(tables, st.sampled_from(["percentile", "bca"]), st.integers(0, 100))
def test_both_forms_draw_the_same_units_and_give_the_same_numbers(values, method, seed):
    def ratio(rows):
        return rows[:, 0].sum() / rows[:, 1].sum() if rows[:, 1].sum() else None

    options = {"method": method, "seed": seed, "n_resamples": 40, "keep": True}
    called = bootstrap(ratio, values, **options)
    summed = bootstrap(ratio_of_sums, table=values, **options)
    assert called.distribution == pytest.approx(summed.distribution)
    assert (called.interval is None) == (summed.interval is None)
    if called.interval:
        assert called.interval.lower == pytest.approx(summed.interval.lower)
        assert called.interval.upper == pytest.approx(summed.interval.upper)


def test_called_form_resamples_several_arrays_together():
    x = np.arange(20.0)
    result = bootstrap(lambda a, b: float(np.abs(a - b).max()), x, x + 1, seed=1, n_resamples=30)
    assert (result.interval.lower, result.interval.upper) == (1.0, 1.0)


def test_clustered_bootstrap_gives_wider_interval():
    rng = np.random.default_rng(4)
    values = np.repeat(rng.normal(size=40), 10) + 0.1 * rng.normal(size=400)
    clusters = np.repeat(np.arange(40), 10)
    table = np.column_stack([values, np.ones(400)])
    plain = bootstrap(mean_of_sums, table=table, seed=0)
    whole = bootstrap(mean_of_sums, table=table, clusters=clusters, seed=0)
    assert whole.unit == "cluster"
    assert whole.n == 40
    assert whole.standard_error > 2.5 * plain.standard_error
    assert whole.standard_error == pytest.approx(clustered_error(values, clusters)[0], rel=0.1)


def test_same_seed_gives_same_interval_and_drawn_seed_is_returned():
    table = [[x, 1] for x in range(10)]
    first = bootstrap(mean_of_sums, table=table)
    assert bootstrap(mean_of_sums, table=table, seed=first.seed) == first


def test_more_than_half_undefined_replicates_leave_no_interval():
    table = [[1, 1]] + [[0, 0]] * 9
    result = bootstrap(lambda sums: np.where(sums[:, 1] == 1, 1.0, np.nan), table=table, seed=0)
    assert 0 < result.n_defined < 500
    assert result.interval is None
    assert "More than half" in result.note


def test_undefined_statistic_has_no_interval():
    result = bootstrap(ratio_of_sums, table=[[0, 0], [0, 0]], seed=0)
    assert (result.value, result.interval, result.standard_error) == (None, None, None)
    assert "undefined on the data" in result.note


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_single_unit_gives_zero_width_interval_with_note(method):
    for result in (
        bootstrap(mean_of_sums, table=[[3, 1]], method=method, seed=0),
        bootstrap(np.mean, [3.0], method=method, seed=0),
    ):
        assert (result.interval.lower, result.interval.upper) == (3.0, 3.0)
        assert "single unit" in result.note


def test_infinite_correction_falls_back_to_percentile_with_note():
    result = bootstrap(lambda x: len(set(x.tolist())), np.arange(30), method="bca", seed=1, n_resamples=200)
    assert result.interval.method == "percentile"
    assert "infinite" in result.note
    plain = bootstrap(lambda x: len(set(x.tolist())), np.arange(30), seed=1, n_resamples=200)
    assert (result.interval.lower, result.interval.upper) == (plain.interval.lower, plain.interval.upper)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bootstrap(np.mean), "either data arrays or a table"),
        (lambda: bootstrap(np.mean, [1, 2], table=[[1]]), "either data arrays or a table"),
        (lambda: bootstrap(np.mean, [1, 2], method="basic"), '"percentile" or "bca"'),
        (lambda: bootstrap(np.mean, [1, 2], [1]), "one length"),
        (lambda: bootstrap(np.mean, []), "one length"),
        (lambda: bootstrap(mean_of_sums, table=[[1, math.nan]]), "finite"),
        (lambda: bootstrap(mean_of_sums, table=[1, 2]), "rows of items"),
        (lambda: bootstrap(lambda s: s, table=[[1, 2]]), "gave the shape"),
        (lambda: bootstrap(np.mean, [1, 2], clusters=["a"]), "one cluster"),
        (lambda: bootstrap(np.mean, [1, 2], n_resamples=0), "needs a unit and a replicate"),
        (lambda: bootstrap(np.mean, [1, 2], confidence=95), "confidence level"),
        (lambda: percentile_interval([]), "at least one replicate"),
    ],
)
def test_invalid_arguments_are_error_with_reason(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_spatial_data_have_efrons_bca_interval():
    data, expected = PUBLISHED["bca_spatial"]["input"], PUBLISHED["bca_spatial"]["expected"]
    table = [[1, x, x * x] for x in data]

    def variance(sums):
        return sums[:, 2] / sums[:, 0] - (sums[:, 1] / sums[:, 0]) ** 2

    result = bootstrap(variance, table=table, method="bca", confidence=0.9, n_resamples=100_000, seed=3)
    assert result.value == near("bca_spatial", expected["theta"])
    assert ends(result) == pytest.approx(expected["bca90_100k_scipy"], abs=expected["bca90_tol"])
    left_out = [[x for place, x in enumerate(data) if place != out] for out in range(len(data))]
    means = [sum(rest) / len(rest) for rest in left_out]
    jackknife = [sum((x - mean) ** 2 for x in rest) / len(rest) for rest, mean in zip(left_out, means, strict=True)]
    assert float(acceleration(jackknife)) == near("bca_spatial", expected["acceleration"])
