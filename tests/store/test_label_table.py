"""Labels of people stay with their run: written, replaced, taken back, moved and removed."""

from __future__ import annotations

import msgspec
import pytest

from deemster.errors import StoreError
from deemster.store import open_store
from deemster.store.find_damage import find_damage
from deemster.store.run_export import export_runs
from deemster.store.run_import import import_runs
from tests.store.make_run_files import rest
from tests.store.make_runs import LABEL, written

OTHERS = [
    msgspec.structs.replace(LABEL, position=2, verdict=None, skip_reason="no idea"),
    msgspec.structs.replace(LABEL, author="bert", verdict="pass"),
    msgspec.structs.replace(LABEL, metric="rubric", criterion="tone ü", verdict="very good"),
]


@pytest.fixture
def labelled(store):
    """A run with labels of two people."""
    name = written(store)
    for label in (LABEL, *OTHERS):
        store.put_label(name, label)
    rest(store, name)
    return name


def test_labels_come_by_position(store, labelled):
    assert store.labels(labelled) == [LABEL, OTHERS[1], OTHERS[2], OTHERS[0]]


def test_second_thought_replaces_the_first(store, labelled):
    again = msgspec.structs.replace(LABEL, verdict="pass", at="2026-01-05T00:00:00.000000Z")
    store.put_label(labelled, again)
    assert again in store.labels(labelled)
    assert len(store.labels(labelled)) == 4


def test_label_is_taken_back(store, labelled):
    store.delete_label(labelled, LABEL)
    assert LABEL not in store.labels(labelled)
    assert len(store.labels(labelled)) == 3


def test_labels_travel_with_their_run(store, labelled, tmp_path):
    export_runs(store, [labelled], tmp_path / "run.jsonl")
    with open_store(tmp_path / "other.db") as other:
        import_runs(other, tmp_path / "run.jsonl")
        assert other.labels(labelled) == store.labels(labelled)
        assert [run.is_known for run in import_runs(other, tmp_path / "run.jsonl")] == [True]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace('"position":2', '"position":9', 1), "go beyond"),
        (lambda text: text.replace('"author":"bert"', '"author":"ada"', 1), "one label for each"),
        (lambda text: text.replace('"order":"random"', '"order":"best"', 1), "shape"),
    ],
)
def test_forged_labels_are_refused(store, labelled, tmp_path, change, said):
    export_runs(store, [labelled], tmp_path / "run.jsonl")
    lines = (tmp_path / "run.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    forged = [change(line) if '"line":"label"' in line else line for line in lines]
    assert forged != lines
    (tmp_path / "run.jsonl").write_text("".join(forged), encoding="utf-8")
    with open_store(tmp_path / "other.db") as other, pytest.raises(StoreError, match=said):
        import_runs(other, tmp_path / "run.jsonl")


def test_removed_run_leaves_no_label(store, labelled):
    store.remove(labelled)
    with store.pool.read_transaction() as rows:
        assert rows.read("SELECT count(*) FROM labels") == [(0,)]
    assert list(find_damage(store)) == []


def test_verify_finds_a_changed_label(store, labelled):
    assert list(find_damage(store)) == []
    with store.pool.write_transaction() as rows:
        rows.write("UPDATE labels SET author = 'eve' WHERE author = 'bert'")
    assert ["label" in message for message in find_damage(store)] == [True]
