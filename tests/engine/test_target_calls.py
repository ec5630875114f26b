"""Live targets: opened before their first call, closed after their last, ended when they take too long."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import pytest

import deemster as dm
from deemster.engine.execute_plan import execute_plan
from deemster.engine.run_plan import Plan
from deemster.engine.stop_request import Stop
from deemster.engine.work_items import WorkItem
from deemster.records import Output, TargetFailure
from deemster.targets.python_target import PythonTarget
from tests.report.runs import CLOCK

SAMPLES = [dm.Sample(f"s{n}", {"n": n}, "x") for n in range(6)]


def performed(target, *, stop=None, works=None, sink=None, **options):
    found = []
    plan = Plan(dm.Dataset(SAMPLES, name="numbers"), target, (dm.metrics.ExactMatch(),), **options)
    asyncio.run(execute_plan(plan, sink=sink or found.extend, clock=CLOCK, stop=stop or Stop(), works=works))
    return {each.id: each.answer for each in found}


class Target:
    """An async target that notes what happens to it."""

    is_async = True

    def __init__(self, **attributes):
        self.happened = []
        self.inside = self.most = 0
        for name, value in attributes.items():
            setattr(self, name, value)

    async def open(self, *, clock):
        self.happened.append("open")
        await asyncio.sleep(0)

    async def call_async(self, invocation):
        self.happened.append(invocation.id)
        self.inside += 1
        self.most = max(self.most, self.inside)
        for _ in range(3):
            await asyncio.sleep(0)
        self.inside -= 1
        return Output("x")

    async def close(self):
        self.happened.append("close")


def test_target_is_opened_once_before_its_first_call_and_closed_after_its_last():
    target = Target()
    performed(target, concurrency=4)
    assert (target.happened[0], target.happened[-1]) == ("open", "close")
    assert sorted(target.happened[1:-1]) == [sample.id for sample in SAMPLES]


def test_unused_target_is_not_opened():
    target = Target()
    performed(target, works=[WorkItem(0, SAMPLES[0], 0, Output("known"))])
    assert target.happened == ["close"]


def test_target_is_closed_when_run_fails():
    def sink(executions):
        raise OSError(28, "No space left on device")

    target = Target()
    with pytest.raises(OSError, match="No space"):
        performed(target, sink=sink, concurrency=1)
    assert target.happened[-1] == "close"


def test_error_on_close_changes_no_answer():
    async def close():
        raise RuntimeError("it would not close")

    assert len(performed(Target(close=close))) == len(SAMPLES)


def test_error_on_open_ends_run():
    async def opening(*, clock):
        raise dm.ConfigurationError("There is no such address.")

    with pytest.raises(dm.ConfigurationError, match="no such address"):
        performed(Target(open=opening))


@pytest.mark.parametrize(("own", "plan", "most"), [(2, 5, 2), (5, 2, 5), (None, 3, 3)])
def test_concurrency_of_target_overrides_plan(own, plan, most):
    target = Target(concurrency=own)
    performed(target, concurrency=plan)
    assert target.most == most


def test_target_may_return_failure_or_not_run():
    class Picky(Target):
        async def call_async(self, invocation):
            return {"s0": None, "s1": TargetFailure("HTTP 500")}.get(invocation.id, Output("x"))

    found = performed(Picky())
    assert sorted(found) == ["s1", "s2", "s3", "s4", "s5"]
    assert found["s1"] == TargetFailure("HTTP 500")


def test_stop_reaches_target_at_once():
    stop, told = Stop(), []

    class Halted(Target):
        def halt(self, reason):
            told.append(reason)

        async def call_async(self, invocation):
            stop.request("enough")
            return await super().call_async(invocation)

    performed(Halted(), stop=stop, concurrency=1)
    assert told == ["enough"]


async def never(asked):
    if asked["n"] == 1:
        await asyncio.Event().wait()
    return "x"


RELEASED = threading.Event()


def stuck(asked):
    if asked["n"] == 1:
        RELEASED.wait()
    return "x"


@pytest.fixture(scope="module", autouse=True)
def _released():
    yield
    RELEASED.set()


@pytest.mark.parametrize("where", ["plan", "target", "both"])
def test_timeout_fails_only_its_sample(where):
    # The other calls return without waiting; a busy machine has half a second for them.
    target = PythonTarget(never)
    if where != "plan":
        target.timeout_s = 0.5
    options = {"plan": {"target_timeout_s": 0.5}, "both": {"target_timeout_s": 60.0}, "target": {}}[where]
    found = performed(target, concurrency=2, **options)
    assert found["s1"] == TargetFailure("The target did not answer within 0.5 s.")
    assert {found[f"s{n}"] for n in (0, 2, 3, 4, 5)} == {Output("x")}


def test_timed_out_sync_function_is_abandoned():
    works = [WorkItem(1, SAMPLES[1], 0)]
    found = performed(PythonTarget(stuck), works=works, target_timeout_s=0.01)
    assert found == {"s1": TargetFailure("The target did not answer within 0.01 s.")}


def test_timeout_error_of_target_keeps_its_message():
    def answer(asked):
        raise TimeoutError("the database")

    failure = performed(PythonTarget(answer), target_timeout_s=60.0)["s0"]
    assert failure.message.startswith("TimeoutError: the database (test_target_calls.py:")


class Leave(BaseException):
    """Derived from no Exception."""


RAISED = [
    SystemExit(0),
    asyncio.CancelledError(),
    StopIteration(),
    KeyboardInterrupt(),
    GeneratorExit(),
    Leave(),
    BaseExceptionGroup("several", [KeyboardInterrupt()]),
]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("raised", RAISED, ids=repr)
def test_anything_that_the_target_raises_fails_only_its_sample(raised, is_async):
    def answer(asked):
        if asked["n"] == 0:
            raise raised
        return "x"

    async def answer_async(asked):
        await asyncio.sleep(0)
        return answer(asked)

    found = performed(PythonTarget(answer_async if is_async else answer), concurrency=1)
    assert isinstance(found.pop("s0"), TargetFailure)
    assert set(found.values()) == {Output("x")}


def test_target_that_cancels_its_task_fails_only_its_sample():
    async def answer(asked):
        if asked["n"] == 0:
            asyncio.current_task().cancel()
            await asyncio.sleep(0)
        return "x"

    found = performed(PythonTarget(answer), concurrency=1)
    assert found.pop("s0").message.startswith("CancelledError")
    assert set(found.values()) == {Output("x")}


STUCK = """
import threading, deemster as dm
from deemster.engine.stop_request import Stop
from deemster.evaluation.resolve_evaluation import resolve_arguments
from deemster.evaluation.run_evaluation import run_evaluation
from deemster.engine.run_sync import run_sync

