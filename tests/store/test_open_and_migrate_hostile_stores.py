"""A store that holds more than a store, or is damaged where nothing is read, says so in every command."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
from pathlib import Path

import pytest

from deemster.errors import StorageError, StoreError
from deemster.store import open_and_migrate, open_store
from tests.cli.workspace import called
from tests.store.make_run_files import rest
from tests.store.make_runs import written

# A view that never ends, as every command that lists runs would read it.
ENDLESS = """
ALTER TABLE runs RENAME TO r2;
CREATE VIEW runs AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)
SELECT r2.* FROM r2, n WHERE n.x < 0;
"""
STRANGERS = {
    "view `runs`": ENDLESS,
    "view `extra`": "CREATE VIEW extra AS SELECT 1",
    "trigger `gone`": "CREATE TRIGGER gone AFTER INSERT ON outputs BEGIN DELETE FROM outputs; END",
    "table `notes`": "CREATE TABLE notes (id TEXT)",
    "table `words`": "CREATE VIRTUAL TABLE words USING fts5(body)",
    "index `slow`": "CREATE INDEX slow ON runs (zeroblob(1000))",
}


@pytest.fixture
def path(tmp_path) -> Path:
    with open_store(tmp_path / "runs.db") as store:
        rest(store, written(store))
    return tmp_path / "runs.db"


@pytest.mark.parametrize(("stranger", "sql"), STRANGERS.items(), ids=STRANGERS)
def test_store_with_more_than_a_store_has_is_refused_before_it_is_read(path, stranger, sql):
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.executescript(sql)
    with pytest.raises(StoreError) as caught:
        open_store(path)
    assert not isinstance(caught.value, StorageError)
    # Of several strangers the first one is named.
    assert f"It holds the {stranger}" in str(caught.value) or stranger == "view `runs`"
    for argv in (("show",), ("show", "latest"), ("store", "check"), ("export", "--all", "--to", "x.jsonl")):
        result = called(*argv, "--store", str(path))
        assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)


@pytest.mark.parametrize(
    "file", sorted((Path(__file__).parent / "databases").glob("v*.db")), ids=lambda file: file.stem
)
def test_stores_of_every_version_hold_nothing_strange(file):
    tables = open_and_migrate._tables(sorted(open_and_migrate._FOLDER.glob("[0-9]*.sql")))
    with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro&immutable=1", uri=True)) as other:
        found = {name for (name,) in other.execute("SELECT name FROM sqlite_master WHERE sql IS NOT NULL")}
    assert found - tables <= {"sqlite_sequence"}


def test_store_whose_runs_are_lost_is_not_taken_for_an_empty_one(path):
    with contextlib.closing(sqlite3.connect(path)) as other:
        ((root,),) = other.execute("SELECT rootpage FROM sqlite_master WHERE name = 'runs'")
        ((size,),) = other.execute("PRAGMA page_size")
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(path.read_bytes())
    # An empty leaf of a table, in place of the page with all runs.
    empty = b"\x0d\x00\x00\x00\x00" + size.to_bytes(2, "big") + b"\x00"
    data[(root - 1) * size : root * size] = empty.ljust(size, b"\0")
    path.write_bytes(bytes(data))
    for argv in (("show",), ("show", "latest"), ("compare", "latest", "latest"), ("store", "check")):
        result = called(*argv, "--store", str(path))
        expected = 0 if argv == ("show",) else 1 if argv[0] == "store" else 3
        assert result.exit_code == expected, result.output
        assert "The store is damaged: " in result.output or argv[0] == "store"


TABLES = ("runs", "samples", "outputs", "marks", "sqlite_autoindex_runs_1", "sqlite_autoindex_samples_1")


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(TABLES, 2)))
def test_store_with_two_pages_swapped_gives_what_it_gave_or_says_that_it_is_damaged(path, one, other):
    commands = (("show",), ("show", "latest"))
    sound = [called(*argv, "--store", str(path)).stdout for argv in commands]
    with contextlib.closing(sqlite3.connect(path)) as database:
        roots = dict(database.execute("SELECT name, rootpage FROM sqlite_master"))
        ((size,),) = database.execute("PRAGMA page_size")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = path.read_bytes()
    pages = [data[start : start + size] for start in range(0, len(data), size)]
    first, second = roots[one] - 1, roots[other] - 1
    pages[first], pages[second] = pages[second], pages[first]
    path.write_bytes(b"".join(pages))

    for argv, before in zip(commands, sound, strict=True):
        result = called(*argv, "--store", str(path))
        assert result.stdout == before or "damaged" in result.output or "is lost" in result.output
        assert "unexpected error" not in result.output
    assert "damaged" in called("show", "--store", str(path)).output
    assert called("store", "check", "--store", str(path)).exit_code in (1, 3)


def test_empty_store_holds_no_run_and_is_not_damaged(tmp_path):
    with open_store(tmp_path / "runs.db") as store:
        assert store.runs() == []
        with pytest.raises(StoreError, match="The store holds no run yet"):
            store.run("latest")
