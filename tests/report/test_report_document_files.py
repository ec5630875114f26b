"""Reports are written aside and renamed: whole, or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

import deemster as dm
from deemster.errors import ReportError
from deemster.report import Destination, report_document
from deemster.text import rendered
from tests.report.runs import small_report


def test_report_replaces_the_file_that_was_there(tmp_path):
    path = tmp_path / "run.json"
    path.write_text("old")
    small_report().write(Destination("json", str(path)))
    assert path.read_text(encoding="utf-8") == small_report().to_json()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.json"]


def test_report_is_readable_as_the_umask_allows(tmp_path):
    path = tmp_path / "run.json"
    before = os.umask(0o027)
    try:
        small_report().write(Destination("json", str(path)))
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("flavour", "rendering"), [("json", (rendered, "json_pieces")), ("csv", (report_document, "csv_rows"))]
)
def test_failed_rendering_keeps_old_file(flavour, rendering, tmp_path, monkeypatch):
    def broken(report):
        yield b"half a rep" if flavour == "json" else "half a rep"
        raise RuntimeError("rendering failed")

    monkeypatch.setattr(*rendering, broken)
    path = tmp_path / "run"
    path.write_text("old")
    with pytest.raises(RuntimeError, match="rendering failed"):
        small_report().write(Destination(flavour, str(path)))
    assert path.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]


@pytest.mark.parametrize("step", ["open", "fsync", "replace"])
def test_failing_disk_names_the_path_and_the_cause_and_keeps_the_old_file(step, tmp_path, monkeypatch):
    def full(*_args, **_options):
        raise OSError(28, "No space left on device")

    path = tmp_path / "run.json"
    path.write_text("old")
    monkeypatch.setattr(os if step == "fsync" else Path, step, full)
    with pytest.raises(ReportError, match=r"run\.json: The report cannot be written: No space left on device\."):
        small_report().write(Destination("json", str(path)))
    monkeypatch.undo()
    assert path.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.json"]


def test_checking_a_path_leaves_no_file(tmp_path):
    Destination("json", str(tmp_path / "run.json")).check()
    assert sorted(path.name for path in tmp_path.iterdir()) == []


def test_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        destination = Destination("csv", str(pipe))
        destination.check()
        small_report().write(destination)
        assert os.read(reader, 65_536).decode() == small_report().to_csv()
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize(
    ("name", "start"),
    [("r.json", "{"), ("r.md", "# "), ("r.csv", "sample_id"), ("r.HTML", "<!doctype"), ("r.xml", "<?xml")],
)
def test_report_is_saved_as_its_extension_says(tmp_path, name, start):
    report = dm.evaluate([dm.Sample("a", {}, "x")], outputs={"a": "x"}, metrics=["exact-match"])
    report.save(tmp_path / name)
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)


def test_extension_without_a_format_is_refused(tmp_path):
    report = dm.evaluate([dm.Sample("a", {}, "x")], outputs={"a": "x"}, metrics=["exact-match"])
    with pytest.raises(dm.errors.ReportError, match="ending of the name says no format"):
        report.save(tmp_path / "report.pdf")
