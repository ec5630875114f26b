"""Writes, reads and deletes the labels that people gave to the samples of a run."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from deemster.store._database import Connection, Row
from deemster.store._row_encoding import encode_json, label_checksum
from deemster.store._row_tables import RowTable
from deemster.store.run_facts import LabelFacts

_KEY = ("position", "repetition", "metric", "criterion", "author")
_TABLE = RowTable("labels", ("run", *_KEY), ("body", "checksum"))
_decode = msgspec.json.Decoder(LabelFacts).decode
LABELS_SQL = f"SELECT {', '.join(_KEY)}, body, checksum FROM labels WHERE run = ? ORDER BY {', '.join(_KEY)}"  # noqa: S608 - names only


def put_label(connection: Connection, run: int, label: LabelFacts) -> None:
    """Write a label, in place of what the same person said of the same thing before.

    Args:
        connection: A connection.
        run: The number of the run.
        label: The label.
    """
    key, body = _key(label), encode_json(label)
    _TABLE.put(connection, [(run, *key, body, label_checksum(key, body))])


def delete_label(connection: Connection, run: int, label: LabelFacts) -> None:
    """Take a label back.

    Args:
        connection: A connection.
        run: The number of the run.
        label: The label.
    """
    condition = " AND ".join(f"{name} = ?" for name in _KEY)
    connection.write(f"DELETE FROM labels WHERE run = ? AND {condition}", (run, *_key(label)))  # noqa: S608 - names only


def read_labels(connection: Connection, run: int) -> Iterator[LabelFacts | None]:
    """The labels of a run by position; None for a damaged one.

    Args:
        connection: A connection.
        run: The number of the run.
    """
    for row in connection.stream(LABELS_SQL, (run,)):
        try:
            yield parse_label(row)
        except (msgspec.MsgspecError, TypeError, ValueError):
            yield None


def parse_label(row: Row) -> LabelFacts:
    """The label of a row.

    Raises:
        ValueError: It does not fit its check sum, or its key.
    """
    *key, body, total = row
    if label_checksum(tuple(key), body) != total:
        raise ValueError("a label does not fit its check sum")
    label = _decode(body)
    if _key(label) != tuple(key):
        raise ValueError("a label does not fit its key")
    return label


def _key(label: LabelFacts) -> tuple[int, int, str, str, str]:
    return label.position, label.repetition, label.metric, label.criterion, label.author
