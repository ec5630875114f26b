"""A run file stands for its run in every command that reads one, and is taken into no store."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

import deemster as dm
from tests.cli.workspace import called

READING = {
    "report": ("show", "RUN", "--to", "-"),
    "runs show": ("show", "RUN", "--to", "-"),
    "show": ("show", "RUN", "window"),
    "brief": ("show", "--failed", "RUN"),
    "compare": ("compare", "RUN", "RUN", "--to", "-"),
    "rank": ("compare", "RUN", "RUN", "RUN", "--to", "-"),
    "plan detect": ("plan", "detect", "RUN", "--to", "-"),
    "plan size": ("plan", "size", "--effect", "0.1", "--from", "RUN", "--to", "-"),
    "labels sheet": ("labels", "sheet", "RUN", "--to", "csv:-"),
    "audit dataset": ("audit", "dataset", "RUN", "--to", "-"),
    "audit metrics": ("audit", "metrics", "suite.yml", "--outputs", "RUN", "--to", "-"),
}


@pytest.fixture
def passed(ran, monkeypatch, tmp_path_factory):
    """A folder with a run in its store, and the same in a run file; temporary stores go to a folder that is seen."""
    temporary = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    assert called("export", "latest", "--to", "run.jsonl").exit_code == 0
    yield ran
    assert list(temporary.iterdir()) == []


def said(argv, run, *flags):
    result = called(*(run if word == "RUN" else word for word in argv), *flags)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("argv", READING.values(), ids=READING)
def test_run_file_gives_what_the_stored_run_gives_where_there_is_no_store(passed, argv):
    stored = said(argv, "latest")
    elsewhere = passed / "elsewhere.db"
    assert said(argv, "run.jsonl", "--store", str(elsewhere)).replace(', "received": true', "") == stored
    assert not elsewhere.exists()


def test_report_is_the_same_in_every_format(passed):
    for form in ("json", "md", "csv", "html", "junit"):
        argv = ("show", "RUN", "--to", f"{form}:-")
        assert said(argv, "run.jsonl", "--store", "no.db") == said(argv, "latest")


def test_run_file_is_compared_with_a_stored_run(passed):
    found = json.loads(said(("compare", "run.jsonl", "latest", "--to", "-"), ""))
    assert {status: count for status, count in found["statuses"].items() if count} == {"stable": 2}


def test_files_and_stored_runs_are_exported_together_for_a_browser(passed):
    said(("view", "--export", "pages", "run.jsonl", "latest"), "")
    assert (passed / "pages" / "index.html").is_file()


def test_labels_of_a_run_file_calibrate_it(passed):
    said(("labels", "sheet", "run.jsonl", "--metric", "exact-match", "--to", "labels.csv"), "")
    lines = (passed / "labels.csv").read_text().splitlines()
    places = [lines[0].split(",").index(name) for name in ("annotator", "verdict")]
    filled = [lines[0]]
    for line in lines[1:]:
        cells = line.split(",")
        for place, cell in zip(places, ("ann", "yes"), strict=True):
            cells[place] = cell
        filled.append(",".join(cells))
    (passed / "labels.csv").write_text("\n".join(filled) + "\n")
    argv = ("agreement", "RUN", "--labels", "labels.csv", "--to", "-")
    assert said(argv, "run.jsonl", "--store", "no.db") == said(argv, "latest")


def test_run_file_is_known_by_its_first_line_whatever_it_is_called(passed):
    (passed / "run.jsonl").rename(passed / "facts.txt")
    assert said(("show", "RUN", "--to", "-"), "facts.txt", "--store", "no.db") == said(
        ("show", "RUN", "--to", "-"), "latest"
    )


def test_python_compares_run_files(passed):
    compared = dm.compare("run.jsonl", Path("run.jsonl"), store="no.db")
    assert compared.macro_f1.difference == 0


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "error: run.jsonl: There is no such file."),
        (lambda data: data[:-20], "run.jsonl"),
        (lambda data: data.replace(b"30 days", b"31 days"), "run.jsonl:"),
    ],
)
@pytest.mark.parametrize("argv", [READING["report"], READING["compare"], READING["brief"]])
def test_bad_run_file_is_one_message_and_exit_code_2(passed, argv, data, message):
    whole = (passed / "run.jsonl").read_bytes()
    if data is None:
        (passed / "run.jsonl").unlink()
    else:
        (passed / "run.jsonl").write_bytes(data(whole))
    result = called(*("run.jsonl" if word == "RUN" else word for word in argv))
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert "/deemster-" not in result.stderr


def test_file_with_several_runs_is_refused_where_one_is_meant(passed):
    assert called("run", "suite.yml", "--quiet").exit_code == 0
    called("export", "--all", "--to", "all.jsonl")
    result = called("show", "all.jsonl")
    assert result.exit_code == 2
    assert "all.jsonl: The file holds 2 runs, not one. `deemster import` takes in all of them." in result.stderr


@pytest.mark.parametrize("argv", [("run", "--outputs", "run.jsonl", "--metric", "rouge-l"), ("baseline", "run.jsonl")])
def test_command_that_changes_a_run_says_how_to_take_the_file_in(passed, argv):
    result = called(*argv)
    assert result.exit_code == 2
    assert "`deemster import run.jsonl` takes in the runs of a run file." in result.stderr
