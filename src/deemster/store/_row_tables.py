"""Writes the tables of samples, outputs, marks, calls, prompts and columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from deemster.records import SampleFacts
from deemster.store._database import Connection, InsertStatement, Row
from deemster.store._row_encoding import (
    content_checksum,
    encode_content,
    encode_id,
    encode_json,
    marks_checksum,
    sample_checksum,
)


class RowTable:
    """How rows of a table are written.

    Args:
        name: The table.
        key: The columns that tell its rows apart.
        values: The other columns.
        forget: Columns that are emptied where a row is replaced.
    """

    def __init__(self, name: str, key: Sequence[str], values: Sequence[str], *, forget: Sequence[str] = ()) -> None:
        columns = ", ".join([*key, *values])
        changes = ", ".join([*(f"{value} = ?" for value in values), *(f"{value} = NULL" for value in forget)])
        condition = " AND ".join(f"{part} = ?" for part in key)
        self._key_size = len(key)
        self._insert = InsertStatement(f"{name} ({columns})", f"({', '.join('?' * (len(key) + len(values)))})")
        self._update = f"UPDATE {name} SET {changes} WHERE {condition}"  # noqa: S608 - names only

    def put(self, connection: Connection, rows: Sequence[Row]) -> int:
        """Write rows, in place of those with the same key; how many were not there yet.

        Raises:
            StoreError: The database refuses.
        """
        inserted = connection.insert_many(self._insert, rows)
        if inserted < len(rows):
            size = self._key_size
            connection.write_many(self._update, [(*row[size:], *row[:size]) for row in rows])
        return inserted


OUTPUTS = RowTable("outputs", ("run", "position", "repetition"), ("at", "body", "checksum"))
MARKS = RowTable(
    "marks",
    ("run", "scoring", "position", "repetition"),
    ("body", "checksum"),
    forget=("final", "final_checksum"),
)
CALLS = RowTable("calls", ("run", "scoring", "call"), ("body", "checksum"))
PROMPTS = RowTable("prompts", ("run", "scoring", "position", "repetition", "metric"), ("body", "checksum"))
COLUMNS = RowTable("columns", ("run", "part"), ("body", "checksum"))
_CONTENTS = InsertStatement("contents (row_hash, body, checksum)", "(?, ?, ?)")
_SAMPLES = InsertStatement(
    "samples (run, position, id, row_hash, body, checksum, content)",
    "(?, ?, ?, ?, ?, ?, (SELECT number FROM contents WHERE row_hash = ?))",
)


class SampleRows(NamedTuple):
    """Some samples of a run as rows.

    Attributes:
        contents: What they are about, each once, by hash.
        samples: What the run knows of each.
    """

    contents: list[Row]
    samples: list[Row]


def encode_samples(run: int, samples: Iterable[SampleFacts], *, most: int | None = None) -> SampleRows:
    """Make rows of samples.

    Args:
        run: The number of the run.
        samples: Some of its samples.
        most: How many bytes are enough; no more samples are read then.
    """
    contents: dict[bytes, Row] = {}
    labels: list[Row] = []
    size = 0
    for sample in samples:
        row_hash, name = bytes.fromhex(sample.row_hash), encode_id(sample.id)
        if sample.content is not None and row_hash not in contents:
            body = encode_content(sample.content)
            contents[row_hash] = (row_hash, body, content_checksum(row_hash, body))
            size += len(body)
        body = encode_json(sample.labels)
        total = sample_checksum(sample.position, name, row_hash, body)
        labels.append((run, sample.position, name, row_hash, body, total, None if sample.content is None else row_hash))
        size += len(body)
        if most is not None and size >= most:
            break
    # Sorted, so that two runs that begin at the same time never lock each other out.
    return SampleRows([contents[row_hash] for row_hash in sorted(contents)], labels)


def insert_samples(connection: Connection, rows: SampleRows) -> int:
    """Write samples and what of their content the store does not have; how many were not there yet.

    Raises:
        StoreError: The database refuses.
    """
    connection.insert_many(_CONTENTS, rows.contents)
    return connection.insert_many(_SAMPLES, rows.samples)


def put_final_marks(connection: Connection, run: int, scoring: int, marks: Iterable[tuple[int, int, bytes]]) -> None:
    """Write final marks beside those that are there: position, repetition and JSON of each.

    Raises:
        StoreError: The database refuses.
    """
    values = [
        (body, marks_checksum(scoring, position, repetition, body), run, scoring, position, repetition)
        for position, repetition, body in marks
    ]
    connection.write_many(
        "UPDATE marks SET final = ?, final_checksum = ?"
        " WHERE run = ? AND scoring = ? AND position = ? AND repetition = ?",
        values,
    )
