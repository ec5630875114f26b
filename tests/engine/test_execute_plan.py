"""The engine: concurrency that overlaps and holds its limit, failures as values, order that changes nothing."""

from __future__ import annotations

import asyncio
import random
import threading

import pytest

import deemster as dm
from deemster.engine._target_calls import BATCH
from deemster.engine.execute_plan import execute_plan
from deemster.engine.run_plan import Plan
from deemster.engine.run_sync import run_sync
from deemster.engine.stop_request import Stop
from deemster.engine.work_items import planned_work
from deemster.evaluation.resolve_evaluation import resolve_arguments
from deemster.evaluation.run_evaluation import run_evaluation
from deemster.models.clock import SystemClock
from deemster.targets.python_target import PythonTarget
from tests.builders.arguments import arguments
from tests.report.runs import CLOCK


def dataset(count=3, **options):
    return dm.Dataset([dm.Sample(f"s{n}", {"n": n}, str(n)) for n in range(count)], name="numbers", **options)


def answered(target, *, count=3, metrics=("exact-match",), **options):
    return dm.evaluate(dataset(count), target=target, metrics=list(metrics), **arguments(clock=CLOCK, **options))


class Barrier:
    """Releases tasks when enough have arrived, and counts the most that were inside at once."""

    def __init__(self, parties):
        self.parties, self.inside, self.most = parties, 0, 0
        self.open = asyncio.Event()

    async def answer(self, asked):
        self.inside += 1
        self.most = max(self.most, self.inside)
        if self.inside == self.parties:
            self.open.set()
        await self.open.wait()
        await asyncio.sleep(0)
        self.inside -= 1
        return str(asked["n"])


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_calls_of_an_async_target_overlap_up_to_the_limit_and_not_beyond(limit):
    barrier = Barrier(limit)
    report = answered(barrier.answer, count=10, concurrency=limit)
    assert barrier.most == limit
    assert report.metrics["exact-match"].n_passed == 10


def test_calls_of_sync_function_overlap_in_threads_up_to_limit():
    barrier = threading.Barrier(3, timeout=30)
    lock = threading.Lock()
    inside = most = 0

    def answer(asked):
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        barrier.wait()
        with lock:
            inside -= 1
        return str(asked["n"])

    report = answered(answer, count=6, concurrency=3)
    assert most == 3
    assert report.metrics["exact-match"].n_passed == 6


def test_failed_target_is_unscored_with_message_and_run_continues():
    def answer(asked):
        if asked["n"] == 1:
            raise ConnectionError("refused\x1b[31m")
        return str(asked["n"])

    report = answered(answer)
    line = answer.__code__.co_firstlineno + 2
    assert [(entry.id, entry.metric, entry.cause, entry.message) for entry in report.failure_list] == [
        ("s1", None, "target_failed", f"ConnectionError: refused\\x1b[31m (test_execute_plan.py:{line})")
    ]
    assert report.totals.target_failures == 1
    assert report.metrics["exact-match"].n_passed == 2


@pytest.mark.parametrize("raised", [SystemExit(0), asyncio.CancelledError(), StopIteration(), RecursionError()])
def test_exception_of_async_target_fails_only_its_sample(raised):
    async def answer(asked):
        if asked["n"] == 0:
            raise raised
        return str(asked["n"])

    report = answered(answer, count=4, concurrency=1)
    assert report.totals.not_run == 0
    assert [entry.id for entry in report.failure_list] == ["s0"]
    assert report.metrics["exact-match"].n_passed == 3


def test_failed_metric_is_unscored_with_message_and_run_continues():
    class Picky:
        name = "picky"

        def score(self, sample, output):
            if sample.id == "s1":
                raise KeyError("no such thing")
            return 1.0

    report = answered(lambda asked: str(asked["n"]), metrics=[Picky(), "exact-match"])
    line = Picky.score.__code__.co_firstlineno + 2
    assert [(entry.id, entry.metric, entry.cause, entry.message) for entry in report.failure_list] == [
        ("s1", "picky", "metric_failed", f"KeyError: 'no such thing' (test_execute_plan.py:{line})")
    ]
    assert report.metrics["picky"].n_scored == 2
    assert report.metrics["exact-match"].n_scored == 3


def test_failed_batch_is_scored_pair_by_pair():
    class Batched:
        name = "batched"

        def score(self, sample, output):
            if sample.id == "s2":
                raise ValueError("this one")
            return 0.5

        def score_many(self, samples, outputs):
            raise RuntimeError("all of them")

    report = answered(lambda asked: "", metrics=[Batched()])
    (entry,) = report.failure_list
    assert (entry.id, entry.message.partition(" (")[0]) == ("s2", "ValueError: this one")
    assert report.metrics["batched"].n_scored == 2


