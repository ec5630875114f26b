"""Reads the lines of a table: CSV with commas, semicolons or tabs, TSV, or the first sheet of an .xlsx workbook."""

from __future__ import annotations

import csv
import datetime as dt
import io
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, Final

from deemster.errors import InputError, MissingExtraError
from deemster.formats.document import MOST_UNPACKED, Reading

TABLES: Final = ("csv", "tsv", "xlsx")
# A sheet of Excel has so many rows. The other limits are far above what workbooks have.
_MOST_ROWS: Final = 1 << 20
_MOST_SHEETS: Final = 1000
_LONGEST_CELL: Final = 1 << 20
# The memory of a cell beside its text.
_CELL: Final = 32
_QUOTED = re.compile(r'"[^"]*"')
_SEPARATOR_HINT = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)


def read_table_lines(data: bytes, kind: str, reading: Reading) -> Iterator[tuple[int, list[str]]]:
    """The lines of a table that are not blank, the header first, each with the number of its first line.

    Columns at the right that have neither a name nor a cell are left out, as spreadsheet programs write them.

    Args:
        data: The file.
        kind: One of `TABLES`.
        reading: How the file is called and what its errors are.

    Raises:
        InputError: The file is not a table, or there is nothing in it.
        MissingExtraError: It is a workbook, and openpyxl is not installed.
    """
    lines = _workbook_lines(data, reading) if kind == "xlsx" else _text_lines(_text(data, reading), kind, reading)
    found = [(number, cells) for number, cells in lines if any(cell.strip() for cell in cells)]
    if not found:
        reading.refuse("The file is empty.")
    header = found[0][1]
    width = max(at for at, name in enumerate(header, start=1) if name.strip())
    return ((number, _cut(cells, width)) for number, cells in found)


def _cut(cells: list[str], width: int) -> list[str]:
    """The cells of the columns with a name; what stands further right is kept, so that a reader can refuse it."""
    return cells if any(cell.strip() for cell in cells[width:]) else cells[:width]


def _text(data: bytes, reading: Reading) -> str:
    try:
        return reading.text(data)
    except InputError as error:
        advice = "A spreadsheet program writes UTF-8 where you save as `CSV UTF-8`."
        raise reading.error([issue._replace(message=f"{issue.message} {advice}") for issue in error.issues]) from None


def _text_lines(text: str, kind: str, reading: Reading) -> list[tuple[int, list[str]]]:
    hint = _SEPARATOR_HINT.match(text)
    start = 1 if hint else 0
    body = text[hint.end() :] if hint else text
    delimiter = "\t" if kind == "tsv" else hint[1] if hint else _find_delimiter(body)
    limit = csv.field_size_limit(sys.maxsize)
    first, found = start, []
    try:
        reader = csv.reader(io.StringIO(body, newline=""), delimiter=delimiter, strict=True)
        for cells in reader:
            found.append((first + 1, cells))
            first = start + reader.line_num
    except csv.Error as error:
        reading.refuse(f"This is not {kind.upper()}: {error}.", line=start + reader.line_num)
    finally:
        csv.field_size_limit(limit)
    return found


def _find_delimiter(text: str) -> str:
    """What separates the cells of CSV: a comma, or what the header has more of, a semicolon or a tab.

    >>> _find_delimiter('id;"a,b,c";label'), _find_delimiter("id")
    (';', ',')
    """
    header = _QUOTED.sub("", text.lstrip("\r\n").partition("\n")[0])
    return max(",;\t", key=header.count)


def _workbook_lines(data: bytes, reading: Reading) -> list[tuple[int, list[str]]]:
    import zipfile  # noqa: PLC0415 - few files are workbooks
    import zlib  # noqa: PLC0415
    from xml.etree.ElementTree import ParseError  # noqa: PLC0415 - only the name of its error

    try:
        import openpyxl  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtraError("Reading .xlsx", extra="xlsx") from None
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check_parts(archive, reading, packed=len(data))
        rows = _first_sheet(openpyxl, data, reading)
    except InputError:
        raise
    except (
        # What openpyxl raises on a file that is no workbook, or on a damaged one.
        *(zipfile.BadZipFile, zlib.error, ParseError, EOFError, OSError, LookupError),
        *(ValueError, TypeError, AttributeError, RuntimeError),
    ) as error:
        said = str(error).partition("\n")[0].removesuffix(".") or type(error).__name__
        reading.refuse(f"This is not an .xlsx workbook: {said}.")
    width = len(rows[0][1]) if rows else 0
    return [(number, cells + [""] * (width - len(cells))) for number, cells in rows]


def _check_parts(archive: Any, reading: Reading, *, packed: int) -> None:
    """Refuse a workbook of which a parser makes far more than it holds.

    Raises:
        InputError: It unpacks to too much, or has too many sheets or too long a cell.
    """
    parts = archive.infolist()
    reading.check_unpacked(sum(part.file_size for part in parts), packed=packed, most=MOST_UNPACKED)
    sheets = 0
    for part in parts:
        with archive.open(part) as file:
            while block := file.read(_LONGEST_CELL):
                if len(block) == _LONGEST_CELL and b"<" not in block:
                    reading.refuse(f"A cell of the workbook is longer than {_LONGEST_CELL >> 20} MB.")
                # Each sheet has an id; a text of two bytes a letter has zeros between them.
                sheets += block.replace(b"\0", b"").count(b"sheetId")
        if sheets > _MOST_SHEETS:
            reading.refuse(f"The workbook has more than {_MOST_SHEETS:,} sheets.")


def _first_sheet(openpyxl: Any, data: bytes, reading: Reading) -> list[tuple[int, list[str]]]:
    with warnings.catch_warnings():
        # It warns of styles and drop-down lists that it does not know; no cell depends on them.
        warnings.simplefilter("ignore")
        book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True, keep_links=False)
        sheet = book.worksheets[0]
        # What a sheet says of its size may be wrong.
        sheet.reset_dimensions()
        return list(_filled_rows(sheet.iter_rows(values_only=True), reading, packed=len(data)))


def _filled_rows(rows: Iterable[Iterable[Any]], reading: Reading, *, packed: int) -> Iterator[tuple[int, list[str]]]:
    """Rows as text, without blank ones: a sheet may end with a million of these."""
    unpacked = 0
    for number, row in enumerate(rows, start=1):
        if number > _MOST_ROWS:
            reading.refuse(f"The sheet has more than {_MOST_ROWS:,} rows.")
        cells = [_cell_text(value) for value in row]
        unpacked += _CELL * len(cells) + sum(map(len, cells))
        reading.check_unpacked(unpacked, packed=packed, most=MOST_UNPACKED)
        if any(cells):
            yield number, cells


def _cell_text(value: Any) -> str:
    """A cell of a workbook as CSV would have it.

    >>> [_cell_text(value) for value in (None, True, 3.0, 0.5, "a", dt.datetime(2026, 3, 1))]
    ['', 'TRUE', '3', '0.5', 'a', '2026-03-01']
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, dt.datetime) and value.time() == dt.time():
        value = value.date()
    return value.isoformat() if isinstance(value, (dt.date, dt.time)) else str(value)
