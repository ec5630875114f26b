"""Small files that ask for much, files without an end, and too few file descriptors: a sentence and bounded memory."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time

import pytest

from deemster.errors import StoreError
from deemster.formats import document
from deemster.store import open_store
from deemster.store.run_import import import_runs
from deemster.testing import ModelServer
from tests.cli.workspace import FILES, called, written
from tests.store.make_run_files import resealed

# Python with numpy maps most of this for libraries; a file without an end would need far more.
MEMORY = 3 << 30
SECONDS = 30
TAGS = 100_000


def limited(folder, *argv, memory=MEMORY, descriptors=None, env=None, timeout=SECONDS):
    """What `deemster ARGV` does with little memory or few file descriptors."""

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        if descriptors is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    return subprocess.run(
        [sys.executable, "-m", "deemster", *argv],
        cwd=folder,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", **(env or {})},
        preexec_fn=limit,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )


def endless(path, kind):
    if kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "sparse":
        with path.open("wb") as file:
            file.truncate(1 << 40)


SAID = {
    "device": "This is a device, not a file. Write what it gives to a file first.",
    "pipe": "This is a named pipe, not a file. Write what it gives to a file first.",
}
LONG = {
    "yml": "The file is longer than 4 GiB. A file of JSON lines may be longer, for it is read line by line.",
    "jsonl": "A line is longer than 64 MiB.",
}


@pytest.mark.parametrize("extension", ["yml", "json", "jsonl", "csv", "parquet"])
@pytest.mark.parametrize("kind", ["device", "pipe", "sparse"])
def test_dataset_without_an_end_is_one_sentence_and_little_memory(tmp_path, kind, extension):
    written(tmp_path, FILES)
    file = f"endless.{extension}"
    endless(tmp_path / file, kind)
    process = limited(tmp_path, "validate", file)
    said = SAID.get(kind) or LONG.get(extension, LONG["yml"])
    assert (process.returncode, process.stderr) == (2, f"error: {file}: {said}\n")


@pytest.mark.parametrize("command", ["run suite.yml", "align FILE", "grade FILE", "store import FILE", "report FILE"])
def test_no_command_waits_for_a_pipe(tmp_path, command):
    written(tmp_path, {**FILES, "suite.yml": FILES["suite.yml"].replace("golden.yml", "pipe.json")})
    os.mkfifo(tmp_path / "pipe.json")
    process = limited(tmp_path, *command.replace("FILE", "pipe.json").split())
    assert (process.returncode, process.stderr.count("\n")) == (2, 1)
    assert "This is a named pipe, not a file." in process.stderr


def test_file_that_is_longer_than_it_says_is_read_to_its_end_or_limit(tmp_path, monkeypatch):
    file = tmp_path / "data.json"
    file.write_bytes(b"x" * 5000)

    class Stat:
        st_size = 0

    reading = document.Reading("data.json", error=StoreError)
    monkeypatch.setattr(document.os, "fstat", lambda _: Stat)
    assert reading.content(file) == b"x" * 5000
    monkeypatch.setattr(document, "MOST_BYTES", 4999)
    with pytest.raises(StoreError, match="The file is longer than"):
        reading.content(file)


def test_million_samples_of_two_kilobytes_are_below_the_limit():
    assert document.MOST_BYTES > 1_000_000 * 2048 * 1.5


@pytest.mark.parametrize("extension", ["json", "jsonl"])
def test_sample_with_very_many_tags_is_refused(tmp_path, extension):
    sample = {"id": "a", "input": {}, "expected_output": "x", "metadata": {"tags": [f"t{n}" for n in range(TAGS)]}}
    text = json.dumps({"name": "d", "samples": [sample]}) if extension == "json" else json.dumps(sample)
    written(tmp_path, {f"golden.{extension}": text})
    process = limited(tmp_path, "validate", f"golden.{extension}")
    assert process.returncode == 2
    assert process.stderr.endswith("metadata.tags has 100,000 entries; at most 1,000 are allowed.\n")


def test_item_with_very_many_tags_is_refused(tmp_path):
    item = {"id": "a", "submission": "x", "tags": [f"t{n}" for n in range(TAGS)]}
    rubric = [{"name": "r", "requirement": "It is right.", "weight": 1}]
    written(tmp_path, {"items.json": json.dumps({"rubric": rubric, "items": [item]})})
    process = limited(tmp_path, "validate", "items.json")
    assert process.returncode == 2
    assert "100,000 entries; at most 1,000 are allowed." in process.stderr


@pytest.fixture
def forged(tmp_path, monkeypatch):
    """The lines of a run file of two samples, to be changed."""
    monkeypatch.chdir(tmp_path)
    written(tmp_path, FILES)
    called("run", "suite.yml", "--quiet")
    called("store", "export", "--all", "--to", "runs.jsonl")
    return (tmp_path / "runs.jsonl").read_bytes().splitlines()


def imported(folder, lines):
    (folder / "forged.jsonl").write_bytes(resealed(lines))
    with open_store(folder / "other.db") as store:
        return import_runs(store, folder / "forged.jsonl")


def test_run_file_with_a_million_repetitions_is_refused(forged, tmp_path):
    forged[1] = forged[1].replace(b'"repetitions":1', b'"repetitions":1000000')
    with pytest.raises(StoreError, match="1,000,000 repetitions in a file of 4 samples and outputs: a run has"):
        imported(tmp_path, forged)


def test_run_file_with_many_repetitions_costs_in_proportion_to_its_rows(forged, tmp_path):
    forged[1] = forged[1].replace(b'"repetitions":1', b'"repetitions":2000')
    (run,) = imported(tmp_path, forged)
    before = time.process_time()
    assert called("report", run.id, "--store", "other.db").exit_code == 0
    assert time.process_time() - before < SECONDS


def scorings(forged, count):
    at = max(place for place, line in enumerate(forged) if b'"line":"scoring"' in line)
    empty = json.loads(forged[at])
    own = [json.dumps({**empty, "number": at - 2 + n}).encode() for n in range(1, count - 1)]
    return [*forged[: at + 1], *own, *forged[at + 1 :]]


def test_run_file_with_20000_scorings_is_refused(forged, tmp_path):
    with pytest.raises(StoreError, match="A run of a file has at most 1,000 scorings"):
        imported(tmp_path, scorings(forged, 20_000))


def test_scorings_without_marks_cost_nothing(forged, tmp_path):
    (run,) = imported(tmp_path, scorings(forged, 1000))
    before = time.process_time()
    assert called("report", run.id, "--store", "other.db").exit_code == 0
    assert time.process_time() - before < SECONDS


def test_too_few_file_descriptors_lower_concurrency_and_no_request_fails(tmp_path):
    count = 150
    samples = [{"id": f"s{n}", "input": {"q": f"{n}?"}, "expected_output": "x"} for n in range(count)]
    suite = (
        "dataset: golden.json\ntarget: { outputs: answers.json }\nmetrics: [llm-as-judge]\n"
        "models:\n  judge: { base_url: '${JUDGE_URL}', model: m, concurrency: 120, retries: 0, total_timeout_s: 60 }\n"
    )
    files = {
        "suite.yml": suite,
        "golden.json": json.dumps({"name": "d", "samples": samples}),
        "answers.json": json.dumps({"outputs": {sample["id"]: "x" for sample in samples}}),
    }
    written(tmp_path, files)

    def answer(_messages):
        # The server answers one request after the other, so that all others hold their connections.
        time.sleep(0.01)
        return '{"reason": "Good.", "score": 0.9}'

    with ModelServer(answer=answer) as server:
        process = limited(
            tmp_path, "run", "suite.yml", "--json", "-", "--no-cache", descriptors=48, env={"JUDGE_URL": server.url}
        )
        assert process.returncode == 0, process.stderr
        report = json.loads(process.stdout)
        assert report["metrics"]["llm-as-judge"]["n_scored"] == count
        assert len(server.requests) == count


def test_commands_wait_for_file_descriptors_in_place_of_failing(tmp_path):
    count = 40
    code = "import sys, time; sys.stdin.read(); time.sleep(0.2); print('x')"
    suite = (
        f"dataset: golden.json\ntarget: {{ command: ['{sys.executable}', '-c', \"{code}\"] }}\n"
        "metrics: [exact-match]\nlimits: { concurrency: 30 }\n"
    )
    samples = [{"id": f"s{n}", "input": {"q": f"{n}?"}, "expected_output": "x"} for n in range(count)]
    written(tmp_path, {"suite.yml": suite, "golden.json": json.dumps({"name": "d", "samples": samples})})
    process = limited(tmp_path, "run", "suite.yml", "--json", "-", descriptors=64)
    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout)["metrics"]["exact-match"]["n_scored"] == count
