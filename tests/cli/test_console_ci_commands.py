"""Nothing that is printed is a command for the agent of a CI service, whatever the data holds.

Azure's and GitHub's agents obey `##vso[` and `##[` anywhere in a line, GitHub's also `::` at the start of one.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.cli import app
from deemster.comparison import load_report
from deemster.errors import break_ci_commands
from deemster.testing import ModelServer
from tests.builders.report_formats import FORMATS
from tests.cli.workspace import called, written

OBEYED = re.compile(rb"##[A-Za-z]*\[|(?:^|[\r\n])\s*::")
EVIL = "::error::x ##vso[task.complete] ##[error]y"
EVILS = (EVIL, "##[command]", "::add-mask::a", "##vso[task.setvariable variable=a]b")


def harmless(*results):
    for result in results:
        for shown in (result.stdout_bytes, result.stderr_bytes):
            assert OBEYED.search(shown) is None, shown[max(0, OBEYED.search(shown).start() - 40) :][:200]


def leaves(command, path=()):
    """Every command, by its words."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    for name in command.list_commands(None):
        yield from leaves(command.get_command(None, name), (*path, name))


COMMANDS = {" ".join(path): command for path, command in leaves(app)}


@pytest.mark.parametrize("name", COMMANDS)
def test_hostile_arguments_of_every_command_are_printed_harmless(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words, command = name.split(), COMMANDS[name]
    arguments = [param for param in command.params if isinstance(param, click.Argument)]
    options = [param.opts[0] for param in command.params if isinstance(param, click.Option) and not param.is_flag]
    results = [called(*words, f"--{evil}") for evil in EVILS]
    for evil in EVILS:
        files = (f"{evil}{end}" for end in ("", ".yml", ".json"))
        results += [called(*words, *[file] * max(len(arguments), 1)) for file in files]
        results += [called(*words, *["x.yml"] * len(arguments), option, evil) for option in options]
    harmless(*results)
    assert any("##" in result.output or "#\\x23" in result.output or ":\\x3a" in result.output for result in results)


SUITE = f"""\
name: {json.dumps(EVIL)}
dataset: golden.json
target: {{ python: "app:answer" }}
metrics: [exact-match, {{ exact-match: {{ name: {json.dumps(EVIL)} }} }}, llm-as-judge]
models: {{ judge: {{ base_url: "${{URL}}", model: {json.dumps(EVIL)}, retries: 0 }} }}
gate: {{ "min_pass_rate": 0.99 }}
"""
TARGET = f"""\
def answer(asked):
    print({EVIL!r})
    if asked["n"] == 0:
        raise ValueError({EVIL!r})
    return {EVIL!r} + " {{}}\\n" + {EVIL!r}
"""
RUBRIC = {"criteria": [{"name": EVIL, "requirement": EVIL}, {"name": "b", "requirement": "B."}]}


@pytest.fixture
def folder(folder):
    samples = [
        {
            "id": evil,
            "input": {"n": number, "question": evil},
            "expected_output": evil,
            "metadata": {"tags": [evil], evil: evil},
        }
        for number, evil in enumerate(EVILS)
    ]
    items = [
        {"id": evil, "submission": evil, "ground_truth": ["MET", "UNMET"], "metadata": {evil: evil}} for evil in EVILS
    ]
    files = {
        "suite.yml": SUITE,
        "app.py": TARGET,
        "golden.json": json.dumps({"name": EVIL, "samples": samples}),
        "rubric.json": json.dumps(RUBRIC),
        "items.json": json.dumps({"name": EVIL, "rubric": RUBRIC, "items": items}),
        "broken.json": json.dumps({"name": EVIL, "samples": [{"id": EVIL, EVIL: EVIL}]}),
    }
    written(folder, files)
    return folder


def test_hostile_data_in_every_report_and_stream_is_printed_harmless(folder):
    with ModelServer(answer=lambda _: json.dumps({"reason": EVIL, "score": 0.5})) as server:
        run = called("run", "suite.yml", "--to", "report.json", "--to", "report.csv", URL=server.url)
        written(folder, {"models.json": json.dumps({"models": {"judge": {"base_url": server.url, "model": EVIL}}})})
        judge = ("--models", "models.json")
        results = [
            run,
            called("check", "suite.yml", URL=server.url),
            called("grade", "items.json", *judge, "--to", "votes.json"),
            called("grade", "items.json", *judge, "--store", "none", "--to", "-"),
            called("rubric", "check", "rubric.json"),
            called("rubric", "check", "rubric.json", "--to", "-"),
            called("agreement", "votes.json", "--to", "-"),
            called("agreement", "votes.json"),
            called("show"),
            called("show", "--to", "-"),
            called("show", "latest"),
            called("run", "--outputs", "latest", "--metric", "contains"),
            called("check", "broken.json"),
            called("check", "golden.json"),
            called("monitor", "latest"),
            called("export", "latest", "--only", "failed", "--to", "promoted.json"),
            called("store", "check"),
            called("show", "report.json"),
            *(called("show", "report.json", "--to", f"{kind}:-") for kind in FORMATS if kind != "junit-samples"),
        ]
    harmless(*results)
    assert run.exit_code == 3, run.stderr
    assert sum(b"x23" in result.stdout_bytes + result.stderr_bytes for result in results) > 5


def test_printed_junit_with_failing_samples_says_the_same_as_its_file(folder):
    written(folder, {"suite.yml": SUITE + "junit: samples\n"})
    with ModelServer(answer=lambda _: json.dumps({"reason": EVIL, "score": 0.5})) as server:
        called("run", "suite.yml", "--to", "r.xml", URL=server.url)
    printed = ET.fromstring(called("show", "latest", "--to", "junit:-").stdout)
    kept = ET.fromstring((folder / "r.xml").read_text())
    assert printed.find(".//failure") is not None or printed.find(".//error") is not None
    assert [[*each.attrib.items(), each.text] for each in printed.iter()] == [
        [*each.attrib.items(), each.text] for each in kept.iter()
    ]


def test_printed_reports_say_the_same_as_files(folder):
    with ModelServer(answer=lambda _: json.dumps({"reason": EVIL, "score": 0.5})) as server:
        names = {"json": "r.json", "csv": "r.csv", "junit": "r.xml", "html": "r.html", "md": "r.md"}
        flags = [word for name in names.values() for word in ("--to", name)]
        called("run", "suite.yml", *flags, URL=server.url)
    printed = {kind: called("show", "r.json", "--to", f"{kind}:-").stdout for kind in names}
    # A file is as it was: a program reads the ids back. What is printed has the same JSON and XML.
    assert load_report("r.json").executions[0].id == EVIL
    assert json.loads(printed["json"]) == json.loads((folder / "r.json").read_text())
    rows = list(csv.DictReader(io.StringIO((folder / "r.csv").read_text())))
    assert {row["sample_id"] for row in rows} == set(EVILS)
    assert printed["csv"].splitlines() == break_ci_commands((folder / "r.csv").read_text()).splitlines()
    both = [ET.fromstring(text) for text in (printed["junit"], (folder / "r.xml").read_text())]
    assert [[*each.attrib.items(), each.text] for each in both[0].iter()] == [
        [*each.attrib.items(), each.text] for each in both[1].iter()
    ]


@pytest.mark.parametrize(
    "way", [{}, {"PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}, {"PYTHONIOENCODING": "latin-1"}]
)
def test_process_prints_no_command_in_any_locale(folder, way):
    done = subprocess.run(
        [sys.executable, "-m", "deemster", "check", "broken.json"],
        env={**os.environ, **way},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
    assert b"x23" in done.stderr
    assert OBEYED.search(done.stdout + done.stderr) is None


@given(st.text(alphabet="#:[ vso\n\r\t\u3000ax") | st.text())
def test_no_command_is_left_in_any_text(text):
    for kind in ("text", "json", "junit", "md"):
        found = break_ci_commands(text, format=kind)
        assert re.search(r"##[A-Za-z]*\[|(?:\A|[\r\n])[^\S\r\n]*::", found) is None
        if kind == "text" and re.search("##|::", text) is None:
            assert found == text


@given(st.text())
def test_json_says_the_same(text):
    written_ = json.dumps({text: [text]}, ensure_ascii=False, indent=1)
    assert json.loads(break_ci_commands(written_, format="json")) == {text: [text]}