@pytest.mark.parametrize("marks", [[1.0, 1.0], [1.0] * 4, [], None])
def test_batch_of_the_wrong_length_is_scored_pair_by_pair(marks):
    class Batched:
        name = "batched"

        def score(self, sample, output):
            return 0.25

        def score_many(self, samples, outputs):
            return marks

    # Saved outputs are marked in one batch; the answers of a target come in batches of any size.
    report = dm.evaluate(
        dataset(3),
        outputs=dict.fromkeys(("s0", "s1", "s2"), ""),
        metrics=[Batched()],
        settings=dm.EvaluationSettings(clock=CLOCK),
    )
    assert report.metrics["batched"].mean == 0.25


def test_invalid_mark_of_batch_does_not_affect_others():
    class Batched:
        name = "batched"

        def score(self, sample, output):
            raise AssertionError("not called")

        def score_many(self, samples, outputs):
            return [2.0 if sample.id == "s0" else 1.0 for sample in samples]

    report = answered(lambda asked: "", metrics=[Batched()])
    assert [(entry.id, entry.cause) for entry in report.failure_list] == [("s0", "metric_failed")]
    assert report.metrics["batched"].n_passed == 2


def test_async_score_is_metric_failed_and_coroutine_is_closed():
    class Awaited:
        name = "awaited"

        async def score(self, sample, output):
            return 1.0

    report = answered(lambda asked: "", metrics=[Awaited()])
    assert {entry.message for entry in report.failure_list} == {"`score` is async; a metric is a plain function."}


@pytest.mark.parametrize(
    ("threshold", "higher", "passed"), [(0.0, True, 3), (0.0, False, 3), (None, True, 0), (0.5, False, 3)]
)
def test_threshold_zero_of_class_is_used(threshold, higher, passed):
    class Zero:
        name = "zero"
        higher_is_better = higher

        def score(self, sample, output):
            return 0.0

    Zero.threshold = threshold
    report = answered(lambda asked: "", metrics=[Zero()])
    assert report.metrics["zero"].n_passed == passed
    assert report.metrics["zero"].threshold == (0.5 if threshold is None else threshold)


def test_function_a_class_and_an_instance_can_all_be_metrics():
    @dm.metric("length", threshold=1.0)
    def length(actual):
        return len(actual) == 1

    class Always:
        name = "always"

        def score(self, sample, output):
            return dm.MetricScore(1.0)

    report = answered(lambda asked: str(asked["n"]), metrics=[length, Always(), dm.metrics.ExactMatch()])
    assert [figures.n_passed for figures in report.metrics.values()] == [3, 3, 3]


