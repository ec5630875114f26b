"""A store returns what was written, in SQLite and in PostgreSQL."""

from __future__ import annotations

import contextlib
import gc
import itertools
import re
import sqlite3
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deemster.errors import LeaseError, MissingExtraError, RunExistsError, StoreError
from deemster.records import Execution, MetricScore, Output, SampleLabels, TargetFailure, Trajectory, Unscored, Usage
from deemster.store import _begin_run as beginning
from deemster.store import open_store
from deemster.store._database import Connection, InsertStatement
from deemster.store.graded_items import GRADING_CARD
from deemster.store.run_facts import RunEnd
from tests.store.make_runs import MARK, begun, card, counts, execution, facts, graded_item, sample, samples, written

ANYTHING = st.text(max_size=12)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**80), 2**80) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
USAGES = st.none() | st.builds(
    Usage, calls=st.integers(0, 9), cost_usd=st.none() | st.decimals(0, 9, places=6), model=TEXT
)
MARKS = st.builds(MetricScore, st.floats(0, 1), st.dictionaries(TEXT, JSON, max_size=2), usage=USAGES) | st.builds(
    Unscored, st.sampled_from(["no_expected", "target_failed"]), TEXT, USAGES
)
ANSWERS = (
    st.none()
    | st.builds(TargetFailure, TEXT)
    | st.builds(
        Output, TEXT, JSON, st.none() | st.builds(Trajectory, steps=st.integers(0, 9)), USAGES, st.none() | TEXT
    )
)
BOTH = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
NUMBERS = itertools.count(1)


def test_stored_run_reads_back_unchanged(store):
    run = facts(samples=3, suite="support-bot", seed=2**70, repetitions=2, kind="run")
    store.begin(run, samples(3), cards=[card(), card("rouge-l")])
    row = store.run("run-0")
    for name in run.__struct_fields__:
        assert getattr(row, name) == getattr(run, name)
    assert (row.status, row.reason, row.finished_at, row.duration_s, row.done) == ("running", None, None, None, 0)
    assert [scoring.cards for scoring in row.scorings] == [(card(), card("rouge-l"))]
    assert list(store.samples("run-0")) == samples(3)


def test_finished_run_has_status_and_reason(store):
    name = begun(store)
    with store.writer(name) as writer:
        writer.add([execution(0), execution(1)])
    store.finish(
        name,
        RunEnd("incomplete", reason="stopped\0", finished_at="2026-01-01T00:01:00.000Z", duration_s=0.1),
        facts={"gate": "x"},
    )
    row = store.run(name)
    assert (row.status, row.reason, row.finished_at, row.duration_s) == (
        "incomplete",
        "stopped\ufffd",
        "2026-01-01T00:01:00.000Z",
        0.1,
    )
    assert row.done == 2
    assert row.facts == {"gate": "x", "name": "naïve"}
    assert (row.scorings[0].status, row.scorings[0].done) == ("incomplete", 2)


@BOTH
@given(st.lists(st.tuples(ANSWERS, st.lists(MARKS, min_size=2, max_size=2)), min_size=1, max_size=4))
def test_execution_round_trips(store, rows):
    number = next(NUMBERS)
    name = begun(store, id=f"any-{number}", count=len(rows), cards=[card("a"), card("b")])
    made = [execution(place, answer=answer, marks=marks) for place, (answer, marks) in enumerate(rows)]
    with store.writer(name) as writer:
        writer.add(made)
    assert list(store.executions(name)) == made


@BOTH
@given(TEXT.filter(str.strip), st.lists(ANYTHING, max_size=2), st.dictionaries(TEXT, JSON, max_size=2), JSON, JSON)
def test_sample_round_trips(store, name, tags, metadata, expected, given_input):
    number = next(NUMBERS)
    valid = tuple(tag for tag in tags if tag.isprintable())
    kept = sample(0, expected_output=expected, input=given_input, metadata=metadata, tags=valid)
    kept = type(kept)(**{**{field: getattr(kept, field) for field in kept.__struct_fields__}, "id": name})
    store.begin(facts(id=f"sample-{number}", samples=1), [kept], cards=[])
    assert list(store.samples(f"sample-{number}")) == [kept]


