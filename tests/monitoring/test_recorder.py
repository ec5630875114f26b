"""Recording production calls: a share of them, redacted first, never in the application's way."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import deemster as dm
from deemster.errors import ConfigurationError
from deemster.models.clock import SystemClock
from deemster.monitoring.recording_writer import Record, RecordingWriter
from deemster.store import open_store


def stored(path):
    """The records of a store: sample facts and executions of every recording."""
    with open_store(path, create=False) as store:
        return [
            (sample, execution)
            for run in store.runs(kind="recording")
            for sample, execution in zip(store.samples(run.id), store.executions(run.id), strict=True)
        ]


@pytest.fixture
def place(tmp_path):
    return tmp_path / "runs.db"


def test_call_is_stored_with_input_and_output(place):
    with dm.Recorder("bot", store=place) as recorder:
        assert recorder.record({"question": "How long?"}, "30 days", tags=["policy"], metadata={"request": "r1"})
    ((sample, execution),) = stored(place)
    assert sample.input == {"question": "How long?"}
    assert sample.tags == ("policy",)
    assert sample.metadata == {"request": "r1"}
    assert execution.answer.text == "30 days"
    assert execution.marks == ()
    assert recorder.counts == (1, 1, 1, 0, 0, 0)


def test_output_keeps_its_passages_usage_and_model(place):
    said = dm.Output("30 days", retrieved=["p1"], usage=dm.Usage(prompt_tokens=3), model="m")
    with dm.Recorder("bot", store=place) as recorder:
        recorder.record({"q": 1}, said)
    assert stored(place)[0][1].answer == said


def test_failed_call_is_recorded_as_failure(place):
    with dm.Recorder("bot", store=place) as recorder:
        recorder.record({"q": 1}, error=KeyError("x"))
    assert stored(place)[0][1].answer.message == "KeyError: 'x'"


def test_rate_samples_a_share_reproducibly_by_seed(place, tmp_path):
    kept = []
    for name in ("one.db", "two.db"):
        with dm.Recorder("bot", store=tmp_path / name, rate=0.3, seed=5) as recorder:
            for number in range(400):
                recorder.record({"n": number}, "x")
        kept.append([sample.input["n"] for sample, _ in stored(tmp_path / name)])
    assert kept[0] == kept[1]
    assert 80 < len(kept[0]) < 160
    assert recorder.counts.seen == 400


def test_only_result_of_redaction_is_stored(place):
    def redact(record):
        if record.input["q"] == "secret":
            return None
        if record.input["q"] == "misspelt":
            raise ValueError("no")
        record.input["q"] = "***"
        return record

    with dm.Recorder("bot", store=place, redact=redact) as recorder:
        for word in ("hello", "secret", "misspelt"):
            recorder.record({"q": word}, "x")
    assert [sample.input for sample, _ in stored(place)] == [{"q": "***"}]
    assert recorder.counts.withheld == 2
    data = b"".join(file.read_bytes() for file in place.parent.iterdir())
    assert not any(word in data for word in (b"hello", b"secret", b"misspelt"))


def test_full_queue_drops_and_counts_without_blocking(place):
    gate = threading.Event()

    def slow(record):
        gate.wait(30)
        return record

    recorder = dm.Recorder("bot", store=place, redact=slow, queue=5)
    began = time.perf_counter()
    for number in range(200):
        recorder.record({"n": number}, "x")
    assert time.perf_counter() - began < 20
    gate.set()
    assert recorder.close(30)
    counts = recorder.counts
    assert counts.dropped >= 200 - 5 - 256
    assert counts.recorded + counts.dropped == 200
    assert len(stored(place)) == counts.recorded


@pytest.mark.parametrize("answer", [object(), {"x": object()}, b"\xff"])
def test_non_json_record_is_counted_not_raised(place, answer):
    with dm.Recorder("bot", store=place) as recorder:
        recorder.record({"q": 1}, answer)
        recorder.record({"q": 2}, "fine")
    assert recorder.counts.failed == 1
    assert recorder.counts.recorded == 1


def test_non_map_input_is_counted_not_raised(place):
    with dm.Recorder("bot", store=place) as recorder:
        recorder.record(["no", "map"], "x")
    assert recorder.counts.failed == 1


def test_store_that_cannot_be_opened_is_logged_and_never_reaches_the_application(tmp_path, caplog):
    (tmp_path / "file").write_text("not a folder")
    with (
        caplog.at_level(logging.WARNING, logger="deemster"),
        dm.Recorder("bot", store=tmp_path / "file" / "x.db") as it,
    ):
        it.record({"q": 1}, "x")
    assert it.counts.failed == 1
    assert "Records of bot cannot be stored" in caplog.text


def test_watched_function_is_recorded_with_its_arguments_and_its_time(place):
    with dm.Recorder("bot", store=place) as recorder:

        @recorder.watch
        def answer(question, *, lang="en"):
            return f"{question}/{lang}"

        assert answer("hi", lang="de") == "hi/de"
    ((sample, execution),) = stored(place)
    assert sample.input == {"question": "hi", "lang": "de"}
    assert execution.answer.text == "hi/de"
    assert execution.answer.usage.latency_ms >= 0


def test_watched_async_function_records_its_map_before_changes(place):
    with dm.Recorder("bot", store=place) as recorder:

        @recorder.watch
        async def answer(asked):
            question = asked.pop("question")
            return question.upper()

        assert asyncio.run(answer({"question": "hi"})) == "HI"
    ((sample, execution),) = stored(place)
    assert sample.input == {"question": "hi"}
    assert execution.answer.text == "HI"


def test_exception_of_watched_function_is_recorded_and_reraised(place):
    with dm.Recorder("bot", store=place) as recorder:

        @recorder.watch
        def answer(question):
            raise RuntimeError(question)

        with pytest.raises(RuntimeError, match="hi"):
            answer("hi")
    assert stored(place)[0][1].answer.message == "RuntimeError: hi"


def test_records_of_many_threads_are_stored_or_counted(place):
    with dm.Recorder("bot", store=place, queue=10_000) as recorder:

        def work(number):
            for place_ in range(100):
                recorder.record({"n": number * 100 + place_}, "x")

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(sample.input["n"] for sample, _ in stored(place)) == list(range(800))


SCRIPT = """
import os, sys
import deemster as dm
recorder = dm.Recorder("bot", store=sys.argv[1])
recorder.record({"who": "parent"}, "x")
if sys.argv[2] == "fork":
    child = os.fork()
    recorder.record({"who": "child" if child == 0 else "parent again"}, "x")
    if child == 0:
        recorder.close()
        os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.mark.parametrize(("how", "who"), [("plain", {"parent"}), ("fork", {"parent", "parent again", "child"})])
