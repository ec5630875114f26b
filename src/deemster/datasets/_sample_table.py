"""Reads golden samples from tables: CSV, TSV, .xlsx, Parquet and data frames."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from deemster.datasets._sample_columns import WHOLE, SampleColumn, find_columns
from deemster.datasets._spreadsheet_columns import Columns
from deemster.errors import InputError, Issue
from deemster.formats.document import Reading
from deemster.formats.json_values import ROW_DEPTH, name_kind
from deemster.formats.read_parquet import ParquetColumns
from deemster.formats.read_table import read_table_lines
from deemster.formats.strict_json import json_document


class SampleTable(NamedTuple):
    """Rows in the shape of samples, and where each stands.

    Attributes:
        rows: One map per sample.
        places: The place of each row.
        issues: What is wrong with the table itself.
        file: The table.
        warnings: What was made up.
    """

    rows: list[dict[str, Any]]
    places: list[str]
    issues: list[Issue]
    file: str
    warnings: tuple[str, ...] = ()

    def where(self, path: tuple[str | int, ...] = ()) -> str:
        """The place of the row that a path lies in, else of the table."""
        return self.places[int(path[1])] if len(path) > 1 else self.file


def table_rows(data: bytes, kind: str, reading: Reading, *, given: Columns | None = None) -> SampleTable:
    """Read CSV, TSV or the first sheet of a workbook.

    Args:
        data: The file.
        kind: Its format.
        reading: How the file is called and what its errors are.
        given: Which column holds what, where its name does not say it.

    Raises:
        InputError: The file is not UTF-8 or not a table, or its columns are wrong.
        MissingExtraError: openpyxl is not installed.
    """
    lines = read_table_lines(data, kind, reading)
    _, names = next(lines)
    columns, issues = find_columns(names, reading, has_maps=False, given=given, numbered=True)
    if issues:
        raise reading.error(issues)
    has_ids = any(column.part == "id" for column in columns)
    made_up = f"{reading.file}: No column holds ids, so each sample is called by its line, such as `line-2`."
    table = SampleTable([], [], [], reading.file, () if has_ids else (made_up,))
    for line, cells in lines:
        where = f"{reading.file}:{line}"
        if len(cells) != len(columns):
            table.issues.append(Issue(f"The line has {len(cells)} cells; the header has {len(columns)}.", where))
            continue
        row, messages = _row(columns, cells, functools.partial(_json_cell, reading=reading, line=line))
        if not has_ids:
            row["id"] = f"line-{line}"
        table.issues.extend(Issue(message, where, row.get("id")) for message in messages)
        table.rows.append(row)
        table.places.append(where)
    return table


def _json_cell(text: str, *, reading: Reading, line: int) -> Any:
    return json_document(text, Reading(reading.file, error=reading.error), depth=ROW_DEPTH - 1, line=line).value


def _row(
    columns: list[SampleColumn], cells: Iterable[Any], parse: Callable[[str], Any]
) -> tuple[dict[str, Any], list[str]]:
    """One row in the shape of a sample, and what is wrong with its cells."""
    row: dict[str, Any] = {"expected_output": None}
    issues: list[str] = []
    if any(column.part == "input" and column.key is not None for column in columns):
        row["input"] = {}
    for column, cell in zip(columns, cells, strict=True):
        if cell is None or (isinstance(cell, str) and not cell.strip()):
            continue
        value = cell
        if column.is_json:
            try:
                value = parse(cell)
            except (InputError, TypeError) as error:
                said = error.issues[0].message if isinstance(error, InputError) else name_kind(cell)
                issues.append(f"The cell of `{column.part}` is not JSON: {said.removeprefix('This is not JSON: ')}")
                # The part is there, though it cannot be read: calling it missing as well would mislead.
                row.setdefault(column.part, {})
                continue
        elif column.is_list and isinstance(cell, str) and not _is_written_as_json(cell):
            value = [entry.strip() for entry in cell.split("|")]
        held = row.get(column.part)
        if column.key is not None:
            value = {column.key: value}
        if isinstance(held, dict) and isinstance(value, dict):
            row[column.part] = {**held, **value}
        elif held is None or isinstance(held, dict):
            row[column.part] = value
    return row, issues


def _is_written_as_json(cell: str) -> bool:
    """Whether a cell of ids is a JSON list or map, which metrics read as such."""
    return cell.lstrip().startswith(("[", "{")) and cell.rstrip().endswith(("]", "}"))


def parquet_rows(source: ParquetColumns, reading: Reading) -> SampleTable:
    """Read Parquet: flat columns as in CSV but typed, or `input` and `metadata` structs and a `tags` list.

    A null in a flat column, or in a field of these structs, is an absent field.

    Raises:
        InputError: Its columns are wrong.
    """
    columns, issues = find_columns(source.names, reading, has_maps=True)
    for name, kind in zip(source.names, source.types, strict=True):
        if bad := _unsupported(kind):
            issues.append(
                Issue(f"The column `{name}` has the Parquet type {bad}, which is not supported.", reading.file)
            )
    if issues:
        raise reading.error([issue._replace(where=reading.file) for issue in issues])
    return _typed_rows(columns, source.cells, reading)


def dataframe_rows(frame: Any, reading: Reading) -> SampleTable:
    """Read a pandas data frame with the columns of CSV; its cells keep their types, and a missing value is none.

    Raises:
        InputError: Its columns are wrong.
    """
    columns, issues = find_columns([str(name) for name in frame.columns], reading, has_maps=True)
    if issues:
        raise reading.error([issue._replace(where=reading.file) for issue in issues])
    lists = []
    for at, column in enumerate(columns):
        series = frame.iloc[:, at]
        pairs = zip(series.tolist(), series.isna().tolist(), strict=True)
        cells = [None if missing else cell for cell, missing in pairs]
        # Ids are often numbers in a data frame.
        lists.append([str(cell) if type(cell) is int else cell for cell in cells] if column.part == "id" else cells)
    return _typed_rows(columns, lists, reading)


def _typed_rows(columns: list[SampleColumn], lists: list[list[Any]], reading: Reading) -> SampleTable:
    """The rows of a table by its columns of typed cells."""
    table = SampleTable([], [], [], reading.file)
    for position, cells in enumerate(zip(*lists, strict=True)):
        where = f"{reading.file}#/{position}"
        row, messages = _row(columns, cells, functools.partial(_json_cell, reading=reading, line=1))
        for part in WHOLE:
            if isinstance(row.get(part), dict):
                row[part] = {key: value for key, value in row[part].items() if value is not None}
        table.issues.extend(Issue(message, where, row.get("id")) for message in messages)
        table.rows.append(row)
        table.places.append(where)
    return table


def _unsupported(kind: Any) -> str | None:
    """The part of an Arrow type that has no JSON value, or None."""
    from pyarrow import types  # noqa: PLC0415 - an extra

    if types.is_dictionary(kind):
        return _unsupported(kind.value_type)
    if types.is_struct(kind):
        return next((bad for field in kind if (bad := _unsupported(field.type))), None)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _unsupported(kind.value_type)
    simple = (
        types.is_string,
        types.is_large_string,
        types.is_integer,
        types.is_floating,
        types.is_boolean,
        types.is_null,
    )
    return None if any(test(kind) for test in simple) else str(kind)
