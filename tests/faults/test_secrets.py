"""A model key in the texts of targets or metrics is never written or shown."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from deemster.models.secret_redaction import Secrets
from deemster.records import Output, TargetFailure, Usage
from deemster.runs._target_calls import redact_answer
from deemster.testing import ModelServer
from tests.cli.workspace import called, written

KEY = 'zq8-"very"-secret-0123456789'
APP = """\
import os
import deemster as dm

def answer(asked):
    key, number = os.environ["MY_KEY"], asked["n"]
    if number == 0:
        raise RuntimeError(f"401 for the key {key}")
    if number == 1:
        return dm.Output(f"The key is {key}.", retrieved=[{"id": "p", "text": f"... {key}"}])
    if number == 2:
        return {"headers": {"x": key}}
    if number == 3:
        return f"bad \\ud800 {key}"
    return "fine"

class Leaky:
    name = "leaky"

    def score(self, sample, output):
        if sample.input["n"] == 4:
            raise ValueError(f"refused: {os.environ['MY_KEY']}")
        return 1.0

leaky = Leaky()
"""
SUITE = """\
name: telltale
dataset: golden.jsonl
target: { python: "app:answer" }
metrics: [exact-match, "app:leaky", llm-as-judge]
models:
  judge: { base_url: "${URL}", model: m, api_key_env: MY_KEY, retries: 0 }
"""
REPORTS = ("json", "markdown", "csv", "html", "junit")


def test_key_in_target_or_metric_text_reaches_no_output(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    golden = "".join(json.dumps({"id": f"s{n}", "input": {"n": n}, "expected_output": "fine"}) + "\n" for n in range(6))
    written(tmp_path, {"app.py": APP, "suite.yml": SUITE, "golden.jsonl": golden})
    with ModelServer() as server:
        server.play(["401", "merge"])
        # The target and its metric read the key from the environment.
        monkeypatch.setenv("MY_KEY", KEY)
        flags = [part for kind in REPORTS for part in (f"--{kind}", f"report.{kind}")]
        shown = [called("run", "suite.yml", *flags, URL=server.url)]
        shown.append(called("report", "latest"))
        shown.append(called("runs", "show", "latest"))
        shown.append(called("store", "export", "latest", "--to", "run.jsonl"))
        asked = [json.dumps(request.document) for request in server.requests]
    forms = (KEY, json.dumps(KEY)[1:-1], json.dumps(json.dumps(KEY)[1:-1])[1:-1], KEY.replace('"', "&quot;"))
    forms += (KEY.replace('"', '""'), KEY.partition('"')[2])
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "app.py"]
    assert {path.name for path in files} >= {"runs.db", "run.jsonl", "answers.jsonl", *(f"report.{k}" for k in REPORTS)}
    for text in [*(path.read_text("utf-8", "replace") for path in files), *asked, *(each.output for each in shown)]:
        assert not any(form in text for form in forms)
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["executions"][1]["output"] == "The key is [removed]."
    assert report["totals"]["target_failures"] == 1


@pytest.mark.parametrize("answer", [Output("plain", usage=Usage(cost_usd=Decimal("0.1"))), Output("bad \ud800")])
def test_answer_without_secret_is_unchanged(answer):
    assert redact_answer(answer, Secrets([KEY])) == answer


def test_key_like_text_is_removed_from_failures_but_kept_in_answers():
    said = "sk-abcdefghijklmnop"
    assert (
        redact_answer(TargetFailure(f"Incorrect API key: {said}"), Secrets()).message == "Incorrect API key: [removed]"
    )
    assert redact_answer(Output(said), Secrets([KEY])).text == said
