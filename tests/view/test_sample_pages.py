"""One sample is shown whole."""

from __future__ import annotations

import deemster as dm
from deemster.models.fake_models import FakeChat
from deemster.store import open_store
from tests.view.viewer_client import running_viewer


def test_sample_has_question_output_and_marks(viewer, numbers):
    sample = viewer.get("runs/after/samples/8")
    assert (sample["id"], sample["input"], sample["expected_output"]) == (
        "q08",
        {"question": "How many is 8?"},
        "It is 8.",
    )
    assert (sample["unstable"], sample["passed"]) == (True, 0.5)
    first, second = sample["executions"]
    assert first["output"] == "It is 8."
    assert second["output"].startswith("Perhaps 9")
    assert second["marks"]["exact-match"]["success"] is False
    assert first["latency_ms"] == 80.0
    assert first["retrieved"] == [{"id": "doc-8", "text": "Passage about 8"}]


def test_failure_of_the_target_is_shown(viewer):
    execution = viewer.get("runs/after/samples/5")["executions"][0]
    assert "no answer for five" in execution["failure"]["message"]
    assert execution["marks"]["rouge-l"]["unscored"]["cause"] == "target_failed"


def test_neighbours_follow_the_filter(viewer):
    sample = viewer.get("runs/after/samples/9?metric=exact-match&passed=no")
    assert (sample["previous"], sample["next"], sample["place"], sample["matched"]) == (8, 13, 3, 7)
    outside = viewer.get("runs/after/samples/2?metric=exact-match&passed=no")
    assert (outside["previous"], outside["next"], outside["place"]) == (None, None, None)


def test_same_sample_in_other_runs(viewer, numbers):
    (other,) = viewer.get("runs/after/samples/8")["other_runs"]
    assert (other["label"], other["position"]) == ("before", 8)
    assert [mark["score"] for mark in other["marks"]["exact-match"]] == [1.0, 0.0]


def test_sample_that_is_not_there(viewer):
    assert viewer.send("/api/runs/after/samples/24").status == 400
    assert viewer.send("/api/runs/after/samples/-1").status == 404


def test_scores_against_length(viewer):
    found = viewer.get("runs/after/score-length?metric=rouge-l")
    assert found["total"] == 23
    assert [8.0, 1.0, 3] in found["points"]
    assert viewer.send("/api/runs/after/score-length?metric=no").status == 400


def test_embedded_image_is_named_in_question_and_output(tmp_path):
    image = "data:image/png;base64,iVBORw0KGgo="
    turn = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": image}}]}
    samples = [{"id": "photo", "input": {"messages": [turn]}, "expected_output": image}]
    place = tmp_path / "runs.db"
    dm.evaluate(samples, outputs={"photo": f"See {image}."}, metrics=["contains"], storage=str(place))
    with open_store(place) as store, running_viewer(store) as viewer:
        sample = viewer.get("runs/latest/samples/0")
    assert sample["input"]["messages"][0]["content"][0]["image_url"]["url"] == "[image/png, 8 bytes]"
    assert sample["expected_output"] == "[image/png, 8 bytes]"
    assert sample["executions"][0]["output"] == "See [image/png, 8 bytes]."


def test_prompt_of_a_chat_target_is_shown_as_it_was_filled_in(tmp_path):
    target = dm.ChatTarget("mini", {"system": "Be brief.", "user": "Q: {{input.question}}"})
    dataset = dm.Dataset([{"id": "a", "input": {"question": "Why?"}, "expected_output": "x"}], name="d")
    models = {"mini": FakeChat(lambda ask: "x")}
    dm.evaluate(dataset, target=target, metrics=["exact-match"], models=models, storage=str(tmp_path / "runs.db"))
    with open_store(tmp_path / "runs.db") as store, running_viewer(store) as viewer:
        sample = viewer.get("runs/latest/samples/0")
    assert sample["prompt"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Q: Why?"}]


def test_sample_of_another_target_has_no_prompt(viewer):
    assert viewer.get("runs/after/samples/8")["prompt"] is None
