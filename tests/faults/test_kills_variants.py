"""An experiment that is killed at any moment: resumed as a whole, nothing is paid twice, and every report is the same.

Real processes: the command line runs two prompts on two chat models with a judge, all behind a real HTTP server.
"""

from __future__ import annotations

import collections
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from deemster.store import open_store
from deemster.testing import ModelServer
from tests.builders.json_lines import json_lines
from tests.cli.workspace import EPOCH, written

SAMPLES = 40
CONCURRENCY = 3
PATIENCE_S = 120
# A judge may answer with 32,768 tokens, which are set aside while it is asked.
BUDGET = "41000tokens"
NAMES = ["short / mini", "short / local", "polite / mini", "polite / local"]
LIMITS = f"concurrency: {CONCURRENCY}, retries: 0, price: {{ input: 1, output: 2 }}"
SUITE = f"""\
name: grid
dataset: golden.jsonl
prompts:
  short: "Answer in a word: {{{{input.question}}}}"
  polite: {{ system: "You are polite.", user: "{{{{input.question}}}}" }}
target: {{ chat: mini, prompt: short }}
variants:
  prompt: [short, polite]
  chat: [mini, local]
metrics: [exact-match, llm-as-judge]
durable: true
models:
  mini: {{ base_url: "${{URL}}", model: mini-1, {LIMITS} }}
  local: {{ base_url: "${{LOCAL_URL}}", model: local-1, {LIMITS} }}
  judge: {{ base_url: "${{URL}}", model: judge-1, {LIMITS} }}
"""


def reply(messages):
    """What a model says; some answers of two variants are the same, so that their judge is asked the same."""
    digest = hashlib.sha256(json.dumps(messages, sort_keys=True).encode()).digest()
    time.sleep(0.004)
    if messages.schema is not None:
        return json.dumps({"reason": "because", "score": 1 if digest[0] % 3 else 0})
    return f"answer {digest[0] % 2}"


