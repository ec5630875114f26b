from __future__ import annotations

import random
from pathlib import Path

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
