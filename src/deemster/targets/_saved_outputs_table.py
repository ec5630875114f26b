"""Reads saved outputs from tables: CSV, TSV, .xlsx and Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from deemster.errors import Issue, did_you_mean
from deemster.formats.document import Reading
from deemster.formats.read_parquet import ParquetColumns
from deemster.formats.read_table import read_table_lines
from deemster.formats.schema_validation import Places
from deemster.targets.saved_output_format import SavedAnswer, entry_issues, read_entry

_COLUMNS = ("id", "output", "repetition")


def table_entries(data: bytes, kind: str, reading: Reading) -> Iterator[SavedAnswer | Issue]:
    """The answer in each line of CSV, TSV or a workbook, or what is wrong.

    Raises:
        OutputsError: The file is not a table.
        MissingExtraError: openpyxl is not installed.
    """
    lines = read_table_lines(data, kind, reading)
    _, header = next(lines)
    names = [name.strip() for name in header]
    issues = _column_issues(names, f"{reading.file}:1")
    if issues:
        yield from issues
        return

    for line, cells in lines:
        where = f"{reading.file}:{line}"
        if len(cells) != len(names):
            yield Issue(f"The line has {len(cells)} cells; the header has {len(names)}.", where)
            continue
        entry: dict[str, Any] = dict(zip(names, cells, strict=True))
        entry["repetition"] = _repetition(entry.get("repetition", "").strip())
        yield from _read_row(entry, where)


def _repetition(cell: str) -> int | str:
    """The number in a cell, 0 in an empty one; what is no number stays, for the shape to refuse."""
    is_number = cell.isdecimal() and len(cell) < 10
    return int(cell) if is_number else cell or 0


def _column_issues(names: list[str], where: str) -> list[Issue]:
    """What is wrong with the columns of a table."""
    unknown = [name for name in names if name not in _COLUMNS]
    messages = [f"`{name}` is no column of saved outputs. {did_you_mean(name, _COLUMNS)}" for name in unknown]
    messages += [f"The column `{name}` is missing." for name in ("id", "output") if name not in names]
    twice = sorted({name for name in names if names.count(name) > 1})
    messages += [f"The column `{name}` is given twice." for name in twice]
    return [Issue(message, where) for message in messages]


def _read_row(entry: dict[str, Any], where: str) -> Iterator[SavedAnswer | Issue]:
    """The answer in a row of a table, or what is wrong with it."""
    try:
        answers = read_entry(entry, where=where)
    except ValueError as error:
        yield Issue(str(error), where, entry["id"])
        return
    if answers is None:
        yield from entry_issues(entry, Places(lambda _: where))
    else:
        yield from answers


def parquet_entries(source: ParquetColumns, reading: Reading) -> Iterator[SavedAnswer | Issue]:
    """The answer in each row, or what is wrong; the columns are those of CSV, and a null repetition is 0."""
    issues = _column_issues(source.names, reading.file) or list(_type_issues(source, reading.file))
    if issues:
        yield from issues
        return

    for row, cells in enumerate(zip(*source.cells, strict=True)):
        entry: dict[str, Any] = dict(zip(source.names, cells, strict=True))
        if entry.get("repetition", 0) is None:
            del entry["repetition"]
        yield from _read_row(entry, f"{reading.file}#/{row}")


def _type_issues(source: ParquetColumns, where: str) -> Iterator[Issue]:
    """Columns of another type, each named once rather than in every row."""
    from pyarrow import types  # noqa: PLC0415 - an extra

    for name, kind in zip(source.names, source.types, strict=True):
        value = kind.value_type if types.is_dictionary(kind) else kind
        is_number = name == "repetition"
        is_right = types.is_integer(value) if is_number else types.is_string(value) or types.is_large_string(value)
        if not is_right:
            expected = "whole numbers" if is_number else "text"
            yield Issue(f"The column `{name}` has the Parquet type {kind}; {expected} must stand there.", where)
