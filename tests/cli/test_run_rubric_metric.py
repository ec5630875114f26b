"""A suite with a rubric among its metrics: run, gated, stored, and reported again."""

from __future__ import annotations

import json

import pytest

from deemster.testing import ModelServer
from tests.cli.test_grade import RUBRIC, said
from tests.cli.workspace import called, written

GOLDEN = {
    "name": "essays",
    "samples": [{"id": f"s{at}", "input": {"question": "Which city?"}, "expected_output": "Paris"} for at in range(4)],
}
ANSWERS = {"outputs": {f"s{at}": f"Text {at}." for at in range(4)}}


@pytest.fixture
def server():
    with ModelServer(answer=said) as running:
        yield running


@pytest.fixture(autouse=True)
def folder(folder, server):
    suite = {
        "name": "essays",
        "dataset": "golden.json",
        "target": {"outputs": "answers.json"},
        "metrics": ["exact-match", {"rubric": {"file": "rubrics/essay.json", "judges": ["a", "b"], "name": "essay"}}],
        "models": {role: {"base_url": server.url, "model": role} for role in "ab"},
        "gate": {"metrics": {"essay": {"min_mean": 0.5}, "essay/facts": {"min_mean": 0.9}}},
    }
    files = {"suite.json": suite, "golden.json": GOLDEN, "answers.json": ANSWERS, "rubrics/essay.json": RUBRIC}
    written(folder, {f"work/{name}": json.dumps(content) for name, content in files.items()})
    return folder


def test_suite_gates_on_criterion_and_report_shows_each():
    result = called("run", "work/suite.json", "--to", "-")
    assert result.exit_code == 1, result.stderr
    report = json.loads(result.stdout)
    assert {name: figures["mean"] for name, figures in report["metrics"]["essay"]["criteria"].items()} == {
        "facts": 0.75,
        "depth": 0.5,
    }
    assert [check["status"] for check in report["gate"]["checks"]] == ["pass", "fail"]
    assert report["executions"][0]["marks"]["essay"]["details"]["votes"][0]["reason"] == "Seen."


def test_stored_run_gives_the_same_report_again():
    first = called("run", "work/suite.json", "--to", "-")
    again = called("show", "latest", "--to", "-")
    assert again.stdout == first.stdout
    shown = called("show", "latest", "--full")
    assert "Criteria" in shown.stdout


def test_publish_safe_report_has_no_judge_text():
    result = called("run", "work/suite.json", "--to", "-", "--without-text")
    report = json.loads(result.stdout)
    assert "Seen." not in result.stdout
    assert report["metrics"]["essay"]["criteria"]["facts"]["mean"] == 0.75


def test_changed_rubric_is_another_run(folder):
    called("run", "work/suite.json", "--quiet")
    changed = {"criteria": [{**RUBRIC["criteria"][0], "requirement": "Other."}, RUBRIC["criteria"][1]]}
    (folder / "work" / "rubrics" / "essay.json").write_text(json.dumps(changed))
    result = called("run", "work/suite.json", "--resume")
    assert result.exit_code == 2
    assert "metrics.essay" in result.stderr


def test_invalid_rubric_is_error_with_line(folder):
    (folder / "work" / "rubrics" / "essay.json").write_text('{"criteria": [{"requirment": "x"}]}')
    result = called("check", "work/suite.json")
    assert result.exit_code == 2
    assert "essay.json:1" in result.stderr
    assert "Did you mean `requirement`?" in result.stderr


def test_validate_finds_rule_about_unknown_criterion(folder):
    path = folder / "work" / "suite.json"
    suite = json.loads(path.read_text())
    suite["gate"]["metrics"] = {"essay/fact": {"min_mean": 0.5}}
    path.write_text(json.dumps(suite))
    result = called("check", "work/suite.json")
    assert result.exit_code == 2
    assert "essay/facts" in result.stderr


