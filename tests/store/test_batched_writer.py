"""Group commits: rows are committed soon and atomically, and the next caller gets a failure."""

from __future__ import annotations

import threading

import pytest

from deemster.errors import StoreError
from deemster.store import batched_writer, open_store
from deemster.store.run_facts import RunEnd
from tests.store.make_runs import begun, execution, sample


def commits(store, monkeypatch):
    """Groups as they are committed, by how many executions each has."""
    seen = []
    plain = batched_writer.Writer._write

    def watched(self, rows, group):
        plain(self, rows, group)
        seen.append(len(group.marks))

    monkeypatch.setattr(batched_writer.Writer, "_write", watched)
    return seen


def test_many_executions_share_a_commit(store, monkeypatch):
    seen = commits(store, monkeypatch)
    monkeypatch.setattr(batched_writer, "_COMMIT_DELAY_S", 60.0)
    name = begun(store, count=100)
    with store.writer(name) as writer:
        for position in range(100):
            writer.add([execution(position)])
        assert seen == []
        writer.flush()
        assert seen == [100]
    assert len(list(store.executions(name))) == 100


@pytest.mark.parametrize("limit", ["_GROUP_EXECUTIONS", "_GROUP_BYTES"])
def test_large_group_is_committed_at_once(store, monkeypatch, limit):
    seen = commits(store, monkeypatch)
    monkeypatch.setattr(batched_writer, "_COMMIT_DELAY_S", 60.0)
    monkeypatch.setattr(batched_writer, limit, 10)
    name = begun(store, count=20)
    with store.writer(name) as writer:
        writer.add([execution(position) for position in range(10)])
        with writer._changed:
            assert writer._changed.wait_for(lambda: writer._committed == 10, timeout=30)
    assert seen == [10]


def test_model_calls_are_committed_with_what_is_written_and_removed_where_nothing_is_left_to_do(store, monkeypatch):
    monkeypatch.setattr(batched_writer, "_COMMIT_DELAY_S", 60.0)
    name = begun(store, count=2)
    with store.writer(name) as writer:
        writer.add_calls([(5, b"{}"), (3, b"[]")])
        writer.add([execution(0)])
        assert list(store.calls(name)) == []
        writer.flush()
        assert list(store.calls(name)) == [(3, b"[]"), (5, b"{}")]
        writer.add_calls([(5, b'{"a":1}')])
        writer.flush()
    assert list(store.calls(name)) == [(3, b"[]"), (5, b'{"a":1}')]
    assert list(store.calls(name, scoring=1)) == []
    store.finish(name, RunEnd("incomplete"))
    assert len(list(store.calls(name))) == 2
    store.finish(name, RunEnd("complete"), forget_calls=True)
    assert list(store.calls(name)) == []


def test_model_calls_never_wait_for_room(store, monkeypatch):
    monkeypatch.setattr(batched_writer, "_PENDING_BYTES", 0)
    name = begun(store)
    with store.writer(name) as writer:
        writer.add_calls([(1, b"{}")])
        writer.flush()
    assert list(store.calls(name)) == [(1, b"{}")]


def test_removed_run_leaves_no_model_call(store):
    name = begun(store)
    with store.writer(name) as writer:
        writer.add_calls([(1, b"{}")])
    store.remove(name)
    with store.pool.read_transaction() as rows:
        assert rows.read("SELECT count(*) FROM calls") == [(0,)]


def test_samples_that_were_held_back_are_committed_without_flush(store):
    name = begun(store, count=0, kind="recording", cards=[])
    with store.writer(name) as writer:
        writer.add_samples([sample(0)])
        writer.add([execution(0, marks=[])])
        with writer._changed:
            assert writer._changed.wait_for(lambda: writer._committed == 2, timeout=30)


def test_rows_are_committed_within_a_quarter_second():
    assert batched_writer._COMMIT_DELAY_S <= 0.2