@pytest.mark.parametrize("concurrency", [7, 64])
def test_finish_order_changes_no_byte(concurrency):
    def jumbled(seed):
        turn = random.Random(seed)

        async def answer(asked):
            for _ in range(turn.randrange(5)):
                await asyncio.sleep(0)
            if asked["n"] % 11 == 3:
                raise ValueError(asked["n"])
            return str(asked["n"] - asked["n"] % 5 // 4)

        return answer

    def text(seed, limit):
        metrics = ["exact-match", "levenshtein", "rouge-l"]
        return answered(jumbled(seed), count=60, metrics=metrics, concurrency=limit, repetitions=2).to_json()

    assert text(1, concurrency) == text(2, 1)


def test_repetitions_of_a_target_vary_the_target():
    seen = []

    def answer(invocation):
        seen.append((invocation.id, invocation.repetition))
        return str(invocation.repetition)

    report = answered(answer, repetitions=3)
    assert report.run.varied == "target"
    assert sorted(seen) == [(f"s{n}", turn) for n in range(3) for turn in range(3)]
    assert [entry.output for entry in report.executions[:3]] == ["0", "1", "2"]


def test_repetitions_of_one_saved_output_vary_the_scoring():
    report = dm.evaluate(
        dataset(),
        outputs={f"s{n}": "1" for n in range(3)},
        metrics=["exact-match"],
        repetitions=4,
        settings=dm.EvaluationSettings(clock=CLOCK),
    )
    assert report.run.varied == "scoring"
    assert [entry.passed for entry in report.samples] == [0, 4, 0]


def test_saved_repetitions_are_used_as_they_are():
    outputs = {f"s{n}": [str(n), "x"] for n in range(3)}
    report = dm.evaluate(
        dataset(), outputs=outputs, metrics=["exact-match"], settings=dm.EvaluationSettings(clock=CLOCK)
    )
    assert report.run.varied == "target"
    assert report.totals.repetitions == 2
    assert [entry.passed for entry in report.samples] == [1, 1, 1]
    assert report.precision.unstable == 3


class Endless:
    """A dataset that is made while it is read, and counts how far it has been read."""

    def __init__(self, count):
        self.count, self.read = count, 0

    def __len__(self):
        return self.count

    def __iter__(self):
        for n in range(self.count):
            self.read = n + 1
            yield dm.Sample(f"s{n}", {"n": n}, "x")


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_samples_are_read_only_slightly_ahead_of_sink(kind):
    samples = Endless(20_000)
    done = ahead = 0

    async def coroutine(asked):
        return "x"

    def function(asked):
        return "x"

    def sink(executions):
        nonlocal done, ahead
        ahead = max(ahead, samples.read - done)
        done += len(executions)

    limit = 16
    target = PythonTarget(coroutine if kind == "async" else function)
    plan = Plan(samples, target, (dm.metrics.ExactMatch(),), concurrency=limit)
    asyncio.run(execute_plan(plan, sink=sink, clock=SystemClock(), stop=Stop()))
    assert done == 20_000
    # A full queue, three batches of at most that size, and one sample in the hand of each caller.
    assert ahead <= 3 * BATCH + limit


def test_plan_covers_dataset_repetition_by_repetition():
    plan = Plan(dataset(2), PythonTarget(lambda asked: ""), (dm.metrics.ExactMatch(),), repetitions=2)
    found = [(work.sample.id, work.repetition) for work in planned_work(plan)]
    assert found == [("s0", 0), ("s1", 0), ("s0", 1), ("s1", 1)]


def test_after_stop_open_calls_finish_and_others_are_not_run():
    stop = Stop()

    async def answer(asked):
        if asked["n"] == 2:
            stop.request("enough")
        return str(asked["n"])

    job = resolve_arguments(dataset(50), target=answer, metrics=["exact-match"], concurrency=1)
    report = run_sync(run_evaluation(job, clock=CLOCK, stop=stop, warn=[].append))
    assert (report.run.status, report.run.reason) == ("incomplete", "47 of 50 scores were not computed (enough)")
    assert (report.totals.scored, report.totals.not_run) == (3, 47)
    assert report.metrics["exact-match"].n == 50
    assert {mark.unscored.cause for entry in report.executions[3:] for mark in entry.marks.values()} == {"not_run"}
    assert list(report.failure_list) == []


def test_stop_before_the_first_call_runs_nothing():
    stop = Stop()
    stop.request("at once")
    job = resolve_arguments(dataset(), target=lambda asked: "never", metrics=["exact-match"])
    report = run_sync(run_evaluation(job, clock=CLOCK, stop=stop, warn=[].append))
    assert report.totals.not_run == 3
    assert report.metrics["exact-match"].mean is None


def test_hanging_target_is_abandoned_after_stop(monkeypatch):
    monkeypatch.setattr("deemster.engine.worker_pool.DRAIN_S", 0.01)
    stop = Stop()

    async def answer(asked):
        stop.request("enough")
        await asyncio.Event().wait()

    job = resolve_arguments(dataset(), target=answer, metrics=["exact-match"], concurrency=2)
    report = run_sync(run_evaluation(job, clock=CLOCK, stop=stop, warn=[].append))
    assert report.totals.not_run == 3


def test_exception_of_sink_is_raised_unchanged():
    def sink(executions):
        raise OSError(28, "No space left on device")

    plan = Plan(dataset(), PythonTarget(lambda asked: ""), (dm.metrics.ExactMatch(),))
    with pytest.raises(OSError, match="No space left"):
        asyncio.run(execute_plan(plan, sink=sink, clock=CLOCK, stop=Stop()))


def test_latency_is_measured_unless_target_reports_it():
    class Ticking(SystemClock):
        def __init__(self):
            self.time = 0.0

        def now(self):
            return CLOCK.now()

        def elapsed_s(self):
            self.time += 0.25
            return self.time

    def answer(asked):
        return dm.Output("x", usage=dm.Usage(latency_ms=7.0)) if asked["n"] else dm.Output("x")

    report = dm.evaluate(
        dataset(2),
        target=answer,
        metrics=["exact-match"],
        settings=dm.EvaluationSettings(clock=Ticking()),
        concurrency=1,
    )
    latency = report.usage.target.latency_ms
    assert (latency.count, latency.total) == (2, 257.0)
