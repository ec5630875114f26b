"""A store remembers one baseline for each suite, and keeps the run that it points to."""

from __future__ import annotations

import pytest

from deemster.errors import StoreError
from deemster.store.find_damage import find_damage
from deemster.store.prune_runs import runs_to_prune
from tests.store.make_run_files import rest
from tests.store.make_runs import BASELINE, written


def runs(store, *suites):
    for number, suite in enumerate(suites):
        rest(store, written(store, number, suite=suite))


def test_suite_has_one_baseline_and_a_new_one_replaces_it(store):
    runs(store, "a", "a", "b")
    assert store.baseline("a", "golden") is None
    store.promote("run-0", BASELINE)
    store.promote("run-2", BASELINE)
    store.promote("run-1", BASELINE)
    assert [(row.suite, row.run, row.facts) for row in store.baselines()] == [
        ("a", "run-1", BASELINE),
        ("b", "run-2", BASELINE),
    ]
    assert store.baseline("a", "another dataset").run == "run-1"


def test_runs_without_suite_have_a_baseline_for_each_dataset(store):
    runs(store, None, "golden")
    store.promote("run-0", BASELINE)
    assert store.baseline(None, "golden").run == "run-0"
    assert store.baseline(None, "other") is None
    assert store.baseline("golden", "golden") is None


def test_baseline_is_a_name_of_a_run(store):
    runs(store, "a", "b", "a")
    with pytest.raises(StoreError, match=r"There is no baseline yet. `deemster baseline RUN`"):
        store.run("baseline")
    store.promote("run-0", BASELINE)
    store.promote("run-1", BASELINE)
    assert store.run("baseline").id == "run-0"
    assert store.run("baseline", beside=store.run("run-1")).id == "run-1"


def test_clearing_a_baseline_keeps_its_run(store):
    runs(store, "a")
    store.promote("run-0", BASELINE)
    assert store.clear_baseline("a", "golden")
    assert not store.clear_baseline("a", "golden")
    assert (store.baselines(), store.run("run-0").id) == ([], "run-0")


def test_baseline_is_not_removed(store):
    runs(store, "a", "a")
    store.promote("run-0", BASELINE)
    with pytest.raises(StoreError, match=r"is the baseline of the suite `a`.*`deemster baseline --clear a`"):
        store.remove("run-0")
    store.remove("run-1")
    assert list(store.executions("run-0"))
    store.clear_baseline("a", "golden")
    store.remove("run-0")
    assert store.runs() == []


def test_pruning_leaves_baselines(store):
    runs(store, "a", "a", "a")
    store.promote("run-0", BASELINE)
    assert [run.id for run in runs_to_prune(store, keep=1)] == ["run-1"]


def test_run_that_is_not_there_is_not_promoted(store):
    with pytest.raises(StoreError, match="holds no run `run-7`"):
        store.promote("run-7", BASELINE)


def test_damaged_baseline_is_found_and_can_be_cleared(store):
    runs(store, "a")
    store.promote("run-0", BASELINE)
    with store.pool.write_transaction() as rows:
        rows.write("UPDATE baselines SET checksum = checksum + 1")
    with pytest.raises(StoreError, match=r"baseline of `a` is damaged. `deemster baseline --clear` forgets it"):
        store.run("baseline")
    assert any("baseline of `a` is damaged" in damage for damage in find_damage(store))
    assert store.clear_baseline("a", "golden")
    assert list(find_damage(store)) == []
