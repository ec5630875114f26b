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


def test_a_clustered_mean_is_undefined_part_by_part():
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
        "cr1": result.standard_error,
    }
    assert parts == near("clustered_se")


scipy_stats = pytest.importorskip("scipy.stats")


def ends(result):
    return result.interval.lower, result.interval.upper


@given(st.lists(st.floats(0, 1), min_size=2, max_size=40).filter(lambda values: np.std(values) > 1e-6))
def test_student_equals_scipys(values):
    expected = scipy_stats.t.interval(0.95, len(values) - 1, loc=np.mean(values), scale=scipy_stats.sem(values))
    assert ends(student(values)) == pytest.approx(expected, abs=1e-9)
