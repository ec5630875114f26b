"""Every field of the JSON report, in the order of the format's table."""

from __future__ import annotations

import json

import pytest

from tests.report.runs import full_report, small_report

FIGURES = (
    "n n_scored n_unscored n_not_run n_passed unscored_by_cause mean stdev min p5 p50 p95 max mean_interval pass_rate "
    "pass_rate_worst pass_rate_best pass_rate_scored pass_rate_interval pass_rate_corrected n_not_applicable"
)
USAGE = (
    "calls cached_calls prompt_tokens completion_tokens cached_tokens reasoning_tokens total_tokens cached_call_tokens "
    "reported latency_ms"
)
FIELDS = {
    "": "schema_version tool_version run privacy dataset totals macro_f1 macro_f1_interval "
    "macro_f1_metrics pass_rate pass_rate_interval metric_order metrics histograms cohorts aggregate precision "
    "samples executions failures "
    "usage cost budget gate "
    "adversarial",
    "run": "id suite status reason started_at finished_at duration_s seed varied part label target models",
    "privacy": "level removed",
    "dataset": "name schema_version fingerprint duplicates",
    "totals": "samples repetitions executions metrics marks scored unscored not_run target_failures "
    "not_applicable samples_not_applicable",
    "metrics.silent": f"{FIGURES} spec identity family threshold higher_is_better criteria roles where",
    "histograms.silent.0": "low high count",
    "cohorts.0": "name label untagged samples executions macro_f1 macro_f1_interval pass_rate pass_rate_interval "
    "metrics aggregate macro_f1_metrics samples_not_applicable",
    "cohorts.0.metrics.silent": FIGURES,
    "precision": "within_sample_variance resolution target_delta resolvable required_repetitions unstable run repeated",
    "precision.repeated.0": "k pass_at_k pass_at_k_interval pass_hat_k pass_hat_k_interval",
    "precision.run": "resolution resolvable required_repetitions",
    "samples.0": "id row_hash tags repetitions passed unscored pass_rate interval unstable score_mean score_stdev "
    "metrics aggregate expected_output input not_applicable",
    "samples.0.metrics.silent": "mean stdev min max n",
    "executions.0": "id repetition output output_chars output_valid output_cut retrieved trajectory marks usage",
    "executions.0.marks.silent": "score success threshold rubric_score details usage",
    "executions.6.marks.silent": "unscored usage",
    "executions.6.marks.silent.unscored": "cause message",
    "failures.0": "id repetition metric cause message",
    "usage": "target scoring total by_metric reruns",
    "usage.target": USAGE,
    "usage.total.latency_ms": "count total mean p50 p95 max",
    "usage.by_metric.silent": USAGE,
    "cost": "total_usd reported_usd derived_usd complete calls unpriced_calls unpriced_models models",
    "cost.models.0": "model calls prompt_tokens completion_tokens cost_usd priced",
    "gate": "decision mode checks",
    "gate.checks.0": "name observed low high required status because",
}


def part(path):
    value = json.loads(full_report().to_json())
    for step in path.split(".") if path else ():
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value


@pytest.mark.parametrize("path", FIELDS)
def test_record_has_every_field_in_the_order_of_the_format(path):
    assert list(part(path)) == FIELDS[path].split(), (
        f"the fields of `{path or 'the report'}` changed: write the new list into FIELDS, in this order, give a new "
        "field a default so that older reports load, and run `make refresh`"
    )


@pytest.mark.parametrize(
    "path", ["metrics", "histograms", "cohorts.0.metrics", "samples.0.metrics", "executions.0.marks", "usage.by_metric"]
)
def test_map_by_metric_is_in_the_order_of_code_points(path):
    assert list(part(path)) == ["exact-match", "quoting", "retrieval-hit-at-k", "silent"]


def test_metric_order_is_the_order_of_the_suite():
    assert part("metric_order") == ["quoting", "silent", "exact-match", "retrieval-hit-at-k"]


def test_cohorts_are_by_code_point_with_the_untagged_bucket_last():
    assert [(cohort["name"], cohort["label"], cohort["untagged"]) for cohort in part("cohorts")] == [
        ("policy", "policy", False),
        ("refunds", "refunds", False),
        (None, "(untagged)", True),
    ]


def test_executions_are_in_dataset_order_then_repetition():
    order = [(entry["id"], entry["repetition"]) for entry in part("executions")]
    assert order == [(name, turn) for name in ("window", "fee", "broken", "silence") for turn in (0, 1)]


def test_failing_target_is_one_failure_without_a_metric():
    failures = [
        (entry["id"], entry["metric"], entry["cause"]) for entry in part("failures") if entry["repetition"] == 0
    ]
    assert failures == [("broken", "silent", "metric_failed"), ("silence", None, "target_failed")]


def test_money_is_written_with_eight_decimals_at_most():
    assert '"total_usd": 0.00007404' in full_report().to_json()


def test_inapplicable_field_is_null():
    value = json.loads(small_report().to_json())
    absent = ("aggregate", "precision", "cost", "budget", "gate", "adversarial")
    assert {name: value[name] for name in absent} == dict.fromkeys(absent)


def test_times_are_utc_with_milliseconds():
    assert part("run.started_at") == "2025-06-15T12:00:00.000Z"


def test_histogram_bins_are_ten_and_touch_each_other():
    bins = part("histograms.silent")
    assert [entry["low"] for entry in bins] == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    assert [entry["high"] for entry in bins] == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    assert [entry["count"] for entry in bins] == [0, 0, 0, 0, 0, 0, 4, 0, 0, 0]
