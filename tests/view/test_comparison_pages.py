"""Pages about comparisons say what `deemster compare` says."""

from __future__ import annotations

import json

import pytest

import deemster as dm
from deemster.comparison.compare_runs import compare
from deemster.store import open_store
from tests.view.conftest import SAMPLES, evaluate
from tests.view.viewer_client import running_viewer


@pytest.fixture(scope="module")
def changed(tmp_path_factory):
    """Three runs: the second leaves three samples out, adds one, and is better on one and worse on another."""
    place = tmp_path_factory.mktemp("compare") / "runs.db"
    evaluate(place, name="one")

    def other(given):
        if "3?" in given["question"]:
            return "wrong"
        return f"It is {given['question'].split()[-1].rstrip('?')}."

    added = {"id": "new", "input": {"question": "How many is 99?"}, "expected_output": "It is 99."}
    for label in ("two", "three"):
        dataset = dm.Dataset([*SAMPLES[3:], added], name="numbers")
        dm.evaluate(dataset, target=other, metrics=["exact-match", "rouge-l"], storage=str(place), name=label)
    with open_store(place) as store, running_viewer(store) as client:
        yield client, place


def test_comparison_equals_the_command(changed):
    client, place = changed
    page, report = client.get("compare?runs=one,two"), compare("one", "two", store=place)
    wanted = json.loads(report.to_json())
    changes = wanted.pop("changes")
    stable = wanted["statuses"].pop("stable")
    statuses = {**page["statuses"]}
    assert statuses.pop("passes_in_both") + statuses.pop("fails_in_both") == stable
    assert {**{name: page[name] for name in wanted}, "statuses": statuses} == wanted
    assert page["statuses"]["newly_failing"] == sum(change["status"] == "newly_failing" for change in changes)
    assert (page["kind"], page["verdict"]) == ("comparison", report.verdict)


def test_changed_samples_come_in_the_order_of_the_report(changed):
    client, place = changed
    report = compare("one", "two", store=place)
    wanted = [(change.status, change.row_hash) for change in report.changes]
    found = client.get("compare/samples?runs=one,two&limit=500")
    statuses = [(row["status"], row["row_hash"]) for row in found["rows"] if not row["status"].endswith("_in_both")]
    assert sorted(statuses) == sorted(wanted)
    for row in found["rows"]:
        if row["status"].endswith("_in_both"):
            assert row["status"] == ("passes_in_both" if row["passed"][1] >= 0.5 else "fails_in_both")
    failing = sum(status == "newly_failing" for status, _ in wanted)
    assert statuses[:failing] == wanted[:failing]
    assert found["total"] == 25
    both = {change.row_hash: change for change in report.changes}
    for row in found["rows"]:
        change = both.get(row["row_hash"])
        if change is None:
            continue
        for side, at in ((change.baseline, 0), (change.candidate, 1)):
            assert row["positions"][at] == (None if side is None else side.position)
            assert row["scores"]["rouge-l"][at] == (None if side is None else side.scores["rouge-l"])


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("status=added", ["new"]),
        ("status=removed&sort=id", ["q00", "q01", "q02"]),
        ("status=newly_failing,added&sort=id&order=desc", ["q23", "q03", "new"]),
        ("text=certain&in=output&sort=id", ["q01", "q08"]),
        ("metric=exact-match&sort=difference", ["q03", "q23", "q08", "q09"]),
    ],
)
def test_samples_of_a_comparison_are_filtered(changed, query, ids):
    assert [row["id"] for row in changed[0].get(f"compare/samples?runs=one,two&{query}")["rows"]][: len(ids)] == ids


def test_sample_in_every_run(changed):
    client, _ = changed
    rows = client.get("compare/samples?runs=one,two,three&status=newly_failing&sort=id")["rows"]
    assert [len(row["positions"]) for row in rows] == [3] * len(rows)
    sample = client.get(f"compare/samples/{rows[0]['row_hash']}?runs=one,two,three&status=newly_failing&sort=id")
    assert sample["id"] == "q03"
    assert [side["executions"][0]["output"] for side in sample["sides"]] == ["It is 3.", "wrong", "wrong"]
    assert (sample["previous"], sample["next"]) == (None, rows[1]["row_hash"])
    assert client.get("compare?runs=one,two,three")["kind"] == "ranking"


def test_points_pair_the_scores_of_both_runs(changed):
    found = changed[0].get("compare/points?runs=one,two&metric=exact-match")
    assert found["total"] == 20
    assert [1.0, 0.0] in [point[:2] for point in found["points"]]


@pytest.mark.parametrize(
    "path",
    [
        "compare",
        "compare?runs=one",
        "compare/samples?runs=one,two&status=odd",
        "compare/samples/zz?runs=one,two",
        "compare/points?runs=one,two&metric=no",
        "compare/samples?runs=one,two&sort=up",
    ],
)
def test_bad_comparison_is_refused(changed, path):
    assert changed[0].send(f"/api/{path}").status == 400


def test_page_of_two_judges_says_what_the_command_says(tmp_path):
    place = tmp_path / "runs.db"
    outputs = {sample["id"]: f"It is {n % 3 or 'about many'}." for n, sample in enumerate(SAMPLES)}
    for name, mark in (("old", 0.4), ("new", 0.9)):
        metrics = [f"rouge-l(threshold={mark})"]
        dm.evaluate(SAMPLES, outputs=outputs, metrics=metrics, storage=str(place), name=name)
    with open_store(place) as store, running_viewer(store) as client:
        page = client.get("compare?runs=old,new")
    report = compare("old", "new", store=place)
    assert page["judge_change"] == json.loads(report.to_json())["judge_change"]
    assert page["verdict"] == report.verdict
    assert page["judge_change"]["metrics"]["rouge-l"]["only_before"] > 0
