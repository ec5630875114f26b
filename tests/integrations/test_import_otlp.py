from __future__ import annotations

import json

import pytest

from deemster.evaluation.external_run import store_external_run
from deemster.integrations.import_run import read_runs
from deemster.records import MetricScore, TargetFailure
from deemster.store import open_store
from tests.integrations.imported import FIXTURES

TRACES, SCORED = FIXTURES / "otlp" / "openinference.jsonl", FIXTURES / "otlp" / "gen_ai.jsonl"


@pytest.fixture(scope="module")
def traces():
    (run,) = read_runs(TRACES)
    return run


def test_each_trace_is_a_sample_with_input_and_output(traces):
    assert [sample.input["question"] for sample in traces.dataset] == [
        "What is the capital of France?",
        "What is the capital of Italy?",
        "What is the capital of Peru?",
    ]
    assert [execution.answer.text for execution in traces.executions[:2]] == ["Paris", "Rome"]
    assert traces.executions[2].answer == TargetFailure("the model is overloaded")
    assert traces.dataset.name == "capitals"
    assert traces.target == "table-1"


def test_spans_are_passages_tool_calls_and_usage(traces):
    answer = traces.executions[1].answer
    assert answer.retrieved == [{"id": "doc-0", "text": "Rome is old."}, {"id": "doc-1", "text": "Milan is large."}]
    (call,) = answer.trajectory.tool_calls
    assert (call.name, dict(call.arguments), call.result) == ("look_up", {"country": "Italy"}, "found")
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (21, 3, 24)
    assert answer.usage.latency_ms > 0
    assert answer.model == "table-1"


def test_traces_without_results_are_a_recording(traces, tmp_path):
    with open_store(tmp_path / "runs.db", create=True) as store:
        row = store.run(store_external_run(store, traces).id)
        assert (row.kind, row.done) == ("recording", 3)
        assert len(list(store.samples(row.id))) == 3


def test_evaluation_results_are_marks():
    (run,) = read_runs(SCORED)
    assert [sample.input["messages"][0]["content"] for sample in run.dataset] == [
        "What is the capital of France?",
        "What is the capital of Peru?",
    ]
    (card,) = run.cards
    assert card.name == "relevance"
    good, bad = (execution.marks[0] for execution in run.executions)
    assert good == MetricScore(0.9, {"reason": "as the judge said"})
    assert (bad.score, bad.success) == (0.1, False)


def test_span_that_is_its_own_parent_is_no_endless_loop(tmp_path):
    document = json.loads(TRACES.read_text().splitlines()[0])
    span = document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    span["parentSpanId"] = span["spanId"]
    other = {**span, "spanId": "aa", "parentSpanId": "", "attributes": []}
    document["resourceSpans"][0]["scopeSpans"][0]["spans"].append(other)
    path = tmp_path / "traces.json"
    path.write_text(json.dumps(document))
    (run,) = read_runs(path)
    assert len(run.dataset) == 1


def test_attribute_that_is_not_read_is_listed(tmp_path):
    document = json.loads(SCORED.read_text().splitlines()[0])
    span = document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    span["attributes"].append({"key": "http.status", "value": {"intValue": "200"}})
    path = tmp_path / "traces.json"
    path.write_text(json.dumps(document))
    (run,) = read_runs(path)
    assert run.left_out == ("the attribute `http.status` of a span",)
