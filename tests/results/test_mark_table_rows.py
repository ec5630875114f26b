"""Marks of one run with some samples taken from another."""

from __future__ import annotations

import numpy as np

from deemster.records import Execution, MetricCard, MetricScore, Output
from deemster.results.mark_table import MarkTable
from deemster.results.metric_aggregators import MinAggregator
from deemster.results.run_summary import summarize_run


def table(scores):
    card = MetricCard("rubric", "rubric", "rubric", "custom", None, parts=("tone",))
    marks = MarkTable([card], samples=len(scores), repetitions=1, aggregator=MinAggregator())
    for place, score in enumerate(scores):
        marks.tag(place, ())
        mark = MetricScore(score, {"criteria": {"tone": {"value": score}}})
        marks.add([Execution(place, f"s{place}", 0, Output(f"{score}"), (mark,))])
    return marks


def test_taken_samples_have_the_marks_criteria_and_aggregates_of_the_other_run():
    before, after = table([1.0, 0.9, 0.8, 0.7]), table([0.1, 0.2, 0.3, 0.4])
    mixed = summarize_run(before.with_rows(after, np.array([True, False, False, True])))
    whole = summarize_run(table([0.1, 0.9, 0.8, 0.4]))
    assert mixed.metrics == whole.metrics
    assert mixed.aggregate == whole.aggregate
    assert mixed.metrics["rubric"].criteria["tone"].mean == whole.metrics["rubric"].criteria["tone"].mean


def test_neither_run_is_changed():
    before, after = table([1.0, 0.9]), table([0.1, 0.2])
    before.with_rows(after, np.array([True, True]))
    assert summarize_run(before) == summarize_run(table([1.0, 0.9]))
    assert summarize_run(after) == summarize_run(table([0.1, 0.2]))
