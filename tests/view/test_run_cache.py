"""Gradings, recordings, and runs that are still going on or were made without columns are shown too."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from urllib.parse import quote

import pytest

import deemster as dm
from deemster.engine.run_sync import run_sync
from deemster.evaluation.rescore_run import rescore
from deemster.judges.metric_catalog import parse_metric
from deemster.report.stored_grading import stored_grading
from deemster.runs.run_figures import NO_FIGURES
from deemster.store import open_store
from tests.cli.workspace import called
from tests.store.make_runs import begun, execution
from tests.view.conftest import evaluate
from tests.view.viewer_client import running_viewer

ESSAYS = Path(__file__).parent.parent.parent / "examples" / "essays"


@pytest.fixture(scope="module")
def grading(tmp_path_factory):
    """A viewer over a grading of letters by three judges, for ada to label."""
    folder = tmp_path_factory.mktemp("grading")
    shutil.copytree(ESSAYS, folder / "essays")
    (folder / "settings.yml").write_text("quorum: 2\ncalls: per_item\n")
    judges = [part for judge in ("ada", "bert", "cleo") for part in ("--judge", judge)]
    argv = [
        "--models",
        str(folder / "essays" / "models.yml"),
        *judges,
        "--offline",
        "--quiet",
    ]
    argv += ["--settings", str(folder / "settings.yml")]
    done = called("grade", str(folder / "essays" / "letters.yml"), *argv, "--store", str(folder / "runs.db"))
    assert done.exit_code == 0, done.stderr
    with open_store(folder / "runs.db") as store, running_viewer(store, author="hanna") as client:
        yield client, store


def test_grading_shows_its_summary_and_criteria(grading):
    client, store = grading
    page = client.get("runs/latest")
    wanted = stored_grading(store, store.run("latest")).figures
    assert page["kind"] == "grading"
    assert page["grading"]["mean_score"] == wanted.mean_score
    assert page["grading"]["criteria"]["position"]["mean"] == wanted.criteria["position"].mean
    assert [judge["votes"] for judge in page["grading"]["judges"]] == [120, 120, 120]
    assert page["metric_order"][0] == "score"


def test_items_of_a_grading_are_samples(grading):
    client, _ = grading
    found = client.get("runs/latest/samples?sort=score&limit=500")
    scores = [row["scores"]["score"]["score"] for row in found["rows"]]
    assert scores == sorted(scores)
    assert len(scores) == 20
    assert {row["passed"] for row in found["rows"]} == {None}
    assert all(row["preview"]["output"] for row in found["rows"])
    item = client.get("runs/latest/samples/0")["grading"]
    assert [vote["judge"] for vote in item["criteria"][0]["votes"]] == ["ada", "bert", "cleo"]


def test_text_is_found_in_submissions_and_reasons_of_a_grading(grading):
    client, store = grading
    items = stored_grading(store, store.run("latest")).items
    reason = next(vote.reason for vote in items[3].votes if vote.reason)
    found = client.get(f"runs/latest/samples?in=reasons&text={quote(reason.upper())}&limit=500")["rows"]
    wanted = [at for at, item in enumerate(items) if any(reason in (vote.reason or "") for vote in item.votes)]
    assert [row["position"] for row in found] == wanted
    assert [row["id"] for row in client.get("runs/latest/samples?in=output&text=84%20and%20afraid")["rows"]] == [
        "grandmother"
    ]
    assert client.get("runs/latest/samples?in=messages&text=84%20and%20afraid")["matched"] == 0


def test_grading_is_aligned_with_the_labels_of_its_dataset(grading):
    found = grading[0].get("runs/latest/agreement")
    assert (found["available"], found["source"], found["result"]["n_items"]) == (True, "ground truth", 20)
    pairs = found["judge_pairs"]
    names = [(pair["judge_a"], pair["judge_b"]) for pair in pairs]
    assert names == [("ada", "bert"), ("ada", "cleo"), ("bert", "cleo")]
    assert all(pair["ci"]["lower"] < pair["agreement"] < pair["ci"]["upper"] and pair["n_samples"] for pair in pairs)


def test_grading_has_no_efficient_queue(grading):
    client, _ = grading
    answer = client.send("/api/labels/queue?run=latest&n=5&order=efficient&metric=tone")
    assert (answer.status, answer.message) == (
        400,
        "A grading is labelled in random order: its numbers do not weigh labels.",
    )


def test_criteria_are_labelled_with_their_options(grading):
    client, store = grading
    queue = client.get("labels/queue?run=latest&n=5&metric=tone&metric=position")
    options = {task["title"]: [option["value"] for option in task["options"]] for task in queue["tasks"]}
    assert options["position"] == ["MET", "UNMET", "CANNOT_ASSESS"]
    assert len(options["tone"]) > 2
    position = queue["positions"][0]
    sample = client.get(f"labels/sample?run=latest&n=5&metric=tone&metric=position&position={position}")
    assert sample["output"]
    # Neither what judges said nor what people said before is shown.
    assert "annotations" not in json.dumps(sample)
    assert sample["revealed"] is None
    label = {"run": "latest", "position": position, "criterion": "position", "metrics": ["tone", "position"], "n": 5}
    assert client.post("labels", {**label, "verdict": "perhaps"}).status == 400
    answer = client.post("labels", {**label, "verdict": "UNMET"}).json
    assert answer["revealed"]["verdict"] in ("MET", "UNMET", "CANNOT_ASSESS")
    assert len(answer["revealed"]["votes"]) == 3
    assert [one.criterion for one in store.labels(store.run("latest").id)] == ["position"]


def test_recording_is_shown_without_a_report(tmp_path):
    with dm.Recorder("shop", store=tmp_path / "runs.db") as recorder:
        for n in range(3):
            recorder.record({"question": f"{n}?"}, f"answer {n}", tags=["live"])
    with open_store(tmp_path / "runs.db") as store, running_viewer(store) as client:
        page = client.get("runs/latest")
        assert (page["kind"], page["metrics"], page["totals"]["samples"]) == ("recording", {}, 3)
        assert page["why_no_report"] == "This run has no scores."
        assert page["tags"] == [{"name": "live", "samples": 3}]
        rows = client.get("runs/latest/samples")["rows"]
        assert [row["preview"]["output"] for row in rows] == ["answer 0", "answer 1", "answer 2"]
        assert client.get("runs/latest/samples/1")["executions"][0]["output"] == "answer 1"
        assert client.get("runs/latest/agreement")["available"] is False


def test_run_in_progress_is_shown_as_far_as_it_is(tmp_path):
    evaluate(tmp_path / "runs.db", name="only")
    with open_store(tmp_path / "runs.db") as store, running_viewer(store) as client:
        name = store.run("only").id
        store.lease(name)
        store.amend(name, status="running", facts=NO_FIGURES)
        page = client.get("runs/only")
        assert (page["status"], page["run"]["status"]) == ("running", "incomplete")
        assert client.get("runs")["runs"][0]["macro_f1"] is None
        other = begun(store, 1, count=4)
        with store.writer(other) as writer:
            writer.add([execution(0), execution(1)])
            writer.flush()
            progress = client.get(f"runs/{other}/progress")
            assert (progress["status"], progress["done"], progress["total"]) == ("running", 2, 4)
            rows = client.get(f"runs/{other}/samples")["rows"]
            assert [row["scores"]["exact-match"]["cause"] for row in rows] == [None, None, "not_run", "not_run"]
        # Its report cannot be built, and the answer says so without the place of the store.
        answer = client.send(f"/api/runs/{other}")
        assert answer.status == 404
        assert str(tmp_path) not in answer.body.decode()


def test_rescored_run_shows_the_new_metric(tmp_path):
    evaluate(tmp_path / "runs.db", name="only")
    with open_store(tmp_path / "runs.db") as store, running_viewer(store) as client:
        assert client.get("runs/only")["metric_order"] == ["exact-match", "rouge-l"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run_sync(rescore(store, "only", metrics=[parse_metric("contains")], warn=lambda _: None))
        assert client.get("runs/only")["metric_order"] == ["exact-match", "rouge-l", "contains"]
        found = client.get("runs/only/samples?sort=contains&order=desc&limit=1")
        assert found["rows"][0]["scores"]["contains"]["score"] == 1.0
