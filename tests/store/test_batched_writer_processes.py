"""Several processes at one store: nothing is lost, nothing is half there, and no lock reaches the user."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from deemster.store import open_store
from tests.store.make_runs import begun, card, counts, execution

HERE = str(Path(__file__).parent)
WRITING = f"""
import sys
sys.path.insert(0, {HERE!r})
from deemster.store import open_store
from deemster.store.run_facts import RunEnd
from make_runs import begun, execution
place, number, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with open_store(place) as store:
    name = begun(store, number, count=count)
    with store.writer(name) as writer:
        for start in range(0, count, 20):
            writer.add([execution(position, text=f"{{number}}-{{position}}") for position in range(start, start + 20)])
            if start % 200 == 0:
                writer.flush()
    store.finish(name, RunEnd("complete", finished_at="2026", duration_s=1.0))
"""
ENDLESS = f"""
import itertools, sys
sys.path.insert(0, {HERE!r})
from deemster.records import MetricScore
from deemster.store import open_store
from make_runs import begun, card, execution
with open_store(sys.argv[1]) as store:
    name = begun(store, count=50, cards=[card("a"), card("b")])
    print("begun", flush=True)
    with store.writer(name) as writer:
        for turn in itertools.count():
            mark = MetricScore((turn % 100) / 100)
            writer.add([execution(turn % 50, text=str(turn % 100), marks=[mark, mark])])
            if turn % 25 == 0:
                writer.flush()
"""


def started(code, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_eight_processes_write_sixteen_thousand_distinct_rows_into_one_file(tmp_path):
    path = tmp_path / "runs.db"
    processes = [started(WRITING, str(path), str(number), "2000") for number in range(8)]
    said = [process.communicate()[1] for process in processes]
    assert said == [""] * 8
    assert [process.returncode for process in processes] == [0] * 8
    with open_store(path, create=False) as store:
        assert sorted(row.id for row in store.runs(status="complete")) == [f"run-{number}" for number in range(8)]
        texts = {each.answer.text for number in range(8) for each in store.executions(f"run-{number}")}
        assert len(texts) == 16_000
        for number in range(8):
            assert counts(store, f"run-{number}")["outputs"] == counts(store, f"run-{number}")["marks"] == 2000
        with store.pool.read_transaction() as rows:
            assert rows.read("SELECT count(*) FROM contents") == [(2000,)]
            assert rows.read("PRAGMA integrity_check") == [("ok",)]


def test_three_processes_write_into_one_postgres(postgres_url):
    processes = [started(WRITING, postgres_url, str(number), "400") for number in range(3)]
    assert [process.communicate()[1] for process in processes] == [""] * 3
    with open_store(postgres_url) as store:
        texts = {each.answer.text for number in range(3) for each in store.executions(f"run-{number}")}
        assert len(texts) == 1200


def test_reader_never_sees_half_an_execution_and_a_kill_leaves_none(place):
    process = started(ENDLESS, place)
    assert process.stdout.readline() == "begun\n"
    with open_store(place) as store:
        seen = rounds = 0
        # A busy machine may not have committed anything yet.
        while rounds < 60 or (not seen and process.poll() is None):
            rounds += 1
            for each in store.executions("run-0"):
                assert [mark.score for mark in each.marks] == [int(each.answer.text) / 100] * 2
                seen += 1
            tables = counts(store, "run-0")
            assert tables["outputs"] == tables["marks"]
        process.send_signal(signal.SIGKILL)
        process.communicate()
        for each in store.executions("run-0"):
            assert [mark.score for mark in each.marks] == [int(each.answer.text) / 100] * 2
        row = store.run("run-0")
        tables = counts(store, "run-0")
        assert row.done == row.scorings[0].done == tables["outputs"] == tables["marks"]
        assert seen
        with store.lease("run-0"), store.writer("run-0") as writer:
            writer.add([execution(0, marks=[each.marks[0]] * 2)])


def test_flushed_rows_survive_kill(tmp_path):
    code = WRITING.replace("    store.finish", "    print('flushed', flush=True); sys.stdin.read()\n    store.finish")
    for number in range(5):
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "runs.db"), str(number), "100"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout.readline() == "flushed\n"
        process.send_signal(signal.SIGKILL)
        process.communicate()
    with open_store(tmp_path / "runs.db", create=False) as store:
        for number in range(5):
            assert len(list(store.executions(f"run-{number}"))) == 100
            assert store.run(f"run-{number}").status == "running"


def test_two_stores_with_same_samples_do_not_block_each_other(place):
    with open_store(place) as first, open_store(place) as second:
        begun(first, 0, count=100, cards=[card()])
        begun(second, 1, count=100, cards=[card()])
        assert {row.id for row in first.runs()} == {"run-0", "run-1"}
