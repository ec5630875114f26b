from __future__ import annotations

import json

import pytest

from deemster.integrations.import_run import read_runs
from deemster.records import MetricScore, Unscored
from tests.integrations.imported import FIXTURES

METRICS = ["exact_match", "non_llm_string_similarity", "non_llm_context_recall"]


@pytest.fixture(params=["results.csv", "results.jsonl"], scope="module")
def run(request):
    (found,) = read_runs(FIXTURES / "ragas" / request.param)
    return found


def test_every_column_of_numbers_is_a_metric_with_its_scores(run):
    rows = [json.loads(line) for line in (FIXTURES / "ragas" / "results.jsonl").read_text().splitlines()]
    assert [card.name for card in run.cards] == METRICS
    for row, execution in zip(rows, run.executions, strict=True):
        for name, mark in zip(METRICS, execution.marks, strict=True):
            if row[name] is None:
                assert isinstance(mark, Unscored)
            else:
                assert isinstance(mark, MetricScore)
                assert mark.score == pytest.approx(row[name])


def test_question_reference_and_contexts_are_kept(run):
    france, _, peru = run.dataset
    assert france.input == {"question": "What is the capital of France?"}
    assert france.expected_output == "Paris"
    assert france.metadata["reference_contexts"] == ["Paris is the capital of France."]
    retrieved = run.executions[0].answer.retrieved
    assert [passage["text"] for passage in retrieved][1] == 'It\'s on the Seine, "the river".'
    assert peru.expected_output == "Lima"


def test_missing_score_is_unscored(run):
    assert run.executions[2].marks[2].cause == "metric_failed"


def test_cell_that_is_code_stays_text(tmp_path):
    path = tmp_path / "results.csv"
    path.write_text("user_input,response,reference,faithfulness\nq,a,\"[__import__('os').getpid()]\",0.5\n")
    (run,) = read_runs(path)
    assert next(iter(run.dataset)).expected_output == "[__import__('os').getpid()]"
