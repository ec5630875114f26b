"""Exports runs to a run file, which another store can import."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET

from deemster import __version__
from deemster.errors import Issue, LeaseError, StorageError, StoreError, is_storage_failure, visible
from deemster.formats.atomic_write import write_aside
from deemster.store._database import Connection, storage_error, store_error
from deemster.store._label_table import LABELS_SQL
from deemster.store._row_encoding import (
    content_checksum,
    label_checksum,
    marks_checksum,
    output_checksum,
    sample_checksum,
)
from deemster.store._run_table import read_runs
from deemster.store.run_facts import IMPORTED_FACT, RunRow
from deemster.store.run_file_format import (
    LONGEST,
    SCHEMA,
    EndLine,
    LabelLine,
    Line,
    MarksLine,
    OutputLine,
    RunFileHeader,
    RunLine,
    SampleLine,
    ScoringLine,
    card_to_line,
    encode_line,
)
from deemster.store.run_store import Store

_SAMPLES = (
    "SELECT s.position, s.id, s.row_hash, s.body, s.checksum, s.content, c.body, c.checksum FROM samples s"
    " LEFT JOIN contents c ON c.number = s.content WHERE s.run = ? ORDER BY s.position"
)
_OUTPUTS = (
    "SELECT o.position, o.repetition, s.id, o.at, o.body, o.checksum FROM outputs o"
    " LEFT JOIN samples s ON s.run = o.run AND s.position = o.position"
    " WHERE o.run = ? ORDER BY o.position, o.repetition"
)
_MARKS = (
    "SELECT scoring, position, repetition, body, checksum, final, final_checksum FROM marks"
    " WHERE run = ? ORDER BY scoring, position, repetition"
)


def export_runs(store: Store, run_ids: Sequence[str], path: Path) -> str:
    """Write runs with every fact of them to a run file; what stands there is replaced once the file is whole.

    Args:
        store: Where they are.
        run_ids: Their ids.
        path: The file.

    Returns:
        The SHA-256 of the file.

    Raises:
        LeaseError: A living process writes one of them.
        StoreError: There is no such run, one is damaged, or the file cannot be written.
    """
    for run_id in run_ids:
        owner = store.owner(run_id)
        if owner is not None and owner.alive:
            message = f"The run `{run_id}` is not at rest: process {owner.pid} on {owner.host} writes it."
            raise LeaseError(Issue(message, store.where))
    header = RunFileHeader(schema_version=SCHEMA, tool_version=__version__, runs=len(run_ids))
    digest = hashlib.sha256()
    try:
        write_aside(path, _hashed(_file(store, header, run_ids), digest))
    except OSError as error:
        failure = StorageError if is_storage_failure(error) else StoreError
        raise failure(Issue(f"The file cannot be written: {error.strerror}.", str(path))) from None
    return digest.hexdigest()


def run_digest(store: Store, run_id: str) -> str:
    """The SHA-256 that the run file of a run would end with.

    Raises:
        StoreError: There is no such run, or it is damaged.
    """
    *_, end = encode_run(store, run_id)
    return msgspec.json.decode(end, type=EndLine).sha256


def encode_run(store: Store, run_id: str) -> Iterator[bytes]:
    """The lines of one run, all of one state of the store; the last piece is its end.

    Raises:
        StoreError: There is no such run, or it is damaged.
    """
    digest = hashlib.sha256()
    with store.pool.read_transaction() as connection:
        run = next(read_runs(connection, store.where, "WHERE id = ?", (run_id,)), None)
        if run is None:
            raise store_error(store.where, f"The store holds no run `{visible(run_id, limit=80)}`.")
        for line in _heads(run):
            digest.update(line)
            yield line
        lines = _Lines(connection, run, store.where)
        counts = dict.fromkeys(("samples", "outputs", "marks", "labels"), 0)
        for kind in counts:
            for line in getattr(lines, kind)():
                counts[kind] += 1
                digest.update(line)
                yield line
    if counts["samples"] != run.samples or counts["outputs"] != run.done:
        raise lines.damage("rows are missing")
    yield encode_line(EndLine(id=run.id, **counts, entries=0, sha256=digest.hexdigest()))


def _hashed(lines: Iterable[bytes], digest: hashlib._Hash) -> Iterator[bytes]:
    for line in lines:
        digest.update(line)
        yield line


def _file(store: Store, header: RunFileHeader, run_ids: Sequence[str]) -> Iterator[bytes]:
    yield encode_line(header)
    for run_id in run_ids:
        yield from encode_run(store, run_id)


def _heads(run: RunRow) -> Iterator[bytes]:
    """The lines that say what a run and its scorings are."""
    known: dict[str, Any] = {name: getattr(run, name) for name in RunLine.__struct_fields__}
    known["experiment"] = run.experiment or UNSET
    known["facts"] = {name: fact for name, fact in run.facts.items() if name != IMPORTED_FACT}
    yield encode_line(RunLine(**known))
    for scoring in run.scorings:
        known = {name: getattr(scoring, name) for name in ScoringLine.__struct_fields__ if name != "cards"}
        yield encode_line(ScoringLine(**known, cards=tuple(map(card_to_line, scoring.cards))))


class _Lines:
    """The rows of one run as lines. Bodies are copied as they are, once their check sums fit."""

    def __init__(self, connection: Connection, run: RunRow, where: str) -> None:
        self._connection, self._run, self._where = connection, run, where

    def samples(self) -> Iterator[bytes]:
        for position, name, row_hash, labels, total, content, body, body_total in self._stream(_SAMPLES):
            what = f"sample at position {position}"
            self._check(what, total, sample_checksum, position, name, row_hash, labels)
            if content is not None:
                self._check(f"content of the {what}", body_total, content_checksum, row_hash, body)
            line = SampleLine(
                position, name.decode(), row_hash.hex(), _raw(labels), None if content is None else _raw(body)
            )
            yield self._encode(line, what)

    def outputs(self) -> Iterator[bytes]:
        for position, repetition, name, at, body, total in self._stream(_OUTPUTS):
            what = f"output at position {position}"
            self._check(what, total, output_checksum, position, repetition, name, body)
            yield self._encode(OutputLine(position=position, repetition=repetition, at=at, body=_raw(body)), what)

    def marks(self) -> Iterator[bytes]:
        for scoring, position, repetition, body, total, final, final_total in self._stream(_MARKS):
            what = f"marks at position {position}"
            self._check(what, total, marks_checksum, scoring, position, repetition, body)
            if final is not None:
                self._check(f"final {what}", final_total, marks_checksum, scoring, position, repetition, final)
            line = MarksLine(
                scoring=scoring,
                position=position,
                repetition=repetition,
                marks=_raw(body),
                final=None if final is None else _raw(final),
            )
            yield self._encode(line, what)

    def labels(self) -> Iterator[bytes]:
        for row in self._stream(LABELS_SQL):
            what = f"label at position {row[0]}"
            self._check(what, row[-1], label_checksum, row[:-2], row[-2])
            yield self._encode(LabelLine(body=_raw(row[-2])), what)

    def damage(self, what: str) -> StoreError:
        """An error about the run."""
        message = f"The run `{self._run.id}` is damaged: {what}. `deemster store check` says what is lost."
        return storage_error(self._where, message)

    def _stream(self, sql: str) -> Iterator[tuple[Any, ...]]:
        return self._connection.stream(sql, (self._run.number,))

    def _check(self, what: str, total: Any, checksum: Callable[..., int], *parts: Any) -> None:
        try:
            is_sound = checksum(*parts) == total
        except TypeError:
            is_sound = False
        if not is_sound:
            raise self.damage(f"the {what} does not fit its check sum")

    def _encode(self, line: Line, what: str) -> bytes:
        data = encode_line(line)
        if len(data) > LONGEST:
            message = f"The {what} is longer than the {LONGEST // 2**20} MiB that a line of a run file may have."
            raise store_error(self._where, message)
        return data


def _raw(body: bytes) -> Any:
    """A body that stands in a line as it is."""
    return msgspec.Raw(body)
