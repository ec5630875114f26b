"""The aggregate of a run: its share of successes, its interval, its cohorts, and the gate's rules about it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.errors import ConfigurationError
from deemster.gate import check_gate_names, decide_gate, read_gate
from deemster.records import Execution, Output
from deemster.results import (
    AggregateEntry,
    AggregationResult,
    AtLeast,
    MetricsAggregator,
    MinAggregator,
    WeightedMetricsAggregator,
)
from deemster.results.mark_table import MarkTable
from deemster.results.run_summary import summarize_run
from deemster.stats import clustered_wilson
from tests.builders.marks import mark
from tests.results.make_runs_of_marks import cards, entries_of, runs


def tally_of(rows, *, aggregator, tags=None):
    """A tally of samples, each a list of repetitions, each a list of scores; None where an execution never came."""
    tally = MarkTable(cards(2), samples=len(rows), repetitions=len(rows[0]), aggregator=aggregator)
    for position, repetitions in enumerate(rows):
        tally.tag(position, (tags or {}).get(position, ()))
        for repetition, scores in enumerate(repetitions):
            if scores is not None:
                marks = tuple(map(mark, scores))
                tally.add([Execution(position, f"s{position}", repetition, Output("x"), marks)])
    return tally


# Three samples of two repetitions: both succeed, one of them, none.
ROWS = [[[1.0, 0.5], [1.0, 1.0]], [[1.0, 1.0], [0.25, 1.0]], [[1.0, None], None]]


def test_run_has_the_share_of_executions_that_succeed_clustered_by_sample():
    aggregate = summarize_run(tally_of(ROWS, aggregator=MetricsAggregator())).aggregate
    assert aggregate.aggregator == "and"
    assert aggregate.success_rate == 3 / 6
    interval = clustered_wilson([2, 1, 0], marks=2).interval
    assert aggregate.interval == (interval.lower, interval.upper)
    assert aggregate.mean_score == pytest.approx((0.75 + 1 + 1 + 0.625 + 1 + 0) / 6)
    low, high = aggregate.mean_score_interval
    assert low < aggregate.mean_score < high


def test_one_success_of_two_samples_has_wilson_s_interval():
    aggregate = summarize_run(tally_of([[[1.0, 1.0]], [[0.0, 1.0]]], aggregator=MinAggregator())).aggregate
    assert aggregate.success_rate == 0.5
    assert [round(end, 4) for end in aggregate.interval] == [0.0945, 0.9055]
    assert aggregate.mean_score == 0.5


def test_sample_succeeds_if_every_repetition_does_and_score_is_mean():
    found = [entry.aggregate for entry in entries_of(tally_of(ROWS, aggregator=MetricsAggregator()))]
    assert found == [AggregateEntry(True, 0.875), AggregateEntry(False, 0.8125), AggregateEntry(False, 0.5)]


def test_cohorts_have_an_aggregate_of_their_own():
    summary = summarize_run(tally_of(ROWS, aggregator=MetricsAggregator(), tags={0: ("x", "y"), 1: ("y",)}))
    found = {cohort.label: (cohort.aggregate.success_rate, cohort.aggregate.mean_score) for cohort in summary.cohorts}
    assert found == {"x": (1.0, 0.875), "y": (0.75, 0.84375), "(untagged)": (0.0, 0.5)}
    assert summary.cohorts[0].aggregate.mean_score_interval is None


def test_without_aggregator_there_is_no_aggregate():
    tally = tally_of(ROWS, aggregator=None)
    summary = summarize_run(tally)
    assert summary.aggregate is None
    assert [cohort.aggregate for cohort in summary.cohorts] == [None]
    assert [figures.aggregate for figures in entries_of(tally)] == [None] * 3


@given(runs(), st.randoms())
def test_and_aggregator_success_rate_equals_pass_rate_in_any_order(run, chance):
    samples, repetitions, metrics, tags, executions = run
    summaries = []
    for _ in range(2):
        tally = MarkTable(cards(metrics), samples=samples, repetitions=repetitions, aggregator=MetricsAggregator())
        for position, names in enumerate(tags):
            tally.tag(position, names)
        tally.add(executions)
        summaries.append(summarize_run(tally))
        executions = list(executions)
        chance.shuffle(executions)
    summary = summaries[0]
    assert summaries[1] == summary
    assert summary.aggregate.success_rate == summary.pass_rate
    assert summary.aggregate.interval == summary.pass_rate_interval
    for cohort in summary.cohorts:
        assert cohort.aggregate.success_rate == cohort.pass_rate


def test_mark_that_cannot_be_mapped_stops_the_run_and_names_its_sample():
    aggregator = WeightedMetricsAggregator({"m0": 1, "m1": 1}, {"m0": {1: 1}, "m1": {1: 1}})
    with pytest.raises(ConfigurationError) as caught:
        tally_of(ROWS, aggregator=aggregator)
    assert str(caught.value) == "sample `s0`: `m0` gives no rubric score, which a weighted aggregator maps."


class Sum(MetricsAggregator):
    """Forgets to divide."""

    def compute_score(self, named_results):
        return sum(result.quality for result in named_results.values())


def test_aggregate_score_outside_0_to_1_is_error_with_sample():
    with pytest.raises(ConfigurationError) as caught:
        tally_of(ROWS, aggregator=Sum())
    assert str(caught.value) == (
        "sample `s0`: The aggregator tests.results.test_run_summary_aggregate:Sum gives the score 1.5; "
        "it lies between 0 and 1."
    )


class Duck:
    """An aggregator that inherits nothing."""

    def aggregate(self, named_results):
        return AggregationResult(len(named_results) == 2, 0.25)


def test_any_object_with_aggregate_is_accepted():
    aggregate = summarize_run(tally_of(ROWS, aggregator=Duck())).aggregate
    assert (aggregate.success_rate, aggregate.mean_score) == (5 / 6, pytest.approx(1.25 / 6))


METRICS = {"m0": "m0", "m1": "m1"}


def gate_of(section):
    return read_gate(section)


def statuses(section, *, aggregator, tags=None):
    decision = decide_gate(
        gate_of(section), summarize_run(tally_of(ROWS, aggregator=aggregator, tags=tags)), metrics=METRICS
    )
    return {check.name: (check.status, check.observed) for check in decision.checks}


def test_gate_bounds_the_aggregate_of_the_run_and_of_cohorts():
    section = {
        "min_aggregate_success": 0.5,
        "min_aggregate_score": 0.75,
        "cohorts": {"x": {"min_aggregate_success": 1}, "*": {"min_aggregate_score": 0.6}},
    }
    assert statuses(section, aggregator=MetricsAggregator(), tags={0: ("x",)}) == {
        "min_aggregate_success": ("pass", 0.5),
        "min_aggregate_score": ("fail", pytest.approx(4.375 / 6)),
        "cohorts.x.min_aggregate_success": ("pass", 1.0),
        "cohorts.x.min_aggregate_score": ("pass", 0.875),
        "cohorts.(untagged).min_aggregate_score": ("pass", 0.65625),
    }


@pytest.mark.parametrize("rule", ["min_aggregate_success", "min_aggregate_score"])
def test_on_lower_compares_the_lower_end_of_the_aggregate_s_interval(rule):
    assert statuses({rule: 0.4}, aggregator=AtLeast(1))[rule][0] == "pass"
    assert statuses({rule: 0.4, "on": "lower"}, aggregator=AtLeast(1))[rule][0] == "fail"


@pytest.mark.parametrize("bound", [1.5, -0.1, "half", True, None])
def test_bound_on_the_aggregate_lies_between_0_and_1(bound):
    with pytest.raises(ConfigurationError) as caught:
        gate_of({"min_aggregate_score": bound})
    assert "gate.min_aggregate_score must be a number from 0 to 1, not " in str(caught.value)


def test_rules_about_an_aggregate_need_an_aggregator():
    gate = gate_of({"min_aggregate_success": 0.5, "cohorts": {"*": {"min_aggregate_score": 0.5}}})
    with pytest.raises(ConfigurationError) as caught:
        check_gate_names(gate, metrics=METRICS, cohorts=[None])
    assert [(fault.where, fault.message) for fault in caught.value.issues] == [
        (
            "gate.min_aggregate_success",
            "The gate has `min_aggregate_success`, and this run has no `aggregator` to hold it to.",
        ),
        (
            "gate.cohorts.*.min_aggregate_score",
            "The gate has `min_aggregate_score`, and this run has no `aggregator` to hold it to.",
        ),
    ]
    assert check_gate_names(gate, metrics=METRICS, cohorts=[None], aggregates=True) is None
