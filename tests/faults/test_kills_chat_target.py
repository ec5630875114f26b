"""A chat model as target and judge, killed repeatedly: nothing paid for is paid again, and the report is the same.

Real processes, without a cache: the command line, and one model behind HTTP.
"""

from __future__ import annotations

import asyncio
import collections
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from deemster.testing import ModelServer
from tests.builders.json_lines import json_lines
from tests.cli.workspace import EPOCH, written

SAMPLES, REPETITIONS, AT_ONCE = 40, 2, 4
DELAY_S = 0.05
WINDOW_S = 0.25
PATIENCE_S = 90
MODEL = '{ base_url: "${MODEL_URL}", model: m, concurrency: 4, price: { input: 1, output: 1 } }'
SUITE = f"""\
name: chat
dataset: golden.jsonl
repetitions: {REPETITIONS}
models:
  mini: {MODEL}
  judge: {MODEL}
prompts: {{ short: "What is {{{{input.question}}}}" }}
target: {{ chat: mini, prompt: short, temperature: 0.2, max_tokens: 40 }}
"""
HTTP = f"""\
name: chat
dataset: golden.jsonl
repetitions: {REPETITIONS}
target:
  http:
    url: "${{MODEL_URL}}/chat/completions"
    body: {{ model: m, messages: [{{ role: user, content: "{{{{input.question}}}}" }}] }}
    output: choices.0.message.content
    usage: usage
    model: model
    price: {{ input: 1, output: 1 }}
    concurrency: {AT_ONCE}
metrics: [contains]
"""
METRICS = {"alone": "metrics: [contains]\n", "judged": "metrics: [contains, llm-as-judge]\n"}


class Slow(ModelServer):
    """Answers after a while."""

    async def _reply(self, request, *, chat):
        await asyncio.sleep(DELAY_S)
        return await super()._reply(request, chat=chat)


@pytest.fixture
def model():
    with Slow() as server:
        yield server


def prepared(folder, metrics):
    folder.mkdir()
    lines = [
        {"id": f"s{n:03d}", "input": {"question": f"sample {n:03d}?"}, "expected_output": f"{n:03d}"}
        for n in range(SAMPLES)
    ]
    written(folder, {"suite.yml": SUITE + METRICS[metrics], "golden.jsonl": json_lines(*lines)})
    return folder


def started(folder, model, *flags):
    flags = (*flags, *(["--resume"] if (folder / ".deemster" / "runs.db").exists() else []))
    return subprocess.Popen(
        [sys.executable, "-m", "deemster", "run", "suite.yml", "--quiet", "--cache", "none", "--to", "r.json", *flags],
        cwd=folder,
        env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH, "MODEL_URL": model.url},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(folder, model, *flags, code=0):
    process = started(folder, model, *flags)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == code, err
    return (folder / "r.json").read_bytes()


def killed(folder, model, *flags, after=20):
    """Start, and kill after so many requests."""
    enough = len(model.requests) + after
    process = started(folder, model, *flags)
    end = time.monotonic() + PATIENCE_S
    while process.poll() is None and len(model.requests) < enough and time.monotonic() < end:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("metrics", METRICS)
def test_killed_run_of_a_chat_target_resumes_to_same_report(tmp_path, model, thorough, metrics):
    folder, kills = prepared(tmp_path / "killed", metrics), 4 if thorough else 2
    for _ in range(kills):
        killed(folder, model)
    report = finished(folder, model)

    needed = SAMPLES * REPETITIONS * (2 if metrics == "judged" else 1)
    in_window = round(WINDOW_S / DELAY_S) * AT_ONCE * 2
    assert needed <= len(model.requests) <= needed + kills * (2 * AT_ONCE + in_window)
    usage = json.loads(report)["usage"]
    assert (usage["target"]["calls"], usage["target"]["cached_calls"]) == (SAMPLES * REPETITIONS, 0)
    assert report == finished(prepared(tmp_path / "alone", metrics), model)


def test_killed_run_of_an_http_target_with_a_price_resumes_to_same_report(tmp_path, model):
    folder, alone = prepared(tmp_path / "killed", "alone"), prepared(tmp_path / "alone", "alone")
    for place in (folder, alone):
        written(place, {"suite.yml": HTTP})
    killed(folder, model)
    report = finished(folder, model)
    assert len(model.requests) <= SAMPLES * REPETITIONS + 2 * AT_ONCE + round(WINDOW_S / DELAY_S) * AT_ONCE
    assert json.loads(report)["usage"]["target"]["calls"] == SAMPLES * REPETITIONS
    assert report == finished(alone, model)


def test_each_repetition_is_asked_once(tmp_path, model):
    finished(prepared(tmp_path / "run", "alone"), model)
    asked = collections.Counter(request.document["messages"][-1]["content"] for request in model.requests)
    assert set(asked.values()) == {REPETITIONS}
    assert {(request.document["temperature"], request.document["max_tokens"]) for request in model.requests} == {
        (0.2, 40)
    }
    assert not any("seed" in request.document for request in model.requests)


def test_durable_run_asks_nothing_again_but_what_was_under_way(tmp_path, model):
    folder = prepared(tmp_path / "killed", "alone")
    written(folder, {"suite.yml": f"durable: true\n{SUITE}{METRICS['alone']}"})
    killed(folder, model)
    finished(folder, model)
    assert len(model.requests) <= SAMPLES * REPETITIONS + 2 * AT_ONCE


def test_budget_of_a_chat_target_holds_over_a_kill(tmp_path, model):
    folder = prepared(tmp_path / "killed", "alone")
    budget = ("--budget", "1000tokens")
    killed(folder, model, *budget, after=8)
    spent = json.loads(finished(folder, model, *budget, code=3))["budget"]
    assert spent["spent_tokens"] <= 1000
    assert len(model.requests) < SAMPLES * REPETITIONS