class Trial:
    """An experiment in a folder, asked of servers that note every request."""

    def __init__(self, folder, servers, *flags):
        self.folder, self.servers, self.flags = folder, servers, flags
        golden = [
            {"id": f"s{n:02d}", "input": {"question": f"What of {n}?"}, "expected_output": "answer 1"}
            for n in range(SAMPLES)
        ]
        folder.mkdir()
        written(folder, {"suite.yml": SUITE, "golden.jsonl": json_lines(*golden)})

    def started(self, *flags, **env):
        urls = {"URL": self.servers[0].url, "LOCAL_URL": self.servers[1].url}
        return subprocess.Popen(
            [sys.executable, "-m", "deemster", "run", "suite.yml", "--to", "answer.json", *self.flags, *flags],
            cwd=self.folder,
            env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH, **urls, **env},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def finished(self, *flags, code=0, **env):
        process = self.started(*flags, **env)
        _, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == code, err
        return err

    def asked(self):
        """How often each request was received."""
        return collections.Counter(one.body.decode() for server in self.servers for one in server.requests)

    def killed_after(self, requests, *flags):
        """Start, wait for so many requests, kill."""
        before = sum(self.asked().values())
        process = self.started(*flags)
        end = time.monotonic() + PATIENCE_S
        while process.poll() is None and sum(self.asked().values()) < before + requests and time.monotonic() < end:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        _, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == -signal.SIGKILL, err

    def rows(self):
        with open_store(self.folder / ".deemster" / "runs.db") as store:
            return list(reversed(store.runs()))

    def results(self):
        """The answer, and the report of each variant, where the servers have the same address in every trial."""
        address = re.compile(r"127\.0\.0\.1:[0-9]+")
        found = {name: address.sub("server", self.report(name)) for name in NAMES}
        return {**found, "answer": (self.folder / "answer.json").read_text()}

    def report(self, name):
        """The report of a variant, as it is stored."""
        command = [sys.executable, "-m", "deemster", "show", f"latest/{name}", "--to", "-"]
        return subprocess.run(command, cwd=self.folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An experiment that nobody disturbed."""
    with ModelServer(answer=reply) as one, ModelServer(answer=reply) as other:
        trial = Trial(tmp_path_factory.mktemp("whole") / "folder", (one, other))
        trial.finished()
        return trial.results(), trial.asked()


@pytest.mark.parametrize("flags", [(), ("--cache", "none")])
def test_killed_experiment_is_resumed_to_the_same_bytes_and_nothing_is_paid_twice(tmp_path, whole, flags):
    results, asked = whole
    assert max(asked.values()) == 1
    with ModelServer(answer=reply) as one, ModelServer(answer=reply) as other:
        trial = Trial(tmp_path / "folder", (one, other), *flags)
        kills = [3, 60, 90]
        for number, requests in enumerate(kills):
            trial.killed_after(requests, *(["--resume"] if number else []))
        trial.finished("--resume")

        assert trial.results() == results
        assert [row.facts["label"] for row in trial.rows()] == NAMES
        assert len({row.experiment for row in trial.rows()}) == 1
        again = sum(times - 1 for times in trial.asked().values())
        # What was under way at a kill, of three models, is asked again; and nothing else.
        assert again <= len(kills) * 3 * CONCURRENCY
        assert set(trial.asked()) == set(asked)


def test_faults_of_the_servers_change_no_answer(tmp_path, whole):
    results, _ = whole
    faults = {"500": 0.1, "429=0": 0.05, "reset": 0.05}
    with ModelServer(answer=reply, faults=faults) as one, ModelServer(answer=reply, faults=faults) as other:
        trial = Trial(tmp_path / "folder", (one, other))
        written(trial.folder, {"suite.yml": SUITE.replace("retries: 0", "retries: 8")})
        trial.killed_after(80)
        trial.finished("--resume")
        found = json.loads(trial.results()["answer"])
    assert found["ranking"]["pairs"] == json.loads(results["answer"])["ranking"]["pairs"]
    assert not found["missing"]


def test_interrupted_experiment_ends_all_its_runs_and_is_resumed_to_the_same_bytes(tmp_path, whole):
    results, _ = whole
    with ModelServer(answer=reply) as one, ModelServer(answer=reply) as other:
        trial = Trial(tmp_path / "folder", (one, other))
        process = trial.started()
        end = time.monotonic() + PATIENCE_S
        while process.poll() is None and sum(trial.asked().values()) < 60 and time.monotonic() < end:
            time.sleep(0.002)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 3, err
        assert "SIGINT: finishing what is under way" in err
        assert "To continue: deemster run suite.yml --resume" in err
        assert {row.status for row in trial.rows()} == {"incomplete"}
        assert all("interrupted by SIGINT" in row.reason for row in trial.rows())
        trial.finished("--resume")
        assert trial.results() == results
        assert max(trial.asked().values()) == 1


def test_variants_that_were_complete_are_not_touched_by_a_resume(tmp_path):
    with ModelServer(answer=reply) as one, ModelServer(answer=reply) as other:
        trial = Trial(tmp_path / "folder", (one, other))
        trial.finished("--variant", "short*")
        before = trial.rows()
        asked = trial.asked()
        trial.finished("--resume")
        assert trial.rows()[:2] == before
        further = trial.asked() - asked
        assert not any("Answer in a word" in body for body in further)
        assert max(trial.asked().values()) == 1


def test_wrong_key_of_one_model_leaves_the_variants_of_the_other_whole(tmp_path):
    with ModelServer(answer=reply) as one, ModelServer(answer=reply, faults={"401": 1.0}) as wrong:
        trial = Trial(tmp_path / "folder", (one, wrong))
        err = trial.finished(code=3)
        by_name = {row.facts["label"]: row for row in trial.rows()}
        assert {name: row.status for name, row in by_name.items()} == {
            name: "complete" if name.endswith("mini") else "incomplete" for name in NAMES
        }
        assert "short / local:" in err
        assert "short / mini:" not in err
        answer = json.loads((trial.folder / "answer.json").read_text())
        assert [variant["name"] for variant in answer["variants"]] == NAMES
        # A refused key is not tried for every sample.
        assert len(wrong.requests) < 2 * SAMPLES

        before = {name: row for name, row in by_name.items() if name.endswith("mini")}
        asked = trial.asked()
        with ModelServer(answer=reply) as right:
            trial.servers = (one, right)
            trial.finished("--resume", "--allow-changed")
            assert len(right.requests) == 2 * SAMPLES
        by_name = {row.facts["label"]: row for row in trial.rows()}
        assert {row.status for row in by_name.values()} <= {"complete", "mixed"}
        assert {name: by_name[name] for name in before} == before
        assert asked


def test_budget_holds_for_all_variants_together(tmp_path):
    with ModelServer(answer=reply) as one, ModelServer(answer=reply) as other:
        trial = Trial(tmp_path / "folder", (one, other))
        trial.finished("--budget", BUDGET, code=3)
        reports = [json.loads(trial.report(name)) for name in NAMES]
        assert {report["run"]["status"] for report in reports} == {"incomplete"}
        assert all(report["budget"]["halted"] for report in reports)
        spent = [report["budget"]["spent_tokens"] for report in reports]
        assert min(spent) > 0
        assert sum(spent) <= 41_000
        done = [row.done for row in trial.rows()]
        assert max(done) - min(done) <= 4 * CONCURRENCY

        # A resumed experiment remembers what it spent, and goes on with a larger budget.
        before = trial.asked()
        trial.finished("--resume", "--budget", BUDGET, code=3)
        assert sum((trial.asked() - before).values()) <= 3 * CONCURRENCY
        trial.finished("--resume")
        assert [row.done for row in trial.rows()] == [SAMPLES] * 4
