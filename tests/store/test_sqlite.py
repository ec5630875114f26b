"""An unusable store is a one-line error; its files are private; a full disk loses no committed row."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from deemster.errors import ExitCode, StoreError
from deemster.store import _sqlite as sqlite
from deemster.store import open_store
from deemster.store._sqlite import SqliteDatabase
from tests.store.make_runs import begun, execution, written

HERE = str(Path(__file__).parent)


def refused(act, *, code=ExitCode.BAD_INPUT):
    """The one line of a refusal."""
    with pytest.raises(StoreError) as caught:
        act()
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code is code
    return str(caught.value)


def test_store_files_are_readable_by_owner_only(tmp_path):
    path = tmp_path / "new" / "runs.db"
    with open_store(path) as store:
        written(store)
        modes = {each.name: each.stat().st_mode & 0o777 for each in path.parent.iterdir()}
        assert modes == {"runs.db": 0o600, "runs.db-shm": 0o600, "runs.db-wal": 0o600}
        assert path.parent.stat().st_mode & 0o777 == 0o700


def test_store_is_one_file_once_it_is_closed(tmp_path):
    with open_store(tmp_path / "runs.db") as store:
        written(store)
    assert [each.name for each in tmp_path.iterdir()] == ["runs.db"]


def test_default_store_is_below_current_folder(folder):
    with open_store() as store:
        assert store.where == str(Path(".deemster") / "runs.db")
    assert (folder / ".deemster" / "runs.db").is_file()


def test_reading_missing_store_does_not_create_it(tmp_path):
    path = tmp_path / "folder" / "runs.db"
    hint = "`deemster run` makes one; `--store` names another."
    assert refused(lambda: open_store(path, create=False)) == f"{path}: There is no store here. {hint}"
    assert list(tmp_path.iterdir()) == []


def test_empty_file_is_not_a_readable_store(tmp_path):
    path = tmp_path / "runs.db"
    path.touch()
    assert "it holds no store" in refused(lambda: open_store(path, create=False))


@pytest.mark.parametrize("data", [b"x", b"not a database\n" * 1000, b"SQLite format 3\0" + bytes(9000)])
def test_non_database_file_is_error_and_unchanged(tmp_path, data):
    path = tmp_path / "runs.db"
    path.write_bytes(data)
    assert str(path) in refused(lambda: open_store(path))
    assert path.read_bytes() == data


def test_foreign_database_is_error_and_unchanged(tmp_path):
    path = tmp_path / "runs.db"
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE runs (id TEXT)")
        other.commit()
    assert "is no store of deemster" in refused(lambda: open_store(path))
    with contextlib.closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("runs",)]


@pytest.mark.parametrize(
    ("version", "said"), [(99, "has schema 99; this version of deemster reads up to 8"), (-1, "damaged")]
)
def test_newer_schema_is_error(tmp_path, version, said):
    path = tmp_path / "runs.db"
    open_store(path).close()
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute(f"PRAGMA user_version = {version}")
    code = ExitCode.INCOMPLETE if said == "damaged" else ExitCode.BAD_INPUT
    assert said in refused(lambda: open_store(path), code=code)


def test_newer_schema_in_postgres_is_error(postgres_url):
    with open_store(postgres_url) as store, store.pool.write_transaction() as rows:
        rows.write("INSERT INTO migrations VALUES (99)")
    assert "has schema 99; this version of deemster reads up to 8" in refused(lambda: open_store(postgres_url))


def test_uncreatable_folder_is_error(tmp_path):
    (tmp_path / "file").touch()
    said = refused(lambda: open_store(tmp_path / "file" / "below" / "runs.db"))
    assert said.startswith(f"{tmp_path / 'file' / 'below' / 'runs.db'}: The store cannot be opened: ")
    assert "Is a directory" in refused(lambda: open_store(tmp_path))


def test_missing_permission_is_error(tmp_path, monkeypatch):
    def denied(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(sqlite.Path, "touch", denied)
    path = tmp_path / "runs.db"
    said = refused(lambda: open_store(path), code=ExitCode.INCOMPLETE)
    assert said == f"{path}: The store cannot be opened: Permission denied."


def test_write_to_read_only_store_is_error(tmp_path):
    with open_store(tmp_path / "runs.db") as store:
        name = begun(store)
        with store.pool.connection() as rows:
            rows.read("PRAGMA query_only = 1")
        said = refused(lambda: store.amend(name, status="mixed"), code=ExitCode.INCOMPLETE)
    assert said.startswith(f"{tmp_path / 'runs.db'}: The store cannot be used: it may only be read")


FILLING = f"""
import resource, sys
sys.path.insert(0, {HERE!r})
from deemster.errors import StoreError
from deemster.store import open_store
from make_runs import begun, execution
store = open_store(sys.argv[1])
name = begun(store, count=2000)
writer = store.writer(name)
writer.add([execution(0)])
writer.flush()
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
try:
    for position in range(1, 2000):
        writer.add([execution(position, text="x" * 2000)])
    writer.flush()
