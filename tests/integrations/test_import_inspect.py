from __future__ import annotations

import io
import json
import math
import struct
import zipfile

import pytest

from deemster.errors import InputError
from deemster.integrations.import_run import read_runs
from deemster.integrations.source_file import SourceFile
from deemster.records import MetricScore, Output, TargetFailure, Unscored
from tests.integrations.imported import FIXTURES

LOG, ARCHIVE = FIXTURES / "inspect" / "capitals.json", FIXTURES / "inspect" / "capitals.eval"


@pytest.fixture(scope="module")
def archive():
    (run,) = read_runs(ARCHIVE)
    return run


@pytest.fixture(scope="module")
def log():
    (run,) = read_runs(LOG)
    return run


def marks(run, sample, repetition=0):
    (found,) = [each for each in run.executions if (each.id, each.repetition) == (sample, repetition)]
    return dict(zip((card.name for card in run.cards), found.marks, strict=True)), found.answer


def test_archive_has_the_samples_in_order_and_epochs_as_repetitions(archive):
    assert [sample.id for sample in archive.dataset] == ["france", "italy", "peru", "broken"]
    assert archive.repetitions == 2
    assert archive.tool == "inspect 0.3.285"
    assert archive.target == "mockllm/model"


def test_every_score_is_what_inspect_makes_of_it(log):
    raw = json.loads(LOG.read_text())
    grades = {"C": 1.0, "I": 0.0}
    for sample in raw["samples"]:
        found, _ = marks(log, sample["id"])
        for name, score in sample["scores"].items():
            value = grades.get(score["value"], score["value"])
            if math.isnan(value):
                assert found[name] == Unscored("metric_failed", "cannot be said")
            else:
                assert isinstance(found[name], MetricScore)
                assert found[name].score == value
    for entry in raw["results"]["scores"]:
        place = [card.name for card in log.cards].index(entry["name"])
        scored = [each.marks[place].score for each in log.executions if isinstance(each.marks[place], MetricScore)]
        stated = entry["metrics"].get("accuracy", entry["metrics"].get("mean"))["value"]
        assert sum(scored) / len(scored) == pytest.approx(stated)


def test_messages_target_and_metadata_are_the_sample(archive):
    france, italy, peru, _ = archive.dataset
    assert france.input == {"input": "What is the capital of France?"}
    assert france.metadata == {"topic": "europe"}
    assert italy.input == {"messages": [{"role": "user", "content": "What is the capital of Italy?"}]}
    assert peru.expected_output == ["Lima", "Ciudad de los Reyes"]


def test_tool_calls_are_the_trajectory_and_tokens_the_usage(archive):
    _, answer = marks(archive, "italy")
    assert isinstance(answer, Output)
    (call,) = answer.trajectory.tool_calls
    assert (call.name, dict(call.arguments), call.result) == ("look_up", {"country": "Italy"}, "Italy is in the atlas.")
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (40, 8)


def test_error_of_a_sample_is_a_target_failure(archive):
    found, answer = marks(archive, "broken", 1)
    assert isinstance(answer, TargetFailure)
    assert "the model is overloaded" in answer.message
    assert {mark.cause for mark in found.values()} == {"target_failed"}


def test_what_is_not_taken_in_is_listed(archive):
    assert "`events` of a sample (8 times)" in archive.left_out


def packed(**members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        for name, body in members.items():
            made.writestr(name.replace("__", "/") + ".json", body)
    return file.getvalue()


HEADER = json.dumps({"eval": {"task": "t", "dataset": {}}})
SAMPLE = json.dumps({"id": "a", "epoch": 1, "input": "q", "output": {"completion": "x"}, "scores": {"m": {"value": 1}}})


def test_archive_that_is_deflated_is_read(tmp_path):
    path = tmp_path / "log.eval"
    path.write_bytes(packed(header=HEADER, samples__a=SAMPLE))
    (run,) = read_runs(path)
    assert len(run.executions) == 1


def test_name_that_leaves_the_archive_is_no_path(tmp_path):
    path = tmp_path / "log.eval"
    path.write_bytes(packed(header=HEADER, samples__a=SAMPLE, **{"..__..__evil": "{}"}))
    read_runs(path)
    assert [each.name for each in tmp_path.iterdir()] == ["log.eval"]


def test_archive_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "log.eval"
    path.write_bytes(packed(header=HEADER, samples__a=json.dumps({**json.loads(SAMPLE), "x": "0" * (20 << 20)})))
    assert path.stat().st_size < 100_000
    with pytest.raises(
        InputError, match=r"unpacks to more than 16 MB. If you trust it, say in .*DEEMSTER_MAX_UNPACKED_MB"
    ):
        read_runs(path)
    monkeypatch.setenv("DEEMSTER_MAX_UNPACKED_MB", "100")
    assert read_runs(path)


def test_member_that_is_longer_than_it_says_is_refused(tmp_path):
    body = packed(header=HEADER, samples__a=SAMPLE)
    # The central directory states the size of each member at byte 24 of its entry.
    at = body.index(b"PK\x01\x02") + 24
    path = tmp_path / "log.eval"
    path.write_bytes(body[:at] + struct.pack("<I", 3) + body[at + 4 :])
    with pytest.raises(InputError):
        read_runs(path)


@pytest.mark.parametrize("cut", [40, 200, 2000, 20000])
def test_damaged_archive_is_a_typed_error(tmp_path, cut):
    body = bytearray(ARCHIVE.read_bytes())
    path = tmp_path / "log.eval"
    path.write_bytes(body[:cut])
    with pytest.raises(InputError):
        read_runs(path)
    for place in range(cut, cut + 40):
        body[place % len(body)] ^= 0xFF
    path.write_bytes(body)
    try:
        (run,) = read_runs(path)
    except InputError:
        return
    # What was damaged is not read, such as the journal.
    assert len(run.executions) == 8


def test_without_the_extra_the_error_names_it(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(ImportError, match=r"deemster\[inspect\]"):
        SourceFile(ARCHIVE).member("header.json")


def test_votes_of_a_panel_of_graders_are_kept():
    path = FIXTURES / "inspect" / "panel.json"
    (run,) = read_runs(path)
    for sample in json.loads(path.read_text())["samples"]:
        mark = marks(run, sample["id"])[0]["model_graded_qa"]
        if sample["id"] == "peru":
            assert isinstance(mark, Unscored)
            continue
        cast = sample["scores"]["model_graded_qa"]["metadata"]["panel"]["votes"]
        votes = {vote["role"]: vote["score"] for vote in mark.details["votes"]}
        assert votes == dict(zip(("mockllm/ada", "mockllm/bert", "mockllm/cleo"), map("IC".index, cast), strict=True))
    assert "a vote of one grader where the panel has no majority (3 times)" in run.left_out
