"""A row is read alike by the precise reader, which the first row meets, and by the fast one, which later rows meet."""

from __future__ import annotations

import json

import pytest

from deemster.errors import OutputsError
from deemster.formats.document import Reading
from deemster.targets._saved_outputs_jsonl import _is_shallow, load_lines

FIRST = '{"id": "first", "output": "x"}'
ROWS = {
    "usage": '{"id": "a", "output": "x", "usage": {"prompt_tokens": 3, "cost_usd": "0.25"}}',
    "cost as a number": '{"id": "a", "output": "x", "usage": {"cost_usd": 0.1, "latency_ms": 3}}',
    "nulls": '{"id": "a", "output": "x", "usage": null, "retrieved": null, "trajectory": null, "model": null}',
    "ids": '{"id": "a", "output": "x", "retrieved": ["d1", "d2"]}',
    "documents": '{"id": "a", "output": "x", "retrieved": [{"id": "d1", "text": "\\u00e9 \\" {[", "score": 1e5}]}',
    "many documents": json.dumps({"id": "a", "output": "x", "retrieved": [{"id": f"d{n}"} for n in range(300)]}),
    "long number": '{"id": "a", "output": "x", "retrieved": [123456789012345678901234567890]}',
    "trajectory": '{"id": "a", "output": "x", "trajectory": {"tools": ["search", {"tool": "book", "args": {"n": 1}}]}}',
    "other name": '{"id": "a", "actual_output": "x", "model": "m"}',
    "failure": '{"id": "a", "error": "no answer"}',
    "lone surrogate": '{"id": "a", "output": "\\ud800", "usage": {"prompt_tokens": 3}}',
}
FAULTS = {
    "key given twice": '{"id": "a", "output": "x", "usage": {"calls": 1, "calls": 2}}',
    "key of a document given twice": '{"id": "a", "output": "x", "retrieved": [{"id": "d", "id": "e"}]}',
    "unknown key": '{"id": "a", "output": "x", "retreived": []}',
    "unknown key of usage": '{"id": "a", "output": "x", "usage": {"tokens": 1}}',
    "negative count": '{"id": "a", "output": "x", "usage": {"calls": -1}}',
    "two answers": '{"id": "a", "output": "x", "error": "y", "model": "m"}',
    "no answer": '{"id": "a", "model": "m"}',
    "bad trajectory": '{"id": "a", "output": "x", "trajectory": {"tools": 3}}',
    "surrogate in a document": '{"id": "a", "output": "x", "retrieved": ["\\ud800"]}',
    "too deep": '{"id": "a", "output": "x", "retrieved": ' + "[" * 150 + "]" * 150 + "}",
    "number out of range": '{"id": "a", "output": "x", "retrieved": [1e999]}',
    "not a number": '{"id": "a", "output": "x", "retrieved": [NaN]}',
    "blank id": '{"id": " ", "output": "x", "model": "m"}',
    "no text": '{"id": "a", "output": 3, "model": "m"}',
    "no JSON": '{"id": "a", "output": "x", "model": }',
}


def loaded(folder, *rows):
    file = folder / "answers.jsonl"
    file.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return load_lines(file, Reading("answers.jsonl", error=OutputsError, surrogates=True))


@pytest.mark.parametrize("name", ROWS)
def test_row_is_read_alike_as_the_first_and_as_a_later_one(tmp_path, name):
    later = loaded(tmp_path, FIRST, ROWS[name])
    as_later = later.answers(["a"], 0)
    assert loaded(tmp_path, ROWS[name], FIRST).answers(["a"], 0) == as_later


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_told_alike_in_the_first_row_and_in_a_later_one(tmp_path, name):
    with pytest.raises(OutputsError) as later:
        loaded(tmp_path, FIRST, FAULTS[name])
    with pytest.raises(OutputsError) as first:
        loaded(tmp_path, FAULTS[name])
    messages = [[issue.message for issue in caught.value.issues] for caught in (later, first)]
    assert messages[0] == messages[1]
    assert all(issue.where.endswith(":2") or ":2" in issue.where for issue in later.value.issues)


def test_brackets_tell_how_deep_a_row_nests():
    assert _is_shallow(b'{"a": [' + b'{"id": "d"},' * 500 + b"1]}")
    assert not _is_shallow(b"[" * 101 + b"]" * 101)
    assert not _is_shallow(b'{"a": "' + b"[" * 500 + b'"}')
