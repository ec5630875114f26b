"""Retrieval metrics against pytrec_eval and scikit-learn."""

from __future__ import annotations

import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

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

DEPTHS = (1, 3, 5, 10, 30)
AT_K = {
    "success": RetrievalHitAtK,
    "recall": RetrievalRecallAtK,
    "P": RetrievalPrecisionAtK,
    "map_cut": RetrievalMap,
    "ndcg_cut": RetrievalNdcgAtK,
}
WHOLE = {"map": RetrievalMap(), "recip_rank": RetrievalMrr(), "Rprec": RetrievalRPrecision()}
MEASURES = {*WHOLE, *(f"{measure}.{','.join(map(str, DEPTHS))}" for measure in AT_K)}
NAMES = [f"d{number}" for number in range(20)]
names = st.sampled_from(NAMES)
rankings = st.lists(names, unique=True, min_size=1, max_size=20)
# Few grades, so that most gains are tied.
relevance = st.dictionaries(names, st.integers(0, 4), min_size=1).filter(lambda gains: any(gains.values()))


def trec_eval(ranking, gains):
    run = {"q": {name: float(-rank) for rank, name in enumerate(ranking)}}
    return pytrec_eval.RelevanceEvaluator({"q": gains}, MEASURES).evaluate(run)["q"]


def score(metric, ranking, gains):
    return metric.score(Sample("q", {}, gains), Output("", list(ranking))).score


@given(rankings, relevance)
def test_every_measure_equals_trec_eval_at_every_depth(ranking, gains):
    peer = trec_eval(ranking, gains)
    for measure, metric in WHOLE.items():
        assert score(metric, ranking, gains) == pytest.approx(peer[measure], abs=1e-12), measure
    for measure, kind in AT_K.items():
        for k in DEPTHS:
            assert score(kind(k=k), ranking, gains) == pytest.approx(peer[f"{measure}_{k}"], abs=1e-12), (measure, k)


@given(rankings, relevance, st.integers(1, 20))
def test_reciprocal_rank_at_depth_equals_cut_list(ranking, gains, k):
    peer = trec_eval(ranking[:k], gains)["recip_rank"]
    assert score(RetrievalMrr(k=k), ranking, gains) == pytest.approx(peer, abs=1e-12)


@given(rankings, relevance)
def test_f1_equals_harmonic_mean_of_trec_eval_precision_and_recall(ranking, gains):
    peer = trec_eval(ranking, gains)
    for k in DEPTHS:
        precision, recall = peer[f"P_{k}"], peer[f"recall_{k}"]
        mean = 2 * precision * recall / (precision + recall) if precision + recall else 0
        assert score(RetrievalF1AtK(k=k), ranking, gains) == pytest.approx(mean, abs=1e-12)


@given(rankings, relevance, st.data())
def test_ranking_with_duplicates_equals_trec_eval_without_them(ranking, gains, data):
    doubled = list(ranking)
    for _ in range(data.draw(st.integers(1, 4))):
        source = data.draw(st.integers(0, len(doubled) - 1))
        doubled.insert(data.draw(st.integers(source + 1, len(doubled))), doubled[source])
    peer = trec_eval(ranking, gains)
    for measure, metric in WHOLE.items():
        assert score(metric, doubled, gains) == pytest.approx(peer[measure], abs=1e-12), measure
    for measure, kind in AT_K.items():
        for k in DEPTHS:
            assert score(kind(k=k), doubled, gains) == pytest.approx(peer[f"{measure}_{k}"], abs=1e-12), (measure, k)


@given(st.permutations(NAMES[:8]), st.data())
def test_ndcg_of_full_ranking_equals_scikit_learn(ranking, data):
    grades = st.integers(0, 5) | st.floats(0, 5).map(lambda gain: round(gain, 3))
    gains = data.draw(st.lists(grades, min_size=8, max_size=8).filter(any))
    by_id = dict(zip(NAMES[:8], gains, strict=True))
    places = [[-ranking.index(name) for name in NAMES[:8]]]
    exponential = [[2**gain - 1 for gain in gains]]
    for k in (1, 3, 8, 12):
        assert score(RetrievalNdcgAtK(k=k), ranking, by_id) == pytest.approx(
            ndcg_score([gains], places, k=k, ignore_ties=True), abs=1e-12
        )
        assert score(RetrievalNdcgAtK(k=k, gain="exponential"), ranking, by_id) == pytest.approx(
            ndcg_score(exponential, places, k=k, ignore_ties=True), abs=1e-12
        )


@given(st.permutations(NAMES[:8]), st.integers(1, 7), st.data())
def test_ndcg_of_short_list_equals_scikit_learn_cut_at_its_end(ranking, length, data):
    gains = data.draw(st.lists(st.integers(0, 3), min_size=8, max_size=8).filter(any))
    places = [[-ranking.index(name) for name in NAMES[:8]]]
    peer = ndcg_score([gains], places, k=length, ignore_ties=True)
    assert score(
        RetrievalNdcgAtK(k=length), ranking[:length], dict(zip(NAMES[:8], gains, strict=True))
    ) == pytest.approx(peer, abs=1e-12)
