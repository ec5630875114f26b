"""The same report bytes from real processes: any concurrency, hash seed, locale, time zone, store; killed or not.

A live target, a judge and embeddings over HTTP. The models are recorded once; every run replays them, for what a live
embedding endpoint is sent depends on which texts happen to wait at the same time. One run asks the live models: all of
its report but what the embeddings used is the same too.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.builders.json_lines import json_lines
from tests.cli.workspace import EPOCH, written

# All of them share the recordings, which take two runs.
pytestmark = pytest.mark.xdist_group("report bytes")
COUNT = 60
SUITE = """\
name: bytes
dataset: golden.jsonl
target: {{ python: "app:answer" }}
metrics: [exact-match, rouge-l, llm-as-judge, cosine-embedding, {{ g-eval: {{ name: depth, preset: completeness }} }}]
gate: {{ max_unscored: 100% }}
models:
  judge: {{ {judge} }}
  embedding: {{ {embedding} }}
"""
ROLE = (
    'base_url: "${{MODELS_URL}}", model: {name}, record: {name}.jsonl, concurrency: {most}, '
    "price: {{ input: 0.15, output: 0.60 }}"
)
TARGET = """\
import asyncio
import random

async def answer(asked):
    with open("calls.txt", "a") as notes:
        notes.write("x")
    await asyncio.sleep(random.random() / 50)
    number = int(asked["question"].split()[-1][:-1])
    if number % 11 == 5:
        raise ValueError("nicht diese: Größe")
    return f"answer {number if number % 7 else 0} Größe"
"""
ELSEWHERE = {"PYTHONHASHSEED": "7", "LC_ALL": "C", "TZ": "Asia/Tokyo", "PYTHONUTF8": "0"}
WAYS = {
    "one at a time": (1, {}, "sqlite", 0),
    "seven at a time": (7, {"PYTHONHASHSEED": "1"}, "sqlite", 0),
    "elsewhere": (64, ELSEWHERE, "sqlite", 0),
    "killed": (7, {}, "sqlite", 3),
    "killed elsewhere": (64, ELSEWHERE, "sqlite", 2),
    "postgres": (7, {}, "postgres", 0),
    "killed on postgres": (64, ELSEWHERE, "postgres", 2),
}


def prepared(folder, most):
    samples = [
        {
            "id": f"s{number:02d}",
            "input": {"question": f"What of {number % 25}?"},
            "expected_output": f"answer {number % 25}",
            "metadata": {"tags": [f"t{number % 3}"]},
        }
        for number in range(COUNT)
    ]
    golden = json_lines(*samples)
    roles = {name: ROLE.format(name=name, most=most) for name in ("judge", "embedding")}
    folder.mkdir()
    written(folder, {"suite.yml": SUITE.format(**roles), "app.py": TARGET, "golden.jsonl": golden})
    return folder


def started(folder, url, concurrency, environ, *flags):
    argv = ["run", "suite.yml", "--quiet", "--cache", "none", "--to", "report.json"]
    return subprocess.Popen(
        [sys.executable, "-m", "deemster", *argv, "--concurrency", str(concurrency), *flags],
        cwd=folder,
        env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH, "MODELS_URL": url, **environ},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def reported(process, folder):
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return (folder / "report.json").read_bytes()


def killed(process, folder):
    """Kill a run a moment after its target was called for some further samples."""
    notes = folder / "calls.txt"
    before = notes.stat().st_size if notes.exists() else 0
    end = time.monotonic() + 180
    while (
        process.poll() is None
        and time.monotonic() < end
        and not (notes.exists() and notes.stat().st_size >= before + 10)
    ):
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory, running_server):
    """The recordings of a run, and the report of one that replays them."""
    folder = prepared(tmp_path_factory.mktemp("recorded") / "run", 16)
    live = reported(started(folder, running_server.url, 16, {}, "--store", "none"), folder)
    assert {request.path for request in running_server.requests} == {"/v1/chat/completions", "/v1/embeddings"}
    recordings = {name: (folder / name).read_bytes() for name in ("judge.jsonl", "embedding.jsonl")}
    return recordings, live, reported(started(folder, "http://127.0.0.1:1", 16, {}, "--store", "none"), folder)


@pytest.mark.parametrize("way", WAYS)
def test_report_bytes_do_not_depend_on_faults(tmp_path, recorded, request, way):
    concurrency, environ, kind, kills = WAYS[way]
    recordings, _, expected = recorded
    folder = prepared(tmp_path / "run", concurrency)
    written(folder, recordings)
    store = ("--store", request.getfixturevalue("postgres_url") if kind == "postgres" else "runs.db")
    for number in range(kills):
        killed(
            started(folder, "http://127.0.0.1:1", concurrency, environ, *store, *["--resume"] * (number > 0)), folder
        )
    last = started(folder, "http://127.0.0.1:1", concurrency, environ, *store, *["--resume"] * (kills > 0))
    assert reported(last, folder) == expected


def test_live_model_report_differs_only_in_usage_and_the_name_of_the_model(recorded):
    def without_usage(report):
        shown = json.loads(report)
        for name in ("usage", "cost"):
            del shown[name]
        del shown["run"]["models"]
        for execution in shown["executions"]:
            for mark in execution["marks"].values():
                mark.pop("usage", None)
        return shown

    _, live, replayed = recorded
    assert without_usage(live) == without_usage(replayed)