def test_samples_can_be_read_without_their_content(store):
    name = written(store)
    without = list(store.samples(name, content=False))
    assert [(each.id, each.row_hash, each.tags, each.metadata) for each in without] == [
        (each.id, each.row_hash, each.tags, each.metadata) for each in samples()
    ]
    assert all(not each.content and each.input is None and each.expected_output is None for each in without)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.permutations(range(12)), st.integers(1, 12))
def test_executions_are_read_in_dataset_order(store, order, size):
    name = begun(store, id=f"order-{next(NUMBERS)}", count=4, repetitions=3)
    with store.writer(name) as writer:
        for start in range(0, 12, size):
            writer.add([execution(*divmod(number, 3), text=str(number)) for number in order[start : start + size]])
    found = [(each.position, each.repetition, each.answer.text) for each in store.executions(name)]
    assert found == [(*divmod(number, 3), str(number)) for number in range(12)]


def test_run_of_several_pages_is_read_completely(store, monkeypatch):
    monkeypatch.setattr("deemster.store._paged_rows.PAGE", 7)
    name = begun(store, count=50, repetitions=2)
    with store.writer(name) as writer:
        writer.add([execution(position, repetition) for position in range(50) for repetition in range(2)])
    keys = [(each.position, each.repetition) for each in store.executions(name)]
    assert keys == [(position, repetition) for position in range(50) for repetition in range(2)]
    assert [each.position for each in store.samples(name)] == list(range(50))
    assert list(store.output_times(name)) == [(position, None) for position in range(50) for _ in range(2)]


def test_retry_replaces_and_never_duplicates(store):
    name = begun(store)
    with store.writer(name) as writer:
        writer.add([execution(0, text="first"), execution(1)], at="2026-01-01T00:00:01.000Z")
        writer.add([execution(0, text="second")])
        writer.flush()
        writer.add([execution(0, text="third"), execution(2)], at="2026-01-01T00:00:02.000Z")
    assert [each.answer.text for each in store.executions(name)] == ["third", "x", "x"]
    row = store.run(name)
    assert (row.done, row.scorings[0].done) == (3, 3)
    assert counts(store, name) == {"samples": 3, "outputs": 3, "marks": 3, "scorings": 1}
    late, early = "2026-01-01T00:00:02.000Z", "2026-01-01T00:00:01.000Z"
    assert list(store.output_times(name)) == [(0, late), (1, early), (2, late)]


def test_settled_marks_are_stored_beside_raw_marks(store):
    name = begun(store)
    settled = MetricScore(1.0)
    with store.writer(name) as writer:
        writer.add([execution(position) for position in range(3)])
    store.settle(name, 0, [execution(1, marks=[settled])])
    assert [each.marks for each in store.executions(name)] == [(MARK,), (settled,), (MARK,)]
    assert [each.marks for each in store.executions(name, settled=False)] == [(MARK,)] * 3


def test_retry_removes_settled_marks(store):
    name = begun(store, count=1)
    with store.writer(name) as writer:
        writer.add([execution(0)])
        writer.flush()
        store.settle(name, 0, [execution(0, marks=[MetricScore(1.0)])])
        writer.add([execution(0, marks=[MetricScore(0.25)])])
    assert next(store.executions(name)).marks == (MetricScore(0.25),)


def test_settling_that_fails_midway_settles_nothing(store):
    name = written(store)

    def broken():
        yield execution(0, marks=[MetricScore(1.0)])
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        store.settle(name, 0, broken())
    assert [each.marks for each in store.executions(name)] == [(MARK,)] * 3


