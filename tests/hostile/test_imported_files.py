"""Damaged and hostile files of other tools end in a run or in a typed error, never in anything else."""

from __future__ import annotations

import copy
import json
import random

import pytest

from deemster.errors import DeemsterError
from deemster.integrations.import_run import read_runs
from tests.integrations.imported import FIXTURES

FILES = [
    "promptfoo/results.json",
    "inspect/capitals.json",
    "deepeval/test_run_capitals.json",
    "otlp/gen_ai.jsonl",
    "otlp/openinference.jsonl",
    "ragas/results.jsonl",
    "lm_eval",
]
HOSTILE = [None, True, -1, 10**30, 1e308, "", "x" * 5000, "\u202e\x1b[31m", [], {}, [[]], {"a": {}}, ["a", 1], [None]]


def documents(name):
    """A file as a list of JSON documents, and how it is written."""
    path = FIXTURES / name
    path = max(path.glob("*samples*.jsonl")) if path.is_dir() else path
    text = path.read_text()
    is_lines = path.suffix == ".jsonl"
    return [json.loads(line) for line in text.splitlines()] if is_lines else [json.loads(text)], path.suffix


def places(value, path=()):
    """Every place in a JSON value."""
    yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in entries:
        if len(path) < 9:
            yield from places(entry, (*path, key))


def replaced(value, path, hostile):
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = copy.deepcopy(hostile)


@pytest.mark.parametrize("name", FILES)
def test_hostile_value_anywhere_is_a_run_or_a_typed_error(name, tmp_path):
    draw = random.Random(name)
    whole, suffix = documents(name)
    path = tmp_path / f"file{suffix}"
    spots = [spot for spot in places(whole) if spot and "events" not in spot[:-1]]
    for _ in range(25):
        damaged = copy.deepcopy(whole)
        replaced(damaged, draw.choice(spots), draw.choice(HOSTILE))
        lines = damaged if suffix == ".jsonl" else damaged[:1]
        path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
        try:
            runs = read_runs(path)
        except DeemsterError:
            continue
        for run in runs:
            assert len(run.executions) <= len(run.dataset) * run.repetitions
