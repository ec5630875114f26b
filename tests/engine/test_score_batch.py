"""Work of which something is known: a known answer is not asked for again, and a known mark is not made again."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

import deemster as dm
from deemster.engine.execute_plan import execute_plan
from deemster.engine.run_plan import Plan
from deemster.engine.stop_request import Stop
from deemster.engine.work_items import WorkItem
from deemster.judges.metric_catalog import resolve_all
from deemster.records import Call, MetricScore, TargetFailure, Unscored, Usage
from deemster.targets.python_target import PythonTarget
from deemster.targets.saved_outputs import SavedOutputs
from tests.report.runs import CLOCK
from tests.runs.make_scorers import Model, Scripted, Together, rated, rated_together

COUNT = 6
SAMPLES = [dm.Sample(f"s{n}", {"n": n}, "said") for n in range(COUNT)]
KEPT = MetricScore(0.25, {"kept": True}, usage=Usage(prompt_tokens=3), calls=(Call(5),))


class Plain:
    """A custom metric that records the marked samples."""

    def __init__(self, name="plain"):
        self.name, self.marked = name, []

    def score(self, sample, output):
        self.marked.append(sample.id)
        return 1.0


class Counting:
    """A target that records its inputs."""

    def __init__(self):
        self.asked = []

    def answer(self, invocation):
        self.asked.append(invocation.id)
        return "said"


def target_of(kind, counting):
    if kind == "saved":
        return SavedOutputs({sample.id: "said" for sample in SAMPLES})
    if kind == "sync":
        return PythonTarget(counting.answer)

    async def answer(invocation):
        return counting.answer(invocation)

    return PythonTarget(answer)


def performed(works, metrics, *, kind="async", ask=None):
    counting, found = Counting(), []
    plan = Plan(dm.Dataset(SAMPLES, name="numbers"), target_of(kind, counting), resolve_all(metrics), concurrency=2)
    asyncio.run(execute_plan(plan, sink=found.extend, clock=CLOCK, stop=Stop(), ask=ask, works=works))
    return {each.id: each for each in found}, counting


@pytest.mark.parametrize("kind", ["sync", "async", "saved"])
def test_known_answer_is_not_requested_again(kind):
    works = [WorkItem(n, SAMPLES[n], 0, dm.Output(f"known {n}") if n % 2 else None) for n in range(COUNT)]
    found, counting = performed(works, [Plain()], kind=kind)
    assert {name: each.answer.text for name, each in found.items()} == {
        f"s{n}": f"known {n}" if n % 2 else "said" for n in range(COUNT)
    }
    assert sorted(counting.asked) == ([] if kind == "saved" else ["s0", "s2", "s4"])


def test_only_given_executions_run():
    found, counting = performed([WorkItem(4, SAMPLES[4], 0)], [Plain()])
    assert list(found) == counting.asked == ["s4"]
    assert found["s4"].position == 4


def test_without_work_no_target_is_opened():
    found, counting = performed([], [Plain()])
    assert (found, counting.asked) == ({}, [])


@pytest.mark.parametrize("asks", [False, True])
def test_known_target_failure_keeps_its_marks(asks):
    metrics = [Plain("first"), Plain("second"), *([Scripted(rated)] if asks else [])]
    known = TargetFailure("broken")
    marks = (KEPT, None, None) if asks else (KEPT, None)
    found, counting = performed([WorkItem(0, SAMPLES[0], 0, known, marks)], metrics, ask=Model())
    failed = Unscored("target_failed", "broken")
    assert found["s0"].marks == ((KEPT, failed, failed) if asks else (KEPT, failed))
    assert counting.asked == []


patterns = st.lists(
    st.tuples(st.booleans(), st.booleans(), st.booleans(), st.booleans()) | st.none(), min_size=COUNT, max_size=COUNT
)


@given(patterns)
def test_only_missing_marks_are_made(known):
    plain, other = Plain("plain"), Plain("other")
    metrics = [Scripted(rated, "alone"), plain, Together(rated_together, "together"), other]
    works = [
        WorkItem(
            n, SAMPLES[n], 0, dm.Output("known"), None if row is None else tuple(KEPT if has else None for has in row)
        )
        for n, row in enumerate(known)
    ]
    model = Model()
    found, _ = performed(works, metrics, ask=model)
    rows = [row or (False,) * 4 for row in known]
    for n, row in enumerate(rows):
        assert [mark is KEPT or mark == KEPT for mark in found[f"s{n}"].marks] == list(row)
    assert sorted(plain.marked) == [f"s{n}" for n, row in enumerate(rows) if not row[1]]
    assert sorted(other.marked) == [f"s{n}" for n, row in enumerate(rows) if not row[3]]
    expected = [f"s{n}: known" for n, row in enumerate(rows) for place in (0, 2) if not row[place]]
    assert sorted(model.asked) == sorted(expected)


def test_with_all_marks_known_no_model_is_asked():
    model = Model()
    works = [WorkItem(n, SAMPLES[n], 0, dm.Output("known"), (KEPT, KEPT)) for n in range(COUNT)]
    found, _ = performed(works, [Scripted(rated), Together(rated_together)], ask=model)
    assert model.rounds == []
    assert all(each.marks == (KEPT, KEPT) for each in found.values())