def test_report_shows_for_each_metric_the_latest_complete_scoring(store):
    name = written(store, cards=[card("a"), card("b")])
    newer, added, unfinished = MetricScore(0.75), MetricScore(0.1), MetricScore(0.9)
    first = store.open_scoring(name, [card("c"), card("b", "b/2")], identity={"n": 1})
    with store.writer(name, scoring=first, outputs=False) as writer:
        writer.add([execution(position, marks=[added, newer]) for position in range(3)])
    assert [card.name for card in store.cards(name)] == ["a", "b"]
    store.finish_scoring(name, first, RunEnd("complete", finished_at="2026", duration_s=1.0))
    second = store.open_scoring(name, [card("a", "a/2")], identity={"n": 2})
    with store.writer(name, scoring=second, outputs=False) as writer:
        writer.add([execution(0, marks=[unfinished])])
    assert [(card.name, card.identity) for card in store.cards(name)] == [
        ("a", "exact-match/1"),
        ("b", "b/2"),
        ("c", "exact-match/1"),
    ]
    assert [each.marks for each in store.executions(name)] == [(MARK, newer, added)] * 3
    assert [each.marks for each in store.executions(name, scoring=0)] == [(MARK, MARK)] * 3
    assert [each.marks for each in store.executions(name, scoring=second)] == [(unfinished,), (), ()]
    row = store.run(name)
    assert (row.status, row.duration_s) == ("complete", 1.25)
    assert [scoring.status for scoring in row.scorings] == ["complete", "complete", "running"]


def test_output_that_came_after_a_scoring_keeps_the_older_mark_or_is_not_run(store):
    name = begun(store, cards=[card("a")])
    with store.writer(name) as writer:
        writer.add([execution(0)])
    number = store.open_scoring(name, [card("a", "a/2"), card("b")], identity={})
    with store.writer(name, scoring=number, outputs=False) as writer:
        writer.add([execution(0, marks=[MetricScore(1.0), MetricScore(1.0)])])
    store.finish_scoring(name, number, RunEnd("complete", finished_at="2026", duration_s=1.0))
    with store.writer(name) as writer:
        writer.add([execution(1)])
    first, second = store.executions(name)
    assert first.marks == (MetricScore(1.0), MetricScore(1.0))
    assert second.marks[0] == MARK
    assert second.marks[1].cause == "not_run"


def rescored(store, name, number, positions, score):
    """One more complete scoring of a run by the metric `a`."""
    scoring = store.open_scoring(name, [card("a", f"a/{number}")], identity={"n": number})
    with store.writer(name, scoring=scoring, outputs=False) as writer:
        writer.add([execution(position, marks=[MetricScore(score)]) for position in positions])
    store.finish_scoring(name, scoring, RunEnd("complete", finished_at="2026", duration_s=1.0))
    return scoring


@pytest.mark.parametrize("text", ["HTTP 50%_off!", "ÄRGER", "İSTANBUL", 'a "quoted" \\ word'])
def test_text_is_found_in_upper_and_lower_case_by_both_databases(store, text):
    name = begun(store)
    with store.writer(name) as writer:
        writer.add([execution(at, text=said) for at, said in enumerate((f"see {text}", "HTTP 50x-off", text.lower()))])
    found = list(store.rows_with_text(name, text.lower(), "outputs"))
    assert [(position, row.text) for position, row in found] == [(0, f"see {text}"), (2, text.lower())]
    assert [position for position, _ in store.rows_with_text(name, "answer 1", "contents")] == [1]
    assert list(store.rows_with_text(name, "s1", "samples")) == [(1, "s1")]


def test_text_of_a_mark_that_was_replaced_is_not_found(store):
    name = begun(store, cards=[card("a")])
    with store.writer(name) as writer:
        writer.add([execution(at, marks=[MetricScore(0.5, {"reason": "too long"})]) for at in range(2)])
    scoring = store.open_scoring(name, [card("a", "a/2")], identity={})
    with store.writer(name, scoring=scoring, outputs=False) as writer:
        writer.add([execution(0, marks=[MetricScore(0.5, {"reason": "just right"})])])
    store.finish_scoring(name, scoring, RunEnd("complete", finished_at="2026", duration_s=1.0))
    found = {at: marks[0].details["reason"] for at, marks in store.rows_with_text(name, "too long", "marks")}
    assert found == {0: "just right", 1: "too long"}
    assert [at for at, _ in store.rows_with_text(name, "just right", "marks")] == [0]


