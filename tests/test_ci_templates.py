"""The GitHub Action and the GitLab template of `ci/`: their files are valid, and their scripts do what they say."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from markdown_it import MarkdownIt

from deemster.store import open_store
from tests.cli.workspace import EPOCH, FILES, written

CI = Path(__file__).parent.parent / "ci"
BIN = Path(sys.executable).parent
ACTION = yaml.safe_load((CI / "action.yml").read_text(encoding="utf-8"))
GITLAB = yaml.safe_load((CI / "gitlab.yml").read_text(encoding="utf-8"))
MARKER = "<!-- deemster comment: refunds -->"
# Answers as `gh api` does: a list of comments, filtered by jq; anything else is written down.
GH = """#!/usr/bin/env python3
import json, os, subprocess, sys
arguments = sys.argv[1:]
with open(os.environ["LOG"], "a") as log:
    bodies = [open(a[len("body=@"):]).read() for a in arguments if a.startswith("body=@")]
    log.write(json.dumps({"arguments": arguments, "bodies": bodies}) + "\\n")
if os.environ.get("REFUSE", "none") in arguments:
    sys.exit(1)
if "--jq" in arguments:
    expression = arguments[arguments.index("--jq") + 1]
    done = subprocess.run(["jq", "-r", expression], input=os.environ["COMMENTS"], text=True, capture_output=True)
    sys.stderr.write(done.stderr)
    sys.stdout.write(done.stdout)
    sys.exit(done.returncode)
