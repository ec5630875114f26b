"""Memory that small files take which unpack to much: Parquet, workbooks, archives of Inspect.

Usage: python bench/hostile_files.py [--source FOLDER]

FOLDER is the `src` of another version, such as that of a commit from before there were limits. It may take several
gigabytes.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import shlex
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from measured_rows import run_measured
from openpyxl import Workbook

GOAL_MB = 150
# Of every version, whatever the commands are called.
LOADED = "import sys, deemster; print(len(deemster.Dataset.load(sys.argv[1])), 'samples')"
WIDE_ROWS, CELL_BYTES, SHEETS, SAMPLES = 3_000, 100_000_000, 60_000, 5_000
SAMPLE = {"epoch": 1, "input": "q", "output": {"completion": "x"}, "scores": {"m": {"value": 1}}}
LOG_BYTES = 150_000_000
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def parquet() -> bytes:
    """A column whose one long text is referred to by every row."""
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * SAMPLES, pa.int32()), pa.array(["x" * 1_000_000]))
    ids = [f"s{number}" for number in range(SAMPLES)]
    table = pa.table({"id": ids, "input.q": texts, "expected_output": ["e"] * SAMPLES})
    file = io.BytesIO()
    pq.write_table(table, file, compression="zstd", use_dictionary=["input.q"])
    return file.getvalue()


def workbook(*, rows: str = "", sheets: str = "") -> bytes:
    """A workbook with a sample, and with parts that nothing but an attacker writes."""
    plain, made = io.BytesIO(), io.BytesIO()
    book = Workbook()
    for cells in (["id", "input.q", "expected_output"], ["s", "q", "e"]):
        book.active.append(cells)
    book.save(plain)
    with zipfile.ZipFile(plain) as parts, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
        for part in parts.infolist():
            text = re.sub("<dimension[^>]*>", "", parts.read(part).decode())
            text = text.replace("</sheetData>", f"{rows}</sheetData>")
            packed.writestr(part.filename, text.replace("</sheets>", f"{sheets}</sheets>"))
    return made.getvalue()


def wide_rows() -> bytes:
    """Rows of which only the last of 16,384 cells is filled."""
    filled = (f'<row r="{row}"><c r="XFD{row}" t="n"><v>1</v></c></row>' for row in range(3, WIDE_ROWS + 3))
    return workbook(rows="".join(filled))


def long_cell() -> bytes:
    """One cell with a text of 100 MB."""
    return workbook(rows=f'<row r="3"><c r="A3" t="inlineStr"><is><t>{"x" * CELL_BYTES}</t></is></c></row>')


def many_sheets() -> bytes:
    """60,000 names for one sheet."""
    first = f'xmlns:r="{RELATIONS}" r:id="rId1"'
    names = (f'<sheet name="n{number}" sheetId="{number}" {first}/>' for number in range(5, SHEETS + 5))
    return workbook(sheets="".join(names))


def inspect_archive() -> bytes:
    """A log of Inspect with one sample that repeats itself."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("header.json", json.dumps({"eval": {"task": "t", "dataset": {}}}))
        entries = [{"role": "user", "content": "x" * 20}] * (LOG_BYTES // 42)
        packed.writestr("samples/a_epoch_1.json", json.dumps({"id": "a", **SAMPLE, "messages": entries}))
    return made.getvalue()


FILES: dict[str, Callable[[], bytes]] = {
    "dictionary.parquet": parquet,
    "wide.xlsx": wide_rows,
    "cell.xlsx": long_cell,
    "sheets.xlsx": many_sheets,
    "log.eval": inspect_archive,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--source", type=Path, help="the `src` of another version")
    flags = parser.parse_args()
    environment = {} if flags.source is None else {"PYTHONPATH": str(flags.source.absolute())}

    print(f"{'file':20} {'bytes':>10} {'peak MB':>8} {'CPU s':>6}  what it says")
    for name, make in FILES.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, name)
            path.write_bytes(make())
            act = (
                ["-c", LOADED] if path.suffix != ".eval" else ["-m", "deemster", "import", "--store", f"{folder}/r.db"]
            )
            command = shlex.join([sys.executable, *act, str(path)])
            # A file that is refused is what is wanted, so the exit code says nothing here.
            done = run_measured("sh", "-c", f"{command} 2>&1 || true", environment=environment)
            size = path.stat().st_size
        said = done.printed.splitlines()[-1].replace(f"{folder}/", "") if done.printed else ""
        print(f"{name:20} {size:10,} {done.peak_mb:8,.0f} {done.cpu_s:6.1f}  {said[:100]}")
        if flags.source is None and done.peak_mb > GOAL_MB:
            sys.exit(f"{name} took {done.peak_mb:,.0f} MB; at most {GOAL_MB} are promised.")


if __name__ == "__main__":
    main()