def test_run_with_seventy_scorings_is_readable(store):
    name = written(store, cards=[card("a"), card("b")])
    for number in range(1, 71):
        rescored(store, name, number, range(3), number / 100)
    assert len(store.run(name).scorings) == 71
    assert [each.marks for each in store.executions(name)] == [(MetricScore(0.7), MARK)] * 3
    assert [each.marks for each in store.executions(name, scoring=33)] == [(MetricScore(0.33),)] * 3
    assert [each.marks for each in store.executions(name, since=1)] == [(MetricScore(0.7), MARK)] * 2


@pytest.mark.parametrize("page", [2, 3, 7, 2000])
def test_pages_of_several_scorings_fit_together(store, monkeypatch, page):
    monkeypatch.setattr("deemster.store._paged_rows.PAGE", page)
    name = written(store, count=9, cards=[card("a")])
    marked = {0.9: (8,), 0.1: (0, 1), 0.3: (1, 4, 5, 7)}
    for number, (score, positions) in enumerate(marked.items(), start=1):
        rescored(store, name, number, positions, score)
    latest = [next((s for s in (0.3, 0.1, 0.9) if place in marked[s]), 0.5) for place in range(9)]
    assert [each.marks for each in store.executions(name)] == [(MetricScore(score),) for score in latest]


def test_no_query_grows_with_number_of_scorings(place, monkeypatch):
    seen = set()
    with open_store(place) as store:
        name = written(store)
        stream = Connection.stream
        monkeypatch.setattr(
            Connection, "stream", lambda self, sql, values=(): seen.add(sql) or stream(self, sql, values)
        )
        rescored(store, name, 1, range(3), 0.1)
        list(store.executions(name))
        with_two = set(seen)
        for number in range(2, 6):
            rescored(store, name, number, range(3), 0.1)
            list(store.executions(name))
    assert seen == with_two


def test_unfinished_scoring_of_the_same_identity_is_continued(store):
    name = written(store)
    assert store.open_scoring(name, [card("b")], identity={"n": 1}) == 1
    assert store.open_scoring(name, [card("b")], identity={"n": 2}) == 2
    assert store.open_scoring(name, [card("b")], identity={"n": 1}) == 1
    store.finish_scoring(name, 1, RunEnd("complete", finished_at="2026", duration_s=1.0))
    assert store.open_scoring(name, [card("b")], identity={"n": 1}) == 3


def test_graded_items_are_kept_and_replaced(store):
    name = begun(store, kind="grading", cards=[GRADING_CARD])
    with store.writer(name) as writer:
        writer.add([graded_item(2, a=1), graded_item(0)])
        writer.flush()
        writer.add([graded_item(2, a=2)])
    assert list(store.executions(name)) == [graded_item(0), graded_item(2, a=2)]
    assert store.run(name).done == 2


def test_samples_of_recording_are_added_later(store):
    name = begun(store, count=0, kind="recording", cards=[])
    with store.writer(name) as writer:
        for position in range(4):
            writer.add_samples([sample(position)])
            writer.add([execution(position, marks=[])], at=f"2026-01-01T00:00:0{position}.000Z")
    row = store.run(name)
    assert (row.samples, row.done) == (4, 4)
    assert list(store.samples(name)) == samples(4)
    assert [each.marks for each in store.executions(name)] == [()] * 4
    assert [at for _, at in store.output_times(name)] == [f"2026-01-01T00:00:0{position}.000Z" for position in range(4)]


