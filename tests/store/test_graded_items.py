"""What earlier versions stored of gradings is moved to the tables of every run, all or none of it."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from deemster.errors import StoreError
from deemster.records import MetricScore, Output, Unscored
from deemster.store import graded_items, open_store
from deemster.store.find_damage import find_damage
from deemster.store.graded_items import grading_mark
from deemster.store.run_export import export_runs
from deemster.store.run_import import import_runs
from tests.store.make_run_files import graded, resealed, run_content, with_entries

EARLIER = Path(__file__).parents[1] / "fixtures" / "gradings_schema_6" / "runs.db"

SUM = "The sum of the weights, 13.0, is no score from 0 to 1."


@pytest.fixture
def earlier(tmp_path):
    return shutil.copy(EARLIER, tmp_path / "runs.db")


def test_every_graded_item_becomes_an_output_with_its_mark(earlier):
    with sqlite3.connect(earlier) as rows:
        (count,) = rows.execute("SELECT count(*) FROM entries").fetchone()
    with open_store(earlier) as store:
        runs = store.runs(kind="grading")
        executions = [execution for run in runs for execution in store.executions(run.id)]
        assert len(executions) == count == sum(run.done for run in runs) == sum(run.scorings[0].done for run in runs)
        assert {type(execution.answer) for execution in executions} == {Output}
        assert list(find_damage(store)) == []


def test_move_that_is_killed_changes_nothing(earlier, monkeypatch):
    before = Path(earlier).read_bytes()
    put, calls = graded_items.MARKS.put, []

    def killed(connection, rows):
        calls.append(put(connection, rows))
        raise KeyboardInterrupt

    monkeypatch.setattr(graded_items.MARKS, "put", killed)
    with pytest.raises(KeyboardInterrupt):
        open_store(earlier)
    assert calls
    assert calls[0] > 0
    assert Path(earlier).read_bytes() == before
    monkeypatch.undo()
    with open_store(earlier) as store:
        assert list(find_damage(store)) == []


def test_damaged_item_stays_damaged(earlier):
    with sqlite3.connect(earlier) as rows:
        number, position = rows.execute("SELECT run, position FROM entries LIMIT 1").fetchone()
        rows.execute("UPDATE entries SET body = ? WHERE run = ? AND position = ?", (b'{"item":7}', number, position))
        (name,) = rows.execute("SELECT id FROM runs WHERE number = ?", (number,)).fetchone()
    with open_store(earlier) as store:
        with pytest.raises(StoreError, match=f"The run `{name}` is damaged"):
            list(store.executions(name))
        lost = []
        list(store.executions(name, on_damage=lost.append))
        assert len(lost) == 1


@pytest.mark.parametrize(
    ("score", "mark"),
    [
        (0.5, MetricScore(0.5, {"item": 1})),
        (None, Unscored("no_quorum", "Nobody came.", details={"item": 1})),
        (
            13.0,
            Unscored("metric_failed", "The sum of the weights, 13.0, is no score from 0 to 1.", details={"item": 1}),
        ),
    ],
)
def test_mark_of_an_item_keeps_its_details(score, mark):
    assert grading_mark(score, "Nobody came.", {"item": 1}) == mark


def test_run_file_with_entries_becomes_outputs_with_marks_and_is_known_again(tmp_path):
    file = tmp_path / "runs.jsonl"
    with open_store(tmp_path / "one.db") as store:
        name = graded(store, facts={"token": "t"})
        wanted = run_content(store, name)
        export_runs(store, [name], file)
    file.write_bytes(resealed(list(with_entries(file.read_bytes().splitlines()))))
    with open_store(tmp_path / "two.db") as store:
        assert [run.is_known for run in import_runs(store, file)] == [False]
        found = run_content(store, name)
        assert [execution.marks for execution in found["shown"]] == [execution.marks for execution in wanted["shown"]]
        assert found["row"] == wanted["row"]
        assert [run.is_known for run in import_runs(store, file)] == [True]
