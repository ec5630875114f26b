from __future__ import annotations

import json

import pytest

from deemster.cli.export import TOOLS
from deemster.evaluation.external_run import store_external_run
from deemster.integrations.export_run import EXPORTERS, export_run
from deemster.integrations.import_run import read_runs
from deemster.records import MetricScore, TargetFailure
from deemster.report.stored_report import StoredSamples, stored_report
from deemster.store import open_store
from tests.integrations.imported import FIXTURES

SOURCES = ["promptfoo/results.json", "inspect/capitals.json", "deepeval/test_run_capitals.json", "ragas/results.csv"]


def scores(run):
    """Every score of a run with its verdict, by sample, repetition and metric."""
    return {
        (execution.id, execution.repetition, card.name): (mark.score, mark.success)
        for execution in run.executions
        for card, mark in zip(run.cards, execution.marks, strict=True)
        if isinstance(mark, MetricScore)
    }


@pytest.fixture(params=SOURCES)
def stored(request, tmp_path):
    with open_store(tmp_path / "runs.db", create=True) as store:
        run = read_runs(FIXTURES / request.param)[0]
        name = store_external_run(store, run).id
        yield store, name, run


def test_command_knows_every_exporter():
    assert sorted(EXPORTERS) == sorted(TOOLS)


def test_stored_run_comes_back_as_it_was(stored):
    store, name, run = stored
    assert store.run(name).fingerprint == run.dataset.fingerprint
    assert list(StoredSamples(store, store.run(name))) == list(run.dataset)
    assert list(store.executions(name)) == list(run.executions)
    assert tuple(store.cards(name)) == run.cards


def test_exported_run_is_imported_with_the_same_scores(stored, tmp_path):
    store, name, run = stored
    (again,) = read_runs(export_run(store, name, kind="otel", to=str(tmp_path / "run.jsonl")))
    if run.repetitions > 1:  # a trace is a sample of its own
        assert sorted(scores(again).values()) == sorted(scores(run).values())
        return
    assert scores(again) == scores(run)
    assert [sample.input for sample in again.dataset] == [sample.input for sample in run.dataset]
    answered = {e.id: e.answer.text for e in run.executions if e.answer and not isinstance(e.answer, TargetFailure)}
    for execution in again.executions:
        if execution.id in answered and not isinstance(execution.answer, TargetFailure) and execution.answer:
            assert execution.answer.text == answered[execution.id]


def test_unscored_marks_stay_unscored_through_opentelemetry(tmp_path):
    run = read_runs(FIXTURES / "deepeval" / "test_run_capitals.json")[0]
    with open_store(tmp_path / "runs.db", create=True) as store:
        name = store_external_run(store, run).id
        place = export_run(store, name, kind="otel", to=str(tmp_path / "run.jsonl"))
    (again,) = read_runs(place)
    brief = [card.name for card in again.cards].index("Brevity")
    assert [type(execution.marks[brief]).__name__ for execution in again.executions] == [
        "MetricScore",
        "MetricScore",
        "Unscored",
    ]


def test_events_of_opentelemetry_have_the_names_of_its_conventions(tmp_path):
    run = read_runs(FIXTURES / "deepeval" / "test_run_capitals.json")[0]
    with open_store(tmp_path / "runs.db", create=True) as store:
        export_run(store, store_external_run(store, run).id, kind="otel", to=str(tmp_path / "run.jsonl"))
    lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    records = [
        record
        for line in lines
        for resource in line.get("resourceLogs", ())
        for scope in resource["scopeLogs"]
        for record in scope["logRecords"]
    ]
    assert len(records) == 6
    assert {record["eventName"] for record in records} == {"gen_ai.evaluation.result"}
    keys = {entry["key"] for entry in records[0]["attributes"]}
    assert {"gen_ai.evaluation.name", "gen_ai.evaluation.score.value", "gen_ai.evaluation.score.label"} <= keys
    assert all(record["traceId"] and record["spanId"] for record in records)


def test_mlflow_has_the_numbers_of_the_report(folder, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    run = read_runs(FIXTURES / "deepeval" / "test_run_capitals.json")[0]
    tracking = (folder / "mlruns").as_uri()
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    with open_store(folder / "runs.db", create=True) as store:
        name = store_external_run(store, run).id
        export_run(store, name, kind="mlflow", to=tracking)
        report = stored_report(store, name)
    client = mlflow.MlflowClient(tracking_uri=tracking)
    experiment = client.get_experiment_by_name(run.dataset.name)
    (logged,) = client.search_runs([experiment.experiment_id])
    assert logged.data.metrics["macro_f1"] == pytest.approx(report.macro_f1)
    assert logged.data.metrics["Brevity/pass_rate"] == pytest.approx(report.metrics["Brevity"].pass_rate)
    assert logged.data.metrics["Brevity/unscored"] == 1
    assert logged.data.tags["deemster.run"] == name
    assert logged.data.params["fingerprint"] == run.dataset.fingerprint
