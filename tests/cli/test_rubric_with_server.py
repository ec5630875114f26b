"""`deemster rubric improve` and `rubric check --with-judge` against a model server, well-behaved and not."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import pytest

from deemster.rubrics import Rubric
from deemster.testing import ModelServer
from tests.cli.workspace import called
from tests.runs.make_rewordings import BETTER, RUBRIC, Judge, dataset

JUDGE = Judge({"The facts are alright.": 0.6, BETTER: 0.97})
IMPROVE = (
    "rubric",
    "improve",
    "old.yaml",
    "items.jsonl",
    "--judge",
    "judge",
    "--set",
    "writer=writer",
    "--set",
    "criteria=1",
)
FLAGS = ("--models", "models.json", "--to", "new.yaml")


def said(chat):
    """The replies of a judge, a writer and an examiner of rubrics, by kind of question."""
    text = chat[-1]["content"]
    if "diagnosis" in chat.schema["properties"]:
        return json.dumps({"diagnosis": "It does not say which.", "requirement": BETTER})
    if "Submission number" in text:
        return json.dumps(JUDGE(SimpleNamespace(messages=[SimpleNamespace(content=text)])))
    verdict = "UNMET" if "exactly one thing" in text and "`padding`" in text else "MET"
    return json.dumps({"reason": "So it reads.", "verdict": verdict})


@pytest.fixture(autouse=True)
def folder(folder):
    RUBRIC.dump("old.yaml")
    dataset(80).save("items.jsonl")
    return folder


def models(server, **more):
    entry = {"base_url": server.url, "model": "m", "retries": 4, "price": {"input": 1, "output": 2}, **more}
    Path("models.json").write_text(json.dumps({"models": {"judge": entry, "writer": entry}}))


def report():
    return json.loads(Path("report.json").read_text())


def test_rubric_is_improved_by_models_that_answer_over_http():
    with ModelServer(answer=said) as server:
        models(server)
        result = called(*IMPROVE, *FLAGS, "--to", "report.json")
    assert result.exit_code == 0, result.stderr
    assert Rubric.load("new.yaml").criteria[0].requirement == BETTER
    assert Decimal(report()["cost_usd"]) > 0


@pytest.mark.parametrize("fault", ["half", "500", "empty", "reset"])
def test_temporary_server_faults_change_nothing(fault):
    with ModelServer(answer=said) as server:
        models(server)
        assert called(*IMPROVE, *FLAGS, "--cache", "none").exit_code == 0
        calm = Path("new.yaml").read_bytes()
    with ModelServer(answer=said, faults={fault: 0.1}, seed=3) as server:
        models(server, retries=9)
        result = called(*IMPROVE, *FLAGS, "--cache", "none")
    assert result.exit_code == 0, result.stderr
    assert Path("new.yaml").read_bytes() == calm


def test_dead_server_leaves_rubric_unchanged_with_reason():
    with ModelServer(answer=said, faults={"500": 1.0}) as server:
        models(server, retries=0)
        result = called(*IMPROVE, *FLAGS)
    assert result.exit_code == 3
    assert "500" in result.stderr
    assert "--resume" in result.stderr
    assert Rubric.load("new.yaml") == RUBRIC


def test_killed_and_resumed_improvement_has_same_cost():
    with ModelServer(answer=said) as server:
        models(server)
        assert called(*IMPROVE, *FLAGS, "--to", "report.json", "--cache", "whole.jsonl").exit_code == 0
        asked = len(server.requests)
    whole = report()
    with ModelServer(answer=said, faults={"slow=0.02": 1.0}) as server:
        models(server, concurrency=2)
        argv = [*IMPROVE, *FLAGS, "--to", "report.json", "--cache", "cache.jsonl"]
        process = subprocess.Popen([sys.executable, "-m", "deemster", *argv], stderr=subprocess.PIPE)
        while len(server.requests) < 60:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=180)
        resumed = called(*argv, "--resume")
    assert resumed.exit_code == 0, resumed.stderr
    again = report()
    assert Decimal(whole["cost_usd"]) > 0
    assert again == whole
    # Two answers at most were under way.
    assert len(server.requests) - asked <= 2


def test_budget_includes_earlier_spending():
    with ModelServer(answer=said) as server:
        models(server)
        first = called(*IMPROVE, *FLAGS, "--budget", "60000tokens", "--cache", "none")
        assert first.exit_code == 3, first.stdout
        before = len(server.requests)
        assert before > 40
        second = called(*IMPROVE, *FLAGS, "--budget", "60000tokens", "--cache", "none", "--resume")
        assert second.exit_code == 3
        assert len(server.requests) - before < before


def test_dry_run_reports_least_and_most_requests():
    with ModelServer(answer=said) as server:
        models(server)
        result = called(*IMPROVE, *FLAGS, "--dry-run")
        assert result.exit_code == 0, result.stderr
        assert server.requests == []
        # Three criteria that judges answer on forty items; then on the others, and twice forty in each of three rounds.
        assert "judge: 120 to 240 requests" in result.stdout
        assert "at most 400 requests to judges and 3 wordings" in result.stderr
        assert not Path("new.yaml").exists()
        assert not Path("new.yaml.progress.db").exists()
        assert called(*IMPROVE, *FLAGS, "--cache", "none").exit_code == 0
        assert 120 < len(server.requests) <= 403


def test_judge_reads_a_rubric_over_http_and_its_issues_have_their_place():
    with ModelServer(answer=said) as server:
        models(server)
        result = called("rubric", "check", "old.yaml", "--judge", "judge", "--models", "models.json", "--to", "-")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["judged"]["failed"] == 0
    assert found["judged"]["questions"] == len(server.requests)
    judged = [each for each in found["issues"] if "So it reads." in each["message"]]
    assert [each["path"] for each in judged] == ["criteria[1].requirement"]


@pytest.mark.parametrize("fault", ["500", "refusal"])
def test_silent_judge_makes_check_incomplete(fault):
    answer = said if fault == "500" else lambda _: "I cannot help with that."
    with ModelServer(answer=answer, faults={"500": 1.0} if fault == "500" else None) as server:
        models(server, retries=0)
        result = called("rubric", "check", "old.yaml", "--judge", "judge", "--models", "models.json", "--to", "-")
    assert result.exit_code == 3
    found = json.loads(result.stdout)
    assert found["judged"]["failed"] == found["judged"]["questions"] > 0
    assert not any("says:" in each["message"] for each in found["issues"])
