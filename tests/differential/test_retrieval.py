"""Retrieval metrics against pytrec_eval and scikit-learn."""

from __future__ import annotations

import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

from deemster.metrics.retrieval import (
    RetrievalHitAtK,
    RetrievalMap,
    RetrievalMrr,
    RetrievalNdcgAtK,
    RetrievalPrecisionAtK,
    RetrievalRecallAtK,
    RetrievalRPrecision,
)
from deemster.records import Output, Sample

K = 5
AGAINST_TREC = {
    "success_5": RetrievalHitAtK(k=K),
    "recall_5": RetrievalRecallAtK(k=K),
    "P_5": RetrievalPrecisionAtK(k=K),
    "map": RetrievalMap(),
    "map_cut_5": RetrievalMap(k=K),
    "recip_rank": RetrievalMrr(),
    "Rprec": RetrievalRPrecision(),
    "ndcg_cut_5": RetrievalNdcgAtK(k=K),
}
MEASURES = {"success.5", "recall.5", "P.5", "map", "map_cut.5", "recip_rank", "Rprec", "ndcg_cut.5"}
names = st.sampled_from([f"d{number}" for number in range(20)])
rankings = st.lists(names, unique=True, min_size=1, max_size=15)
relevance = st.dictionaries(names, st.integers(0, 4), min_size=1).filter(lambda gains: any(gains.values()))


@given(rankings, relevance)
def test_every_measure_is_that_of_trec_eval(ranking, gains):
    run = {"q": {name: float(-rank) for rank, name in enumerate(ranking)}}
    peer = pytrec_eval.RelevanceEvaluator({"q": gains}, MEASURES).evaluate(run)["q"]
    sample, output = Sample("q", {}, gains), Output("", ranking)
    for measure, metric in AGAINST_TREC.items():
        assert metric.score(sample, output).score == pytest.approx(peer[measure], abs=1e-12), measure


@given(st.permutations([f"d{number}" for number in range(8)]), st.data())
def test_ndcg_is_that_of_scikit_learn_where_all_documents_are_ranked(ranking, data):
    gains = data.draw(st.lists(st.integers(0, 5), min_size=8, max_size=8).filter(any))
    by_id = dict(zip(sorted(ranking), gains, strict=True))
    scores = [[-ranking.index(name) for name in sorted(ranking)]]
    sample, output = Sample("q", {}, by_id), Output("", list(ranking))
    exponential = [[2**gain - 1 for gain in gains]]
    for k in (1, 3, 8):
        assert RetrievalNdcgAtK(k=k).score(sample, output).score == pytest.approx(
            ndcg_score([gains], scores, k=k), abs=1e-12
        )
        assert RetrievalNdcgAtK(k=k, gain="exponential").score(sample, output).score == pytest.approx(
            ndcg_score(exponential, scores, k=k), abs=1e-12
        )
