"""Tables are read alike, however a spreadsheet program writes them."""

from __future__ import annotations

import csv
import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.errors import DatasetError, MissingExtraError
from deemster.formats.document import Reading
from deemster.formats.read_table import read_table_lines

CELLS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=6)
NAMES = st.text("abcxyz .;,", min_size=1, max_size=5).filter(lambda name: name.strip(" ;,."))
TABLES = st.integers(1, 4).flatmap(
    lambda width: st.tuples(
        st.lists(NAMES, min_size=width, max_size=width),
        st.lists(st.lists(CELLS, min_size=width, max_size=width), max_size=4),
    )
)


def lines(data, kind="csv"):
    text = data.encode() if isinstance(data, str) else data
    return list(read_table_lines(text, kind, Reading(f"t.{kind}", error=DatasetError)))


def workbook(rows):
    import openpyxl

    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def test_semicolons_and_byte_order_mark_of_a_european_excel_are_read():
    text = '\ufeffid;label;;\r\na;"yes; or, no";;\r\n;;;\r\nb;3,5;;\r\n'
    assert lines(text) == [(1, ["id", "label"]), (2, ["a", "yes; or, no"]), (4, ["b", "3,5"])]


def test_separator_hint_and_tabs_are_read():
    assert lines("sep=;\r\nid;a,b,c\r\nx;1\r\n") == [(2, ["id", "a,b,c"]), (3, ["x", "1"])]
    text = "id\ta,b\tc\nx\t1\t2\n"
    assert lines(text) == lines(text, "tsv") == [(1, ["id", "a,b", "c"]), (2, ["x", "1", "2"])]


def test_line_of_a_cell_with_breaks_is_its_first():
    assert lines('id,a\nx,"1\n2"\ny,3\n') == [(1, ["id", "a"]), (2, ["x", "1\n2"]), (4, ["y", "3"])]


def test_cell_beyond_the_header_is_kept_for_the_reader_to_refuse():
    assert lines("id,a,\nx,1,2\n")[1] == (2, ["x", "1", "2"])


@given(TABLES)
def test_commas_semicolons_and_tabs_hold_the_same_cells(table):
    header, rows = table
    found = []
    for delimiter, kind in ((",", "csv"), (";", "csv"), ("\t", "tsv")):
        file = io.StringIO(newline="")
        csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows([header, *rows])
        # The quotes hide the separators of a lone column, so a hint says which it is.
        hint = f"sep={delimiter}\r\n" if kind == "csv" else ""
        found.append([cells for _, cells in lines(hint + file.getvalue(), kind)])
    kept = [row for row in rows if any(cell.strip() for cell in row)]
    assert found[0] == found[1] == found[2] == [header, *kept]


def test_workbook_holds_what_csv_would():
    data = workbook([["id", "n", "yes", None], ["a", 3, True], [], [None, " "], ["b", 0.5, False], ["c", 4.0]])
    assert lines(data, "xlsx") == [
        (1, ["id", "n", "yes"]),
        (2, ["a", "3", "TRUE"]),
        (5, ["b", "0.5", "FALSE"]),
        (6, ["c", "4", ""]),
    ]


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        (b"PK\x03\x04", "xlsx", "not an .xlsx workbook"),
        (b"id,a\nx,1\n", "xlsx", "not an .xlsx workbook"),
        (lambda: workbook([["id"]])[:900], "xlsx", "not an .xlsx workbook"),
        (lambda: workbook([["id"]]).replace(b"sheet1.xml", b"sheetX.xml"), "xlsx", "not an .xlsx workbook"),
        (lambda: workbook([]), "xlsx", "The file is empty."),
        (b",,\n,,\n", "csv", "The file is empty."),
        ("id;Größe\n".encode("cp1252"), "csv", "save as `CSV UTF-8`"),
        (b'id,a\nx,"1\n', "csv", "t.csv:2: This is not CSV"),
    ],
)
def test_what_is_no_table_is_error(data, kind, message):
    with pytest.raises(DatasetError, match=message):
        lines(data() if callable(data) else data, kind)


def test_workbook_without_openpyxl_is_error_naming_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match=r"deemster\[xlsx\]"):
        lines(b"PK", "xlsx")


def test_workbook_that_unpacks_to_too_much_is_refused(monkeypatch):
    monkeypatch.setattr("deemster.formats.read_table.MOST_BYTES", 100)
    with pytest.raises(DatasetError, match="when it is unpacked"):
        lines(workbook([["id"]]), "xlsx")