def test_runs_are_listed_newest_first_and_filtered(store):
    for number in range(4):
        begun(store, number, suite="ab"[number % 2], kind=("run", "grading")[number // 2])
    store.finish("run-1", RunEnd("complete", finished_at="2026", duration_s=1.0))

    def names(**asked):
        return [row.id for row in store.runs(**asked)]

    assert names() == ["run-3", "run-2", "run-1", "run-0"]
    assert names(suite="a") == ["run-2", "run-0"]
    assert names(kind="grading", suite="b") == ["run-3"]
    assert names(status="complete") == ["run-1"]
    assert names(since="2026-01-01T00:00:01.000Z", until="2026-01-01T00:00:03.000Z") == ["run-2", "run-1"]
    assert names(limit=1) == ["run-3"]
    assert names(dataset="other") == []


def test_run_is_found_by_id_prefix_or_as_the_latest(store):
    for name in ("20260101-aaa", "20260101-abb", "20260102-ccc"):
        begun(store, id=name)
    assert store.run("20260101-aaa").id == "20260101-aaa"
    assert store.run("20260102").id == "20260102-ccc"
    assert store.run("latest").id == "20260102-ccc"
    with pytest.raises(StoreError, match="Several runs begin with `20260101`: `20260101-abb`, `20260101-aaa`"):
        store.run("20260101")
    with pytest.raises(StoreError, match=r"holds no run `20260101-aab`\. Did you mean `20260101-a"):
        store.run("20260101-aab")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("newu", "Did you mean `neu`?"),
        ("20260101-aab", "Did you mean `20260101-aaa`?"),
        ("something", "Known: `latest`, `20260103-ccc`, `neu`, `fixed`."),
    ],
)
def test_unknown_run_is_guessed_from_the_names_of_runs(store, name, hint):
    begun(store, id="20260101-aaa", facts={"label": "fixed"})
    begun(store, id="20260102-bbb", facts={"label": "neu"})
    begun(store, id="20260103-ccc")
    with pytest.raises(StoreError, match=re.escape(f"holds no run `{name}`. {hint}")):
        store.run(name)


def test_run_of_an_experiment_is_found_by_the_experiment_and_its_label(store):
    for number, (experiment, label) in enumerate(
        [("exp-1", "short / mini"), ("exp-1", "b"), ("exp-2", "b"), (None, "b")]
    ):
        begun(store, number, experiment=experiment, facts={"label": label})
    assert [row.id for row in store.runs(experiment="exp-1")] == ["run-1", "run-0"]
    assert store.run("exp-1/short / mini").id == store.run("exp-1/short / mini").id == "run-0"
    assert store.run("exp-1/b").id == "run-1"
    assert store.run("latest/b").id == "run-2"
    assert store.run("b").id == "run-3"
    assert (store.find_experiment("latest"), store.find_experiment("exp-1"), store.find_experiment("x")) == (
        "exp-2",
        "exp-1",
        None,
    )
    with pytest.raises(StoreError, match=r"experiment `exp-1` has no run `shrt / mini`\. Did you mean `short / mini`"):
        store.run("exp-1/shrt / mini")
    with pytest.raises(StoreError, match="Several experiments begin with `exp`: `exp-1`, `exp-2`"):
        store.run("exp/b")
    with pytest.raises(StoreError, match="holds no run `nothing/b`"):
        store.run("nothing/b")


def test_latest_in_empty_store_is_error(store):
    with pytest.raises(StoreError, match="holds no run yet"):
        store.run("latest")
    with pytest.raises(StoreError, match=r"holds no run `x`\. It holds none yet"):
        store.run("x")


def test_duplicate_run_id_is_error(store):
    begun(store)
    with pytest.raises(RunExistsError, match="has a run `run-0` already"):
        begun(store)
    assert [row.id for row in store.runs()] == ["run-0"]


def test_run_is_visible_only_with_all_samples(store, monkeypatch):
    monkeypatch.setattr("deemster.store._begin_run._CHUNK_SAMPLES", 2)

    def watched():
        for each in samples(5):
            assert store.runs() == []
            with pytest.raises(StoreError, match="holds no run"):
                store.run("run-0")
            yield each

    store.begin(facts(samples=5), watched(), cards=[])
    assert store.run("latest").samples == 5


@pytest.mark.parametrize("count", [1, 7, 8, 127, 128, 129, 300])
def test_each_sample_is_stored_once(store, count):
    begun(store, count=count)
    assert list(store.samples("run-0")) == samples(count)


def test_rows_with_existing_key_are_not_inserted_twice(store):
    insert = InsertStatement("contents (row_hash, body, checksum)", "(?, ?, ?)")

    def content(number):
        return (b"%032d" % number, b"{}", number)

    with store.pool.write_transaction() as rows:
        assert rows.insert_many(insert, []) == 0
        assert rows.insert_many(insert, [content(number) for number in range(5)]) == 5
        assert rows.insert_many(insert, [content(number) for number in range(200)]) == 195
        assert rows.read("SELECT count(*), sum(checksum) FROM contents") == [(200, 199 * 100)]


