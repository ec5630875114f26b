"""Pages about runs say what reports say."""

from __future__ import annotations

import json
import threading
from decimal import Decimal

import pytest

import deemster as dm
from deemster.records import Usage
from deemster.store import open_store
from tests.store.make_runs import BASELINE
from tests.view.conftest import SAMPLES, evaluate
from tests.view.viewer_client import running_viewer


def test_list_has_the_newest_run_first(viewer, numbers):
    found = viewer.get("runs")
    assert found["total"] == 2
    assert [run["label"] for run in found["runs"]] == ["after", "before"]
    first, report = found["runs"][0], numbers[1][1]
    assert first["macro_f1"] == pytest.approx(report.macro_f1)
    assert first["macro_f1_interval"] == pytest.approx(report.macro_f1_interval)
    assert first["pass_rate_interval"] == pytest.approx(report.pass_rate_interval)
    shown = first["metrics"]["rouge-l"]
    assert shown["mean"] == pytest.approx(report.metrics["rouge-l"].mean)
    assert shown["interval"] == pytest.approx(report.metrics["rouge-l"].pass_rate_interval)
    assert (first["gate"], first["samples"], first["done"], first["total"]) == ("pass", 24, 48, 48)


@pytest.mark.parametrize(
    ("query", "labels"),
    [
        ("q=BEF", ["before"]),
        ("label=after", ["after"]),
        ("kind=grading", []),
        ("status=pass", ["after"]),
        ("status=incomplete", ["after", "before"]),
        ("offset=1", ["before"]),
        ("limit=1", ["after"]),
    ],
)
def test_list_is_filtered_and_paged(viewer, query, labels):
    assert [run["label"] for run in viewer.get(f"runs?{query}")["runs"]] == labels


def test_run_equals_its_report_to_the_last_digit(viewer, numbers):
    page, report = viewer.get("runs/after"), json.loads(numbers[1][1].to_json())
    same = set(report) - {"samples", "executions", "failures"}
    assert {name: page[name] for name in same} == {name: report[name] for name in same}
    assert page["failures"] == {"target_failed": 4}
    assert page["tags"] == [
        {"name": "odd", "samples": 8},
        {"name": "small", "samples": 16},
        {"name": "(untagged)", "samples": 8},
    ]
    assert {"key": "author", "values": ["ada", "bert"]} in page["metadata_keys"]


def test_run_is_compared_with_the_baseline_else_with_the_run_before(tmp_path):
    place = tmp_path / "runs.db"
    for name in ("first", "second", "third"):
        evaluate(place, name=name)
    with open_store(place) as store, running_viewer(store) as client:
        ids = {run["label"]: run["id"] for run in client.get("runs")["runs"]}
        assert client.get("runs/first")["compare_with"] is None
        assert client.get("runs/third")["compare_with"] == {"id": ids["second"], "is_baseline": False}
        store.promote(ids["first"], BASELINE)
        assert client.get("runs/third")["compare_with"] == {"id": ids["first"], "is_baseline": True}


def test_trend_of_a_dataset_has_the_oldest_run_first(viewer):
    (suite,) = viewer.get("trends")["suites"]
    assert (suite["dataset"], [run["label"] for run in suite["runs"]]) == ("numbers", ["before", "after"])


def test_progress_counts_executions(viewer):
    found = viewer.get("runs/latest/progress")
    assert (found["status"], found["done"], found["total"]) == ("incomplete", 48, 48)


def test_progress_says_what_was_used_so_far(tmp_path):
    going = threading.Event()
    left = [Usage(prompt_tokens=5, completion_tokens=2, cost_usd=Decimal("0.25"))] * 8

    def target(given):
        if given["question"].endswith(" 20?"):
            going.wait(20)
        return dm.Output("so", usage=left.pop() if left else Usage())

    run = threading.Thread(
        target=lambda: dm.evaluate(
            dm.Dataset(SAMPLES, name="numbers"),
            target=target,
            metrics=["exact-match"],
            concurrency=1,
            storage=str(tmp_path / "runs.db"),
        )
    )
    with open_store(tmp_path / "runs.db") as store, running_viewer(store) as client:
        run.start()
        try:
            while not list(store.runs()) or client.get("runs/latest/progress")["done"] < 20:
                assert run.is_alive()
            # What is shown may be some moments old, but not for long.
            while (found := client.get("runs/latest/progress"))["usage"]["calls"] < 20:
                assert run.is_alive()
        finally:
            going.set()
            run.join()
    assert found["status"] == "running"
    used = {"executions": 20, "calls": 20, "cached_calls": 0, "tokens": 56, "cost_usd": 2.0, "is_whole_cost": False}
    assert found["usage"] == used


def test_missing_run_is_not_found_and_names_no_file(viewer, numbers):
    answer = viewer.send("/api/runs/nowhere")
    assert answer.status == 404
    assert "nowhere" in answer.message
    assert numbers[0].where not in answer.body.decode()