"""
CURL = """#!/usr/bin/env python3
import json, os, sys
with open(os.environ["LOG"], "a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
if "--request" not in sys.argv:
    sys.stdout.write(os.environ["NOTES"])
"""


@pytest.fixture
def folder(tmp_path):
    written(tmp_path, FILES)
    (tmp_path / "bin").mkdir()
    return tmp_path


def program(folder, name, text):
    path = folder / "bin" / name
    path.write_text(text, encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def bash(folder, *command, **env):
    return subprocess.run(
        ["bash", *command],
        cwd=folder,
        env={
            "PATH": f"{folder / 'bin'}{os.pathsep}{BIN}{os.pathsep}{os.environ['PATH']}",
            "SOURCE_DATE_EPOCH": EPOCH,
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            "LOG": str(folder / "log"),
            **env,
        },
        capture_output=True,
        text=True,
        check=False,
    )


def logged(folder):
    return [json.loads(line) for line in (folder / "log").read_text(encoding="utf-8").splitlines()]


def test_every_input_of_the_action_is_described_and_used():
    steps = json.dumps(ACTION["runs"])
    for name, content in ACTION["inputs"].items():
        assert content["description"].endswith(".")
        assert f"inputs.{name}" in steps, name
        assert content.get("required") or "default" in content


def test_no_input_is_pasted_into_a_script():
    # What a pull request names must not become a command: it reaches scripts through variables only.
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step.get("run", "")


def test_every_step_of_the_action_runs_something_that_exists():
    for step in ACTION["runs"]["steps"]:
        assert ("run" in step) is ("shell" in step)
        assert ("run" in step) != ("uses" in step)
        for script in re.findall(r"\$GITHUB_ACTION_PATH/([\w.]+)", step.get("run", "")):
            assert (CI / script).is_file()


def test_every_workflow_of_the_guide_is_yaml_and_names_inputs_that_exist():
    page = (CI.parent / "docs" / "guide" / "ci.md").read_text(encoding="utf-8")
    fences = [token for token in MarkdownIt().parse(page) if token.type == "fence" and token.info == "text"]
    blocks = [yaml.safe_load(fence.content) for fence in fences]
    job, template, artefact, store = blocks
    steps = [*job["jobs"]["evaluate"]["steps"], *artefact["steps"], *store]
    used = [step["with"] for step in steps if step.get("uses") == "OWNER/deemster/ci@main"]
    assert len(used) == 3
    assert all(set(given) <= set(ACTION["inputs"]) for given in used)
    table = page.partition("| input |")[2].partition("The outputs")[0]
    assert re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE) == list(ACTION["inputs"])
    assert set(template["evaluate"]["variables"]) <= set(GITLAB[".deemster"]["variables"])


@pytest.mark.parametrize("script", ["evaluate.sh", "comment.sh"])
def test_script_has_no_syntax_error(script):
    assert subprocess.run(["bash", "-n", str(CI / script)], check=False).returncode == 0


def evaluate(folder, **env):
    done = bash(folder, str(CI / "evaluate.sh"), GITHUB_OUTPUT=str(folder / "output"), RUNNER_TEMP=str(folder), **env)
    lines = (folder / "output").read_text(encoding="utf-8").splitlines()
    return done, dict(line.split("=", 1) for line in lines)


@pytest.mark.parametrize(("gate", "code"), [("", "0"), ("gate: { min_macro_f1: 0.9 }\n", "1"), ("gate: 3\n", "2")])
def test_evaluation_writes_reports_and_hands_over_the_exit_code(gate, code, folder):
    written(folder, {"suite.yml": FILES["suite.yml"] + gate})
    done, output = evaluate(folder, SUITE="suite.yml")
    assert done.returncode == 0
    assert output["exit-code"] == code
    reports = {path.name for path in Path(output["reports"]).iterdir()}
    assert reports == (set() if code == "2" else {"report.json", "report.html", "report.xml", "pr-comment.md"})
    assert ("comment" in output) is (code != "2")


def test_evaluation_takes_flags_a_store_and_privacy(folder):
    summary = folder / "summary.md"
    summary.touch()
    done, output = evaluate(
        folder,
        SUITE="suite.yml",
        ARGS="--name\na name of words\n--without-text\n",
        STORE=str(folder / "shared.db"),
        GITHUB_STEP_SUMMARY=str(summary),
    )
    report = json.loads(Path(output["reports"], "report.json").read_text(encoding="utf-8"))
    assert report["privacy"]["level"] == "without-text"
    with open_store(folder / "shared.db") as store:
        assert store.run("latest").facts["label"] == "a name of words"
    assert (folder / "shared.db").is_file(), done.stderr
    assert "deemster report" in summary.read_text(encoding="utf-8")


def test_evaluation_leaves_out_private_text_where_it_is_told_to(folder):
    _, output = evaluate(folder, SUITE="suite.yml", WITHOUT_TEXT="true")
    report = json.loads(Path(output["reports"], "report.json").read_text(encoding="utf-8"))
    assert report["privacy"]["level"] == "without-text"


def comment(folder, comments, **env):
    program(folder, "gh", GH)
    (folder / "pr-comment.md").write_text(f"{MARKER}\n\n**pass** @all\n", encoding="utf-8")
    settings = {"GITHUB_REPOSITORY": "o/r", "PULL_REQUEST": "7", "COMMENTS": json.dumps(comments), **env}
    done = bash(folder, str(CI / "comment.sh"), "pr-comment.md", **settings)
    assert done.returncode == 0, done.stderr
    return done, logged(folder)


def by(kind, body, number):
    return {"id": number, "user": {"type": kind}, "body": body}


def test_first_comment_is_posted(folder):
    quoted = by("User", f"{MARKER} I quote it", 1)
    _, (_, written) = comment(folder, [quoted, by("Bot", "another bot", 2)])
    assert written["arguments"][:5] == ["api", "--silent", "--method", "POST", "repos/o/r/issues/7/comments"]
    assert written["bodies"][0].startswith(MARKER)


def test_comment_of_an_earlier_run_is_updated(folder):
    _, (_, written) = comment(folder, [by("Bot", f"{MARKER}\nold", 5), by("Bot", f"{MARKER}\nolder", 6)])
    assert written["arguments"][2:5] == ["--method", "PATCH", "repos/o/r/issues/comments/5"]


@pytest.mark.parametrize("refused", ["--paginate", "POST"])
def test_token_that_may_not_write_is_a_warning(refused, folder):
    done, _ = comment(folder, [], REFUSE=refused)
    assert "::warning::The comment could not be written" in done.stdout


def gitlab(folder, notes, **env):
    program(folder, "curl", CURL)
    script = GITLAB[".deemster"]["script"][0]
    settings = {
        "CI_API_V4_URL": "https://git.example/api/v4",
        "CI_PROJECT_ID": "3",
        **GITLAB[".deemster"]["variables"],
        "NOTES": json.dumps(notes),
        **env,
    }
    return bash(folder, "-euo", "pipefail", "-c", script, **settings)


@pytest.mark.parametrize(
    ("notes", "method", "ending"),
    [
        ([{"id": 4, "body": "hello"}], "POST", "/notes"),
        ([{"id": 4, "body": "hello"}, {"id": 9, "body": f"{MARKER}\nold"}], "PUT", "/notes/9"),
    ],
)
def test_gitlab_note_is_written_or_updated(notes, method, ending, folder):
    done = gitlab(folder, notes, CI_MERGE_REQUEST_IID="11", DEEMSTER_TOKEN="t")
    assert done.returncode == 0, done.stderr
    _, written = logged(folder)
    assert written[written.index("--request") + 1] == method
    assert written[-1] == f"https://git.example/api/v4/projects/3/merge_requests/11{ending}"
    assert (folder / "deemster" / "pr-comment.md").read_text(encoding="utf-8").startswith(MARKER)


def test_gitlab_job_fails_with_the_gate_and_writes_no_note_without_a_merge_request(folder):
    written(folder, {"suite.yml": FILES["suite.yml"] + "gate: { min_macro_f1: 0.9 }\n"})
    assert gitlab(folder, []).returncode == 1
    assert not (folder / "log").exists()
    assert GITLAB[".deemster"]["artifacts"]["when"] == "always"
