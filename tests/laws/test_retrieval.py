"""Laws of rankings: depth, order, zero gains and duplicates."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.metrics.batch_ranking import score_rankings
from deemster.metrics.retrieval_metrics import (
    RetrievalF1AtK,
    RetrievalHitAtK,
    RetrievalMap,
    RetrievalMrr,
    RetrievalNdcgAtK,
    RetrievalPrecisionAtK,
    RetrievalRecallAtK,
    RetrievalRPrecision,
)
from deemster.records import Output, Sample

AT_K = (RetrievalHitAtK, RetrievalRecallAtK, RetrievalPrecisionAtK, RetrievalF1AtK, RetrievalNdcgAtK)
WHOLE = (RetrievalMrr(), RetrievalMap(), RetrievalRPrecision())
names = st.sampled_from("abcdefgh")
rankings = st.lists(names, unique=True, max_size=8)
repeating = st.lists(names, max_size=12)
gains = st.dictionaries(names, st.one_of(st.integers(0, 4), st.floats(0, 4)), min_size=1).filter(
    lambda given: any(given.values())
)
depths = st.integers(1, 10)


def score(metric, ranking, relevant):
    return metric.score(Sample("s", {}, relevant), Output("", ranking)).score


def every(k):
    return (*(kind(k=k) for kind in AT_K), RetrievalNdcgAtK(k=k, gain="exponential"), *WHOLE)


@given(repeating, gains, depths)
def test_scores_are_within_bounds(ranking, relevant, k):
    for metric in every(k):
        assert 0 <= score(metric, ranking, relevant) <= 1


@given(gains, st.lists(names, max_size=4))
def test_ideal_order_scores_one_at_the_number_of_relevant_ids(relevant, rest):
    ideal = [name for name in sorted(relevant, key=relevant.get, reverse=True) if relevant[name] > 0]
    for metric in every(len(ideal)):
        assert score(metric, [*ideal, *rest], relevant) == pytest.approx(1, abs=1e-9)


@given(repeating, gains, depths)
def test_hit_and_recall_never_fall_as_k_grows(ranking, relevant, k):
    for kind in (RetrievalHitAtK, RetrievalRecallAtK):
        assert score(kind(k=k), ranking, relevant) <= score(kind(k=k + 1), ranking, relevant)


@given(rankings.filter(lambda ranking: len(ranking) > 1), gains, depths, st.data())
def test_moving_the_more_relevant_id_up_never_lowers_a_score(ranking, relevant, k, data):
    low = data.draw(st.integers(1, len(ranking) - 1))
    high = data.draw(st.integers(0, low - 1))
    if relevant.get(ranking[low], 0) <= relevant.get(ranking[high], 0):
        low, high = high, low
        if relevant.get(ranking[low], 0) == relevant.get(ranking[high], 0):
            return
        ranking = list(ranking)
        ranking[low], ranking[high] = ranking[high], ranking[low]
        low, high = high, low
    swapped = list(ranking)
    swapped[low], swapped[high] = swapped[high], swapped[low]
    metrics = (
        RetrievalMrr(),
        RetrievalMap(),
        RetrievalMrr(k=k),
        RetrievalMap(k=k),
        RetrievalNdcgAtK(k=k),
        RetrievalNdcgAtK(k=k, gain="exponential"),
    )
    for metric in metrics:
        assert score(metric, swapped, relevant) >= score(metric, ranking, relevant) - 1e-12


@given(repeating, gains, depths)
def test_id_without_gain_changes_nothing(ranking, relevant, k):
    without = {name: gain for name, gain in relevant.items() if gain > 0}
    # Ids that are retrieved, and one that is not.
    unwanted = dict.fromkeys([*ranking, "nowhere"], 0)
    for metric in (*every(k), RetrievalMrr(k=k), RetrievalMap(k=k)):
        assert score(metric, ranking, without) == score(metric, ranking, {**unwanted, **without})


@given(repeating.filter(bool), gains, depths, st.data())
def test_later_duplicate_changes_nothing(ranking, relevant, k, data):
    source = data.draw(st.integers(0, len(ranking) - 1))
    place = data.draw(st.integers(source + 1, len(ranking)))
    doubled = [*ranking[:place], ranking[source], *ranking[place:]]
    for metric in (*every(k), RetrievalMrr(k=k), RetrievalMap(k=k)):
        assert score(metric, doubled, relevant) == score(metric, ranking, relevant)


@given(st.lists(st.tuples(repeating, gains), max_size=6), depths)
def test_batch_gives_same_marks_as_pairs(pairs, k):
    samples = [Sample("s", {}, relevant) for _, relevant in pairs]
    outputs = [Output("", ranking) for ranking, _ in pairs]
    metrics = every(k)
    expected = [[metric.score(*pair) for pair in zip(samples, outputs, strict=True)] for metric in metrics]
    assert score_rankings(metrics, samples, outputs) == expected
    assert [metric.score_many(samples, outputs) for metric in metrics] == expected


@given(repeating, gains, depths, depths)
def test_other_metrics_change_no_mark(ranking, relevant, k, other):
    sample, output = Sample("s", {}, relevant), Output("", ranking)
    for metric in every(k):
        for beside in (*every(other), RetrievalMrr(k=other), RetrievalMap(k=other)):
            [[mark], _] = score_rankings([metric, beside], [sample], [output])
            assert mark == metric.score(sample, output)
