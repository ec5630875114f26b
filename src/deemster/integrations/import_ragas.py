"""Imports the results of ragas, saved as CSV or JSON lines: every column that is no part of a sample is a metric."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from typing import Any

from deemster.evaluation.external_run import ExternalRun
from deemster.integrations.run_builder import RunBuilder, read_mark
from deemster.integrations.source_file import SourceFile
from deemster.records import Mark, Output

# The columns of a sample, in the names of later and of earlier versions.
_INPUT, _OUTPUT = ("user_input", "question"), ("response", "answer")
_EXPECTED, _PASSAGES = ("reference", "ground_truth", "ground_truths"), ("retrieved_contexts", "contexts")
_FURTHER = (
    "reference_contexts",
    "retrieved_context_ids",
    "reference_context_ids",
    "rubrics",
    "rubric",
    "multi_responses",
)
_IGNORED = ("", "Unnamed: 0", "index")
_PARTS = frozenset((*_INPUT, *_OUTPUT, *_EXPECTED, *_PASSAGES, *_FURTHER, *_IGNORED))
_LONGEST_LIST = 1_000_000


def is_ragas(source: SourceFile) -> bool:
    """Whether a file is a table of ragas: a question, an answer, and at least one metric."""
    rows = _rows(source)
    if not rows:
        return False
    names = rows[0].keys()
    has_sample = any(name in names for name in _INPUT) and any(name in names for name in _OUTPUT)
    return has_sample and bool(_metrics(rows))


def _rows(source: SourceFile) -> Sequence[Mapping[str, Any]]:
    if source.table:
        return source.table
    value = source.value
    if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        return value
    return source.rows


def _metrics(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The columns that are metrics: each of their cells is a number or empty, and one of them is a number."""
    found = []
    for name in rows[0]:
        cells = [_cell(row.get(name)) for row in rows]
        if (
            name not in _PARTS
            and any(isinstance(cell, float) for cell in cells)
            and not any(isinstance(cell, str) for cell in cells)
        ):
            found.append(name)
    return found


def _cell(value: Any) -> float | str | None:
    """The number in a cell; None where it is empty; text for everything else."""
    if value is None or isinstance(value, bool):
        return None if value is None else float(value)
    if isinstance(value, (int, float)):
        return float(value)
    text = str(value).strip()
    if not text or text.lower() in ("nan", "none", "null"):
        return None
    try:
        return {"true": 1.0, "false": 0.0}.get(text.lower()) or float(text)
    except ValueError:
        return 0.0 if text.lower() == "false" else text


def read_ragas(source: SourceFile) -> list[ExternalRun]:
    """The run in a table of ragas.

    Raises:
        InputError: Something in it cannot be kept.
    """
    rows = _rows(source)
    names = _metrics(rows)
    builder = RunBuilder("ragas", source.path.stem)
    metrics = {name: builder.add_metric(name) for name in names}
    for number, row in enumerate(rows, 1):
        builder.leave_out_keys(row, _PARTS.union(names), of="a row")
        further = {key: _list(row[key]) for key in _FURTHER if row.get(key) not in (None, "")}
        sample = builder.add_sample(
            f"row-{number}",
            {"question": _list(_first(row, _INPUT))},
            expected_output=_list(_first(row, _EXPECTED)),
            metadata=further,
        )
        passages = _list(_first(row, _PASSAGES))
        retrieved = None
        if isinstance(passages, list):
            retrieved = [{"id": str(rank), "text": str(text)} for rank, text in enumerate(passages, 1)]
        said = _first(row, _OUTPUT)
        marks: dict[str, Mark] = {metrics[name]: read_mark(_cell(row.get(name))) for name in names}
        builder.add_execution(sample, Output("" if said is None else str(said), retrieved=retrieved), marks)
    return [builder.build()]


def _first(row: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((row[name] for name in names if row.get(name) not in (None, "")), None)


def _list(value: Any) -> Any:
    """A cell of a table as the list it was before pandas wrote it as text; any other cell as it is."""
    if not isinstance(value, str) or value[:1] not in "[{" or not value or len(value) > _LONGEST_LIST:
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        pass
    try:
        # Literals only: nothing in them is run.
        return ast.literal_eval(value)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return value
