from __future__ import annotations

import pytest

from deemster.cli.import_command import KINDS
from deemster.errors import InputError
from deemster.integrations.import_run import IMPORTERS, read_runs
from deemster.records import NotApplicable
from tests.integrations.imported import FIXTURES, assert_same_numbers, imported_report, native_report

FILES = [
    "promptfoo/results.json",
    "inspect/capitals.eval",
    "inspect/capitals.json",
    "deepeval/test_run_capitals.json",
    "lm_eval",
    "ragas/results.csv",
    "ragas/results.jsonl",
    "otlp/gen_ai.jsonl",
    "autorubric/capitals",
    *(f"every_eval_ever/{path.name}" for path in sorted((FIXTURES / "every_eval_ever").iterdir())),
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