def test_waiting_records_are_stored_at_exit_and_in_forked_child(place, how, who):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(place), how],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert done.returncode == 0, done.stderr
    assert {sample.input["who"] for sample, _ in stored(place)} == who


def test_closed_recorder_drops_and_counts(place):
    recorder = dm.Recorder("bot", store=place)
    recorder.record({"q": 1}, "x")
    assert recorder.close()
    assert recorder.close()
    assert not recorder.record({"q": 2}, "x")
    assert recorder.counts.dropped == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dataset": " "}, "the name of what it records"),
        ({"dataset": "bot", "rate": 1.5}, "`rate` is a share between 0 and 1, not 1.5"),
        ({"dataset": "bot", "queue": 0}, "`queue` is a number of records of at least 1, not 0"),
    ],
)
def test_invalid_recorder_arguments_are_error(options, message):
    with pytest.raises(ConfigurationError, match=message):
        dm.Recorder(**options)


def test_recorder_that_records_nothing_opens_no_store(folder):
    with dm.Recorder("bot", rate=0.0) as recorder:
        recorder.record({"q": 1}, "x")
    assert not any(Path(folder).iterdir())


def shelved(place, *batches, records=1000):
    """Put batches of records on a shelf; how many samples each recording has, the newest first."""
    shelf = RecordingWriter("bot", store=place, clock=SystemClock(), rate=1.0, records=records)
    for batch in batches:
        assert shelf.put([Record(input={"n": number}, output="x", at="2026-01-01T00:00:00Z") for number in batch])
    shelf.close()
    with open_store(place, create=False) as store:
        runs = store.runs(kind="recording")
    assert {run.status for run in runs} == {"complete"}
    return [run.samples for run in runs]


def test_full_recording_is_rotated(place):
    assert shelved(place, [0, 1], [2], [3], [4], records=2) == [1, 2, 2]


def test_recording_ends_after_an_hour(place, monkeypatch):
    monkeypatch.setattr("deemster.monitoring.recording_writer.LASTS_S", -1.0)
    assert shelved(place, [0], [1, 2]) == [2, 1]


def test_failed_thread_start_loses_only_the_record(place, monkeypatch):
    def full(self):
        raise RuntimeError("can't start new thread")

    recorder = dm.Recorder("bot", store=place)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", full)
        assert not recorder.record({"n": 1}, "lost")
    assert recorder.record({"n": 2}, "kept")
    assert recorder.close()
    assert [sample.input["n"] for sample, _ in stored(place)] == [2]
    assert (recorder.counts.failed, recorder.counts.recorded) == (1, 1)


def test_base_exception_in_redaction_withholds_only_its_record(place):
    def redact(record):
        if record.input["n"] == 0:
            raise asyncio.CancelledError
        return record

    with dm.Recorder("bot", store=place, redact=redact) as recorder:
        recorder.record({"n": 0}, "x")
        recorder.record({"n": 1}, "x")
    assert [sample.input["n"] for sample, _ in stored(place)] == [1]
    assert recorder.counts.withheld == 1


def test_recorder_closed_with_full_queue_ends(place):
    inside, released = threading.Event(), threading.Event()

    def redact(record):
        inside.set()
        released.wait(30)
        return record

    recorder = dm.Recorder("bot", store=place, redact=redact, queue=2)
    recorder.record({"n": 0}, "x")
    assert inside.wait(30)
    for number in (1, 2, 3):
        recorder.record({"n": number}, "x")
    assert recorder.counts.dropped == 1
    assert not recorder.close(timeout_s=0.01)
    released.set()
    assert recorder.close(timeout_s=30)
    assert recorder.counts.recorded == 3
