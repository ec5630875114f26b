"""`deemster show` at a glance: label, target, samples, mean pass-rate, gate and cost, without reading the marks."""

from __future__ import annotations

import json
import re

import pytest

from deemster.store import Store, open_store
from tests.cli.workspace import SUITE, called, written

GATED = SUITE + "gate: { min_macro_f1: 0.9 }\n"
PRICED = """\
outputs:
  window: { output: 30 days, usage: { prompt_tokens: 10, completion_tokens: 2, cost_usd: 0.25 }, model: m }
  fee: { output: none, usage: { prompt_tokens: 10, completion_tokens: 2, cost_usd: 0.5 }, model: m }
"""
APP = """\
from pathlib import Path

def answer(input):
    if input["question"] == "What fee?" and not Path("ready").exists():
        raise ValueError("not ready")
    return "none"
"""


def rows():
    head, *lines = called("show").stdout.splitlines()
    places = [found.start() for found in re.finditer(r"\S+(?: \S+)*", head)]
    ends = [*places[1:], None]
    return [{head[a:b].strip(): line[a:b].strip() for a, b in zip(places, ends, strict=True)} for line in lines]


@pytest.fixture
def no_marks(monkeypatch):
    """A store that does not read marks."""

    def refuse(*_arguments, **_settings):
        raise AssertionError("marks were read")

    monkeypatch.setattr(Store, "executions", refuse)


def test_list_shows_label_target_samples_macro_f1_gate_and_cost(world):
    world(suite_yml=GATED, answers_yml=PRICED)
    called("run", "suite.yml", "--quiet", "--name", "first try")
    called("run", "suite.yml", "--quiet", "--only", "tag:policy")
    part, whole = rows()
    assert (whole["name"], whole["suite"], whole["target"]) == ("first try", "refunds", "answers.yml")
    assert (whole["samples"], whole["mean pass-rate"], whole["gate"]) == ("2", "1.0000", "pass")
    assert (whole["95% interval"], whole["pass-rate"], whole["cost"]) == ("0.3424 - 1.0000", "1.0000", "0.7500 USD")
    assert (part["name"], part["status"], part["samples"]) == ("-", "complete part", "1 of 2")


def test_columns_without_content_are_left_out(world):
    world()
    called("run", "suite.yml", "--quiet")
    head = called("show").stdout.split("\n")[0]
    assert " ".join(head.split()) == "run suite target started status samples mean pass-rate 95% interval pass-rate"


@pytest.mark.usefixtures("no_marks")
def test_list_reads_no_marks(ran):
    assert rows()[0]["mean pass-rate"] == "0.5000"


def test_run_without_figures_is_listed_without_them(ran):
    with open_store(".deemster/runs.db") as store, store.lease(store.run("latest").id) as lease:
        store.amend(lease.run_id, facts={"figures": None})
    assert "mean pass-rate" not in rows()[0]


def test_figures_that_cannot_be_read_are_left_out(ran):
    with open_store(".deemster/runs.db") as store, store.lease(store.run("latest").id) as lease:
        store.amend(lease.run_id, facts={"figures": {"macro_f1": "high"}, "label": 7, "target": ["x"]})
    assert rows()[0]["samples"] == "2"


def test_rescoring_changes_the_figures(ran):
    assert called("run", "--outputs", "latest", "--metric", "contains", "--quiet").exit_code == 0
    report = json.loads(called("show", "latest", "--to", "-").stdout)
    assert rows()[0]["mean pass-rate"] == f"{report['macro_f1']:.4f}"


def test_resumed_run_has_the_figures_of_its_end_and_keeps_its_label(world):
    folder = world(suite_yml=SUITE.replace("{ outputs: answers.yml }", "{ python: 'app:answer' }"))
    written(folder, {"app.py": APP})
    called("run", "suite.yml", "--quiet", "--name", "flaky")
    first = rows()[0]
    assert (first["status"], first["mean pass-rate"], first["target"]) == ("incomplete", "0.0000", "app:answer")
    written(folder, {"ready": ""})
    called("run", "suite.yml", "--quiet", "--resume")
    last = rows()[0]
    assert (last["run"], last["name"]) == (first["run"], "flaky")
    assert (last["status"], last["mean pass-rate"]) == ("complete", "0.5000")
