"""Exports runs as Parquet files, one for each kind of row, for analysis elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from deemster.errors import Issue, MissingExtraError, StorageError, StoreError, is_storage_failure
from deemster.formats.atomic_write import open_aside
from deemster.records import Execution, Mark, MetricCard, MetricScore, NotApplicable, Output, TargetFailure
from deemster.store.run_facts import RunRow
from deemster.store.run_store import Store

_BATCH_ROWS = 5_000
_BATCH_BYTES = 16 * 1024 * 1024
_TEXT, _INTEGER, _NUMBER, _BOOLEAN = "string", "int64", "float64", "bool_"
_RUNS = {
    **dict.fromkeys(("run", "kind", "suite", "dataset", "fingerprint", "seed"), _TEXT),
    **dict.fromkeys(("repetitions", "samples", "done"), _INTEGER),
    **dict.fromkeys(("status", "reason", "started_at", "finished_at"), _TEXT),
    "duration_s": _NUMBER,
    **dict.fromkeys(("tool_version", "identity", "facts"), _TEXT),
}
_SAMPLES = {
    "run": _TEXT,
    "position": _INTEGER,
    **dict.fromkeys(("sample", "row_hash", "tags", "metadata", "input", "expected_output"), _TEXT),
}
_KEY = {"run": _TEXT, "position": _INTEGER, "sample": _TEXT, "repetition": _INTEGER}
_OUTPUTS = {
    **_KEY,
    **dict.fromkeys(("text", "failure", "model", "retrieved", "trajectory", "usage", "cut"), _TEXT),
    "valid": _BOOLEAN,
}
_MARKS = {
    **_KEY,
    "scoring": _INTEGER,
    "metric": _TEXT,
    "score": _NUMBER,
    "passed": _BOOLEAN,
    "threshold": _NUMBER,
    "rubric_score": _NUMBER,
    **dict.fromkeys(("cause", "message", "details", "usage"), _TEXT),
}
_Row = Mapping[str, Any]


def export_parquet(store: Store, run_ids: Sequence[str], folder: Path) -> None:
    """Write runs as `runs`, `samples`, `outputs` and `marks`, each a Parquet file of a folder.

    Values that are no text, number or boolean stand as JSON. Marks are those after settling, of every scoring.

    Args:
        store: Where the runs are.
        run_ids: Their ids.
        folder: Where the files go; it is made where there is none.

    Raises:
        MissingExtraError: pyarrow is not installed.
        StoreError: There is no such run, one is damaged, or a file cannot be written.
    """
    runs = [store.run(run_id) for run_id in run_ids]
    tables: dict[str, tuple[Mapping[str, str], Callable[[], Iterator[_Row]]]] = {
        "runs": (_RUNS, lambda: map(_run, runs)),
        "samples": (_SAMPLES, lambda: _samples(store, runs)),
        "outputs": (_OUTPUTS, lambda: _outputs(store, runs)),
        "marks": (_MARKS, lambda: _marks(store, runs)),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, (columns, rows) in tables.items():
            _write(folder / f"{name}.parquet", columns, rows())
    except OSError as error:
        failure = StorageError if is_storage_failure(error) else StoreError
        raise failure(Issue(f"The files cannot be written: {error.strerror or error}.", str(folder))) from None


def _write(path: Path, columns: Mapping[str, str], rows: Iterator[_Row]) -> None:
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra
        import pyarrow.parquet as pq  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtraError("Writing Parquet", extra="parquet") from None
    schema = pa.schema([(name, getattr(pa, kind)()) for name, kind in columns.items()])
    with open_aside(path) as file, pq.ParquetWriter(file, schema) as writer:
        for batch in _batches(rows):
            writer.write_table(pa.Table.from_pylist(batch, schema=schema))


def _batches(rows: Iterator[_Row]) -> Iterator[list[_Row]]:
    """Rows in lists that stay small, whatever a row holds."""
    batch: list[_Row] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += sum(len(value) for value in row.values() if isinstance(value, str))
        if len(batch) == _BATCH_ROWS or size > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _json(value: Any) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


def _run(run: RunRow) -> _Row:
    same = {name: getattr(run, name) for name in _RUNS if name != "run"}
    changed = {"seed": str(run.seed), "identity": _json(run.identity), "facts": _json(run.facts)}
    return {"run": run.id, **same, **changed}


def _samples(store: Store, runs: Sequence[RunRow]) -> Iterator[_Row]:
    for run in runs:
        for sample in store.samples(run.id):
            yield {
                "run": run.id,
                "position": sample.position,
                "sample": sample.id,
                "row_hash": sample.row_hash,
                "tags": _json(sample.tags),
                "metadata": _json(sample.metadata),
                "input": None if sample.content is None else _json(sample.input),
                "expected_output": None if sample.content is None else _json(sample.expected_output),
            }


def _outputs(store: Store, runs: Sequence[RunRow]) -> Iterator[_Row]:
    for run in runs:
        for execution in store.executions(run.id, scoring=0):
            row = {**_key(run, execution), "valid": execution.valid, "cut": _json(execution.cut)}
            answer = execution.answer
            if isinstance(answer, Output):
                row |= {"text": answer.text, "model": answer.model}
                row |= {name: _json(getattr(answer, name)) for name in ("retrieved", "trajectory", "usage")}
            elif isinstance(answer, TargetFailure):
                row["failure"] = answer.message
            yield row


def _marks(store: Store, runs: Sequence[RunRow]) -> Iterator[_Row]:
    for run in runs:
        for scoring in run.scorings:
            for execution in store.executions(run.id, scoring=scoring.number):
                key = {**_key(run, execution), "scoring": scoring.number}
                for card, mark in zip(scoring.cards, execution.marks, strict=False):
                    yield {**key, **_mark(card, mark)}


def _mark(card: MetricCard, mark: Mark) -> _Row:
    if isinstance(mark, NotApplicable):
        return {"metric": card.name, "cause": "not_applicable"}
    cells = {
        "metric": card.name,
        "details": _json(mark.details) if mark.details else None,
        "usage": _json(mark.usage),
    }
    if not isinstance(mark, MetricScore):
        return cells | {"cause": mark.cause, "message": mark.message}
    return cells | {
        "score": mark.score,
        "passed": mark.success,
        "threshold": mark.threshold,
        "rubric_score": mark.rubric_score,
    }


def _key(run: RunRow, execution: Execution) -> dict[str, Any]:
    return {
        "run": run.id,
        "position": execution.position,
        "sample": execution.id,
        "repetition": execution.repetition,
    }
