"""A run file holds the complete run, and an importing store has the same content."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deemster.errors import LeaseError, StoreError
from deemster.records import Execution
from deemster.store import open_store
from deemster.store.run_export import export_runs, run_digest
from deemster.store.run_import import import_runs
from tests.store.make_run_files import TWO, graded, rest, rich, run_content
from tests.store.make_runs import begun, execution, facts, sample, written
from tests.store.test_run_store import ANSWERS, JSON, MARKS, TEXT

NUMBERS = itertools.count()
QUICK = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def other(tmp_path):
    with open_store(tmp_path / "other.db") as held:
        yield held


def test_imported_run_equals_original(store, other, tmp_path):
    names = [rich(store), graded(store)]
    export_runs(store, names, tmp_path / "runs.jsonl")
    assert [(taken.id, taken.is_known) for taken in import_runs(other, tmp_path / "runs.jsonl")] == [
        (name, False) for name in names
    ]
    for name in names:
        assert run_content(other, name) == run_content(store, name)


def test_export_import_round_trip_keeps_bytes(store, other, tmp_path):
    names = [rich(store), graded(store)]
    export_runs(store, names, tmp_path / "there.jsonl")
    import_runs(other, tmp_path / "there.jsonl")
    export_runs(other, names, tmp_path / "back.jsonl")
    assert (tmp_path / "back.jsonl").read_bytes() == (tmp_path / "there.jsonl").read_bytes()
    for name in names:
        store.remove(name)
    import_runs(store, tmp_path / "back.jsonl")
    for name in names:
        assert run_content(store, name) == run_content(other, name)


def test_experiment_of_a_run_is_kept_and_a_run_of_none_lacks_the_key(store, other, tmp_path):
    names = [rest(store, written(store, 0, experiment="trial")), rest(store, written(store, 1))]
    export_runs(store, names, tmp_path / "runs.jsonl")
    import_runs(other, tmp_path / "runs.jsonl")
    assert [run.experiment for run in other.runs()] == [None, "trial"]
    assert [run.id for run in other.runs(experiment="trial")] == ["run-0"]
    heads = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines() if '"line":"run"' in line]
    assert [head.get("experiment", "no key") for head in heads] == ["trial", "no key"]


@QUICK
@given(
    answers=st.lists(ANSWERS, min_size=1, max_size=3),
    marks=st.tuples(MARKS, MARKS),
    expected=JSON,
    question=st.dictionaries(TEXT, JSON, max_size=3),
    note=st.dictionaries(TEXT, JSON, max_size=3),
)
def test_export_holds_everything_of_a_run(store, other, tmp_path, answers, marks, expected, question, note):
    run = facts(samples=len(answers), facts=note, identity=note)
    run = type(run)(**{**{name: getattr(run, name) for name in run.__struct_fields__}, "id": f"run-{next(NUMBERS)}"})
    given_samples = [sample(place, expected_output=expected, input=question) for place in range(len(answers))]
    store.begin(run, given_samples, cards=TWO)
    with store.writer(run.id) as writer:
        writer.add([Execution(place, f"s{place}", 0, answer, marks) for place, answer in enumerate(answers)])
    rest(store, run.id)
    export_runs(store, [run.id], tmp_path / "run.jsonl")
    import_runs(other, tmp_path / "run.jsonl")
    assert run_content(other, run.id) == run_content(store, run.id)


def test_run_file_has_header_and_end_line_with_counts(other, tmp_path):
    name = rich(other)
    export_runs(other, [name], tmp_path / "run.jsonl")
    first, *_, last = map(json.loads, (tmp_path / "run.jsonl").read_bytes().splitlines())
    assert (first["schema_version"], first["runs"]) == ("deemster.run.v1", 1)
    counts = {kind: last[kind] for kind in ("id", "samples", "outputs", "marks", "entries")}
    assert counts == {"id": name, "samples": 4, "outputs": 6, "marks": 7, "entries": 0}
    assert last["sha256"] == run_digest(other, name)


def test_export_of_run_in_progress_is_error(other, tmp_path):
    name = begun(other)
    with pytest.raises(LeaseError, match="is not at rest: process"):
        export_runs(other, [name], tmp_path / "run.jsonl")
    assert not (tmp_path / "run.jsonl").exists()


def test_export_of_damaged_run_is_error_and_keeps_existing_file(other, tmp_path):
    name = rest(other, written(other))
    (tmp_path / "run.jsonl").write_text("before")
    with other.pool.write_transaction() as rows:
        rows.write("UPDATE outputs SET body = ? WHERE position = 1", (b'{"answer":null}',))
    with pytest.raises(StoreError, match="the output at position 1 does not fit its check sum"):
        export_runs(other, [name], tmp_path / "run.jsonl")
    with other.pool.write_transaction() as rows:
        rows.write("DELETE FROM outputs WHERE position = 1")
        rows.write("DELETE FROM marks WHERE position = 1")
    with pytest.raises(StoreError, match="rows are missing"):
        export_runs(other, [name], tmp_path / "run.jsonl")
    assert (tmp_path / "run.jsonl").read_text() == "before"
    assert sorted(path.name for path in tmp_path.glob("*.jsonl")) == ["run.jsonl"]


def test_unknown_run_and_unwritable_path_are_one_line_errors(other, tmp_path):
    with pytest.raises(StoreError, match="holds no run `nope`"):
        export_runs(other, ["nope"], tmp_path / "run.jsonl")
    name = rest(other, written(other))
    with pytest.raises(
        StoreError, match=r"nowhere/run\.jsonl: The file cannot be written: No such file or directory\."
    ):
        export_runs(other, [name], tmp_path / "nowhere" / "run.jsonl")


def test_oversized_sample_is_error_before_writing(other, tmp_path):
    run = facts(samples=1)
    other.begin(run, [sample(0, input={"text": "x" * (17 << 20)})], cards=TWO).release()
    with pytest.raises(StoreError, match="The sample at position 0 is longer than the 16 MiB"):
        export_runs(other, [run.id], tmp_path / "run.jsonl")
    assert not (tmp_path / "run.jsonl").exists()


def test_export_holds_executions_of_one_run_only(other, tmp_path):
    names = [rest(other, written(other, number)) for number in (0, 1)]
    export_runs(other, names[:1], tmp_path / "run.jsonl")
    text = (tmp_path / "run.jsonl").read_text()
    assert names[0] in text
    assert names[1] not in text
    assert execution(0).answer.text in text
