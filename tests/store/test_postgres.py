"""A PostgreSQL whose connections drop, or which is started again: nothing is lost, and nothing is there twice."""

from __future__ import annotations

import json
import threading
import time

import psycopg
import pytest

from deemster.errors import LeaseError, StorageError, StoreError
from deemster.formats.streamed_list import Stream
from deemster.records import MetricScore
from deemster.store import RunFacts, _database, open_store
from deemster.store.run_facts import RunEnd
from tests.cli.workspace import started
from tests.cli.workspace import written as put_files
from tests.store.make_runs import begun, card, execution, sample, written

COUNT = 600


def end_connections(url):
    """End all connections to a database but the own one; how many."""
    with psycopg.connect(url, autocommit=True) as own:
        sql = (
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        return own.execute(sql).fetchone()[0]


@pytest.fixture
def store(postgres_url):
    with open_store(postgres_url) as opened:
        yield opened


def test_idle_connection_that_the_server_ended_is_made_again(store, postgres_url):
    name = written(store, count=3)
    for _ in range(3):
        assert end_connections(postgres_url) > 0
        assert len(list(store.executions(name))) == 3
        end_connections(postgres_url)
        assert store.run(name).status == "complete"


def test_writer_loses_and_doubles_nothing_while_connections_drop(store, postgres_url):
    name = begun(store, count=COUNT)
    is_over, dropped = threading.Event(), threading.Event()
    ended = []

    def drop():
        while not is_over.wait(0.01):
            ended.append(end_connections(postgres_url))
            if ended[-1]:
                dropped.set()

    dropping = threading.Thread(target=drop)
    dropping.start()
    try:
        with store.writer(name) as writer:
            for position in range(COUNT):
                writer.add([execution(position, text=f"text {position}")])
                if position % 10 == 0:
                    writer.flush()
                    # The writer has a connection again, which is ended before the next group.
                    dropped.clear()
                    assert dropped.wait(timeout=180)
    finally:
        is_over.set()
        dropping.join()
    assert sum(ended) > 10
    store.finish(name, RunEnd("complete"))
    assert [each.answer.text for each in store.executions(name)] == [f"text {n}" for n in range(COUNT)]
    assert (store.run(name).done, store.run(name).scorings[0].done) == (COUNT, COUNT)


def test_run_begins_and_settles_while_connections_drop(store, postgres_url, monkeypatch):
    monkeypatch.setattr("deemster.store._begin_run._CHUNK_SAMPLES", 20)
    left = [30, 300, 590]

    def dropping(each):
        if each.position in left:
            left.remove(each.position)
            assert end_connections(postgres_url) > 0
        return each

    facts = RunFacts(
        id="run", dataset="d", fingerprint="f", samples=COUNT, started_at="2026-01-01T00:00:00.000Z", tool_version="0"
    )
    lease = store.begin(facts, (dropping(sample(n)) for n in range(COUNT)), cards=[card("a")])
    assert [each.id for each in store.samples("run")] == [sample(n).id for n in range(COUNT)]
    assert left == []
    with store.writer("run") as writer:
        writer.add([execution(n) for n in range(COUNT)])
    left.append(400)
    store.settle("run", 0, Stream(lambda: (dropping(execution(n, marks=[MetricScore(0.25)])) for n in range(COUNT))))
    assert left == []
    assert {each.marks[0].score for each in store.executions("run")} == {0.25}
    lease.release()


def test_reader_goes_on_behind_the_last_row_where_its_connection_drops(store, postgres_url, monkeypatch):
    monkeypatch.setattr("deemster.store._paged_rows.PAGE", 50)
    name = written(store, count=COUNT)
    damage = []
    read = []
    for each in store.executions(name, on_damage=damage.append):
        read.append(each.position)
        if each.position % 20 == 0:
            end_connections(postgres_url)
    assert (read, damage) == (list(range(COUNT)), [])


def test_run_goes_on_after_its_server_was_started_again(postgres, postgres_url, tmp_path):
    code = (
        "import pathlib, time\n"
        "def answer(input):\n"
        "    pathlib.Path(f'called-{input[\"n\"]}').touch()\n"
        "    while input['n'] == 40 and not pathlib.Path('again').exists(): time.sleep(0.01)\n"
        "    return 'x'\n"
    )
    samples = "".join(f"  - {{id: s{n}, input: {{n: {n}}}, expected_output: x}}\n" for n in range(80))
    suite = (
        "name: again\ndataset: golden.yml\ntarget: {python: 'app:answer'}\n"
        "metrics: [exact-match]\nlimits: {concurrency: 2}\n"
    )
    put_files(tmp_path, {"app.py": code, "golden.yml": f"name: numbers\nsamples:\n{samples}", "suite.yml": suite})
    process = started(tmp_path, "run", "suite.yml", "--quiet", "--store", postgres_url, "--to", "-")
    while not (tmp_path / "called-40").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    postgres.stop()
    (tmp_path / "again").touch()
    postgres.start()
    out, err = process.communicate(timeout=180)
    assert process.returncode == 0, err
    assert json.loads(out)["metrics"]["exact-match"]["n_scored"] == 80
    with open_store(postgres_url) as store:
        row = store.run("latest")
        assert (row.status, row.done, len(list(store.executions(row.id)))) == ("complete", 80, 80)


def test_server_that_does_not_come_back_is_storage_error_and_waited_for_only_once(store, monkeypatch):
    name = begun(store)
    monkeypatch.setattr(_database, "PATIENCE_S", 0.2)
    monkeypatch.setattr(store.pool.database, "_url", "postgresql://localhost:1/none")
    store.pool.close()
    store.pool._is_open = True
    writer = store.writer(name)
    writer.add([execution(0)])
    with pytest.raises(StorageError, match="The store cannot be used: "):
        writer.close()
    with pytest.raises(StorageError):
        store.run(name)


def test_server_that_was_never_there_is_bad_input_at_once():
    with pytest.raises(StoreError) as caught:
        open_store("postgresql://localhost:1/none")
    assert not isinstance(caught.value, StorageError)


def test_lease_that_another_process_took_over_while_the_server_was_away_is_not_written(store, postgres_url):
    name = begun(store)
    with store.pool.write_transaction() as rows:
        rows.write("UPDATE runs SET token = 'another', owner_pid = 1")
    end_connections(postgres_url)
    writer = store.writer(name)
    writer.add([execution(0)])
    with pytest.raises(LeaseError):
        writer.close()
