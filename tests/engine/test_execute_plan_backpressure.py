"""A slow sink slows the run down. The number of waiting executions is bounded, and none is lost."""

from __future__ import annotations

import asyncio
import threading

import pytest

import deemster as dm
from deemster.engine import _judge_outputs as judging
from deemster.engine._target_calls import BATCH
from deemster.engine.execute_plan import execute_plan
from deemster.engine.run_plan import Plan
from deemster.engine.stop_request import Stop
from deemster.engine.work_items import WorkItem
from deemster.judges.metric_catalog import resolve_all
from deemster.targets.python_target import PythonTarget
from deemster.targets.saved_outputs import SavedOutputs
from tests.report.runs import CLOCK
from tests.runs.make_scorers import Model, Scripted, rated

COUNT = 6_000
CONCURRENCY = 8


class Slow:
    """A sink that waits, at its first call, until the run stops making progress, and records how far it came."""

    def __init__(self):
        self.taken = self.ahead = self.calls = 0
        self.inside = 0
        self.overlapped = False
        self.thread = None

    def __call__(self, executions):
        self.inside += 1
        self.overlapped |= self.inside > 1
        self.thread = threading.current_thread()
        if self.calls == 0:
            self.stand_still()
        self.ahead = max(self.ahead, self.read - self.taken)
        self.calls += 1
        self.taken += len(executions)
        self.inside -= 1

    read = 0

    def stand_still(self):
        """Wait while anything still moves: many turns of the loop without one piece of work taken."""
        quiet, before = 0, self.read
        while quiet < 20:
            self.turn()
            quiet, before = (quiet + 1, before) if self.read == before else (0, self.read)

    def turn(self):
        """Wait for some turns of the loop."""
        asyncio.run_coroutine_threadsafe(_turns(), self.loop).result(30)


async def _turns():
    for _ in range(50):
        await asyncio.sleep(0)


async def answer(asked):
    return "x"


def performed(target, *, asks):
    sink = Slow()

    def works():
        for n in range(COUNT):
            sink.read += 1
            yield WorkItem(n, dm.Sample(f"s{n}", {"n": n}, "x"), 0)

    async def work():
        sink.loop = asyncio.get_running_loop()
        metrics = resolve_all([Scripted(rated) if asks else "exact-match"])
        plan = Plan(dm.Dataset([dm.Sample("s", {}, "x")], name="n"), target, metrics, concurrency=CONCURRENCY)
        await execute_plan(plan, sink=sink, clock=CLOCK, stop=Stop(), ask=Model(), works=works())

    asyncio.run(work())
    return sink


@pytest.mark.parametrize("kind", ["live", "saved"])
@pytest.mark.parametrize("asks", [False, True])
def test_slow_sink_slows_the_run(kind, asks, monkeypatch):
    monkeypatch.setattr(judging, "LIVE", 100)
    saved = SavedOutputs({f"s{n}": "x" for n in range(COUNT)})
    sink = performed(saved if kind == "saved" else PythonTarget(answer), asks=asks)
    assert sink.taken == COUNT
    # Where models are asked also those that have begun; a queue of half a batch, and up to four batches in other hands.
    assert sink.ahead <= (100 if asks else 0) + 4 * BATCH + BATCH // 2 + CONCURRENCY
    assert not sink.overlapped
    assert sink.thread is not threading.main_thread()
