"""Samples that come out alike are noticed; samples that stand alone are left in peace."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats

from deemster.results.undeclared_clusters import alike_key, alike_warnings, group_likeness
from deemster.stats import paired_difference


def world(seed, *, documents=15, questions=8, alike=0.0):
    """Passes of samples of documents; with `alike`, a document pulls its questions to pass or fail."""
    chance = np.random.default_rng(seed)
    rates = np.where(chance.random(documents) < alike, chance.random(documents) < 0.7, 0.7)
    passed = (chance.random((documents, questions)) < rates[:, None]).astype(float).ravel()
    metadata = [
        {"doc": f"d{at // questions}", "author": int(chance.integers(12)), "number": at, "lang": "de", "tags": ["x"]}
        for at in range(len(passed))
    ]
    return {"exact-match": passed}, metadata


def test_documents_that_pass_or_fail_as_a_whole_are_noticed():
    (warning,) = alike_warnings(*world(1, alike=1.0))
    assert "`metadata.doc` come out alike (15 groups, exact-match)" in warning
    assert (alike_key(warning), alike_key("The dataset has no expected outputs.")) == ("doc", None)
    assert "with `cluster: doc` in the dataset, intervals are about 2." in warning


def test_samples_that_stand_alone_are_warned_of_in_one_percent_of_the_runs():
    warned = sum(bool(alike_warnings(*world(seed))) for seed in range(200))
    assert warned <= 6


def test_documents_that_are_half_alike_are_noticed_nearly_always():
    assert sum(bool(alike_warnings(*world(seed, alike=0.5, documents=40))) for seed in range(20)) >= 18


def test_keys_of_single_samples_of_the_whole_set_and_of_few_groups_are_not_looked_at():
    values = {"m": np.array([1.0] * 20 + [0.0] * 20)}
    metadata = [{"number": at, "same": 1, "half": at // 20, "some": 1} for at in range(40)]
    del metadata[3]["some"]
    assert alike_warnings(values, metadata) == []


def test_missing_numbers_are_left_out():
    values, metadata = world(1, alike=1.0)
    values["exact-match"][::5] = np.nan
    assert len(alike_warnings(values, metadata)) == 1


def test_likeness_is_that_of_the_analysis_of_variance():
    chance = np.random.default_rng(3)
    groups = np.sort(chance.integers(0, 9, 80))
    values = chance.normal(size=80) + chance.normal(size=9)[groups]
    expected = scipy_stats.f_oneway(*(values[groups == group] for group in np.unique(groups)))
    assert group_likeness(values, groups).f == pytest.approx(expected.statistic)


def test_documents_that_flip_as_a_whole_mislead_a_gate_unless_declared_and_are_warned_of():
    documents, errors, warned = np.repeat(np.arange(24), 5), {"alone": [0, 0], "doc": [0, 0]}, 0
    for seed in range(50):
        moved = np.random.default_rng(seed).random(24)
        # The drop is exactly the margin.
        change = np.where(moved < 0.15, -1.0, np.where(moved < 0.25, 1.0, 0.0))
        found = {
            "alone": paired_difference(change[documents], margin=0.05),
            "doc": paired_difference(5 * change, np.full(24, 5), margin=0.05),
        }
        for name, difference in found.items():
            errors[name][0] += difference.p_within <= 0.05
            errors[name][1] += difference.p_beyond <= 0.05
        warned += bool(alike_warnings({"m": change[documents]}, [{"doc": int(document)} for document in documents]))
    assert min(errors["alone"]) >= 7
    assert max(errors["doc"]) <= 3
    assert warned >= 48
