"""Inserts, changes and reads scorings: the metrics that marked the outputs of a run, and how far they came."""

from __future__ import annotations

from binascii import crc32
from collections.abc import Iterator, Sequence
from typing import Any

from deemster.store._database import Connection, Row
from deemster.store._row_encoding import decode_cards, decode_mapping, encode_cards, encode_json
from deemster.store.run_facts import ScoringFacts, ScoringRow

_COLUMNS = ScoringFacts.__struct_fields__[1:]


def insert_scoring_row(connection: Connection, run: int, scoring: ScoringFacts) -> None:
    """Add a scoring of a run, of which nothing is done yet."""
    values = _encode_scoring(scoring)
    sql = f"INSERT INTO scorings (run, number, {', '.join(_COLUMNS)}, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - names only
    connection.write(sql, (run, scoring.number, *values, scoring_checksum(scoring.number, values)))


def update_scoring_row(connection: Connection, run: int, scoring: ScoringRow) -> None:
    """Write what may change of a scoring: its status and its end."""
    total = scoring_checksum(scoring.number, _encode_scoring(scoring))
    connection.write(
        "UPDATE scorings SET status = ?, finished_at = ?, checksum = ? WHERE run = ? AND number = ?",
        (scoring.status, scoring.finished_at, total, run, scoring.number),
    )


def _encode_scoring(scoring: ScoringFacts) -> Row:
    """The columns of a scoring that its check sum covers."""
    cards, identity = encode_cards(scoring.cards), encode_json(scoring.identity)
    return cards, identity, scoring.status, scoring.started_at, scoring.finished_at


def scoring_checksum(number: int, values: Sequence[Any]) -> int:
    """The check sum of a row of `scorings`: cards, identity, status, start and end."""
    cards, identity, *state = values
    return crc32(cards + identity, crc32(b"%d/" % number + repr(tuple(state)).encode()))


def read_scorings(connection: Connection, run: int) -> Iterator[ScoringRow]:
    names = ", ".join(_COLUMNS)
    sql = f"SELECT number, {names}, checksum, done, done_mirror FROM scorings WHERE run = ? ORDER BY number"  # noqa: S608 - names only
    for index, row in enumerate(connection.read(sql, (run,))):
        number, *columns, checksum, done, mirror = row
        if number != index or scoring_checksum(number, columns) != checksum or done != -mirror:
            raise ValueError(f"its scoring {index} does not fit its check sum")

        values = dict(zip(_COLUMNS, columns, strict=True))
        values["cards"] = decode_cards(values["cards"])
        values["identity"] = decode_mapping(values["identity"])
        yield ScoringRow(number=number, done=done, **values)
