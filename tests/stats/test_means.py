from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.stats import (
    clustered_mean,
    student,
)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30))
def test_one_value_per_cluster_is_students_interval(values):
    clustered, plain = clustered_mean(values, range(len(values))), student(values)
    assert clustered.value == plain.value
    assert clustered.standard_error == pytest.approx(plain.standard_error, rel=1e-9, abs=1e-12)
    if clustered.interval and plain.interval:
        assert clustered.interval.lower == pytest.approx(plain.interval.lower, abs=1e-9)


def cr2(values, clusters):
    """Error and degrees of freedom of a mean by Bell and McCaffrey, from matrices."""
    y, codes = np.array(values, dtype=float), np.unique(clusters, return_inverse=True)[1]
    n = len(y)
    x = np.ones((n, 1))
    bread = np.linalg.inv(x.T @ x)
    hat = x @ bread @ x.T
    rest = np.eye(n) - hat
    residuals = rest @ y
    meat, sides = 0.0, []
    for cluster in range(codes.max() + 1):
        members = codes == cluster
        values_of, vectors = np.linalg.eigh(np.eye(members.sum()) - hat[np.ix_(members, members)])
        adjusted = vectors @ np.diag(values_of**-0.5) @ vectors.T
        own = x[members].T @ adjusted
        meat += (own @ residuals[members]).item() ** 2
        sides.append(rest[:, members] @ adjusted @ x[members] @ bread)
    sides = np.concatenate(sides, axis=1)
    found = sides.T @ sides
    return math.sqrt(meat) * bread.item(), np.trace(found) ** 2 / np.trace(found @ found)


@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 4)), min_size=2, max_size=25).filter(
        lambda pairs: len({cluster for _, cluster in pairs}) > 1 and np.std([value for value, _ in pairs]) > 1e-3
    )
)
def test_error_of_a_clustered_mean_equals_that_of_matrices(drawn):
    values, clusters = zip(*drawn, strict=True)
    result = clustered_mean(values, clusters)
    error, freedom = cr2(values, clusters)
    assert result.standard_error == pytest.approx(error, rel=1e-6, abs=1e-9)
    assert result.degrees_of_freedom == pytest.approx(freedom)
    if result.interval is not None:
        half = scipy_stats.t.ppf(0.975, freedom) * error
        assert result.interval.width == pytest.approx(2 * half, rel=1e-5)


def test_equal_clusters_have_one_degree_of_freedom_less_than_clusters():
    result = clustered_mean([0.1, 0.5, 0.2, 0.9, 0.4, 0.7, 0.3, 0.8], [0, 0, 1, 1, 2, 2, 3, 3])
    assert result.degrees_of_freedom == pytest.approx(3)
    assert result.standard_error == pytest.approx(result.cr0 * math.sqrt(4 / 3))
    unequal = clustered_mean([0.1, 0.5, 0.2, 0.9, 0.4, 0.7, 0.3, 0.8], [0, 0, 0, 0, 0, 1, 2, 3])
    assert unequal.degrees_of_freedom < 2


def test_clustered_mean_covers_with_unequal_clusters():
    sizes = [30, 20] + [4] * 10
    clusters = np.repeat(np.arange(12), sizes)
    rng = np.random.default_rng(8)
    covered = 0
    for _ in range(600):
        values = rng.normal(size=12)[clusters] + rng.normal(size=len(clusters))
        interval = clustered_mean(values, clusters).interval
        covered += interval.lower <= 0 <= interval.upper
    assert 0.925 <= covered / 600 <= 0.985


def test_clustered_mean_is_undefined_part_by_part():
    empty, single, one_cluster = clustered_mean([], []), clustered_mean([2], ["a"]), clustered_mean([1, 2], ["a", "a"])
    assert (empty.value, empty.interval, empty.clusters) == (None, None, 0)
    assert (single.value, single.independent, single.standard_error) == (2.0, None, None)
    assert (one_cluster.value, one_cluster.standard_error, one_cluster.miller) == (1.5, None, None)
    assert one_cluster.independent == pytest.approx(0.5)


def test_values_without_spread_have_no_interval():
    result = clustered_mean([0.1] * 6, ["a", "a", "b", "b", "c", "c"])
    assert (result.standard_error, result.miller, result.interval) == (0.0, 0.0, None)
    balanced = clustered_mean([0.1, 0.3] * 3, ["a", "a", "b", "b", "c", "c"])
    assert (balanced.standard_error, balanced.interval) == (0.0, None)
    assert balanced.independent > 0


def test_clusters_of_other_length_are_error():
    with pytest.raises(ValueError, match="one cluster"):
        clustered_mean([1, 2], ["a"])
    with pytest.raises(ValueError, match="finite"):
        clustered_mean([1, math.nan], ["a", "b"])


FILE = Path(__file__).parent.parent / "fixtures" / "statistics.json"


FIXTURES = {entry["id"]: entry for entry in json.loads(FILE.read_text())}


def near(name, expected=None):
    entry = FIXTURES[name]
    return pytest.approx(entry["expected"] if expected is None else expected, abs=entry["abs_tol"], rel=0)


def test_clustered_scores_have_the_three_published_standard_errors():
    given = FIXTURES["clustered_se"]["input"]
    result = clustered_mean(given["scores"], given["cluster"])
    parts = {
        "mean": result.value,
        "se_clt": result.independent,
        "miller": result.miller,
        "cr0": result.cr0,
        "cr1": result.cr0 * math.sqrt(result.clusters / (result.clusters - 1)),
    }
    assert parts == near("clustered_se")


scipy_stats = pytest.importorskip("scipy.stats")


def ends(result):
    return result.interval.lower, result.interval.upper


@given(st.lists(st.floats(0, 1), min_size=2, max_size=40).filter(lambda values: np.std(values) > 1e-6))
def test_student_equals_scipys(values):
    expected = scipy_stats.t.interval(0.95, len(values) - 1, loc=np.mean(values), scale=scipy_stats.sem(values))
    assert ends(student(values)) == pytest.approx(expected, abs=1e-9)
