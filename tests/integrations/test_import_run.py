from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from urllib.parse import urlencode

import pytest

from deemster.cli.import_command import KINDS
from deemster.errors import InputError
from deemster.evaluation.external_run import store_external_run
from deemster.integrations.import_run import IMPORTERS, read_runs
from deemster.records import NotApplicable
from deemster.store import open_store
from tests.cli.workspace import called
from tests.integrations.imported import FIXTURES, assert_same_numbers, imported_report, native_report
from tests.view.viewer_client import running_viewer

FILES = [
    "promptfoo/results.json",
    "inspect/capitals.eval",
    "inspect/capitals.json",
    "inspect/panel.json",
    "deepeval/test_run_capitals.json",
    "lm_eval",
    "ragas/results.csv",
    "ragas/results.jsonl",
    "otlp/gen_ai.jsonl",
    "autorubric/capitals",
    "autorubric/panel",
]


def test_command_knows_every_tool():
    assert tuple(IMPORTERS) == KINDS


@pytest.mark.parametrize("file", FILES)
def test_each_file_is_recognised_as_one_tool(file):
    from deemster.integrations.source_file import SourceFile

    source = SourceFile(FIXTURES / file)
    kinds = [name for name, importer in IMPORTERS.items() if importer.is_kind(source)]
    assert len(kinds) == 1
    assert kinds[0].replace("-", "_") == file.split("/")[0]


@pytest.mark.parametrize("file", FILES)
def test_report_of_an_imported_run_has_the_numbers_of_a_native_one(file, tmp_path):
    run = read_runs(FIXTURES / file)[0]
    is_native = run.repetitions == 1 and not any(
        isinstance(mark, NotApplicable) for execution in run.executions for mark in execution.marks
    )
    imported = imported_report(run, tmp_path)
    assert imported.totals.executions == len(run.executions)
    if is_native:
        assert_same_numbers(imported, native_report(run))


def test_file_of_no_tool_is_an_error_that_names_the_tools(tmp_path):
    path = tmp_path / "file.json"
    path.write_text('{"hello": 1}')
    with pytest.raises(InputError, match="results of promptfoo; logs of Inspect"):
        read_runs(path)


def test_wrong_kind_is_an_error():
    with pytest.raises(InputError, match="These are no logs of Inspect"):
        read_runs(FIXTURES / "promptfoo" / "results.json", kind="inspect")


@pytest.mark.parametrize("content", [b"[" * 100_000, b'{"a":' * 5000, b"\xff\xfe", b"{", b"PK\x03\x04rubbish", b""])
def test_rubbish_is_a_typed_error(tmp_path, content):
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with pytest.raises(InputError):
        read_runs(path)


def test_missing_file_is_an_error(tmp_path):
    with pytest.raises(InputError, match="There is no such file"):
        read_runs(tmp_path / "none.json")


@pytest.fixture
def imported(request, tmp_path, monkeypatch):
    """The first run of a file in a store of its own, whose folder is the current one, and a viewer over it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DEEMSTER_STORE", str(tmp_path / "runs.db"))
    with open_store(tmp_path / "runs.db", create=True) as store:
        run = read_runs(*map(FIXTURES.joinpath, request.param.split()))[0]
        store_external_run(store, run, label="only")
        with running_viewer(store, author="ada") as client:
            yield run, client


def answer_all(client, run, choose):
    """Label what the viewer asks about every sample of a run; `choose` picks an answer by sample and place."""
    for card in run.cards:
        asked = urlencode({"run": "only", "n": len(run.dataset), "metric": card.name})
        queue = client.get(f"labels/queue?{asked}")
        for position in queue["positions"]:
            for task in queue["tasks"]:
                about = {"metric": task["metric"], "criterion": task["criterion"], "metrics": [card.name]}
                verdict = choose(position, [option["value"] for option in task["options"]])
                answer = client.post("labels", {"run": "only", "position": position, "verdict": verdict, **about})
                assert answer.status == 200, answer


@pytest.mark.parametrize("imported", FILES, indirect=True)
def test_pages_sheets_briefs_and_alignment_work_on_an_imported_run(imported):
    run, client = imported
    assert called("show", "--failed", "only").output.startswith("# ")
    assert called("labels", "sheet", "only").exit_code == 0
    lines = list(csv.DictReader(io.StringIO(Path("labels.csv").read_text("utf-8-sig"))))
    assert {line["id"] for line in lines} <= {sample.id for sample in run.dataset}
    assert {line["metric"] for line in lines} <= {card.name for card in run.cards}
    filled = [{**line, "annotator": "ada", "verdict": "yes" if at % 2 else "no"} for at, line in enumerate(lines)]
    with Path("filled.csv").open("w", encoding="utf-8", newline="") as sheet:
        writer = csv.DictWriter(sheet, list(filled[0]))
        writer.writeheader()
        writer.writerows(filled)
    assert called("agreement", "only", "--labels", "filled.csv").exit_code == 0
    assert set(client.get("runs/only")["metrics"]) == {card.name for card in run.cards}
    assert client.get("runs/only/samples")["total"] == len(run.dataset)
    for position, sample in enumerate(run.dataset):
        assert client.get(f"runs/only/samples/{position}")["id"] == sample.id
    assert "Nobody has labelled" in called("agreement", "only").output
    answer_all(client, run, lambda position, options: options[position % 2])
    assert client.get("runs/only/agreement")["available"] is True
    aligned = called("agreement", "only", "--set", "n_bootstrap=20", "--to", "-")
    assert aligned.exit_code == 0
    assert json.loads(aligned.stdout)["n_items"] > 0


@pytest.mark.parametrize("imported", ["otlp/openinference.jsonl", "trec/run.txt trec/qrels.txt"], indirect=True)
def test_imported_run_without_marks_is_shown_and_says_what_to_do(imported):
    run, client = imported
    assert client.get("runs/only/samples")["total"] == len(run.dataset)
    assert client.get("runs/only/samples/0")["id"] == run.dataset[0].id
    for command in (["show", "--failed", "only"], ["labels", "sheet", "only"], ["agreement", "only"]):
        assert called(*command).exit_code == 2
