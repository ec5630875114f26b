from __future__ import annotations

import json

import pytest

from deemster.integrations.import_run import read_runs
from deemster.records import MetricScore, NotApplicable, Output, TargetFailure, Unscored
from tests.integrations.imported import FIXTURES, assert_same_numbers, imported_report, native_report

RESULTS = FIXTURES / "promptfoo" / "results.json"


@pytest.fixture(scope="module")
def runs():
    return read_runs(RESULTS)


def raw():
    return json.loads(RESULTS.read_text())


def mark(run, sample, metric, repetition=0):
    place = [card.name for card in run.cards].index(metric)
    (found,) = [each for each in run.executions if (each.id, each.repetition) == (sample, repetition)]
    return found.marks[place]


def test_each_provider_is_a_run_with_every_test_and_repetition(runs):
    assert [run.target for run in runs] == [
        "table - Answer briefly: {{question}}",
        "loud - Answer briefly: {{question}}",
    ]
    for run in runs:
        assert [sample.id for sample in run.dataset] == ["France", "test-2", "test-3", "test-4", "test-5"]
        assert run.repetitions == 2
        assert len(run.executions) == 10
        assert run.tool == f"promptfoo {raw()['metadata']['promptfooVersion']}"
    assert runs[0].dataset.fingerprint == runs[1].dataset.fingerprint


def test_every_verdict_of_promptfoo_is_the_success_of_a_mark(runs):
    counted = 0
    for row in raw()["results"]["results"]:
        run = runs[row["promptIdx"]]
        sample = list(run.dataset)[row["testIdx"] // 2].id
        for part in (row["gradingResult"] or {}).get("componentResults", []):
            name = part["assertion"].get("metric") or part["assertion"]["type"]
            found = mark(run, sample, name, row["testIdx"] % 2)
            assert isinstance(found, MetricScore)
            assert found.success is part["pass"]
            assert found.score == part["score"]
            counted += 1
    assert counted > 40


def test_sample_has_variables_reference_and_metadata(runs):
    france = next(iter(runs[0].dataset))
    assert france.input == {"question": "What is the capital of France?"}
    assert france.expected_output == "Paris"
    assert france.metadata == {"topic": "geography"}


def test_output_has_text_usage_and_model(runs):
    answer = runs[0].executions[0].answer
    assert isinstance(answer, Output)
    assert answer.text == "Paris"
    assert answer.usage.prompt_tokens == 12
    assert answer.usage.completion_tokens == 5
    assert str(answer.usage.cost_usd) == "0.0001"
    assert answer.usage.model == "file://provider.js"


def test_error_of_a_provider_is_a_target_failure_with_unscored_marks(runs):
    (found,) = [each for each in runs[0].executions if (each.id, each.repetition) == ("test-5", 0)]
    assert found.answer == TargetFailure("the model is overloaded")
    assert mark(runs[0], "test-5", "icontains") == Unscored("target_failed", "the model is overloaded")
    assert isinstance(mark(runs[0], "test-5", "equals"), NotApplicable)


def test_test_that_promptfoo_left_out_of_a_column_is_not_run(tmp_path):
    value = raw()
    rows = value["results"]["results"]
    value["results"]["results"] = [row for row in rows if not (row["promptIdx"] == 1 and row["testIdx"] in (6, 7))]
    path = tmp_path / "results.json"
    path.write_text(json.dumps(value))
    loud = read_runs(path)[1]
    assert len(loud.dataset) == 5
    assert mark(loud, "test-4", "is-json").cause == "not_run"


def test_report_of_an_imported_run_has_the_numbers_of_a_native_run(tmp_path):
    value = raw()
    # The assertion that every test has, without repetitions, of the provider that answered every test.
    rows = [row for row in value["results"]["results"] if row["testIdx"] % 2 == 0 and row["promptIdx"] == 0]
    value["runtimeOptions"]["repeat"] = 1
    for row in rows:
        row["testIdx"] //= 2
        row["testCase"]["assert"] = row["testCase"]["assert"][:1]
        if graded := row["gradingResult"]:
            graded["componentResults"] = [{**graded["componentResults"][-1], "assertion": {"type": "latency"}}]
    value["results"]["results"] = rows
    path = tmp_path / "results.json"
    path.write_text(json.dumps(value))
    (run,) = read_runs(path)
    assert_same_numbers(imported_report(run, tmp_path), native_report(run))


def test_what_no_record_holds_is_listed(tmp_path):
    value = raw()
    row = value["results"]["results"][0]
    row["response"]["logProbs"] = [-0.1]
    row["gradingResult"]["componentResults"][0]["assertion"]["weight"] = 3
    value["config"]["derivedMetrics"] = [{"name": "f1", "value": "p * r"}]
    path = tmp_path / "results.json"
    path.write_text(json.dumps(value))
    left_out = [sentence for run in read_runs(path) for sentence in run.left_out]
    assert "`logProbs` of a response" in left_out
    assert "`weight` of an assertion: every metric counts once" in left_out
    assert "`derivedMetrics` of the config" in left_out


def test_rows_as_json_lines_are_read_too(tmp_path, runs):
    path = tmp_path / "results.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in raw()["results"]["results"] if row["testIdx"] % 2 == 0))
    again = read_runs(path)
    assert [run.target for run in again] == [run.target for run in runs]
