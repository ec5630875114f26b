"""The columns of a finished run are a copy of its marks."""

from __future__ import annotations

import tracemalloc
import zlib

import numpy as np
import pytest

import deemster as dm
from deemster.engine.run_sync import run_sync
from deemster.evaluation.rescore_run import rescore
from deemster.judges.metric_catalog import parse_metric
from deemster.records import Usage
from deemster.report import stored_columns
from deemster.report.stored_columns import load_columns, read_columns
from deemster.runs.run_figures import stored_figures
from deemster.store import open_store
from tests.cli.workspace import called

SAMPLES = [
    {
        "id": f"frage-ü{place}",
        "input": {"n": place},
        "expected_output": "yes",
        "metadata": {"tags": ["a", "b"][: place % 3]},
    }
    for place in range(7)
]


def answer(given):
    if given["n"] == 5:
        raise ValueError("no answer")
    usage = Usage(prompt_tokens=given["n"], cost_usd=0.01) if given["n"] != 2 else None
    return dm.Output("yes" if given["n"] % 2 else "no", retrieved=[f"doc-{given['n']}"], usage=usage)


@pytest.fixture
def store(tmp_path):
    place = str(tmp_path / "runs.db")
    dataset = dm.Dataset(SAMPLES, name="d")
    dm.evaluate(dataset, target=answer, metrics=["exact-match", "rouge-l"], repetitions=2, storage=place)
    with open_store(place) as opened:
        yield opened


def test_columns_equal_what_the_rows_say(store):
    row = store.run("latest")
    cards = store.cards(row.id)
    assert stored_figures(row).has_columns
    kept, read = load_columns(store, row, cards), read_columns(store, row, cards)
    for name in ("scores", "causes", "passed", "outputs", "output_chars"):
        np.testing.assert_array_equal(getattr(kept[0], name), getattr(read[0], name))
    np.testing.assert_array_equal(kept[1].usage(), read[1].usage())
    assert [(tag, places.tolist()) for tag, places in kept[0].cohorts] == [
        (tag, places.tolist()) for tag, places in read[0].cohorts
    ]
    np.testing.assert_array_equal(kept[1].digests, read[1].digests)
    assert kept[1].ids([6, 0]) == read[1].ids([6, 0]) == ["frage-ü6", "frage-ü0"]


def test_rescored_run_has_the_columns_of_all_its_metrics(store):
    run_sync(rescore(store, "latest", metrics=[parse_metric("contains")], warn=pytest.fail))
    row = store.run("latest")
    assert stored_figures(row).has_columns
    kept, read = (get(store, row, store.cards(row.id)) for get in (load_columns, read_columns))
    np.testing.assert_array_equal(kept[0].scores, read[0].scores)
    assert "contains" in dm.compare("latest", "latest", store=store.where).metrics


def test_imported_run_has_columns(store, tmp_path):
    file, other = str(tmp_path / "run.jsonl"), str(tmp_path / "other.db")
    assert called("export", "latest", "--store", store.where, "--to", file).exit_code == 0
    assert called("import", file, "--store", other).exit_code == 0
    with open_store(other) as opened:
        row = opened.run("latest")
        kept, read = (get(opened, row, opened.cards(row.id)) for get in (load_columns, read_columns))
        np.testing.assert_array_equal(kept[0].scores, read[0].scores)
        np.testing.assert_array_equal(kept[1].usage(), read[1].usage())


def test_removed_run_leaves_no_columns(store):
    row = store.run("latest")
    store.remove(row.id)
    with store.pool.connection() as connection:
        assert connection.read("SELECT count(*) FROM columns") == [(0,)]


def test_damaged_columns_are_not_believed(store):
    row = store.run("latest")
    with store.pool.write_transaction() as connection:
        connection.write("UPDATE columns SET body = ?", (b"damaged",))
    assert load_columns(store, row, store.cards(row.id)) is None
    assert dm.compare(row.id, row.id, store=store.where).statuses["stable"] == len(SAMPLES)


def test_columns_that_unpack_to_much_are_left_aside(store, monkeypatch):
    monkeypatch.setattr(stored_columns, "_MOST_UNPACKED", 1 << 20)
    row = store.run("latest")
    head = next(store.columns(row.id))
    with store.lease(row.id):
        store.write_columns(row.id, [head, zlib.compress(b"0" * (200 << 20))])
    tracemalloc.start()
    try:
        assert load_columns(store, row, store.cards(row.id)) is None
        assert tracemalloc.get_traced_memory()[1] < 10 << 20
    finally:
        tracemalloc.stop()


def test_columns_of_another_shape_are_left_aside(store):
    row = store.run("latest")
    with store.lease(row.id):
        store.write_columns(row.id, [b"not columns"])
    assert load_columns(store, row, store.cards(row.id)) is None


def test_columns_of_a_run_are_those_that_its_store_gives_afterwards(store, monkeypatch):
    monkeypatch.setattr(stored_columns, "_BLOCK", 3)
    dataset = dm.Dataset(SAMPLES, name="d").select(ids=["frage-ü6", "frage-ü1", "frage-ü2", "frage-ü4"])
    report = dm.evaluate(dataset, target=answer, metrics=["exact-match"], storage=store.where)
    written = list(store.columns(report.run.id))

    stored_columns.keep_columns(store, report)
    assert list(store.columns(report.run.id)) == written
    assert len(written) == 3
