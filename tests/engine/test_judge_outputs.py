"""Many scripts at once: every execution gets its own marks, in any finish order and beside any failure."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import deemster as dm
from deemster.engine import _judge_outputs as judging
from deemster.engine.execute_plan import execute_plan
from deemster.engine.run_plan import Plan
from deemster.engine.stop_request import Stop
from deemster.judges.metric_catalog import resolve_all
from deemster.models.clock import FrozenClock, SystemClock
from deemster.records import MetricScore
from deemster.targets.python_target import PythonTarget
from deemster.targets.saved_outputs import SavedOutputs
from tests.report.runs import CLOCK
from tests.runs.make_scorers import DOWN, Model, Scripted, Together, answer, question, rated, rated_together


def plan(metrics, *, count=4, target=None, repetitions=1, concurrency=4, thresholds=None):
    samples = [dm.Sample(f"s{n}", {"n": n}, str(n)) for n in range(count)]
    outputs = SavedOutputs({sample.id: sample.id for sample in samples})
    return Plan(
        dm.Dataset(samples, name="numbers"),
        outputs if target is None else PythonTarget(target),
        resolve_all(metrics),
        repetitions,
        thresholds or {},
        concurrency,
    )


def judged(plan, model=None, *, stop=None, clock=CLOCK):
    """The executions of a plan, in the order in which they finish."""
    found = []
    asyncio.run(execute_plan(plan, sink=found.extend, clock=clock, stop=stop or Stop(), ask=model or Model()))
    return found


def marks(executions):
    return {(each.id, each.repetition): each.marks for each in executions}


def by_number(request):
    """A score that only the right sample gets."""
    return answer(f"0.{int(request.messages[0].content.split(':')[0][1:]):03d}")


def score_or_cause(mark):
    return mark.score if isinstance(mark, MetricScore) else mark.cause


def test_marks_keep_order_of_metrics():
    metrics = [Scripted(rated, "first"), "exact-match", Together(rated_together, "second"), "contains"]
    metrics.append(Scripted(rated, "third"))
    for (sample, _), row in marks(judged(plan(metrics), Model(by_number))).items():
        score = int(sample[1:]) / 1000
        assert [score_or_cause(mark) for mark in row] == [score, 0.0, score, 1.0, score]


def test_each_mark_has_usage_of_its_script():
    def script(sample, output):
        yield [question("x") for _ in range(int(sample.id[1:]) + 1)]
        return MetricScore(1.0)

    for (sample, _), (mark,) in marks(judged(plan([Scripted(script)]))).items():
        assert mark.usage.calls == int(sample[1:]) + 1


def test_usage_of_batch_counts_once_over_its_marks():
    def script(samples, outputs):
        yield [question("for all")]
        return [MetricScore(1.0)] * len(samples)

    found = marks(judged(plan([Together(script)], count=7)))
    assert sum(mark.usage.prompt_tokens for (mark,) in found.values()) == 10
    assert sum(mark.usage.calls for (mark,) in found.values()) == 1


def test_threshold_of_run_overrides_scorer():
    found = judged(plan([Scripted(rated), "contains"], thresholds={"scripted": 0.9}))
    assert {execution.marks[0].threshold for execution in found} == {0.9}


def failing(sample, output):
    if sample.id == "s2":
        raise RuntimeError("only here")
    return (yield from rated(sample, output))


def failing_together(samples, outputs):
    yield [question("a")]
    raise RuntimeError("all of it")


def greedy(sample, output):
    while True:
        yield []


@pytest.mark.parametrize("bad", [Scripted(greedy, "bad"), Together(failing_together, "bad")])
def test_failed_scorer_does_not_affect_other_metrics(bad, monkeypatch):
    monkeypatch.setattr("deemster.engine.play_scripts.ROUNDS", 10)
    for row in marks(judged(plan(["contains", bad, Scripted(rated, "good")]))).values():
        assert [score_or_cause(mark) for mark in row] == [1.0, "metric_failed", 0.5]


def test_failed_script_does_not_affect_other_samples():
    found = marks(judged(plan([Scripted(failing)])))
    assert [score_or_cause(found[f"s{n}", 0][0]) for n in range(4)] == [0.5, 0.5, "metric_failed", 0.5]


def test_missing_answer_reaches_only_its_script():
    model = Model(lambda request: DOWN if request.messages[0].content.startswith("s1") else answer())
    found = marks(judged(plan([Scripted(rated)]), model))
    assert [score_or_cause(found[f"s{n}", 0][0]) for n in range(4)] == [0.5, "model_failed", 0.5, 0.5]


def test_failed_target_is_not_judged():
    def target(asked):
        if asked["n"] in (0, 2):
            raise RuntimeError("broken")
        return str(asked["n"])

    model = Model(by_number)
    metrics = [Scripted(rated), "contains", Together(rated_together)]
    found = marks(judged(plan(metrics, target=target), model))
    for number in (0, 2):
        assert [score_or_cause(mark) for mark in found[f"s{number}", 0]] == ["target_failed"] * 3
    for number in (1, 3):
        assert [score_or_cause(mark) for mark in found[f"s{number}", 0]] == [number / 1000, 1.0, number / 1000]
    assert not any(text.startswith(("s0", "s2")) for text in model.asked)


def test_with_only_failed_targets_no_script_runs():
    def target(asked):
        raise RuntimeError("broken")

    model = Model()
    found = judged(plan([Scripted(rated), Together(rated_together)], target=target), model)
    assert [score_or_cause(mark) for execution in found for mark in execution.marks] == ["target_failed"] * 8
    assert model.rounds == []


@pytest.mark.parametrize("scorer", [Scripted(rated), Together(rated_together)])
def test_repetitions_of_saved_output_ask_anew(scorer):
    model = Model()
    found = judged(plan([scorer], repetitions=3, count=2), model)
    assert len(found) == 6
    asked = {(each.messages[0].content, each.sample) for requests in model.rounds for each in requests}
    assert len(asked) == 6


def test_batch_of_several_repetitions_gives_each_its_own_marks():
    def reply(request):
        return answer(f"0.{request.sample // 1000}{request.messages[0].content[1]}")

    found = marks(judged(plan([Together(rated_together)], repetitions=3, count=5), Model(reply)))
    assert {key: row[0].score for key, row in found.items()} == {
        (f"s{number}", repetition): pytest.approx(repetition / 10 + number / 100)
        for number in range(5)
        for repetition in range(3)
    }


def test_number_of_open_scripts_is_bounded(monkeypatch):
    monkeypatch.setattr(judging, "LIVE", 5)
    alive = most = 0

    def script(sample, output):
        nonlocal alive, most
        alive += 1
        most = max(most, alive)
        try:
            yield [question("a")]
            yield [question("b")]
            return MetricScore(1.0)
        finally:
            alive -= 1

    assert len(judged(plan([Scripted(script)], count=60))) == 60
    assert (alive, most) == (0, 5)


async def test_scripts_run_concurrently():
    gate = asyncio.Event()

    async def wait(_):
        if model.inside == 30:
            gate.set()
        await gate.wait()

    model = Model(wait=wait)
    await execute_plan(plan([Scripted(rated)], count=30), sink=lambda _: None, clock=CLOCK, stop=Stop(), ask=model)
    assert model.most == 30


@settings(max_examples=20)
@given(st.randoms(use_true_random=False), st.integers(1, 8))
def test_finish_order_changes_no_mark(dice: random.Random, live):
    async def wait(_):
        for _ in range(dice.randrange(6)):
            await asyncio.sleep(0)

    metrics = [Scripted(rated, "alone"), "contains", Together(rated_together, "batch"), Scripted(failing, "failing")]
    before, judging.LIVE = judging.LIVE, live
    try:
        found = judged(plan(metrics, count=12, repetitions=2), Model(by_number, wait))
    finally:
        judging.LIVE = before
    calm = judged(plan(metrics, count=12, repetitions=2), Model(by_number))
    assert sorted(found, key=place) == sorted(calm, key=place)


def place(execution):
    return execution.repetition, execution.position


def test_after_stop_open_scripts_finish_and_none_begins(monkeypatch):
    monkeypatch.setattr(judging, "LIVE", 3)
    stop = Stop()

    async def wait(_):
        stop.request("enough")
        await asyncio.sleep(0)

    model = Model(wait=wait)
    found = judged(plan([Scripted(rated)], count=50), model, stop=stop)
    assert 1 <= len(found) <= 3
    assert all(isinstance(execution.marks[0], MetricScore) for execution in found)
    assert len(model.rounds) == len(found)


def test_unanswered_scripts_are_abandoned_after_stop(monkeypatch):
    monkeypatch.setattr("deemster.engine.worker_pool.DRAIN_S", 0.01)
    stop, closed = Stop(), []

    def script(sample, output):
        try:
            return (yield from rated(sample, output))
        finally:
            closed.append(sample.id)

    async def wait(requests):
        if requests[0].messages[0].content.startswith(("s0", "s2")):
            return
        stop.request("enough")
        await asyncio.Event().wait()

    found = judged(plan([Scripted(script), Together(rated_together)]), Model(wait=wait), stop=stop)
    # The batch as a whole was asked with s0 in its first place, and so was answered.
    assert sorted(execution.id for execution in found) == ["s0", "s2"]
    assert sorted(closed) == ["s0", "s1", "s2", "s3"]


def test_stop_before_start_sends_no_request():
    stop, model = Stop(), Model()
    stop.request("never mind")
    assert judged(plan([Scripted(rated)]), model, stop=stop) == []
    assert model.rounds == []


def test_stop_after_run_has_no_effect():
    stop = Stop()
    assert len(judged(plan([Scripted(rated)]), stop=stop)) == 4
    stop.request("too late")
    assert stop.reason == "too late"


async def test_exception_of_sink_ends_run_unchanged():
    def sink(_):
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        await execute_plan(plan([Scripted(rated)]), sink=sink, clock=CLOCK, stop=Stop(), ask=Model())


async def test_cancelled_run_leaves_no_task_and_no_open_script():
    closed = []

    def script(sample, output):
        try:
            yield [question("a")]
        finally:
            closed.append(sample.id)

    full = asyncio.Event()

    async def never(_):
        if model.inside == 21:
            full.set()
        await asyncio.Event().wait()

    model = Model(wait=never)
    metrics = [Scripted(script, "alone"), Together(rated_together)]
    task = asyncio.create_task(
        execute_plan(plan(metrics, count=20), sink=lambda _: None, clock=CLOCK, stop=Stop(), ask=model)
    )
    await full.wait()
    task.cancel()
    await asyncio.wait([task])
    assert (asyncio.all_tasks() - {asyncio.current_task()}) == set()
    assert len(closed) == 20


async def test_executions_reach_sink_before_others_finish():
    first, release = asyncio.Event(), asyncio.Event()

    async def wait(requests):
        if requests[0].messages[0].content.startswith("s3"):
            await release.wait()

    def sink(executions):
        found.extend(executions)
        first.set()

    found = []
    task = asyncio.create_task(
        execute_plan(plan([Scripted(rated)]), sink=sink, clock=SystemClock(), stop=Stop(), ask=Model(wait=wait))
    )
    await asyncio.wait_for(first.wait(), 30)
    early = len(found)
    release.set()
    await task
    assert (early, len(found)) == (3, 4)


def test_frozen_clock_measures_no_latency():
    assert isinstance(CLOCK, FrozenClock)
    assert all(execution.marks[0].usage.latency_ms is None for execution in judged(plan([Scripted(rated)])))
