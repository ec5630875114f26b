"""A panel of judges of which one is down: every report says so, and a resumed run asks what is missing."""

from __future__ import annotations

import json
import re

import pytest

from deemster.store import open_store
from deemster.testing import ModelServer
from tests.builders.json_lines import json_lines
from tests.cli.workspace import called, written
from tests.view.viewer_client import running_viewer

SAMPLES = 6
SUITE = """\
dataset: golden.jsonl
target: { outputs: answers.jsonl }
metrics:
  - llm-as-judge: { models: ["judge", "judge:b", "judge:c"], name: panel%s }
models:
  judge: { base_url: "${GOOD}", model: a }
  judge:b: { base_url: "${GOOD}", model: b }
  judge:c: { base_url: "${THIRD}", model: c, retries: 0 }
gate: { min_pass_rate: 0.1 }
"""
DOWN = "http://127.0.0.1:9/v1"
FORMATS = {
    "json": "r.json",
    "html": "r.html",
    "csv": "r.csv",
    "md": "r.md",
    "junit": "r.xml",
    "github": "g.md",
    "pr-comment": "p",
}
FLAGS = [word for name, file in FORMATS.items() for word in ("--to", f"{name}:{file}")]


@pytest.fixture
def world(folder):
    lines = [{"id": f"s{n}", "input": {"question": f"Why {n}?"}, "expected_output": "x"} for n in range(SAMPLES)]
    outputs = [{"id": line["id"], "output": "x"} for line in lines]
    golden, answers = json_lines(*lines), json_lines(*outputs)
    written(folder, {"golden.jsonl": golden, "answers.jsonl": answers, "suite.yml": SUITE % ""})
    with ModelServer() as good, ModelServer(seed=1) as third:
        yield folder, good, third


def ran(world, third, *flags):
    return called("run", "suite.yml", "--cache", "none", *FLAGS, *flags, GOOD=world[1].url, THIRD=third)


def test_panel_without_a_member_is_unscored_with_its_votes_and_resume_asks_only_that_member(world):
    folder, good, third = world
    assert ran(world, DOWN).exit_code != 0
    report = json.loads((folder / "r.json").read_text())
    assert report["metrics"]["panel"]["unscored_by_cause"] == {"no_quorum": SAMPLES}
    message = report["failures"][0]["message"]
    assert re.match(
        r"2 of 3 members of the panel spoke; 3 are needed\. First: .* Votes: judge [0-9.]+, judge:b ", message
    )
    asked = len(good.requests)
    assert ran(world, third.url, "--allow-changed", "--resume").exit_code in (0, 1)
    assert (len(good.requests), len(third.requests)) == (asked, SAMPLES)
    report = json.loads((folder / "r.json").read_text())
    assert report["totals"]["scored"] == SAMPLES
    assert "panels" not in report


def test_lower_quorum_and_scores_that_lack_a_vote_are_said_in_every_report_until_resume_asks(world):
    folder, good, third = world
    written(folder, {"suite.yml": SUITE % ", quorum: 2"})
    done = ran(world, DOWN)
    asked = len(good.requests)
    said = ["6 of 6 scores lack the vote of a judge that failed", "a score needs 2 votes of its judges"]
    for text in (
        done.output,
        *((folder / file).read_text() for name, file in FORMATS.items() if name not in ("json", "csv")),
    ):
        words = " ".join(re.sub("</?[a-z].*?>", "", text).split())
        assert all(each in words for each in said) or all(each in text for each in said)
    report = json.loads((folder / "r.json").read_text())
    assert report["panels"] == {"panel": {"n": 6, "n_incomplete": 6, "quorum": 2}}
    page = (folder / "r.md").read_text() + called("show", "latest").output
    assert page.count("lack the vote") == 2
    lines = (folder / "r.csv").read_text().splitlines()
    assert [line.rpartition(",")[2] for line in lines] == ["failed_votes", *"1" * SAMPLES]
    with open_store(folder / ".deemster" / "runs.db") as store, running_viewer(store) as client:
        assert client.get("runs/latest")["panels"] == report["panels"]
    said = f"{SAMPLES} of {SAMPLES} scores of `panel` lack the vote of a judge that failed."
    for sides in (("latest", "latest"), ("r.json", "r.json")):
        compared = json.loads(called("compare", *sides, "--to", "-").stdout)
        assert [warning.endswith(said) for warning in compared["warnings"]] == [True, True]

    done = ran(world, third.url, "--allow-changed", "--resume")
    assert "trying 6 again" in done.output
    assert (len(good.requests), len(third.requests)) == (asked, SAMPLES)
    report = json.loads((folder / "r.json").read_text())
    assert report["panels"] == {"panel": {"n": 6, "n_incomplete": 0, "quorum": 2}}
    assert report["usage"]["scoring"]["calls"] == 3 * SAMPLES