def test_large_samples_are_inserted_in_small_batches(store, monkeypatch):
    monkeypatch.setattr("deemster.store._begin_run._CHUNK_BYTES", 250)
    large = [sample(position, input={"question": "x" * 100 + str(position)}) for position in range(7)]
    seen = []
    put = beginning.insert_samples
    monkeypatch.setattr(
        "deemster.store._begin_run.insert_samples",
        lambda rows, found: seen.append(len(found.samples)) or put(rows, found),
    )
    store.begin(facts(samples=7), iter(large), cards=[])
    assert seen == [2, 2, 2, 1]
    assert list(store.samples("run-0")) == large


def test_samples_with_large_metadata_are_inserted_in_small_batches(store, monkeypatch):
    monkeypatch.setattr("deemster.store._begin_run._CHUNK_BYTES", 250)
    large = [sample(position, metadata={"note": "x" * 150}) for position in range(5)]
    seen = []
    put = beginning.insert_samples
    monkeypatch.setattr(
        "deemster.store._begin_run.insert_samples",
        lambda rows, found: seen.append(len(found.samples)) or put(rows, found),
    )
    store.begin(facts(samples=5), iter(large), cards=[])
    assert max(seen) <= 2
    assert list(store.samples("run-0")) == large


@pytest.mark.parametrize(("variables", "is_enough"), [(999, True), (30, True), (7, True), (6, False)])
def test_insert_batches_respect_sqlite_limit_and_lose_no_row(tmp_path, variables, is_enough):
    with open_store(tmp_path / "runs.db") as store:
        begun(store, count=1)
        values = [(1, position, b"x", b"h", b"{}", 0, None) for position in range(1, 20)]
        insert = InsertStatement(
            "samples (run, position, id, row_hash, body, checksum, content)", "(?, ?, ?, ?, ?, ?, ?)"
        )
        refusal = contextlib.nullcontext() if is_enough else pytest.raises(StoreError, match="variable")
        with refusal, store.pool.write_transaction() as rows:
            rows._base.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, variables)
            assert rows.insert_many(insert, values) == 19


def test_lost_connection_does_not_hide_original_exception(store):
    def failing():
        with store.pool.connection() as rows, rows.large_cache():
            rows.close()
            raise StoreError("the cause")

    with pytest.raises(StoreError, match="the cause"):
        failing()


def test_executions_can_be_read_from_a_position_on(store):
    name = begun(store, count=4, repetitions=2)
    with store.writer(name) as writer:
        writer.add([execution(position, repetition) for position in (0, 1, 3) for repetition in range(2)])
    keys = [(each.position, each.repetition) for each in store.executions(name, since=1)]
    assert keys == [(1, 0), (1, 1), (3, 0), (3, 1)]
    assert [each.position for each in store.executions(name, since=2)] == [3, 3]
    assert list(store.executions(name, since=4)) == []


def test_failed_begin_leaves_no_run(store, monkeypatch):
    monkeypatch.setattr("deemster.store._begin_run._CHUNK_SAMPLES", 2)

    def broken():
        yield from samples(3)
        raise OSError("unreadable")

    with pytest.raises(OSError, match="unreadable"):
        store.begin(facts(samples=5), broken(), cards=[])
    with pytest.raises(StoreError, match="said to have 5 samples; 3 came"):
        store.begin(facts(samples=5), samples(3), cards=[])
    with store.pool.read_transaction() as rows:
        assert rows.read("SELECT count(*) FROM runs")[0][0] == rows.read("SELECT count(*) FROM samples")[0][0] == 0


def test_half_begun_run_of_dead_process_is_removed(store):
    begun(store)
    with store.pool.write_transaction() as rows:
        rows.write("UPDATE runs SET status = 'beginning', owner_host = 'elsewhere', heartbeat = heartbeat - 31")
    begun(store, 1)
    with store.pool.read_transaction() as rows:
        assert rows.read("SELECT id FROM runs") == [("run-1",)]


