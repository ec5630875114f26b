from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deemster.errors import InputError
from deemster.formats import Reading
from deemster.formats.read_parquet import ParquetFile


def write(path: Path, count: int, group: int) -> ParquetFile:
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({"n": list(range(count)), "text": ["x"] * count}), path, row_group_size=group)
    return ParquetFile(path, Reading(str(path), error=InputError))


@pytest.mark.parametrize("group", [1, 7, 100, 1000])
def test_rows_are_those_asked_for_in_their_order(tmp_path: Path, group: int) -> None:
    file = write(tmp_path / "a.parquet", 100, group)
    whole = file.read()
    assert whole.names == ["n", "text"]
    assert whole.cells[0] == list(range(100))
    positions = [99, 0, *random.Random(1).sample(range(100), 30)]
    assert file.read_rows(positions).cells[0] == positions


def test_rows_of_many_row_groups_are_read_only_where_the_groups_hold_little_else(tmp_path: Path) -> None:
    file = write(tmp_path / "a.parquet", 1000, 10)
    file.read()
    assert file.can_read_rows(range(500))
    assert file.can_read_rows([5, 995])
    assert not file.can_read_rows(range(0, 1000, 10))


def test_name_of_the_folder_adds_no_column(tmp_path: Path) -> None:
    assert write(tmp_path / "lang=de" / "a.parquet", 3, 3).read().names == ["n", "text"]


def test_text_that_is_not_utf8_is_error(tmp_path: Path) -> None:
    text = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())
    pq.write_table(pa.table({"text": text}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="This is not Parquet: 'utf-8' codec"):
        ParquetFile(tmp_path / "a.parquet", Reading("a.parquet", error=InputError)).read()


LONG = "x" * 1_000_000
COUNTED = {"use_dictionary": ["text"], "column_encoding": {"n": "DELTA_BINARY_PACKED"}}
PLAIN = {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY", "n": "PLAIN"}}


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        ({"n": list(range(500)), "text": pa.DictionaryArray.from_arrays([0] * 500, [LONG])}, {}),
        ({"n": list(range(100)), "text": [LONG] * 100}, PLAIN),
        ({"n": [1], "text": [[LONG] * 300]}, {}),
        ({"n": [1], "text": [{"deep": [{"text": LONG}] * 300}]}, {}),
        ({"n": [1], "text": pa.array([[(LONG, LONG)] * 50], pa.map_(pa.string(), pa.string()))}, {}),
        ({"n": pa.array(np.arange(1_000_000)), "text": pa.nulls(1_000_000, pa.int8())}, COUNTED),
        ({"n": [1] * 100, "text": pa.array([b"x" * 1_000_000] * 100, pa.binary(1_000_000))}, {}),
    ],
    ids=["dictionary", "beginnings", "list", "struct", "map", "rows", "fixed width"],
)
def test_small_file_that_would_take_much_memory_is_refused(tmp_path: Path, columns: dict, options: dict) -> None:
    path = tmp_path / "bomb.parquet"
    pq.write_table(pa.table(columns), path, compression="zstd", **options)
    assert path.stat().st_size < 100_000
    with pytest.raises(InputError, match=r"unpacks to more than 16 MB\. If you trust it"):
        ParquetFile(path, Reading(str(path), error=InputError)).read()


READ = r"""
import re, sys
from pathlib import Path
from deemster.errors import InputError
from deemster.formats import Reading
from deemster.formats.read_parquet import ParquetFile
try:
    ParquetFile(sys.argv[1], Reading("bomb", error=InputError)).read()
except InputError:
    print(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[1])
"""


def test_file_of_4_kilobytes_that_took_5_gigabytes_takes_little(tmp_path: Path) -> None:
    text = pa.DictionaryArray.from_arrays([0] * 5000, [LONG])
    pq.write_table(pa.table({"text": text}), tmp_path / "bomb.parquet", compression="zstd")
    found = subprocess.run(
        [sys.executable, "-c", READ, str(tmp_path / "bomb.parquet")], capture_output=True, text=True, check=True
    )
    assert int(found.stdout) < 300 << 10


def test_user_may_allow_a_file_to_take_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": [LONG] * 20}), path, compression="zstd")
    monkeypatch.setenv("DEEMSTER_MAX_UNPACKED_MB", "50")
    assert ParquetFile(path, Reading(str(path), error=InputError)).read().cells == [[LONG] * 20]


@pytest.mark.parametrize("value", [[LONG[:300]], {"a": LONG[:300], "b": [1]}], ids=["list", "struct"])
def test_file_that_holds_many_long_texts_is_read(tmp_path: Path, value: object) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": [value] * 20_000, "n": list(range(20_000))}), path, row_group_size=5000)
    assert ParquetFile(path, Reading(str(path), error=InputError)).read().cells[0] == [value] * 20_000