def test_waiting_rows_are_committed_without_flush(store):
    name = begun(store)
    with store.writer(name) as writer:
        writer.add([execution(0)])
        with writer._changed:
            assert writer._changed.wait_for(lambda: writer._committed == 1, timeout=30)
        assert len(list(store.executions(name))) == 1


def test_durable_store_commits_before_it_returns(place, monkeypatch):
    monkeypatch.setattr(batched_writer, "_COMMIT_DELAY_S", 60.0)
    with open_store(place, durable=True) as store:
        name = begun(store)
        with store.writer(name) as writer:
            for position in range(3):
                writer.add([execution(position)])
                assert len(list(store.executions(name))) == position + 1


def test_durable_sqlite_waits_for_the_disk(tmp_path):
    for durable, mode in ((True, 2), (False, 1)):
        with open_store(tmp_path / "runs.db", durable=durable) as store, store.pool.read_transaction() as rows:
            assert rows.read("PRAGMA synchronous") == [(mode,)]


def test_full_queue_blocks_the_caller(store, monkeypatch):
    monkeypatch.setattr(batched_writer, "_PENDING_BYTES", 1000)
    gate, plain = threading.Event(), batched_writer.Writer._write

    def held(self, rows, group):
        assert gate.wait(30)
        plain(self, rows, group)

    monkeypatch.setattr(batched_writer.Writer, "_write", held)
    name = begun(store)
    added = []

    def add():
        for position in range(3):
            writer.add([execution(position, text="x" * 2000)])
            added.append(position)

    with store.writer(name) as writer:
        thread = threading.Thread(target=add)
        thread.start()
        thread.join(0.3)
        assert added == [0]
        gate.set()
        thread.join(30)
    assert added == [0, 1, 2]
    assert len(list(store.executions(name))) == 3


def test_failed_commit_raises_on_next_add_and_is_rolled_back(store, monkeypatch):
    name = begun(store)
    plain = batched_writer.add_done
    with store.writer(name) as writer:
        writer.add([execution(0)])
        writer.flush()
    monkeypatch.setattr(batched_writer, "add_done", lambda *_: (_ for _ in ()).throw(StoreError("disk full")))
    writer = store.writer(name)
    writer.add([execution(1)])
    for act in (writer.flush, lambda: writer.add([execution(2)]), lambda: writer.add_samples([]), writer.close):
        with pytest.raises(StoreError, match="disk full"):
            act()
    monkeypatch.setattr(batched_writer, "add_done", plain)
    assert [each.position for each in store.executions(name)] == [0]
    assert store.run(name).done == 1


def test_dead_writer_thread_does_not_hang(store, monkeypatch):
    name = begun(store)
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    monkeypatch.setattr(batched_writer, "add_done", lambda *_: 1 / 0)
    writer = store.writer(name)
    writer.add([execution(0)])
    with pytest.raises(StoreError, match="thread that writes to the store has ended"):
        writer.flush()


def test_failed_commit_does_not_hide_original_exception(store, monkeypatch):
    name = begun(store)
    monkeypatch.setattr(batched_writer, "add_done", lambda *_: (_ for _ in ()).throw(StoreError("disk full")))

    def failing(error):
        with store.writer(name) as writer:
            writer.add([execution(0)])
            if error is not None:
                raise error

    with pytest.raises(KeyError, match="mine"):
        failing(KeyError("mine"))
    with pytest.raises(StoreError, match="disk full"):
        failing(None)


def test_rows_added_before_an_error_are_kept(store):
    name = begun(store)

    def failing():
        with store.writer(name) as writer:
            writer.add([execution(0)])
            raise KeyError("mine")

    with pytest.raises(KeyError):
        failing()
    assert len(list(store.executions(name))) == 1


def test_sample_is_not_committed_before_its_execution(store):
    name = begun(store, count=0, kind="recording", cards=[])
    with store.writer(name) as writer:
        writer.add([execution(0, marks=[])])
        writer.flush()
        writer.add_samples([sample(1)])
        writer.add_samples([])
        with writer._changed:
            assert (writer._group.count, writer._group.samples) == (0, [])
    assert [each.position for each in store.samples(name)] == [1]
