"""The RAG example is what its generator writes, and its metrics find the flaws its answers have on purpose."""

from __future__ import annotations

import csv
import json
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import deemster as dm
from deemster.cli import app
from deemster.testing import ModelServer

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "examples" / "rag"
SUITE = str(FOLDER / "suite.yml")


@pytest.fixture(scope="module")
def report():
    return dm.load_report(ROOT / "tests" / "golden" / "examples" / "rag" / "report.json")


def test_example_files_match_generator(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", FOLDER / "make.py", tmp_path],
        env={"PATH": os.environ["PATH"], "PYTHONHASHSEED": "5"},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    for name in ("answers.jsonl", "replies/scripted.jsonl"):
        assert (tmp_path / name).read_bytes() == (FOLDER / name).read_bytes(), f"run make.py to refresh {name}"


def test_every_flaw_but_the_harmless_one_fails_a_metric_and_nothing_else_fails_a_judge(report):
    cases = runpy.run_path(str(FOLDER / "written.py"))["CASES"]
    flawed = {name for name, case in cases.items() if case.flaw}
    assert len(cases) == 24
    judged = ("claim-faithfulness", "answer-relevancy", "redundancy", "citation-groundedness", "recall@3")
    failed = {
        execution.id for execution in report.executions if not all(execution.marks[metric].success for metric in judged)
    }
    assert failed == flawed - {"sunday"}


def test_similarity_passes_the_answer_that_states_a_wrong_fee(report):
    marks = next(execution.marks for execution in report.executions if execution.id == "late-fee")
    assert marks["cosine-embedding"].success
    assert marks["claim-faithfulness"].score == 0.0
    assert marks["claim-faithfulness"].details["contradicted"] == 2


def test_retrieved_texts_are_those_of_the_passages():
    with (FOLDER / "passages.csv").open(encoding="utf-8", newline="") as file:
        texts = {row["id"]: row["text"] for row in csv.DictReader(file)}
    assert len(texts) == 12
    _, *lines = map(json.loads, (FOLDER / "answers.jsonl").read_text("utf-8").splitlines())
    for line in lines:
        assert all(texts[passage["id"]] == passage["text"] for passage in line["retrieved"])


def test_recorded_judge_answers_offline_and_is_asked_nothing(tmp_path):
    flags = ["--offline", "--cache", "none", "--store", "none", "--quiet", "--to", str(tmp_path / "report.json")]
    done = CliRunner().invoke(app, ["run", SUITE, *flags])
    assert done.exit_code == 0, done.output
    usage = json.loads((tmp_path / "report.json").read_text("utf-8"))["usage"]["scoring"]
    assert (usage["calls"], usage["cached_calls"]) == (0, 104)


def test_two_variables_make_it_ask_a_model(monkeypatch, tmp_path):
    monkeypatch.setenv("JUDGE_URL", "https://models.example/v1")
    monkeypatch.setenv("JUDGE_MODEL", "some-model")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    done = CliRunner().invoke(app, ["check", SUITE, "--offline", "--cache", str(tmp_path / "cache.jsonl")])
    assert done.exit_code == 0, done.output
    assert "judge" in done.stdout
    done = CliRunner().invoke(app, ["run", SUITE, "--store", "none", "--cache", str(tmp_path / "cache.jsonl")])
    assert done.exit_code == 2
    assert "`OPENAI_API_KEY`" in done.stderr


def test_model_on_this_machine_needs_two_variables_and_is_asked_once(monkeypatch, tmp_path):
    shutil.copytree(FOLDER, tmp_path / "rag", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("JUDGE_MODEL", "some-model")
    flags = ["run", str(tmp_path / "rag" / "suite.yml"), "--cache", "none", "--store", "none", "--quiet"]
    with ModelServer() as server:
        monkeypatch.setenv("JUDGE_URL", server.url)
        for _ in range(2):
            done = CliRunner().invoke(app, flags)
            assert done.exit_code in (0, 1), done.output
        asked = len(server.requests)
    recorded = (tmp_path / "rag" / "replies" / "some-model.jsonl").read_text("utf-8").splitlines()
    assert asked == len(recorded) > 72