except StoreError as error:
    print(error)
    sys.exit(3)
"""


def test_full_disk_loses_no_committed_row(tmp_path):
    path = tmp_path / "runs.db"
    done = subprocess.run([sys.executable, "-c", FILLING, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout.startswith(f"{path}: The store cannot be used: ")
    assert done.stdout.count("\n") == 1
    with open_store(path) as store:
        kept = [each.position for each in store.executions("run-0")]
        assert kept == list(range(store.run("run-0").done))
        assert len(kept) >= 1


def test_full_database_is_error_and_store_stays_usable(tmp_path):
    with open_store(tmp_path / "runs.db") as store:
        name = begun(store)
        with store.pool.connection() as rows:
            pages = rows.read("PRAGMA page_count")[0][0]
            rows.read(f"PRAGMA max_page_count = {pages + 2}")
        writer = store.writer(name)
        writer.add([execution(0, text="x" * 100_000)])
        assert "the disk is full" in refused(writer.close, code=ExitCode.INCOMPLETE)
        with store.writer(name) as again:
            again.add([execution(1)])
        assert [each.position for each in store.executions(name)] == [1]


def test_lock_wait_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite, "_PATIENCE_S", 0.05)
    monkeypatch.setattr(sqlite, "_TIMEOUT_MS", 10)
    with open_store(tmp_path / "runs.db") as store:
        with contextlib.closing(sqlite3.connect(tmp_path / "runs.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            said = refused(lambda: begun(store), code=ExitCode.INCOMPLETE)
        assert "another process has held it for" in said
        begun(store)


def test_unstorable_value_is_store_error(tmp_path):
    with open_store(tmp_path / "runs.db") as store:
        said = refused(lambda: begun(store, repetitions=2**70))
        assert "cannot take a value" in said


def test_lost_postgres_connection_is_made_again(postgres_url):
    import psycopg

    with open_store(postgres_url) as store:
        name = begun(store)
        with psycopg.connect(postgres_url, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                          " AND datname = current_database()")  # fmt: skip
        assert store.run(name).id == name


def test_opening_reads_no_environment_variable(folder, monkeypatch):
    monkeypatch.setenv("DEEMSTER_STORE", str(folder / "other.db"))
    open_store().close()
    assert not (folder / "other.db").exists()
    assert os.environ["DEEMSTER_STORE"]


def test_store_that_another_process_makes_meanwhile_is_no_foreign_database(tmp_path):
    place = tmp_path / "runs.db"
    database = SqliteDatabase(place, durable=False, create=True)
    connection = database.connect()

    class MadeMeanwhile:
        """A connection whose every statement is followed by another process that makes the store."""

        def read(self, statement):
            rows = connection.read(statement)
            open_store(place).close()
            return rows

    try:
        assert database.version(MadeMeanwhile()) == 0
        assert database.version(connection) > 0
    finally:
        connection.close()


def test_second_opening_keeps_locks_of_the_first(tmp_path):
    # SQLite holds a shared lock on these bytes of a file in write-ahead mode. Where a process loses it, another one may
    # remove the log beside the file.
    taking = (
        "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+b'), fcntl.LOCK_EX | fcntl.LOCK_NB, 510, (1 << 30) + 2)"
    )
    command = [sys.executable, "-c", taking, str(tmp_path / "runs.db")]
    with open_store(tmp_path / "runs.db"):
        open_store(tmp_path / "runs.db").close()
        assert "BlockingIOError" in subprocess.run(command, capture_output=True, text=True, check=False).stderr
    subprocess.run(command, check=True)


def test_store_is_made_where_a_link_points(tmp_path):
    (tmp_path / "runs.db").symlink_to(tmp_path / "elsewhere.db")
    open_store(tmp_path / "runs.db").close()
    assert (tmp_path / "elsewhere.db").stat().st_mode & 0o777 == 0o600