def test_gate_on_criterion_with_failed_verdicts_is_inconclusive(folder, server):
    def partly(chat):
        facts = "option" not in chat.schema["properties"]
        return "Well." if facts and "Text 3." in chat[1]["content"] else said(chat)

    server.answer = partly
    path = folder / "work" / "suite.json"
    suite = json.loads(path.read_text())
    suite["gate"] = {"decision": "three-way", "metrics": {"essay/facts": {"min_mean": 0.6}}}
    path.write_text(json.dumps(suite))
    result = called("run", "work/suite.json", "--to", "-")
    report = json.loads(result.stdout)
    (check,) = [each for each in report["gate"]["checks"] if "facts" in each["name"]]
    assert (check["status"], check["because"]) == ("inconclusive", "1 of 4 verdicts failed")
    figures = report["metrics"]["essay"]["criteria"]["facts"]
    assert (figures["n"], figures["n_judged"], figures["n_failed"], figures["n_abstained"]) == (4, 3, 1, 0)
    assert figures["mean"] == pytest.approx(2 / 3)


def test_people_are_compared_with_each_criterion(folder):
    assert called("run", "work/suite.json", "--quiet").exit_code == 1
    lines = ["id,metric,criterion,annotator,verdict"]
    lines += [f"s{at},essay,facts,ana,{'MET' if at else 'UNMET'}" for at in range(4)]
    lines += [f"s{at},,depth,ana,{label}" for at, label in enumerate(["fair", "good", "fair", "fair"])]
    (folder / "labels.csv").write_text("\n".join(lines))
    result = called("agreement", "latest", "--labels", "labels.csv", "--to", "-")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)["metrics"]
    assert found["essay/facts"]["kind"] == "verdict"
    assert found["essay/facts"]["n"] == found["essay/depth"]["n"] == 4
    assert found["essay/depth"]["kind"] == "option"
    assert found["essay/depth"]["confusion"] is None
    assert found["essay/facts"]["pass_rate"] is None
    assert (found["essay/facts"]["agreement"]["value"], found["essay/depth"]["agreement"]["value"]) == (0.5, 0.75)


@pytest.mark.parametrize("quorum", [None, 1])
def test_score_of_a_panel_without_a_member_is_withheld_or_said_to_lack_a_vote(folder, server, quorum):
    path = folder / "work" / "suite.json"
    suite = json.loads(path.read_text())
    suite["metrics"][1]["rubric"] |= {} if quorum is None else {"quorum": quorum}

    with ModelServer(answer=said) as other:
        other.play(["500"] * 8)
        suite["models"]["b"] |= {"base_url": other.url, "retries": 0}
        path.write_text(json.dumps(suite))
        shown = called("run", "work/suite.json", "--to", "r.json").output
        report = json.loads((folder / "r.json").read_text())
        if quorum is None:
            unscored = report["executions"][3]["marks"]["essay"]["unscored"]
            assert (unscored["cause"], "panels" in report) == ("no_quorum", False)
            few = "facts: 1 of 2 members of the panel spoke; 2 are needed. First: model_failed, "
            assert unscored["message"].startswith(few)
            assert " Votes: a MET." in unscored["message"]
        else:
            assert report["panels"] == {"essay": {"n": 4, "n_incomplete": 4, "quorum": 1}}
            assert "4 of 4 scores lack the vote of a judge that failed" in " ".join(shown.split())

        asked = len(server.requests)
        called("run", "work/suite.json", "--to", "r.json", "--resume")
    report = json.loads((folder / "r.json").read_text())
    assert report["metrics"]["essay"]["n_scored"] == 4
    assert report.get("panels") == (None if quorum is None else {"essay": {"n": 4, "n_incomplete": 0, "quorum": 1}})
    assert len(server.requests) == asked


def test_new_judges_of_the_same_outputs_are_compared_by_criterion(folder):
    called("run", "work/suite.json", "--quiet", "--name", "old")
    suite = json.loads((folder / "work" / "suite.json").read_text())
    suite["models"]["b"]["model"] = "a"
    (folder / "work" / "suite.json").write_text(json.dumps(suite))
    called("run", "work/suite.json", "--outputs", "old", "--quiet", "--name", "new")

    done = called("compare", "old", "new", "--to", "-")
    criteria = json.loads(done.stdout)["judge_change"]["metrics"]["essay"]["criteria"]
    means = json.loads(called("show", "new", "--to", "-").stdout)["metrics"]["essay"]["criteria"]
    assert {name: change["candidate"] for name, change in criteria.items()} == {
        name: figures["mean"] for name, figures in means.items()
    }
    assert criteria["facts"]["baseline"] == 0.75
    assert "criterion facts" in called("compare", "old", "new").stdout
