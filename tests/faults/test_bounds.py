"""Small files that ask for much, files without an end, and too few file descriptors: a sentence and bounded memory."""

from __future__ import annotations

import itertools
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


# Several commands, one after the other: a process of its own for each would spend its time on loading.
SEVERAL = """
import json, sys
from click.testing import CliRunner
from deemster.cli import app
for argv in json.load(sys.stdin):
    done = CliRunner().invoke(app, argv)
    print(json.dumps([done.exit_code, done.stderr]), flush=True)
"""


def limited(folder, *argv, descriptors=None, **options):
    """What Python does with little memory or few file descriptors."""

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        if descriptors is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    return subprocess.run(
        [sys.executable, *argv],
        cwd=folder,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", **options.pop("env", {})},
        preexec_fn=limit,
        capture_output=True,
        text=True,
        check=False,
        timeout=4 * SECONDS,
        **options,
    )


def run_several(folder, commands):
    """The exit code and the words on standard error of each of some `deemster` commands."""
    done = limited(folder, "-c", SEVERAL, input=json.dumps([command.split() for command in commands]))
    assert done.returncode == 0, done.stderr
    return dict(zip(commands, map(json.loads, done.stdout.splitlines()), strict=True))


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


def test_dataset_without_an_end_is_one_sentence_and_little_memory(tmp_path):
    expected = {}
    for kind, extension in itertools.product(("device", "pipe", "sparse"), ("yml", "json", "jsonl", "csv", "parquet")):
        file = f"{kind}.{extension}"
        endless(tmp_path / file, kind)
        said = SAID.get(kind) or LONG.get(extension, LONG["yml"])
        expected[f"check {file}"] = [2, f"error: {file}: {said}\n"]
    assert run_several(tmp_path, expected) == expected


def test_no_command_waits_for_a_pipe(tmp_path):
    written(tmp_path, {**FILES, "suite.yml": FILES["suite.yml"].replace("golden.yml", "pipe.json")})
    os.mkfifo(tmp_path / "pipe.json")
    waiting = ("run suite.yml", *(f"{command} pipe.json" for command in ("agreement", "grade", "import", "show")))
    for command, (code, err) in run_several(tmp_path, waiting).items():
        assert (code, err.count("\n")) == (2, 1), command
        assert "This is a named pipe, not a file." in err, command


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


def test_very_many_tags_are_refused(tmp_path):
    tags = [f"t{n}" for n in range(TAGS)]
    sample = {"id": "a", "input": {}, "expected_output": "x", "metadata": {"tags": tags}}
    item = {"id": "a", "submission": "x", "tags": tags}
    rubric = [{"name": "r", "requirement": "It is right.", "weight": 1}]
    files = {
        "golden.json": json.dumps({"name": "d", "samples": [sample]}),
        "golden.jsonl": json.dumps(sample),
        "items.json": json.dumps({"rubric": rubric, "items": [item]}),
    }
    written(tmp_path, files)
    for command, (code, err) in run_several(tmp_path, [f"check {name}" for name in files]).items():
        assert code == 2, command
        assert err.endswith("tags has 100,000 entries; at most 1,000 are allowed.\n"), command


@pytest.fixture
def forged(folder):
    """The lines of a run file of two samples, to be changed."""
    written(folder, FILES)
    called("run", "suite.yml", "--quiet")
    called("export", "--all", "--to", "runs.jsonl")
    return (folder / "runs.jsonl").read_bytes().splitlines()


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
    assert called("show", run.id, "--store", "other.db").exit_code == 0
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
    assert called("show", run.id, "--store", "other.db").exit_code == 0
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
        argv = ("-m", "deemster", "run", "suite.yml", "--to", "-", "--cache", "none")
        process = limited(tmp_path, *argv, descriptors=48, env={"JUDGE_URL": server.url})
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
    process = limited(tmp_path, "-m", "deemster", "run", "suite.yml", "--to", "-", descriptors=64)
    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout)["metrics"]["exact-match"]["n_scored"] == count
