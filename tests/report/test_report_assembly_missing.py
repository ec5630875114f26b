"""Executions that were not run are in the report under their sample id."""

from __future__ import annotations

import asyncio

import pytest

import deemster as dm
from deemster.engine.stop_request import Stop
from deemster.evaluation.resolve_evaluation import resolve_arguments
from deemster.evaluation.run_evaluation import run_evaluation

SAMPLES = [{"id": f"s{place}", "input": {"n": place}, "expected_output": "yes"} for place in range(4)]


def report_of_run_stopped_at(calls, *, repetitions, dataset):
    """The report of a run whose target asks it to stop during a call, counted from 1; 0 stops it before the first."""
    stop, made = Stop(), []
    if calls == 0:
        stop.request("the test says so")

    async def target(input):  # noqa: A002 - the name targets are called with
        made.append(input["n"])
        if len(made) == calls:
            stop.request("the test says so")
        return "yes"

    job = resolve_arguments(dataset, target=target, metrics=["exact-match"], repetitions=repetitions, concurrency=1)
    return asyncio.run(run_evaluation(job, stop=stop, warn=pytest.fail))


def rows(report):
    return [
        (entry.id, entry.repetition, "run" if entry.output == "yes" else entry.marks["exact-match"].unscored.cause)
        for entry in report.executions
    ]


@pytest.mark.parametrize("calls", range(9))
def test_every_execution_that_was_not_run_is_listed_under_its_sample(calls, tmp_path):
    path = tmp_path / "golden.jsonl"
    dm.Dataset(SAMPLES, name="x").save(path)
    # Calls go through the whole dataset before the second repetition begins; the report goes sample by sample.
    expected = [
        (f"s{place}", repetition, "run" if repetition * 4 + place < calls else "not_run")
        for place in range(4)
        for repetition in range(2)
    ]
    for dataset in (dm.Dataset(SAMPLES, name="x"), dm.Dataset.load(path)):
        assert rows(report_of_run_stopped_at(calls, repetitions=2, dataset=dataset)) == expected


@pytest.mark.parametrize(
    ("calls", "told"), [(2, "every output that was run was scored"), (9, "every output was scored")]
)
def test_missing_marks_are_not_counted_as_scored(calls, told):
    report = report_of_run_stopped_at(calls, repetitions=2, dataset=dm.Dataset(SAMPLES, name="x"))
    assert f"None: {told}." in report.to_markdown()
