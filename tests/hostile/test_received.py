"""Run files from elsewhere, forged so that their check sums fit: a clear error, or a run with a normal report."""

from __future__ import annotations

import json
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deemster.errors import DeemsterError
from deemster.report.stored_report import stored_report
from deemster.store import open_store
from deemster.store.run_import import import_runs
from tests.cli.workspace import FILES, called, written
from tests.store.make_run_files import resealed

GATE = "gate: { min_macro_f1: 0.1, cohorts: { policy: { min_macro_f1: 0.2 } } }\n"
ODD = st.sampled_from(
    [None, 0, -1, 2**70, 0.5, 1e308, "", "x", "\x1b[31m", [], {}, [[]], True, {"a": 1}, [1, None], "exact-match"]
)


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    """The lines of a run file that a real run made."""
    folder = tmp_path_factory.mktemp("real")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        written(folder, {**FILES, "suite.yml": FILES["suite.yml"] + GATE})
        assert called("run", "suite.yml", "--quiet").exit_code == 0
        assert called("export", "latest", "--to", "run.jsonl").exit_code == 0
    return (folder / "run.jsonl").read_bytes().splitlines()


def places(value, path=()):
    """Every place in a value."""
    if isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield (*path, key)
            yield from places(value[key], (*path, key))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_forged_run_is_an_error_or_a_report(lines, tmp_path, data):
    at = data.draw(st.sampled_from([1, 1, 1, 2, *range(3, len(lines) - 1)]))
    value = json.loads(lines[at])
    *way, last = data.draw(st.sampled_from(list(places(value))))
    part = value
    for key in way:
        part = part[key]
    part[last] = data.draw(ODD)
    path = tmp_path / "run.jsonl"
    path.write_bytes(resealed([*lines[:at], json.dumps(value).encode(), *lines[at + 1 :]]))
    with open_store(tmp_path / "runs.db") as store:
        for run in store.runs():
            store.remove(run.id)
        try:
            (run,) = import_runs(store, path)
            report = stored_report(store, run.id)
        except DeemsterError as error:
            text = str(error)
        else:
            text = report.to_markdown()
            assert report.to_json()
            assert report.to_html()
    assert text
    assert "\x1b" not in text


@pytest.fixture(scope="module")
def variants(tmp_path_factory):
    """The lines of a file with both runs of an experiment."""
    folder = tmp_path_factory.mktemp("experiment")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        text = FILES["suite.yml"] + "variants: { one: {}, two: {} }\n"
        written(folder, {**FILES, "suite.yml": text})
        assert called("run", "suite.yml", "--quiet").exit_code == 0
        assert called("export", "--all", "--to", "runs.jsonl").exit_code == 0
    return (folder / "runs.jsonl").read_bytes().splitlines()


@pytest.mark.parametrize(
    ("forged", "code"),
    [
        ("x", 2),
        (None, 2),
        ([1], 2),
        ({"levels": "x"}, 2),
        ({"levels": {"a": 3}}, 2),
        ({"place": None}, 2),
        ({"place": 1e300}, 2),
        ({"place": -1, "levels": {}}, 0),
        ({"levels": {"<script>": "\x1b[31m<script>"}}, 0),
    ],
)
def test_forged_variant_is_an_error_or_an_experiment(variants, tmp_path, monkeypatch, forged, code):
    monkeypatch.chdir(tmp_path)
    lines = [json.loads(line) for line in variants]
    for line in lines:
        if "variant" in line.get("facts", {}):
            line["facts"]["variant"] = forged
    (tmp_path / "runs.jsonl").write_bytes(resealed([json.dumps(line).encode() for line in lines]))
    assert called("import", "runs.jsonl").exit_code == 0

    for command in ("show latest --to answer.html", "show latest", "view latest --export pages"):
        result = called(*command.split())
        assert result.exit_code == code, result.output
        assert "\x1b" not in result.output
    assert called("show", "latest/one").exit_code == 0
    if code == 0:
        assert "\x1b" not in (tmp_path / "answer.html").read_text(encoding="utf-8")
        assert "<script>" not in (tmp_path / "answer.html").read_text(encoding="utf-8").partition("<body")[2]


def test_rescoring_asks_no_model_and_loads_no_code_that_a_run_file_names(lines, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    head = json.loads(lines[1])
    (tmp_path / "evil.py").write_text("raise SystemExit('loaded')")
    head["facts"]["suite"]["file"] = str(tmp_path / "suite.yml")
    head["facts"]["suite"]["document"]["models"] = {
        "judge": {"base_url": "http://192.0.2.1/${OPENAI_API_KEY}", "model": "m", "api_key_env": "OPENAI_API_KEY"},
    }
    (tmp_path / "run.jsonl").write_bytes(resealed([lines[0], json.dumps(head).encode(), *lines[2:]]))
    assert called("import", "run.jsonl").exit_code == 0
    result = called("run", "--outputs", "latest", "--metric", "llm-as-judge", "--quiet", OPENAI_API_KEY="sk-secret")
    assert result.exit_code == 2
    assert "sk-secret" not in result.stderr
    assert "192.0.2.1" not in result.stderr
    # A test process has the current folder to import from anyway; what the file names must not add one.
    monkeypatch.setattr("sys.path", [path for path in sys.path if path not in ("", str(tmp_path))])
    result = called("run", "--outputs", "latest", "--metric", "evil:score", "--quiet")
    assert result.exit_code == 2
    assert "loaded" not in result.stderr
