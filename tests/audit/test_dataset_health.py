"""The health of a dataset: what is planted is found, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import pointbiserialr

from deemster.audit.dataset_health import (
    DisputedSample,
    find_leaks,
    find_similar,
    sample_histories,
    sample_text,
    small_cohorts,
    suggest_labels,
)
from deemster.models.embedded_embedding import EmbeddedEmbedding
from deemster.records import Sample

ROWS = {
    "window": ("How long is the return window for shoes?", "30 days"),
    "copy": ("how long is the return window, for shoes", "30 days."),
    "other": ("How long is the return window for shoes?", "60 days"),
    "near": ("How long is the return window for the shoes?", "30 days"),
    "numbers": ("Is order 4711 shipped?", "yes"),
    "numbers-2": ("Is order 4712 shipped?", "no"),
    "leak": ("The office opens at nine o'clock. When does it open?", "at nine o'clock"),
    "short": ("Say yes or no: is it open?", "yes"),
}
TEXTS = [sample_text(Sample(name, {"question": asked}, wanted)) for name, (asked, wanted) in ROWS.items()]


def test_copies_contradictions_and_near_copies_are_told_apart():
    vectors = EmbeddedEmbedding().embed_many([text.input for text in TEXTS]).values
    found = {(one.first, one.second): (one.kind, one.same_expected) for one in find_similar(TEXTS, vectors, near=0.95)}
    assert found == {
        ("window", "copy"): ("exact", True),
        ("window", "other"): ("exact", False),
        ("window", "near"): ("near", True),
    }
    assert len(list(find_similar(TEXTS, None, near=0.95))) == 2


def test_leak_is_a_longer_expected_output_inside_the_input():
    assert list(find_leaks(TEXTS)) == ["leak"]


def test_discrimination_is_the_point_biserial_correlation_with_the_other_samples():
    rng = np.random.default_rng(2)
    passed = rng.random((12, 9)) < 0.6
    passed[0], passed[1] = True, False
    found = list(sample_histories([f"s{at}" for at in range(12)], passed, ["app"] * 9, confidence=0.95))
    for place in range(2, 12):
        rest = np.delete(passed, place, axis=0).mean(axis=0)
        assert found[place].discrimination == pytest.approx(pointbiserialr(passed[place], rest).statistic)
        assert found[place].discrimination_low < found[place].discrimination < found[place].discrimination_high
        assert found[place].is_flaky
    assert [one.discrimination for one in found[:2]] == [None, None]
    assert found[0].reason == "it never changes"
    assert found[0].low < 1.0 == found[0].high


def test_change_between_targets_is_not_flaky():
    passed = np.array([[True, True, False], [True, False, False]])
    found = list(sample_histories(["kept", "flips"], passed, ["old", "old", "new"], confidence=0.95))
    assert [one.is_flaky for one in found] == [False, True]
    assert found[0].reason == "3 executions are too few"


def test_small_cohorts_are_told_how_many_samples_they_lack():
    tags = [("big",)] * 80 + [("small",)] * 10 + [()] * 3
    found = {one.cohort: one for one in small_cohorts(tags, margin=0.05, confidence=0.95)}
    assert list(found) == ["small", "(untagged)"]
    assert found["small"].certifiable == pytest.approx(0.2938, abs=1e-4)
    assert found["small"].needed == 71


def test_labels_are_suggested_once_each_and_contradictions_first():
    similar = list(find_similar(TEXTS, None, near=0.95))
    disputed = [DisputedSample(id="numbers", metric="judge", people_pass=1, people_fail=0, against_mark=1)]
    passed = np.array([[True, False], [False, False], [True, True]])
    items = list(sample_histories(["numbers", "leak", "short"], passed, ["app"] * 2, confidence=0.95))
    found = [one.id for one in suggest_labels(similar, disputed, items, labelled=frozenset())]
    assert found == ["other", "numbers", "leak"]