def test_content_is_shared_by_all_runs_and_may_be_left_out(store):
    for number in range(3):
        begun(store, number)
    with store.pool.read_transaction() as rows:
        assert rows.read("SELECT count(*) FROM contents") == [(3,)]
    bare = [sample(0, content=False)]
    store.begin(facts(3, samples=1), bare, cards=[])
    found = next(store.samples("run-3"))
    assert (found.content, found.expected_output, found.input) == (None, None, None)
    assert found.row_hash == bare[0].row_hash


def test_removed_run_is_gone_and_others_stay(store):
    written(store, 0)
    written(store, 1)
    store.remove("run-0")
    assert [row.id for row in store.runs()] == ["run-1"]
    assert len(list(store.executions("run-1"))) == 3
    with store.pool.read_transaction() as rows:
        tables = ("samples", "outputs", "marks", "scorings")
        assert [rows.read(f"SELECT count(*) FROM {table}")[0][0] for table in tables] == [3, 3, 3, 1]


def test_facts_are_merged_and_identity_is_replaced(store):
    name = written(store)
    store.amend(name, facts={"gate": 1}, identity={"seed": 2}, status="running")
    row = store.run(name)
    assert (row.facts, row.identity) == ({"gate": 1, "name": "naïve"}, {"seed": 2})
    assert (row.status, row.finished_at, row.duration_s, row.scorings[0].status) == ("running", None, None, "running")
    store.amend(name, status="mixed")
    assert store.run(name).status == "mixed"
    assert store.run(name).facts["gate"] == 1


def test_write_without_lease_is_error(store):
    name = begun(store)
    store._leases[name].release()
    for act in (
        lambda: store.writer(name),
        lambda: store.settle(name, 0, []),
        lambda: store.amend(name, status="mixed"),
        lambda: store.open_scoring(name, [], identity={}),
        lambda: store.finish(name, RunEnd("complete")),
    ):
        with pytest.raises(LeaseError, match="not leased here"):
            act()


@pytest.mark.parametrize("scoring", [-1, 1])
def test_unknown_scoring_is_error(store, scoring):
    name = begun(store)
    with pytest.raises(StoreError, match=f"has no scoring {scoring}"):
        store.executions(name, scoring=scoring)


def test_lone_surrogates_are_replaced_and_output_is_invalid(store):
    name = begun(store)
    with store.writer(name) as writer:
        writer.add([execution(0, text="a\ud800b"), execution(1, marks=[Unscored("bad_output", "\udfff")])])
        writer.add([execution(2, text="again", valid=False)])
    first, second, third = store.executions(name)
    assert (first.answer.text, first.valid) == ("a\ufffdb", False)
    assert (second.marks[0].message, second.valid) == ("\ufffd", True)
    assert not third.valid


def test_numbers_of_any_length_are_kept(store):
    wide = [2**63, -(2**70), 10**4000, 10**5000]
    name = begun(store, count=1)
    with store.writer(name) as writer:
        writer.add([execution(0, answer=Output("x", retrieved=wide))])
    found = next(store.executions(name)).answer.retrieved
    assert [int(value, 16) if isinstance(value, str) else value for value in found] == wide


def test_id_may_hold_nul_and_surrogates(store):
    odd = sample(0)
    odd = type(odd)(0, "a\0b\ud800", odd.row_hash, SampleLabels(), None)
    store.begin(facts(samples=1), [odd], cards=[card()])
    with store.writer("run-0") as writer:
        writer.add([Execution(0, "a\0b\ud800", 0, Output("x\0"), (MARK,))])
    assert next(store.executions("run-0")).id == "a\0b\ufffd"
    assert next(store.executions("run-0")).answer.text == "x\0"


