from __future__ import annotations

import pytest
import pytrec_eval

from deemster.engine.run_sync import run_sync
from deemster.errors import InputError
from deemster.evaluation.external_run import store_external_run
from deemster.evaluation.rescore_run import rescore
from deemster.integrations.import_run import read_runs
from deemster.judges import metric_catalog as catalog
from deemster.store import open_store
from tests.integrations.imported import FIXTURES

RUN, QRELS = FIXTURES / "trec" / "run.txt", FIXTURES / "trec" / "qrels.txt"


def test_ranking_is_marked_as_trec_eval_marks_it(tmp_path):
    (run,) = read_runs(RUN, QRELS)
    with QRELS.open() as qrels, RUN.open() as ranking:
        judged, ranked = pytrec_eval.parse_qrel(qrels), pytrec_eval.parse_run(ranking)
    reference = pytrec_eval.RelevanceEvaluator(judged, {"ndcg_cut_10", "recip_rank"}).evaluate(ranked)
    with open_store(tmp_path / "runs.db", create=True) as store:
        stored = store_external_run(store, run).id
        metrics = catalog.resolve_all(["ndcg@10", "mrr@15"])
        run_sync(rescore(store, stored, metrics=metrics, warn=print))
        for execution in store.executions(stored):
            ndcg, mrr = execution.marks
            expected = reference.get(execution.id, {"ndcg_cut_10": 0.0, "recip_rank": 0.0})
            assert ndcg.score == pytest.approx(expected["ndcg_cut_10"])
            assert mrr.score == pytest.approx(expected["recip_rank"])
    assert run.target == "bm25"


def test_topic_that_the_run_left_out_retrieved_nothing():
    (run,) = read_runs(QRELS, RUN)
    (missing,) = [execution for execution in run.executions if execution.id == "q8"]
    assert missing.answer.retrieved == []


def test_run_without_judgements_is_refused():
    with pytest.raises(InputError, match="together with its qrels"):
        read_runs(RUN)
    with pytest.raises(InputError, match="give the ranking too"):
        read_runs(QRELS)


def test_line_that_is_none_of_a_run_is_refused_with_its_place(tmp_path):
    path = tmp_path / "run.txt"
    path.write_text(RUN.read_text() + "q1 Q0 d1\n")
    with pytest.raises(InputError, match=r"run\.txt:[0-9]+: This line is not six columns of a run"):
        read_runs(path, QRELS)
