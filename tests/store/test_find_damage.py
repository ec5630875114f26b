"""Damage is found and named; a sound store has none."""

from __future__ import annotations

import pytest

from deemster.store import open_store
from deemster.store.find_damage import find_damage
from tests.store.make_run_files import graded, rest, rich
from tests.store.make_runs import begun, execution, written


def changed(store, sql, *values):
    with store.pool.write_transaction() as rows:
        assert rows.write(sql, values) > 0


def test_sound_store_has_no_damage(store):
    rich(store)
    graded(store)
    assert list(find_damage(store)) == []


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (
            "UPDATE outputs SET body = '{\"answer\":null}' WHERE position = 1",
            "The run `run-0` is damaged: 1 execution of 3 cannot be read, the first at position 1, repetition 0.",
        ),
        ("UPDATE samples SET id = 'z' WHERE position = 2", "The run `run-0` is damaged: 1 sample of 3 cannot be read"),
        ("UPDATE contents SET body = '{}' WHERE number = 1", "1 content of samples does not fit the check sum."),
        ("UPDATE marks SET body = '[]' WHERE position = 0", "The run `run-0` is damaged: 1 execution of 3 cannot"),
        ("DELETE FROM outputs WHERE position = 1", "The run `run-0` is damaged: 1 execution of 3 cannot be read."),
        ("DELETE FROM outputs WHERE position = 1", "The run `run-0` is damaged: 1 mark row without an output."),
        (
            "DELETE FROM marks WHERE position = 1",
            "The run `run-0` is damaged: 2 of 3 mark rows of scoring 0 are there.",
        ),
        ("DELETE FROM samples WHERE position = 2", "The run `run-0` is damaged: 1 sample of 3 cannot be read."),
        ("UPDATE runs SET dataset = 'other'", "The run 'run-0' is damaged (its facts do not fit their check sum)."),
        ("UPDATE runs SET done = 2", "The run 'run-0' is damaged (its count of executions was changed)."),
        (
            "UPDATE scorings SET status = 'mixed'",
            "The run 'run-0' is damaged (its scoring 0 does not fit its check sum).",
        ),
    ],
)
def test_damage_is_named_with_the_run_and_what_is_lost(store, sql, said):
    rest(store, written(store))
    changed(store, sql)
    assert any(damage.startswith(said) for damage in find_damage(store)), list(find_damage(store))
    assert all("store check" not in damage for damage in find_damage(store))


def test_orphan_rows_are_found(tmp_path):
    with open_store(tmp_path / "runs.db") as store:
        rest(store, written(store))
        changed(store, "UPDATE marks SET run = 9 WHERE position = 0")
        found = list(find_damage(store))
    assert "1 row of `marks` refers to something that is gone." in found
    assert "1 row of `marks` belongs to no run." in found


def test_damaged_page_is_reported_without_traceback(tmp_path):
    path = tmp_path / "runs.db"
    with open_store(path) as store:
        rest(store, written(store, count=400))
    data = bytearray(path.read_bytes())
    found = []
    for at in range(8192 * 3, len(data), 8192):
        path.write_bytes(data[:at] + b"\xa5" * 64 + data[at + 64 :])
        with open_store(path) as store:
            found.append(list(find_damage(store)))
    assert all(found)


def test_run_in_progress_is_not_reported_as_damaged(store):
    name = begun(store, count=3)
    with store.writer(name) as writer:
        writer.add([execution(0)])
        writer.flush()
        rows = store.runs()
        writer.add([execution(1), execution(2)])
        writer.flush()
        store.runs = lambda **_: rows
        assert list(find_damage(store)) == []
    store.remove(name)
    assert list(find_damage(store)) == []
