"""`evaluate` and `evaluate_async` in scripts, threads and running loops."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import warnings

import pytest

import deemster as dm
from deemster.comparison import load_report
from tests.builders.arguments import arguments
from tests.report.runs import CLOCK

SAMPLES = [dm.Sample("a", {"q": 1}, "yes"), dm.Sample("b", {"q": 2}, "no")]
OPTIONS = {
    "outputs": {"a": "yes", "b": "yes"},
    "metrics": ["exact-match"],
    "settings": dm.EvaluationSettings(clock=CLOCK),
}


def dataset(samples=SAMPLES):
    return dm.Dataset(samples, name="small")


def test_report_has_numbers_as_attributes():
    report = dm.evaluate(dataset(), **OPTIONS)
    assert report.macro_f1 == 0.5
    assert report.metrics["exact-match"].mean == 0.5
    assert report.cohorts["(untagged)"].samples == 2
    assert repr(report) == f"<Report {report.run.id}: 2 samples, 1 metric, mean pass-rate 0.5000, 0 unscored>"


def test_tag_called_untagged_has_cohort_of_its_own(tmp_path):
    samples = [dm.Sample("a", {"q": 1}, "yes", {"tags": ["(untagged)"]}), dm.Sample("b", {"q": 2}, "no")]
    report = dm.evaluate(dataset(samples), **OPTIONS)
    rates = {'"(untagged)"': 1.0, "(untagged)": 0.0}
    assert {label: cohort.pass_rate for label, cohort in report.cohorts.items()} == rates
    assert {cohort["label"]: cohort["name"] for cohort in json.loads(report.to_json())["cohorts"]} == {
        '"(untagged)"': "(untagged)",
        "(untagged)": None,
    }
    assert "<code>&#34;(untagged)&#34;</code>" in report.to_markdown()
    # A report of an older version gives both the same label.
    older = json.loads(report.to_json())
    older["cohorts"][0]["label"] = "(untagged)"
    (tmp_path / "older.json").write_text(json.dumps(older))
    read = load_report(tmp_path / "older.json")
    assert {label: cohort.pass_rate for label, cohort in read.cohorts.items()} == rates


def test_aggregator_may_be_import_path():
    report = dm.evaluate(dataset(), **OPTIONS, aggregator="deemster.results:MinAggregator")
    assert (report.aggregate.aggregator, report.aggregate.mean_score) == ("min", 0.5)
    with pytest.raises(dm.ConfigurationError, match="The aggregator `nowhere:Min` cannot be imported"):
        dm.evaluate(dataset(), **OPTIONS, aggregator="nowhere:Min")


def test_evaluate_works_inside_a_running_loop():
    async def notebook():
        return dm.evaluate(dataset(), **OPTIONS)

    assert asyncio.run(notebook()).to_json() == dm.evaluate(dataset(), **OPTIONS).to_json()


def test_evaluate_async_gives_same_report():
    assert asyncio.run(dm.evaluate_async(dataset(), **OPTIONS)).to_json() == dm.evaluate(dataset(), **OPTIONS).to_json()


def test_evaluate_works_in_any_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(dm.evaluate(dataset(), **OPTIONS).to_json()))
    thread.start()
    thread.join(timeout=60)
    assert found == [dm.evaluate(dataset(), **OPTIONS).to_json()]


def test_async_target_runs_inside_a_running_loop_too():
    async def answer(asked):
        await asyncio.sleep(0)
        return "yes" if asked["q"] == 1 else "no"

    async def notebook():
        return dm.evaluate(dataset(), target=answer, metrics=["exact-match"])

    assert asyncio.run(notebook()).macro_f1 == 1.0


def test_dataset_and_outputs_may_be_paths(tmp_path):
    (tmp_path / "golden.jsonl").write_text('{"id": "a", "input": {}, "expected_output": "yes"}\n')
    (tmp_path / "answers.jsonl").write_text('{"id": "a", "output": "yes"}\n')
    report = dm.evaluate(tmp_path / "golden.jsonl", outputs=tmp_path / "answers.jsonl", metrics=["exact-match"])
    assert (report.dataset.name, report.macro_f1) == ("golden", 1.0)


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({}, "There is no `target`. Name one, or give saved `outputs`"),
        ({"target": str, "outputs": {"a": "x", "b": "x"}}, "Give `target` or `outputs`, not both."),
    ],
)
def test_run_has_either_a_target_or_saved_outputs(answers, message):
    with pytest.raises(dm.ConfigurationError, match=re.escape(message)):
        dm.evaluate(dataset(), metrics=["exact-match"], **arguments(**answers))


def test_issues_of_all_arguments_are_listed_at_once():
    with pytest.raises(dm.ConfigurationError) as caught:
        dm.evaluate(
            7,
            metrics=["exact-mach"],
            gate={"min_macro": 1},
            seed=-1,
            repetitions=0,
            settings=dm.EvaluationSettings(max_unscored="x"),
        )
    issues = "\n".join(issue.message for issue in caught.value.issues)
    expected = ["seed must be", "`repetitions` is", "Did you mean `exact-match`", "There is no `target`", "`min_macro`"]
    for message in (*expected, "A dataset is a Dataset"):
        assert message in issues


@pytest.mark.parametrize(("allowed", "status"), [("100%", "complete"), (0, "incomplete"), (None, "incomplete")])
def test_allowance_of_the_call_wins_over_the_gates(allowed, status):
    rows = [{"id": "a", "input": {}, "expected_output": None}, {"id": "b", "input": {}, "expected_output": "x"}]
    options = {"outputs": {"a": "x", "b": "x"}, "metrics": ["exact-match"], "gate": {"max_unscored": "20%"}}
    with pytest.warns(UserWarning, match="1 of 2 samples will be unscored"):
        report = dm.evaluate(rows, **arguments(max_unscored=allowed, **options))
    assert report.run.status == status
    assert report.gate.decision == ("pass" if status == "complete" else "fail")


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("repetitions", 0, "`repetitions` is a whole number of at least 1, not 0."),
        ("repetitions", 1.5, "`repetitions` is a whole number of at least 1, not 1.5."),
        ("repetitions", True, "`repetitions` is a whole number of at least 1, not True."),
        ("concurrency", 0, "`concurrency` is a whole number of at least 1, not 0."),
        ("thresholds", {"exact": 0.5}, "which is no metric of this run. Did you mean `exact-match`?"),
        ("thresholds", {"exact-match": 1.5}, "The threshold of `exact-match` is a number between 0 and 1, not 1.5."),
        ("thresholds", {"exact-match": float("nan")}, "is a number between 0 and 1, not nan."),
        ("gate", {"min_macro": 1}, "`min_macro` is no key of the gate. Did you mean `min_macro_f1`?"),
        ("metrics", [], "There are no metrics."),
        ("seed", "x", "seed must be a whole number of at least 0, not text."),
        ("seed", -1, "seed must be a whole number of at least 0, not -1."),
        ("delta", 0, "delta must be a number above 0 and at most 1, not 0."),
        ("delta", float("nan"), "delta is nan, which is not a finite number."),
    ],
)
def test_invalid_option_is_error_before_the_run(option, value, message):
    calls = []
    options = {"target": calls.append, "metrics": ["exact-match"], option: value}
    with pytest.raises(dm.ConfigurationError) as caught:
        dm.evaluate(dataset(), **arguments(**options))
    assert message in str(caught.value)
    assert calls == []


def test_threshold_replaces_the_metrics_own():
    settings = dm.EvaluationSettings(thresholds={"levenshtein": 0.0})
    report = dm.evaluate(dataset(), **{**OPTIONS, "metrics": ["levenshtein"], "settings": settings})
    assert report.metrics["levenshtein"].n_passed == 2
    assert report.metrics["levenshtein"].threshold == 0.0


def test_absent_value_is_one_warning_and_unscored():
    samples = [dm.Sample("a", {}), dm.Sample("b", {}), dm.Sample("c", {}, "yes")]
    with pytest.warns(UserWarning, match="2 of 3 samples will be unscored, first `a`") as caught:
        report = dm.evaluate(dataset(samples), outputs=dict.fromkeys("abc", "yes"), metrics=["exact-match"])
    assert len(caught) == 1
    assert report.metrics["exact-match"].unscored_by_cause == {"no_expected": 2}
    assert report.metrics["exact-match"].n == 3


def test_warning_points_at_the_line_that_called_evaluate():
    samples = [dm.Sample("a", {}), dm.Sample("b", {}, "x")]
    with pytest.warns(UserWarning, match="unscored") as caught:
        dm.evaluate(dataset(samples), outputs={"a": "x", "b": "x"}, metrics=["exact-match"])
    assert caught[0].filename == __file__


def test_strict_makes_absent_value_error_before_the_run():
    calls = []
    with pytest.raises(dm.ConfigurationError) as caught:
        dm.evaluate(
            dataset([dm.Sample("a", {})]),
            target=calls.append,
            metrics=["exact-match"],
            settings=dm.EvaluationSettings(strict=True),
        )
    assert [fault.sample for fault in caught.value.issues] == ["a"]
    assert calls == []


def test_malformed_samples_stop_run_and_are_all_listed():
    samples = [dm.Sample(name, {}, "(") for name in "abc"]
    calls = []
    with pytest.raises(dm.ConfigurationError) as caught:
        dm.evaluate(dataset(samples), target=calls.append, metrics=["regex"])
    assert [fault.sample for fault in caught.value.issues] == ["a", "b", "c"]
    assert calls == []


def test_misspelt_metadata_key_is_a_warning_with_the_right_spelling():
    samples = [dm.Sample("a", {}, ["d1"], {"relevent": ["d1"], "unrelated": 1})]
    outputs = [{"id": "a", "output": "x", "retrieved": ["d1"]}]
    with pytest.warns(UserWarning, match="metadata has the key `relevent`. Did you mean `relevant`?"):
        dm.evaluate(dataset(samples), outputs=outputs, metrics=["retrieval-hit-at-k"])


def test_key_that_no_metric_of_the_run_reads_is_no_warning():
    samples = [dm.Sample("a", {}, "x", {"relevent": ["d1"]})]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dm.evaluate(dataset(samples), outputs={"a": "x"}, metrics=["exact-match"])


def test_run_id_depends_on_metrics():
    first = dm.evaluate(dataset(), **OPTIONS).run.id
    second = dm.evaluate(dataset(), **{**OPTIONS, "metrics": ["contains"]}).run.id
    assert first.startswith("20250615T120000Z-")
    assert second.startswith("20250615T120000Z-")
    assert first != second


def test_report_outlives_dataset_and_leaves_no_open_file():
    def made():
        return dm.evaluate(dataset(), **OPTIONS)

    assert made().to_csv().count("\n") == 3


def test_list_of_maps_or_samples_is_a_dataset():
    rows = [{"id": "a", "input": {}, "expected_output": "x"}, dm.Sample("b", {}, "y")]
    report = dm.evaluate(rows, outputs={"a": "x", "b": "x"}, metrics=["exact-match"])
    assert (report.dataset.name, report.macro_f1) == ("samples", 0.5)


@pytest.mark.parametrize("nonsense", [{"id": "a"}, 7, b"golden.yml"])
def test_non_dataset_is_error_with_its_type(nonsense):
    with pytest.raises(dm.ConfigurationError, match=f"not {type(nonsense).__name__}"):
        dm.evaluate(nonsense, outputs={"a": "x"}, metrics=["exact-match"])


def test_more_unscored_marks_than_allowed_make_the_run_incomplete():
    rows = [{"id": "a", "input": {}, "expected_output": None}, {"id": "b", "input": {}, "expected_output": "x"}]
    options = {"outputs": {"a": "x", "b": "x"}, "metrics": ["exact-match"]}
    with pytest.warns(UserWarning, match="1 of 2 samples will be unscored"):
        strict, lenient = (
            dm.evaluate(rows, **arguments(**options)),
            dm.evaluate(rows, **arguments(max_unscored="50%", **options)),
        )
    assert (strict.run.status, lenient.run.status) == ("incomplete", "complete")
    assert strict.run.reason == "1 of 2 samples could not be scored"


def test_frozen_clock_leaves_latency_undefined(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1750000000")
    rows = [{"id": "a", "input": {}, "expected_output": "x"}]
    report = dm.evaluate(rows, target=lambda asked: "x", metrics=["exact-match", {"latency-below": {"max_ms": 1}}])
    assert report.usage.target.latency_ms is None
    assert report.metrics["latency-below"].unscored_by_cause == {"no_usage": 1}
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert dm.evaluate(rows, target=lambda asked: "x", metrics=["exact-match"]).usage.target.latency_ms.count == 1


def test_metric_that_scored_nothing_still_has_its_threshold():
    rows = [{"id": "a", "input": {}, "expected_output": "x"}]
    down = {"a": {"error": "down"}}
    settings = dm.EvaluationSettings(thresholds={"rouge-l": 0.7})
    report = dm.evaluate(rows, outputs=down, metrics=["rouge-l"], settings=settings)
    assert report.metrics["rouge-l"].threshold == 0.7


def test_group_is_an_entry_of_the_metrics():
    with pytest.raises(dm.ConfigurationError, match="completeness: This asks the model `judge`"):
        dm.evaluate(dataset(), outputs={"a": "yes", "b": "yes"}, metrics=["exact-match", "group:generation"])


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        (["group:generation", "group:retrieval"], "one group of metrics, not `group:generation`, `group:retrieval`"),
        (["group:generatoin"], "generation"),
    ],
)
def test_group_that_cannot_be_used_is_error(metrics, message):
    with pytest.raises(dm.ConfigurationError, match=message):
        dm.evaluate(dataset(), outputs={"a": "yes", "b": "yes"}, metrics=metrics)


def test_gate_object_decides_as_the_map_of_a_suite():
    rules = {"min_macro_f1": 0.9, "metrics": {"exact-match": {"min_mean": 0.1}}, "max_unscored": "1%"}
    by_object = dm.evaluate(dataset(), **OPTIONS, gate=dm.Gate(**rules))
    assert by_object.to_json() == dm.evaluate(dataset(), **OPTIONS, gate=rules).to_json()


def test_gate_object_with_a_wrong_value_is_error_with_its_rule():
    gate = dm.Gate(min_macro_f1=2, metrics={"exact-match": {"min_men": 0.1}})
    with pytest.raises(dm.ConfigurationError) as caught:
        dm.evaluate(dataset(), **OPTIONS, gate=gate)
    assert [word in str(caught.value) for word in ("min_macro_f1", "Did you mean `min_mean`?")] == [True, True]
