"""Tables are read alike, however a spreadsheet program writes them."""

from __future__ import annotations

import csv
import io
import re
import sys
import tracemalloc
import zipfile

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


def with_parts(*, rows: str = "", sheets: str = "") -> bytes:
    """A workbook with a header and a sample, and with parts that someone wrote by hand."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(workbook([["id", "a"], ["x", 1]]))) as plain, zipfile.ZipFile(made, "w", 8) as book:
        for part in plain.infolist():
            text = plain.read(part).decode()
            text = re.sub("<dimension[^>]*>", "", text).replace("</sheetData>", f"{rows}</sheetData>")
            book.writestr(part.filename, text.replace("</sheets>", f"{sheets}</sheets>"))
    return made.getvalue()


WIDE = "".join(f'<row r="{row}"><c r="XFD{row}"><v>1</v></c></row>' for row in range(3, 3003))
CELL = '<row r="3"><c r="A3" t="inlineStr"><is><t>{}</t></is></c></row>'
SHEETS = "".join(f'<sheet name="n{n}" sheetId="{n}" r:id="rId1"/>' for n in range(5, 2000))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"rows": WIDE}, "bytes and unpacks to more than 16 MB"),
        ({"rows": CELL.format("x" * 40_000_000)}, "bytes and unpacks to more than 16 MB"),
        ({"rows": CELL.format("x" * 4_000_000)}, "A cell of the workbook is longer than 1 MB"),
        ({"sheets": SHEETS}, "more than 1,000 sheets"),
    ],
    ids=["wide rows", "huge cell", "long cell", "many sheets"],
)
def test_small_workbook_that_would_take_much_memory_is_refused(parts, message):
    data = with_parts(**parts)
    assert len(data) < 100_000
    tracemalloc.start()
    try:
        with pytest.raises(DatasetError, match=message):
            lines(data, "xlsx")
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()


def test_workbook_of_very_many_rows_is_refused(monkeypatch, thorough):
    # What reads workbooks makes every row that a sheet leaves out: a million take ten seconds.
    most = 1 << 20 if thorough else 10_000
    monkeypatch.setattr("deemster.formats.read_table._MOST_ROWS", most)
    with pytest.raises(DatasetError, match=f"more than {most:,} rows"):
        lines(with_parts(rows='<row r="9999999999"><c r="A1"><v>1</v></c></row>'), "xlsx")


def test_user_may_allow_a_workbook_to_take_more(monkeypatch):
    monkeypatch.setenv("DEEMSTER_MAX_UNPACKED_MB", "100")
    assert len(lines(with_parts(rows=WIDE[: WIDE.index('<row r="200"')]), "xlsx")) == 199
    monkeypatch.setenv("DEEMSTER_MAX_UNPACKED_MB", "1")
    with pytest.raises(DatasetError, match="unpacks to more than 1 MB"):
        lines(with_parts(rows=WIDE), "xlsx")


def test_rows_beyond_the_size_that_a_sheet_states_are_read():
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(workbook([["id", "a"], ["x", 1]]))) as plain, zipfile.ZipFile(made, "w") as book:
        for part in plain.infolist():
            book.writestr(part.filename, plain.read(part).replace(b'ref="A1:B2"', b'ref="A1:A1"'))
    assert lines(made.getvalue(), "xlsx") == [(1, ["id", "a"]), (2, ["x", "1"])]
