"""Damage is detected or harmless. It never changes a count or a value silently."""

from __future__ import annotations

import random

import msgspec
import pytest

from deemster.errors import StoreError
from deemster.records import MetricScore
from deemster.store import open_store
from deemster.store.graded_items import GRADING_CARD
from tests.store.make_runs import LABEL, begun, card, execution, graded_item, written

PLACES = 220


def contents(path, *, on_damage=None):
    """Everything that a store holds about its runs."""
    found = {}
    with open_store(path, create=False) as store:
        for row in store.runs(on_damage=on_damage):
            found[row.id] = (
                row,
                list(store.samples(row.id, on_damage=on_damage)),
                list(store.executions(row.id, on_damage=on_damage)),
                list(store.executions(row.id, scoring=0, settled=False, on_damage=on_damage)),
                store.labels(row.id, on_damage=on_damage),
            )
    return found


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A closed store with runs of each kind, as bytes, and its content."""
    path = tmp_path_factory.mktemp("sound") / "runs.db"
    with open_store(path) as store:
        name = written(store, 0, count=40, cards=[card("a"), card("b")])
        store.settle(name, 0, [execution(position, marks=[MetricScore(1.0)] * 2) for position in range(0, 40, 3)])
        for position in range(40):
            store.put_label(name, msgspec.structs.replace(LABEL, position=position))
        name = begun(store, 1, count=30)
        with store.writer(name) as writer:
            writer.add([execution(position, text=f"{position}" * 400) for position in range(20)])
        name = begun(store, 2, count=10, kind="grading", cards=[GRADING_CARD])
        with store.writer(name) as writer:
            writer.add([graded_item(position, votes=[]) for position in range(10)])
    return path.read_bytes(), contents(path)


def outcome(path, expected):
    """Whether a store is unchanged or reports damage."""
    told, refused = [], []
    strict = lenient = None
    try:
        strict = contents(path)
    except StoreError as error:
        refused.append(str(error))
    try:
        lenient = contents(path, on_damage=told.append)
    except StoreError as error:
        told.append(str(error))
    assert refused or strict == expected
    assert told or lenient == expected
    assert bool(refused) == bool(told)
    assert all("\n" not in line for line in refused + told)
    return "as it was" if strict is not None else "told"


def test_truncated_store_is_error(tmp_path, sound):
    data, expected = sound
    path = tmp_path / "runs.db"
    draw = random.Random(7)
    ends = {0, 1, 15, 16, 99, 100, 512, 8191, 8192, len(data) - 8192, len(data) - 1}
    ends |= {draw.randrange(len(data)) for _ in range(PLACES // 4)}
    for end in sorted(ends):
        path.write_bytes(data[:end])
        assert outcome(path, expected) == "told", end


def test_flipped_bit_is_detected_or_harmless(tmp_path, sound):
    data, expected = sound
    path = tmp_path / "runs.db"
    draw = random.Random(11)
    outcomes = []
    for place in [*range(100), *(draw.randrange(len(data)) for _ in range(PLACES))]:
        damaged = bytearray(data)
        damaged[place] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        outcomes.append(outcome(path, expected))
        for each in tmp_path.glob("runs.db-*"):
            each.unlink()
    assert outcomes.count("told") > PLACES // 5


def test_zeroed_page_is_detected(tmp_path, sound):
    data, expected = sound
    path = tmp_path / "runs.db"
    outcomes = []
    for start in range(0, len(data), 8192):
        path.write_bytes(data[:start] + bytes(8192) + data[start + 8192 :])
        outcomes.append(outcome(path, expected))
    # Pages of tables without a row hold nothing that could be lost.
    assert outcomes.count("told") >= len(outcomes) - 10


@pytest.mark.parametrize("table", ["outputs", "marks", "samples", "contents", "runs", "scorings", "labels"])
def test_changed_row_of_any_table_is_detected_and_others_are_read(place, table):
    column = {"runs": "facts", "scorings": "cards"}.get(table, "body")
    with open_store(place) as store:
        written(store)
        with store.writer(begun(store, 1, kind="grading", cards=[GRADING_CARD])) as writer:
            writer.add([graded_item(1)])
        store.put_label("run-1", LABEL)
        with store.pool.write_transaction() as rows:
            rows.write(f"UPDATE {table} SET {column} = ?", (b'{"answer":null}',))
    told = []

    def everything(on_damage):
        for row in store.runs(on_damage=on_damage):
            for read in (store.samples, store.executions, store.labels):
                list(read(row.id, on_damage=on_damage))

    with open_store(place, create=False) as store:
        with pytest.raises(StoreError, match=r"The run .run-\d. is damaged"):
            everything(None)
        everything(told.append)
    assert told
    assert "`deemster store check` says what is lost" in told[0]


def test_lost_rows_are_counted_and_others_are_read(store):
    name = written(store, count=10)
    with store.pool.write_transaction() as rows:
        rows.write("UPDATE outputs SET checksum = checksum + 1 WHERE position IN (3, 4)")
        rows.write("DELETE FROM outputs WHERE position = 7")
    with pytest.raises(StoreError, match="the execution at position 3, repetition 0 does not fit its check sum"):
        list(store.executions(name))
    told = []
    kept = [each.position for each in store.executions(name, on_damage=told.append)]
    assert kept == [0, 1, 2, 5, 6, 8, 9]
    assert len(told) == 1
    assert "3 executions of 10 cannot be read, the first at position 3, repetition 0" in told[0]


def test_missing_row_is_detected(store):
    name = written(store, count=10)
    with store.pool.write_transaction() as rows:
        rows.write("DELETE FROM outputs WHERE position = 9")
        rows.write("DELETE FROM samples WHERE position = 9")
    with pytest.raises(StoreError, match="1 execution of 10 cannot be read"):
        list(store.executions(name))
    with pytest.raises(StoreError, match="1 sample of 10 cannot be read"):
        list(store.samples(name))


def test_moved_row_is_detected(store):
    name = written(store, count=10)
    with store.pool.write_transaction() as rows:
        rows.write("UPDATE outputs SET position = 11 WHERE position = 9")
    with pytest.raises(StoreError, match="position 11"):
        list(store.executions(name))


@pytest.mark.parametrize("change", ["done = 9", "samples = 9", "seed = '7'", "status = 'mixed'", "id = 'run-9'"])
def test_changed_fact_of_run_is_detected(store, change):
    written(store, count=10)
    with store.pool.write_transaction() as rows:
        rows.write(f"UPDATE runs SET {change}")
    with pytest.raises(StoreError, match="is damaged"):
        store.run("latest")


def test_rerun_repairs_damaged_execution(store):
    name = written(store, count=4)
    with store.pool.write_transaction() as rows:
        rows.write("UPDATE outputs SET checksum = 1 WHERE position = 2")
    with store.writer(name) as writer:
        writer.add([execution(2, text="again")])
    assert [each.answer.text for each in store.executions(name)] == ["x", "x", "again", "x"]
