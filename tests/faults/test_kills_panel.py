"""A panel of a fast and a slow judge, killed repeatedly: no judge is asked again for what it answered, no bill is lost.

Real processes, without a cache: the command line, and both judges behind HTTP.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from deemster.store import open_store
from deemster.testing import ModelServer
from tests.builders.json_lines import json_lines
from tests.cli.workspace import EPOCH, written

SAMPLES = 120
DELAY_S, SLOW_AT_ONCE = 0.05, 2
WINDOW_S = 0.25
PATIENCE_S = 90
SUITE = f"""\
name: panel
dataset: golden.jsonl
target: {{ outputs: answers.jsonl }}
metrics:
  - llm-as-judge: {{ models: ["judge:fast", "judge:slow"] }}
models:
  judge:fast: {{ base_url: "${{FAST_URL}}", model: fast, concurrency: 8 }}
  judge:slow: {{ base_url: "${{SLOW_URL}}", model: slow, concurrency: {SLOW_AT_ONCE} }}
"""


class Slow(ModelServer):
    """Answers after a while."""

    async def _reply(self, request, *, chat):
        await asyncio.sleep(DELAY_S)
        return await super()._reply(request, chat=chat)


@pytest.fixture
def kills(thorough):
    """How often a run is killed."""
    return 4 if thorough else 2


@pytest.fixture
def judges():
    with ModelServer() as fast, Slow(seed=1) as slow:
        yield fast, slow


def prepared(folder):
    folder.mkdir()
    lines = [
        {"id": f"s{n:03d}", "input": {"question": f"What of sample {n:03d}?"}, "expected_output": f"answer {n}"}
        for n in range(SAMPLES)
    ]
    outputs = [{"id": line["id"], "output": f"output of {line['id']}"} for line in lines]
    golden, answers = json_lines(*lines), json_lines(*outputs)
    written(folder, {"suite.yml": SUITE, "golden.jsonl": golden, "answers.jsonl": answers})
    return folder


def started(folder, judges, *flags):
    fast, slow = judges
    flags = (*flags, *(["--resume"] if (folder / ".deemster" / "runs.db").exists() else []))
    return subprocess.Popen(
        [sys.executable, "-m", "deemster", "run", "suite.yml", "--quiet", "--cache", "none", "--to", "r.json", *flags],
        cwd=folder,
        env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH, "FAST_URL": fast.url, "SLOW_URL": slow.url},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(folder, judges, *flags, code=0):
    process = started(folder, judges, *flags)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == code, err
    return (folder / "r.json").read_bytes()


def killed(folder, judges, *flags):
    """Start, and kill once the slow judge has work under way and the fast one has long said all it can say."""
    fast, slow = judges
    process, before = started(folder, judges, *flags), len(slow.requests)
    end = time.monotonic() + PATIENCE_S
    seen, quiet = -1, time.monotonic()
    while process.poll() is None and time.monotonic() < end:
        if len(fast.requests) != seen:
            seen, quiet = len(fast.requests), time.monotonic()
        if len(slow.requests) >= before + 12 and seen == SAMPLES and time.monotonic() > quiet + 1:
            break
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("durable", [False, True], ids=["grouped", "durable"])
def test_fast_judge_is_asked_once_for_each_sample_over_all_kills(tmp_path, judges, kills, durable):
    fast, slow = judges
    folder = prepared(tmp_path / "killed")
    if durable:
        written(folder, {"suite.yml": f"durable: true\n{SUITE}"})
    for _ in range(kills):
        killed(folder, judges)
    report = finished(folder, judges)
    assert len(fast.requests) == SAMPLES
    in_window = 0 if durable else round(WINDOW_S / DELAY_S) * SLOW_AT_ONCE
    assert SAMPLES <= len(slow.requests) <= SAMPLES + kills * (SLOW_AT_ONCE + in_window)
    assert json.loads(report)["usage"]["scoring"]["calls"] == 2 * SAMPLES
    assert report == finished(prepared(tmp_path / "alone"), judges)


def test_budget_holds_over_all_kills(tmp_path, judges, kills):
    fast, slow = judges
    folder = prepared(tmp_path / "killed")
    budget = ("--budget", "60000tokens")
    process = started(folder, judges, *budget)
    for kill in range(kills):
        enough = len(fast.requests) + len(slow.requests) + 6
        end = time.monotonic() + PATIENCE_S
        while process.poll() is None and len(fast.requests) + len(slow.requests) < enough and time.monotonic() < end:
            time.sleep(0.005)
        time.sleep(0.3)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=PATIENCE_S)
        if process.returncode == 3 or kill == kills - 1:
            break
        process = started(folder, judges, *budget)
    found = json.loads(finished(folder, judges, *budget, code=3))["budget"]
    assert found["spent_tokens"] <= 60000
    with open_store(folder / ".deemster" / "runs.db") as store:
        calls = [json.loads(body) for _, body in store.calls(store.run("latest").id)]
    assert sum(call["counted"][0] for call in calls) == found["spent_tokens"]
    # Only what was under way at a kill, or answered within its window, is in no bill.
    lost = len(fast.requests) + len(slow.requests) - len(calls)
    assert 0 <= lost <= kills * (8 + SLOW_AT_ONCE + 20)
