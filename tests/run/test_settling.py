"""Marks that are final only once all are there."""

from __future__ import annotations

import random

import deemster as dm
from deemster.records import Execution, MetricScore, Output, Unscored
from deemster.run.plan import Plan
from deemster.run.settling import Settling
from deemster.target.saved import SavedOutputs
from tests.run.scorers import Scripted, rated


class Late(Scripted):
    """Gives each mark its rank among all: a later one would change an earlier one."""

    settles = True

    def settle(self, marks):
        order = sorted((mark.score for mark in marks if isinstance(mark, MetricScore)), reverse=True)
        return [MetricScore(order.index(mark.score) / 100) if isinstance(mark, MetricScore) else mark for mark in marks]


def settling(*metrics, sink):
    return Settling(Plan(dm.Dataset([dm.Sample("s", {})], name="d"), SavedOutputs({"s": "x"}), metrics), sink)


def executions(count=6, repetitions=2):
    return [
        Execution(place, f"s{place}", repetition, Output("x"), (mark(place), MetricScore(0.5)))
        for repetition in range(repetitions)
        for place in range(count)
    ]


def mark(place):
    return Unscored("model_failed", "down") if place == 3 else MetricScore(1 - place / 10)


def test_where_no_metric_settles_executions_pass_at_once():
    found = []
    passing = settling(Scripted(rated, "a"), Scripted(rated, "b"), sink=found.append)
    every = executions()
    passing.add(every[:2])
    passing.add(every[2:])
    assert found == [every[:2], every[2:]]
    passing.finish()
    assert len(found) == 2


def test_a_metric_that_settles_sees_all_marks_of_the_run_in_one_order():
    every = executions()
    outcomes = []
    for seed in range(3):
        mixed = random.Random(seed).sample(every, len(every))
        found = []
        late = settling(Late(rated, "late"), Scripted(rated, "b"), sink=found.append)
        late.add(mixed[:5])
        assert found == []
        late.add(mixed[5:])
        late.finish()
        outcomes.append(found)
    assert outcomes[0] == outcomes[1] == outcomes[2]
    (settled,) = outcomes[0]
    assert [(each.repetition, each.position) for each in settled] == [(r, p) for r in range(2) for p in range(6)]
    assert [each.marks[0].score for each in settled if each.position != 3][:5] == [0.0, 0.02, 0.04, 0.06, 0.08]
    assert all(each.marks[0] == mark(3) for each in settled if each.position == 3)
    assert all(each.marks[1] == MetricScore(0.5) for each in settled)


def test_finishing_twice_hands_on_once():
    found = []
    late = settling(Late(rated, "late"), Scripted(rated, "b"), sink=found.append)
    late.add(executions())
    late.finish()
    late.finish()
    assert len(found) == 1


def test_a_run_without_executions_settles_nothing():
    found = []
    settling(Late(rated, "late"), sink=found.append).finish()
    assert found == []
