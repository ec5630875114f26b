"""Gradings of the last version with an engine of their own: they open, resume, and say what they said."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path

import msgspec
import pytest

import deemster as dm
from deemster.grading.grade_dataset import grade
from deemster.report.stored_grading import stored_grading
from deemster.store import open_store
from tests.cli.workspace import called
from tests.fixtures.gradings_schema_6.gradings import worlds
from tests.report.runs import CLOCK

EARLIER = Path(__file__).parents[1] / "fixtures" / "gradings_schema_6"
EXPECTED = {
    line["stored"]["name"]: line
    for line in map(json.loads, (EARLIER / "expected.jsonl").read_text(encoding="utf-8").splitlines())
}
WORLDS = worlds()


@pytest.fixture
def place(tmp_path):
    return shutil.copy(EARLIER / "runs.db", tmp_path / "runs.db")


def plain(value):
    """A value as JSON has it."""
    return json.loads(msgspec.json.encode(value))


def assert_same(grading, wanted):
    """A grading says all that is wanted."""
    assert plain(list(grading.items)) == wanted["items"]
    assert plain(grading.judges) == wanted["judges"]
    assert plain(grading.usage) == wanted["usage"]
    assert (grading.halted, grading.n_failed_items) == (wanted["halted"], wanted["n_failed_items"])
    assert list(grading.mixed) == wanted["mixed"]
    assert plain(grading.settings) == wanted["settings"]
    assert plain(grading.dataset.to_dict()) == wanted["dataset"]
    votes = plain(grading.votes(reasons=True).to_dict())
    for judge in votes["judges"]:
        # The earlier version did not say what a judge costs.
        judge.pop("cost_usd", None)
    assert votes == wanted["votes"]
    summary = plain(grading.figures)
    assert {key: summary[key] for key in wanted["summary"]} == wanted["summary"]


def run_of(store, name):
    (row,) = store.runs(dataset=name)
    return row


@pytest.mark.parametrize("name", EXPECTED)
def test_stored_grading_says_what_it_said(place, name):
    wanted = EXPECTED[name]
    with open_store(place) as store:
        row = run_of(store, name)
        assert [row.status, row.reason, row.done] == wanted["status"]
        assert_same(stored_grading(store, row), wanted["stored"])


@pytest.mark.parametrize("name", EXPECTED)
def test_resumed_grading_asks_and_says_the_same(place, name):
    wanted, world = EXPECTED[name]["resumed"], WORLDS[name]
    roles = world.roles(repaired=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        grading = grade(world.dataset, world.grader, models=roles, storage=dm.Storage(place, resume=True), clock=CLOCK)
    assert {role: len(roles[role].client.asked) for role in sorted(roles)} == wanted["asked"]
    assert_same(grading, wanted)
    with open_store(place) as store:
        row = run_of(store, name)
        assert [row.status, row.reason, row.done] == wanted["status"]
        assert plain(list(stored_grading(store, row).items)) == wanted["items"]


def test_run_file_of_gradings_is_imported(tmp_path):
    result = called("import", str(EARLIER / "runs.jsonl"), "--store", str(tmp_path / "runs.db"))
    assert result.exit_code == 0, result.stderr
    with open_store(tmp_path / "runs.db") as store:
        for name in ("panel", "unreached", "numeric"):
            assert_same(stored_grading(store, run_of(store, name)), EXPECTED[name]["stored"])
