"""Criteria of a metric, counted over a run."""

from __future__ import annotations

import math

from deemster.records import Execution, MetricScore, Output
from deemster.results.mark_table import CriterionColumns


def executions(values):
    for position, value in enumerate(values):
        mark = MetricScore(0.5, {"criteria": {"tone": {"value": value}}})
        yield Execution(position, f"s{position}", 0, Output("text"), (mark,))


def test_many_distinct_values_are_counted_exactly():
    values = [number / 80_000 for number in range(80_000)] + [0.25, None]
    criteria = CriterionColumns(["tone"], samples=len(values), repetitions=1)
    criteria.add(list(executions(values)), 0)
    figures = criteria.summarize()["tone"]
    assert (figures.n, figures.n_judged, figures.n_abstained, figures.n_failed) == (80_002, 80_001, 1, 0)
    assert figures.mean == math.fsum(values[:-1]) / 80_001
