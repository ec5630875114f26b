"""Pruning removes old runs, keeps runs in progress, and frees the space."""

from __future__ import annotations

import pytest

from deemster.store import open_store
from deemster.store.find_damage import find_damage
from deemster.store.prune_runs import reclaim_space, runs_to_prune
from deemster.store.run_facts import RunEnd
from tests.store.make_run_files import rest
from tests.store.make_runs import begun, facts, sample, written


def ids(runs):
    return [run.id for run in runs]


def test_prune_without_condition_removes_nothing(store):
    rest(store, written(store))
    assert runs_to_prune(store) == []


def test_prune_keeps_newest_runs_of_each_suite(store):
    for number, suite in enumerate(["a", "b", "a", None, "a", None]):
        rest(store, written(store, number, suite=suite))
    assert ids(runs_to_prune(store, keep=1)) == ["run-3", "run-2", "run-0"]
    assert ids(runs_to_prune(store, keep=2)) == ["run-0"]
    assert ids(runs_to_prune(store, keep=0)) == [f"run-{number}" for number in (5, 4, 3, 2, 1, 0)]


def test_prune_counts_an_experiment_as_one(store):
    for number, experiment in enumerate([None, "exp-1", "exp-1", "exp-2", "exp-2"]):
        rest(store, written(store, number, suite="a", experiment=experiment))
    assert ids(runs_to_prune(store, keep=1)) == ["run-2", "run-1", "run-0"]
    assert ids(runs_to_prune(store, keep=2)) == ["run-0"]


def test_prune_removes_only_runs_that_match_every_condition(store):
    for number in range(4):
        rest(store, written(store, number))
    store.lease("run-1")
    store.finish("run-1", RunEnd("incomplete"))
    rest(store, "run-1")
    assert ids(runs_to_prune(store, until="2026-01-01T00:00:02.000Z")) == ["run-1", "run-0"]
    assert ids(runs_to_prune(store, until="2026-01-01T00:00:02.000Z", keep=3)) == ["run-0"]
    assert ids(runs_to_prune(store, status="incomplete")) == ["run-1"]
    assert ids(runs_to_prune(store, status="incomplete", keep=1)) == []


def test_prune_never_removes_run_in_progress(store):
    begun(store)
    assert runs_to_prune(store, keep=0) == []


def test_prune_reports_and_skips_damaged_run(store):
    rest(store, written(store))
    with store.pool.write_transaction() as rows:
        rows.write("UPDATE runs SET dataset = 'x'")
    said = []
    assert runs_to_prune(store, keep=0, on_damage=said.append) == []
    assert len(said) == 1


def test_contents_are_removed_with_their_last_run(store):
    for number in (0, 1):
        rest(store, written(store, number))
    own = sample(0, input={"question": "only here"})
    store.begin(facts(2, samples=1), [own], cards=()).release()
    store.remove("run-0")
    assert reclaim_space(store).contents == 0
    store.remove("run-2")
    assert reclaim_space(store).contents == 1
    assert [each.input for each in store.samples("run-1")] == [{"question": f"{place}?"} for place in range(3)]
    store.remove("run-1")
    assert reclaim_space(store).contents == 3
    assert list(find_damage(store)) == []


def test_prune_shrinks_the_file(tmp_path):
    with open_store(tmp_path / "runs.db") as store:
        rest(store, written(store, count=2000))
        before = reclaim_space(store)
        store.remove("run-0")
        after = reclaim_space(store)
    assert before.contents == 0
    assert after.contents == 2000
    assert after.size > 100_000
    # The migrations of an empty store leave pages that they no longer need.
    with open_store(tmp_path / "empty.db") as empty:
        reclaim_space(empty)
    assert (tmp_path / "runs.db").stat().st_size == (tmp_path / "empty.db").stat().st_size


def test_prune_reports_no_size_for_postgresql(postgres_url):
    with open_store(postgres_url) as store:
        rest(store, written(store))
        store.remove("run-0")
        assert reclaim_space(store) == (3, None)


@pytest.mark.parametrize("keep", [1, 3])
def test_runs_kept_by_prune_are_readable(store, keep):
    for number in range(3):
        rest(store, written(store, number))
    for run in runs_to_prune(store, keep=keep):
        store.remove(run.id)
    reclaim_space(store)
    assert len(store.runs()) == keep
    for run in store.runs():
        assert len(list(store.executions(run.id))) == 3