stop = Stop()
def answer(asked):
    stop.request("enough")
    threading.Event().wait()

import deemster.engine.worker_pool as pools
pools.DRAIN_S = 0.01
job = resolve_arguments([dm.Sample("a", {"n": 1}, "x")], target=answer, metrics=["exact-match"])
print(run_sync(run_evaluation(job, stop=stop, warn=print)).totals.not_run)
"""


def test_hanging_target_does_not_block_exit():
    done = subprocess.run([sys.executable, "-c", STUCK], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.returncode) == ("1\n", 0), done.stderr


@pytest.mark.parametrize("retries", [0, 1])
@pytest.mark.parametrize("is_async", [False, True])
def test_failure_has_the_traceback_of_the_function_without_secrets(is_async, retries):
    def answer(asked):
        raise ValueError("Bearer abcdef0123456789 is refused")

    async def answer_later(asked):
        answer(asked)

    failure = performed(PythonTarget(answer_later if is_async else answer, retries=retries))["s0"]
    assert failure.traceback.splitlines()[0] == "Traceback (most recent call last):"
    assert failure.traceback.endswith("ValueError: Bearer [removed] is refused")
    assert "deemster" not in failure.traceback.replace(str(Path(__file__)), "")


def test_timeout_and_a_failure_without_code_have_no_traceback():
    async def slow(_):
        await asyncio.sleep(60)

    assert performed(PythonTarget(slow), target_timeout_s=0.01)["s0"].traceback is None
    assert b"traceback" not in msgspec.json.encode(TargetFailure("refused"))
