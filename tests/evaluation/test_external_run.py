from __future__ import annotations

import pytest

from deemster.comparison.compare_runs import compare_sources
from deemster.comparison.stored_source import StoredSource
from deemster.engine.model_access import ModelCalls
from deemster.errors import ConfigurationError
from deemster.evaluation.check_file import check_file
from deemster.evaluation.external_run import load_gate, store_external_run
from deemster.evaluation.promote_baseline import promote_baseline
from deemster.integrations.run_builder import RunBuilder, read_mark
from deemster.records import Output, TargetFailure, Unscored
from deemster.report.stored_report import stored_report

SUITE = "name: bot\ngate:\n  min_pass_rate: 0.6\n"


def run(passing, *, of=10, target="bot", name="questions"):
    builder = RunBuilder("tool 1.0", name)
    metric = builder.add_metric("right", threshold=0.5)
    for number in range(of):
        sample = builder.add_sample(f"s{number}", {"question": number}, tags=["even"] if number % 2 == 0 else [])
        builder.add_execution(sample, Output(f"said {number}"), {metric: read_mark(float(number < passing))})
    return builder.build(target=target)


def test_stored_run_is_reported_and_compared(store):
    before = store_external_run(store, run(9)).id
    after = store_external_run(store, run(4)).id
    assert stored_report(store, "latest").run.id == after
    assert stored_report(store, before).pass_rate == 0.9
    comparison = compare_sources(*(StoredSource(store, store.run(name)) for name in (before, after)))
    assert comparison.samples.paired == 10
    assert comparison.metrics["right"].pass_rate.difference == pytest.approx(-0.5)


def test_run_that_is_stored_already_is_left_as_it_is(store):
    first = store_external_run(store, run(9))
    again = store_external_run(store, run(9))
    assert (again.id, again.is_known) == (first.id, True)
    assert not store_external_run(store, run(8)).is_known


def test_gate_of_a_suite_decides(store, tmp_path):
    suite = tmp_path / "suite.yml"
    suite.write_text(SUITE)
    held_to = load_gate(str(suite))
    good = store_external_run(store, run(9), held_to=held_to).id
    bad = store_external_run(store, run(4), held_to=held_to).id
    assert stored_report(store, good).gate.decision == "pass"
    assert stored_report(store, bad).gate.decision == "fail"
    assert store.run(good).suite == "bot"


def test_suite_of_a_gate_alone_is_valid(tmp_path):
    suite = tmp_path / "suite.yml"
    suite.write_text(SUITE)
    said = check_file(str(suite), None, limits=ModelCalls(), warn=print).description
    assert said == "suite `bot` for `import --gate`, 1 gate rule, no dataset"


def test_gate_about_an_unknown_metric_is_refused_before_anything_is_stored(store, tmp_path):
    suite = tmp_path / "suite.yml"
    suite.write_text("name: bot\ngate:\n  metrics:\n    rihgt: {min_mean: 0.5}\n")
    with pytest.raises(ConfigurationError, match="right"):
        store_external_run(store, run(9), held_to=load_gate(str(suite)))
    assert store.runs() == []


def test_gate_compares_with_the_baseline_of_the_suite(store, tmp_path):
    suite = tmp_path / "suite.yml"
    suite.write_text("name: bot\ngate:\n  baseline: {compare: baseline, margin: 0.05}\n")
    held_to = load_gate(str(suite))
    first = store_external_run(store, run(190, of=200), held_to=held_to).id
    promote_baseline(store, first, now="2026-01-02T03:04:05.000Z")
    worse = store_external_run(store, run(120, of=200), held_to=held_to).id
    assert stored_report(store, worse).gate.decision == "fail"


def test_failure_of_the_target_makes_the_run_incomplete(store):
    builder = RunBuilder("tool", "questions")
    metric = builder.add_metric("right")
    sample = builder.add_sample("a", {})
    builder.add_execution(sample, TargetFailure("no"), {metric: Unscored("target_failed", "no")})
    report = stored_report(store, store_external_run(store, builder.build()).id)
    assert report.run.status == "incomplete"
    assert report.totals.target_failures == 1


def test_run_without_metrics_is_a_recording(store):
    builder = RunBuilder("tool", "traffic")
    sample = builder.add_sample("a", {"q": 1})
    builder.add_execution(sample, Output("said"), {}, at="2026-01-02T03:04:05.000Z")
    row = store.run(store_external_run(store, builder.build()).id)
    assert (row.kind, row.status, row.done) == ("recording", "complete", 1)
