"""Anchors: cases that every run judges anew, so that a drift of the judge makes the gate inconclusive."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import deemster as dm
from tests.cli.workspace import called

SUITE = """\
name: shop
dataset: golden.yml
target: { outputs: %s.yml }
metrics: [llm-as-judge]
models: { judge: { client: "tests.cli.test_run_anchors:judge", anchors: anchors.yml } }
gate: { decision: three-way, baseline: { margin: 0.9 } }
"""


class _Mood:
    """How kind the judge is today."""

    kindness = 0.0


def decide(ask):
    words = len(re.findall(r"word", ask.messages[-1].content))
    return {"reason": "The words were counted.", "score": round(min(1.0, 0.5 + words / 100 + _Mood.kindness), 3)}


judge = dm.models.FakeChat(decide, model="made-up-2", identity={"model": "made-up-2"})


def case(place):
    said = "word " * (place % 5)
    return f"  - {{id: a{place}, input: {{question: Why?}}, expected_output: word, actual_output: {said}x}}"


@pytest.fixture
def shop(folder, monkeypatch):
    monkeypatch.setattr(_Mood, "kindness", 0.0)
    samples = "".join(f"  - {{id: s{n}, input: {{question: Why {n}?}}, expected_output: word}}\n" for n in range(6))
    Path("golden.yml").write_text(f"name: shop\nsamples:\n{samples}")
    for name in ("before", "after"):
        outputs = "".join(f"  s{n}: word {name} {n}\n" for n in range(6))
        Path(f"{name}.yml").write_text(f"outputs:\n{outputs}")
        Path(f"{name}_suite.yml").write_text(SUITE % name)
    Path("anchors.yml").write_text("cases:\n" + "\n".join(map(case, range(12))) + "\n")
    assert called("run", "before_suite.yml", "--quiet", "--as-baseline").exit_code == 0
    return folder


def run(*argv, code=0):
    done = called("run", "after_suite.yml", "--to", "report.json", *argv)
    assert done.exit_code == code, done.stdout + done.stderr
    report = json.loads(Path("report.json").read_text())
    (check,) = [check for check in report["gate"]["checks"] if check["name"] == "baseline.judge_drift"]
    return report, check


def test_anchors_that_stay_leave_the_gate_alone(shop):
    # No output is the same in both runs: the anchors alone say that the judge is the same.
    _, check = run()
    assert (check["status"], check["because"]) == ("pass", "equal outputs are marked as before, as far as chance goes")


def test_judge_that_drifts_is_seen_by_its_anchors_though_answers_are_cached(shop):
    _Mood.kindness = 0.1
    report, check = run(code=4)
    assert check["status"] == "inconclusive"
    assert check["because"].startswith("llm-as-judge scores 12 of 12 equal outputs otherwise than before, by +0.1000")
    done = called("compare", "baseline", "latest")
    assert "the judge drifted: llm-as-judge: 12 of 12 outputs that did not change have another score" in " ".join(
        done.stdout.split()
    )
    assert report["totals"]["samples"] == 6


def test_calls_for_anchors_are_counted(shop):
    report, _ = run()
    assert report["usage"]["total"]["calls"] == 6 + 5
    assert called("show", "latest", "--to", "again.json").exit_code == 0
    assert Path("again.json").read_bytes() == Path("report.json").read_bytes()


def test_check_counts_the_calls_for_anchors_even_where_answers_are_cached(shop):
    def planned():
        done = called("check", "after_suite.yml", "--offline")
        assert done.exit_code == 0, done.stderr
        return int(re.search(r"^judge: (\d+) to", done.stdout, re.MULTILINE)[1])

    assert planned() == 6 + 5
    run()
    assert planned() == 5


def test_anchors_that_were_edited_are_not_compared(shop):
    Path("anchors.yml").write_text(Path("anchors.yml").read_text().replace("Why?", "Why not?"))
    _, check = run()
    assert check["status"] == "skipped"


@pytest.mark.parametrize(
    ("text", "said"),
    [(None, "anchors.yml"), ("cases: []\n", "cases"), ("cases:\n  - {id: a, input: {}}\n", "actual_output")],
)
def test_anchors_that_cannot_be_used_end_the_run_before_it_begins(shop, text, said):
    Path("anchors.yml").unlink()
    if text is not None:
        Path("anchors.yml").write_text(text)
    for command in (("run", "after_suite.yml"), ("check", "after_suite.yml")):
        done = called(*command)
        assert done.exit_code == 2
        assert said in done.stderr
