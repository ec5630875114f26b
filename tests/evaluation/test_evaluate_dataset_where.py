"""Metrics with `where` in Python: built-in, functions, classes; aggregates, comparisons, stored runs."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import msgspec
import pytest

import deemster as dm
from deemster.errors import ConfigurationError
from deemster.models.clock import FrozenClock
from deemster.monitoring.pass_rate_over_time import MonitoredRecord, track_pass_rate
from deemster.results.metric_aggregators import AtLeast, Critical
from tests.builders.arguments import arguments

CLOCK = FrozenClock(datetime(2026, 1, 1, tzinfo=UTC))
SAMPLES = [
    {"id": "a", "input": {"q": "a"}, "expected_output": "x", "metadata": {"tags": ["hard"], "weight": 1}},
    {"id": "b", "input": {"q": "b"}, "expected_output": "y", "metadata": {"tags": ["hard"]}},
    {"id": "c", "input": {"q": "c"}, "expected_output": "z", "metadata": {"tags": ["easy"]}},
]
OUTPUTS = {"a": "x", "b": "no", "c": "z"}


@dm.metric("short", where={"tags": "easy"})
def short(actual: str) -> bool:
    return len(actual) < 2


class Weighed:
    name = "weighed"
    where = "auto"
    needs = ("weight",)

    def score(self, sample, output):
        return float(sample.metadata["weight"])

    def score_many(self, samples, outputs):
        return [self.score(*pair) for pair in zip(samples, outputs, strict=True)]


class Picky:
    name = "picky"

    def score(self, sample, output):
        return 1.0


def evaluated(*metrics, samples=SAMPLES, **settings):
    dataset = dm.Dataset(samples, name="three")
    said = {**OUTPUTS, **settings.pop("outputs", {})}
    outputs = {sample["id"]: said[sample["id"]] for sample in samples}
    return dm.evaluate(dataset, outputs=outputs, metrics=metrics, **arguments(clock=CLOCK, **settings))


def test_functions_classes_and_built_in_metrics_take_where():
    report = evaluated(short, Weighed(), dm.metrics.ExactMatch(where={"tags": "hard"}), "contains")
    counts = {name: (each.n, each.n_not_applicable, each.pass_rate) for name, each in report.metrics.items()}
    assert counts == {
        "short": (1, 2, 1.0),
        "weighed": (1, 2, 1.0),
        "exact-match": (2, 1, 0.5),
        "contains": (3, 0, 2 / 3),
    }
    assert report.totals.unscored == 0


def test_class_named_in_a_suite_takes_where_beside_its_own_options():
    entry = {f"{__name__}:Picky": {"where": {"tags": "easy"}, "name": "choosy"}}
    report = evaluated(entry)
    assert (report.metrics["choosy"].n, report.metrics["choosy"].identity) == (1, f"{__name__}:Picky(name=choosy) v1")


def test_auto_needs_a_metric_that_says_what_it_reads():
    metric = Picky()
    metric.where = "auto"
    with pytest.raises(ConfigurationError, match=r"`picky` does not say what that is. Give it `needs`"):
        evaluated(metric)


def test_criterion_check_takes_no_where():
    check = {"metric": "contains", "args": {"where": "auto"}}
    rubric = {"criteria": [{"name": "c", "requirement": "It holds.", "check": check}]}
    with pytest.raises(ConfigurationError, match="takes no `where`"):
        evaluated({"rubric": {"rubric": rubric}})


@pytest.mark.parametrize(
    ("aggregator", "success", "samples"),
    [("and", 2 / 3, 3), (AtLeast(2), 2 / 3, 3), (Critical(["exact-match"]), 0.5, 2), ("min", 2 / 3, 3)],
)
def test_only_metrics_that_apply_count_in_an_aggregator(aggregator, success, samples):
    exact = dm.metrics.ExactMatch(where={"tags": "hard"})
    report = evaluated(exact, "contains", aggregator=aggregator)
    assert report.aggregate.success_rate == pytest.approx(success)
    assert report.aggregate.samples == samples
    assert [entry.aggregate is None for entry in report.samples].count(True) == 3 - samples
    assert (report.cohorts["easy"].aggregate is None) is (samples == 2)


def test_samples_that_no_metric_applies_to_stand_in_no_pass_rate():
    report = evaluated(dm.metrics.ExactMatch(where={"tags": "hard"}), repetitions=2)
    assert (report.pass_rate, report.macro_f1, report.totals.samples_not_applicable) == (0.5, 0.5, 1)
    assert report.cohorts["easy"].macro_f1 is report.cohorts["easy"].pass_rate is None
    assert [entry.sample.id for entry in report.failures()] == ["b"]
    last = list(report.samples)[-1]
    assert (last.passed, last.pass_rate, last.unscored, last.not_applicable) == (0, None, 0, ("exact-match",))


def test_comparison_leaves_out_what_is_not_applicable(tmp_path):
    metrics = (dm.metrics.ExactMatch(where={"tags": "hard"}), "contains")
    before = evaluated(*metrics)
    after = evaluated(*metrics, outputs={"b": "y", "c": "w"})
    found = dm.compare(before, after)
    exact = found.metrics["exact-match"].pass_rate
    assert (exact.n, exact.baseline, exact.candidate) == (2, 0.5, 1.0)
    assert found.metrics["contains"].pass_rate.n == 3
    assert found.macro_f1.baseline == pytest.approx(before.macro_f1)
    assert found.macro_f1.candidate == pytest.approx(after.macro_f1)
    assert found.macro_f1.difference == pytest.approx(after.macro_f1 - before.macro_f1)
    assert (found.pass_rate.n, found.pass_rate.baseline, found.pass_rate.candidate) == (3, 2 / 3, 2 / 3)
    assert found.macro_f1_origin.total == pytest.approx(after.macro_f1 - before.macro_f1)
    cohort = next(each for each in found.cohorts if each.label == "easy")
    assert (cohort.metrics["exact-match"].n, cohort.macro_f1.n) == (0, 1)

    inside = [sample for sample in SAMPLES if "hard" in sample["metadata"]["tags"]]
    alone = dm.compare(
        evaluated("exact-match", samples=inside),
        evaluated("exact-match", samples=inside, outputs={"b": "y"}),
    )
    assert alone.metrics["exact-match"].pass_rate == exact


def test_report_of_an_older_version_is_read(tmp_path):
    report = evaluated("contains")
    value = json.loads(report.to_json())
    del value["macro_f1_metrics"], value["totals"]["not_applicable"], value["totals"]["samples_not_applicable"]
    for cohort in value["cohorts"]:
        del cohort["macro_f1_metrics"], cohort["samples_not_applicable"]
    for figures in [value["metrics"], *(cohort["metrics"] for cohort in value["cohorts"])]:
        del figures["contains"]["n_not_applicable"]
    del value["metrics"]["contains"]["where"]
    for sample in value["samples"]:
        del sample["not_applicable"]
    path = tmp_path / "old.json"
    path.write_text(json.dumps(value))
    assert dm.load_report(path).to_markdown() == report.to_markdown()


def test_monitoring_counts_records_that_no_metric_applies_to_apart():
    day = datetime(2026, 1, 1, tzinfo=UTC)
    records = [MonitoredRecord(day, True), MonitoredRecord(day, False)]
    outside = [MonitoredRecord(day, None, applies=False)] * 3
    plain, mixed = track_pass_rate(records, baseline=1), track_pass_rate([*outside, *records, *outside], baseline=1)
    assert mixed.not_applicable == 6
    assert msgspec.structs.replace(mixed, not_applicable=0) == plain