@pytest.mark.parametrize("character", ["x", "é", "🎈"])
def test_output_of_one_mebibyte_is_not_cut(store, character):
    text = character * ((1 << 20) // len(character.encode()))
    name = begun(store, count=1)
    with store.writer(name) as writer:
        writer.add([execution(0, text=text)])
    found = next(store.executions(name))
    assert (found.answer.text == text, found.cut) == (True, None)


def test_larger_output_is_cut_and_keeps_its_hash(store):
    import hashlib

    text = "é" * (1 << 19) + "n"
    name = begun(store, count=2)
    with store.writer(name) as writer:
        writer.add([execution(0, answer=Output(text, retrieved=["d" * (1 << 20), "e"], model="m"))])
        writer.add([execution(1, answer=TargetFailure("e" * (1 << 21)))])
    first, second = store.executions(name)
    assert first.answer.text == text[:-1]
    assert (first.answer.retrieved, first.answer.model) == (None, "m")
    assert first.cut.chars == len(text)
    assert first.cut.sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert first.cut.left_out == ("retrieved",)
    assert len(second.answer.message) == 1 << 20


def test_rewriting_cut_output_keeps_it(store):
    name = begun(store, count=1)
    with store.writer(name) as writer:
        writer.add([execution(0, text="x" * (1 << 21))])
    first = next(store.executions(name))
    with store.writer(name) as writer:
        writer.add([first])
    assert next(store.executions(name)) == first


def test_several_threads_write_and_read_at_once(store):
    name = begun(store, count=200, repetitions=1)
    seen = []

    def write(part):
        for position in range(part, 200, 4):
            writer.add([execution(position, text=str(position))])

    def read():
        while len(seen) < 200:
            seen[:] = [each.answer.text for each in store.executions(name)]

    with store.writer(name) as writer:
        threads = [threading.Thread(target=write, args=(part,)) for part in range(4)]
        reader = threading.Thread(target=read)
        for thread in (*threads, reader):
            thread.start()
        for thread in threads:
            thread.join()
        writer.flush()
        reader.join()
    assert seen == [str(position) for position in range(200)]


def test_abandoned_read_leaves_store_usable(store):
    name = written(store)
    reader = store.executions(name)
    next(reader)
    reader.close()
    assert len(list(store.executions(name))) == 3


def test_use_of_closed_store_is_error(place):
    store = open_store(place)
    store.close()
    with pytest.raises(StoreError, match="The store is closed"):
        store.runs()


def test_failed_transaction_is_rolled_back(store):
    name = written(store)

    def half():
        with store.pool.write_transaction() as rows:
            rows.write("DELETE FROM marks")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        half()
    assert [each.marks for each in store.executions(name)] == [(MARK,)] * 3


def test_postgres_without_extra_is_error(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match=r"deemster\[postgres\]"):
        open_store("postgresql://localhost/x")


def test_unknown_url_scheme_is_error():
    with pytest.raises(StoreError, match="`mysql://` is no kind of store"):
        open_store("mysql://localhost/x")


def test_unreachable_server_is_one_line_error_without_password(tmp_path):
    with pytest.raises(StoreError) as caught:
        open_store(f"postgresql://me:hunter2@/x?host={tmp_path}")
    assert "\n" not in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert str(caught.value).startswith("postgresql://me@/x: The store cannot be used: ")


def test_password_is_never_shown(postgres_url):
    with open_store(postgres_url.replace("postgres:@", "postgres:hunter2@")) as store:
        assert "hunter2" not in store.where


def test_sqlite_writer_does_not_wait_for_readers(tmp_path):
    with open_store(tmp_path / "runs.db") as store:
        name = begun(store)
        with contextlib.closing(sqlite3.connect(tmp_path / "runs.db")) as reader:
            reader.execute("BEGIN")
            assert reader.execute("SELECT count(*) FROM outputs").fetchone() == (0,)
            with store.writer(name) as writer:
                writer.add([execution(0)])
            assert reader.execute("SELECT count(*) FROM outputs").fetchone() == (0,)
            reader.rollback()
        reader.close()
        assert len(list(store.executions(name))) == 1


def test_store_that_is_garbage_closes_its_connections(tmp_path):
    store = open_store(tmp_path / "runs.db")
    with store.pool.connection() as connection:
        pass
    del store
    gc.collect()

    with pytest.raises(StoreError):
        list(connection.stream("SELECT 1"))
