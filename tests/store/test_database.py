"""The connections of a store, and readers that do not return them."""

from __future__ import annotations

import gc
import subprocess
import sys

from deemster.store import open_store
from tests.store.make_runs import written


class Held:
    """An abandoned reader in a reference cycle."""

    def __init__(self, rows):
        self.rows = rows
        self.self = self


def test_store_stays_usable_after_reader_is_garbage_collected(tmp_path):
    with open_store(tmp_path / "runs.db") as store:
        name = written(store, count=100)
        for _ in range(3):
            held = Held(store.executions(name))
            next(held.rows)
            del held
            gc.collect()
            assert len(list(store.executions(name))) == 100


def test_closing_store_closes_open_readers(tmp_path):
    store = open_store(tmp_path / "runs.db")
    held = Held(store.executions(written(store, count=100)))
    next(held.rows)
    store.close()
    del held, store
    gc.collect()


AT_EXIT = """
import atexit, sys
# What is registered first runs last: after every store was closed that is not in use.
atexit.register(lambda: print(rows.read("SELECT 1")))
from deemster.store import open_store
store = open_store(sys.argv[1])
block = store.pool.connection()
rows = block.__enter__()
"""


def test_connection_in_use_outlives_the_exit_of_the_interpreter(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", AT_EXIT, str(tmp_path / "runs.db")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "[(1,)]\n", "")
