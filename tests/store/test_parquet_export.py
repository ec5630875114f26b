"""Runs as Parquet: every row; values other than numbers and text are JSON."""

from __future__ import annotations

import json
import sys

import pyarrow.parquet as pq
import pytest

from deemster.errors import MissingExtraError, StoreError
from deemster.store.parquet_export import export_parquet
from tests.store.make_run_files import graded, rich


def table(folder, name):
    return pq.read_table(folder / f"{name}.parquet").to_pylist()


def test_parquet_has_every_row_of_a_run(store, tmp_path):
    names = [rich(store), graded(store)]
    export_parquet(store, names, tmp_path / "out")
    out = tmp_path / "out"
    assert sorted(path.name for path in out.iterdir()) == [
        f"{name}.parquet" for name in ("marks", "outputs", "runs", "samples")
    ]
    assert [(run["run"], run["seed"], run["done"]) for run in table(out, "runs")] == [
        ("run-0", str(2**70), 6),
        ("run-1", "0", 2),
    ]
    assert [row["sample"] for row in table(out, "samples")] == ["s0", "s1", "s2", "s3", "s0", "s1"]
    votes = [json.loads(row["details"]) for row in table(out, "marks") if row["run"] == "run-1"]
    assert votes == [{"votes": [1.5, "x"]}, {"votes": []}]


def test_parquet_outputs_and_marks_equal_store(store, tmp_path):
    export_parquet(store, [rich(store)], tmp_path)
    first, failed, broken, silent, cut, empty = table(tmp_path, "outputs")
    assert (first["text"], json.loads(first["retrieved"])[1], first["model"]) == (
        "It is 30\u2028days \U0001f600.",
        "d2",
        "m",
    )
    assert (failed["failure"], failed["text"]) == ("boom\x1b[31m", None)
    assert (broken["valid"], silent["text"], empty["text"]) == (False, None, "")
    assert json.loads(cut["cut"])["chars"] == 3 << 20
    marks = table(tmp_path, "marks")
    assert len(marks) == 6 * 2 + 1
    assert (marks[0]["metric"], marks[0]["score"], marks[0]["passed"], marks[0]["threshold"]) == (
        "exact-match",
        1.0,
        True,
        0.6,
    )
    assert (marks[1]["metric"], marks[1]["score"], marks[3]["cause"]) == ("rouge-l", 0.0, "no_expected")
    assert (marks[-1]["scoring"], marks[-1]["metric"], marks[-1]["score"]) == (1, "citation", 0.125)


def test_missing_pyarrow_is_error_naming_the_extra(store, tmp_path, monkeypatch):
    name = rich(store)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"deemster\[parquet\]"):
        export_parquet(store, [name], tmp_path)


def test_uncreatable_folder_is_one_line_error(store, tmp_path):
    name = rich(store)
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="The files cannot be written: File exists"):
        export_parquet(store, [name], tmp_path / "file")
