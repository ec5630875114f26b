"""`deemster rubric check`."""

from __future__ import annotations

import json

import pytest

from tests.cli.workspace import called

FLAWED = """\
name: essay
criteria:
  - name: manners
    requirement: The answer is polite and concise.
  - requirement: Cites a source for every claim.
    weight: 40
  - name: sources
    requirement: Every claim has a cited source.
  - name: depth
    requirement: How deep does it go?
    options:
      - { label: "1", value: 0 }
      - { label: "2", value: 0.1 }
      - { label: "3", value: 1 }
"""
FINE = """\
- name: window
  requirement: States the refund window in days.
"""


@pytest.fixture
def folder(folder):
    (folder / "flawed.yaml").write_text(FLAWED)
    (folder / "fine.yaml").write_text(FINE)
    return folder


def test_help_matches_golden_file(golden):
    result = called("rubric", "check", "--help", COLUMNS="100", TERMINAL_WIDTH="100")
    golden("cli/rubric-check.txt", result.stdout)


def test_issues_match_golden_file(folder, golden):
    result = called("rubric", "check", "flawed.yaml")
    assert (result.exit_code, result.stderr) == (0, "")
    golden("cli/rubric-check-flawed.txt", result.stdout)


@pytest.mark.parametrize(("file", "code"), [("flawed.yaml", 1), ("fine.yaml", 0)])
def test_strict_exit_code_depends_on_issues(folder, file, code):
    assert called("rubric", "check", file, "--strict").exit_code == code


def test_rubric_without_issues_is_reported(folder):
    assert called("rubric", "check", "fine.yaml").stdout == "fine.yaml: 1 criterion, nothing found\n"


def test_json_has_every_issue_and_only_json_is_on_stdout(folder):
    result = called("rubric", "check", "flawed.yaml", "--to", "-")
    told = json.loads(result.stdout)
    assert (told["file"], told["rubric"], told["criteria"]) == ("flawed.yaml", "essay", 4)
    assert {"double-barrelled", "overlap", "bare-number"} <= {issue["code"] for issue in told["issues"]}
    fields = {"code", "severity", "where", "path", "message", "suggestion"}
    assert all(issue.keys() == fields for issue in told["issues"])
    called("rubric", "check", "flawed.yaml", "--to", "found.json")
    assert (folder / "found.json").read_text() == result.stdout


def test_bad_file_is_refused_with_all_its_issues(folder):
    (folder / "bad.yaml").write_text("- requirement: ''\n- wieght: 3\n  requirement: Has a title.\n")
    result = called("rubric", "check", "bad.yaml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "bad.yaml:1" in result.stderr
    assert "bad.yaml:2" in result.stderr
    assert "Did you mean `weight`?" in result.stderr


@pytest.mark.parametrize("argv", [("absent.yaml",), ("fine.yaml", "--to", "fine.yaml/where.json")])
def test_missing_file_is_bad_input(folder, argv):
    assert called("rubric", "check", *argv).exit_code == 2
