"""The usage of a run in progress is counted in parts, each execution once."""

from __future__ import annotations

from decimal import Decimal

import pytest

from deemster.records import MetricScore, Output, Usage
from deemster.store import open_store
from deemster.view.live_usage import LiveUsage
from tests.store.make_runs import begun, execution


@pytest.fixture
def run(tmp_path):
    """A run of twelve samples that has begun, and what writes it."""
    with open_store(tmp_path / "runs.db") as store:
        name = begun(store, count=12)
        with store.writer(name) as writer:
            yield store, name, writer


def add(writer, positions):
    judged = MetricScore(1.0, usage=Usage(prompt_tokens=1))
    said = Output("x", usage=Usage(prompt_tokens=10, completion_tokens=2, cost_usd=Decimal("0.5")))
    writer.add([execution(position, answer=said, marks=[judged]) for position in positions])
    writer.flush()


def test_every_execution_is_counted_once_in_whatever_order_it_comes(run):
    store, name, writer = run
    usage = LiveUsage(store, store.run(name))
    assert usage.read()["calls"] == 0
    for positions in ([7, 3, 9], [0, 11], [], [8, 1, 2]):
        add(writer, positions)
        usage.read()
    found = usage.read()
    assert (found["executions"], found["calls"], found["tokens"], found["cost_usd"]) == (8, 16, 8 * 13, 4.0)
    assert found["is_whole_cost"] is False


def test_one_answer_counts_a_part(run, monkeypatch):
    monkeypatch.setattr(LiveUsage, "most", 3)
    store, name, writer = run
    add(writer, range(10))
    usage = LiveUsage(store, store.run(name))
    counts = [usage.read()["executions"] for _ in range(6)]
    assert counts[0] == 3
    assert counts == sorted(counts)
    assert counts[-1] == 10
    add(writer, [10, 11])
    assert [usage.read()["executions"] for _ in range(2)][-1] == 12
