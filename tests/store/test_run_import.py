"""A run file may come from anywhere: it is taken in whole, or refused in words, and nothing of it is left behind."""

from __future__ import annotations

import itertools
import json
import sqlite3
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deemster.errors import RunExistsError, StoreError
from deemster.store import open_store
from deemster.store import run_import as importing_module
from deemster.store.find_damage import find_damage
from deemster.store.run_export import export_runs
from deemster.store.run_file_check import check_run_file
from deemster.store.run_import import import_runs
from tests.store.make_run_files import graded, resealed, rest, rich, run_content, with_entries
from tests.store.make_runs import MARK, execution, facts, samples, written
from tests.store.test_run_store import JSON

TABLES = ("runs", "contents", "samples", "outputs", "scorings", "marks")
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """The lines of a good run file with a run and a grading of an earlier version, its long output shortened."""
    folder = tmp_path_factory.mktemp("good")
    with open_store(folder / "runs.db") as store:
        export_runs(store, [rich(store), graded(store)], folder / "runs.jsonl")
    lines = (folder / "runs.jsonl").read_bytes().splitlines()
    lines = resealed(list(with_entries(lines))).splitlines()
    return [line if len(line) < 10_000 else line.replace(b"x" * (1 << 20), b"xx") for line in lines]


@pytest.fixture
def target(tmp_path):
    with open_store(tmp_path / "target.db") as held:
        yield held


def rows_of(store):
    with store.pool.read_transaction() as rows:
        return {table: rows.read(f"SELECT COUNT(*) FROM {table}")[0][0] for table in TABLES}


def taken(store, folder, data):
    path = folder / f"{next(NUMBERS)}.jsonl"
    path.write_bytes(data)
    try:
        return import_runs(store, path)
    finally:
        path.unlink()


def only_refused(store, folder, data):
    """Import something that may be rubbish: refused with nothing left behind, or taken in as a sound run."""
    try:
        runs = taken(store, folder, data)
    except StoreError as error:
        faults = list(map(str, error.issues))
    else:
        faults = []
    if faults:
        assert all("\n" not in fault and len(fault) < 2000 for fault in faults)
        assert set(rows_of(store).values()) == {0}
        return False
    assert list(find_damage(store)) == []
    for run in runs:
        run_content(store, run.id)
        store.remove(run.id)
    with store.pool.write_transaction() as rows:
        rows.write("DELETE FROM contents")
    return True


def test_fixture_run_file_is_valid(good, target, tmp_path):
    assert only_refused(target, tmp_path, resealed(good))


def test_import_of_existing_run_changes_nothing(tmp_path, target):
    name = rich(target)
    before = run_content(target, name)
    export_runs(target, [name], tmp_path / "run.jsonl")
    assert [run.is_known for run in import_runs(target, tmp_path / "run.jsonl")] == [True]
    assert run_content(target, name) == before


def test_different_run_with_same_id_rejects_the_file(tmp_path, target):
    with open_store(tmp_path / "source.db") as source:
        names = [rest(source, written(source, 1)), rich(source)]
        export_runs(source, names, tmp_path / "runs.jsonl")
    rest(target, written(target, 0, count=2))
    before = run_content(target, "run-0")
    with pytest.raises(RunExistsError, match="has another run `run-0` already; nothing was taken in"):
        import_runs(target, tmp_path / "runs.jsonl")
    assert [run.id for run in target.runs()] == ["run-0"]
    assert run_content(target, "run-0") == before


def test_imported_run_is_marked_as_imported(tmp_path, target):
    with open_store(tmp_path / "source.db") as source:
        export_runs(source, [rest(source, written(source))], tmp_path / "runs.jsonl")
    import_runs(target, tmp_path / "runs.jsonl")
    assert target.run("run-0").facts["received"] is True
    assert b"received" not in (tmp_path / "runs.jsonl").read_bytes()


def test_shared_contents_are_stored_once(tmp_path, target):
    with open_store(tmp_path / "source.db") as source:
        names = [rest(source, written(source, number)) for number in (0, 1)]
        export_runs(source, names, tmp_path / "runs.jsonl")
    import_runs(target, tmp_path / "runs.jsonl")
    assert (rows_of(target)["contents"], rows_of(target)["samples"]) == (3, 6)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "The file is empty."),
        (b"\n", "The file is empty."),
        (b"\xff\xfe", ":1: This cannot be read as JSON"),
        (b'{"schema_version": "deemster.report.v1"}\n', ":1: A run file begins with a line whose schema_version is"),
        (b'{"schema_version": "deemster.run.v1", "tool_version": "1", "runs": 1}\n', "The file holds 0 runs"),
        (b'{"schema_version": "deemster.run.v1", "tool_version": "1", "runs": "1"}\n', ":1: This line does not have"),
        (b"[" * 100_000, ":1: This cannot be read as JSON"),
    ],
)
def test_non_run_file_is_error_at_first_line(target, tmp_path, data, said):
    with pytest.raises(StoreError, match="jsonl") as caught:
        taken(target, tmp_path, data)
    assert said in str(caught.value)


def test_missing_file_is_one_line_error(target, tmp_path):
    with pytest.raises(StoreError, match=r"nope\.jsonl: There is no such file\."):
        import_runs(target, tmp_path / "nope.jsonl")
    with pytest.raises(StoreError, match=r"The file cannot be read: Is a directory\."):
        import_runs(target, tmp_path)


def test_endless_line_is_error_before_it_fills_memory(target, tmp_path, monkeypatch, good):
    monkeypatch.setattr("deemster.store.run_file_check.LONGEST", 1 << 20)
    with pytest.raises(StoreError, match=r":3: The line is longer than 1 MiB\."):
        taken(target, tmp_path, b"\n".join([*good[:2], b'{"a":"' + b"x" * (2 << 20)]))


CHANGES = [
    (b'"line":"sample","position":0', b'"line":"sample","position":1', "Samples stand in order from 0"),
    (b'"question":"0?"', b'"question":"1?"', "`row_hash` is not the hash of this input and expected output."),
    (b'"line":"output","position":0,"repetition":1', b'"line":"output","position":0,"repetition":0', "each once"),
    (b'"line":"output","position":3', b'"line":"output","position":4', "may go beyond those of the run"),
    (b'"repetitions":2', b'"repetitions":1', "may go beyond those of the run"),
    (b'"scoring":1,"position":0', b'"scoring":2,"position":0', "There is no scoring 2."),
    (b'"scoring":1,"position":0', b'"scoring":1,"position":2', "There is no output that these marks could be about."),
    (b'"marks":[{"type":"score","score":0.125}]', b'"marks":[]', "The scoring has 1 metric"),
    (b'"score":0.125', b'"score":1.125', "A score is a finite number between 0 and 1"),
    (b'"score":0.125', b'"score":true', "Expected `float`"),
    (b'"score":0.125', b'"score":0.125,"bonus":1', "`$.marks[0].bonus` is no key of this line."),
    (b'"score":0.125', b'"score":0.125,"score":0.25', "a key is given twice"),
    (b'"score":0.125', b'"score":NaN', "This cannot be read as JSON"),
    (b'"status":"incomplete"', b'"status":"beginning"', "Invalid enum value"),
    (
        b'{"line":"marks","scoring":0,"position":3',
        b'{"line":"marks","scoring":1,"position":3',
        "The scoring has 1 metric",
    ),
    (b'"metadata":{"tags":["easy"],"rank":1}', b'"metadata":{"tags":[null],"rank":1}', "`tags` of a sample's metadata"),
    (b'"metadata":{"tags":["easy"],"rank":1}', b'"metadata":{"tags":7,"rank":1}', "`tags` of a sample's metadata"),
    (b'"repetitions":2', b'"repetitions":1000000,"x":1', "unknown field `x`"),
    (b'"kind":"run",', b"", "This line does not have the shape of `deemster.run.v1`: it lacks `kind`."),
    (b'"samples":4', b'"samples":2147483647', "A run of a file has at most 100,000,000 executions."),
    (b'"facts":{', b'"facts":{"received":false,', "`received` is no fact of a run file."),
    (b'"suite":"support"', b'"suite":"sup\\u001b[31mport"', None),
    (b'"kind":"grading"', b'"kind":"run"', "Only a grading has entries."),
    (b'"line":"entry","position":1', b'"line":"entry","position":0', "Entries stand in the order of position"),
    (b'"id":"s1"', b'"id":"s0"', "Two samples of the run have the same id."),
    (b'"line":"scoring","number":1', b'"line":"scoring","number":2', "this should be 1, not 2"),
    (b'"name":"rouge-l"', b'"name":"exact-match"', "Two metrics of this scoring have the same name."),
    (b'"line":"marks"', b'"line":"mark"', "`mark` is no line of a run file. Did you mean `marks`?"),
    (b'"id":"run-1"', b'"id":"run-0"', "The run `run-0` stands in the file twice."),
    (b'"samples":4', b'"samples":5', "The run has 5 samples by its first line, 4 by count."),
    (b'"dataset":"golden"', b'"dataset":"gol\\u0000den"', "Expected `str` matching regex"),
    (b'"started_at":"2026-01-01T00', b'"started_at":"yesterday', "Expected `str` matching regex"),
    (b'"seed":1180591620717411303424', b'"seed":' + b"9" * 5000, "This cannot be read as JSON"),
]


@pytest.mark.parametrize(("old", "new", "said"), CHANGES)
def test_forged_line_with_valid_checksum_is_error(good, target, tmp_path, old, new, said):
    assert any(old in line for line in good), old
    forged = resealed([line.replace(old, new) for line in good])
    if said is None:
        assert only_refused(target, tmp_path, forged)
        return
    with pytest.raises(StoreError) as caught:
        taken(target, tmp_path, forged)
    assert said in str(caught.value)
    assert set(rows_of(target).values()) == {0}


def test_output_without_marks_is_error(good, target, tmp_path):
    lines = [line for line in good if b'"line":"marks","scoring":0,"position":3' not in line]
    assert len(lines) == len(good) - 1
    with pytest.raises(StoreError, match="Every output has marks of the scoring 0; some are missing"):
        taken(target, tmp_path, resealed(lines))


def test_imported_sample_cannot_change_other_run(good, target, tmp_path):
    name = rest(target, written(target, 7))
    before = run_content(target, name)
    first = next(line for line in good if b'"line":"sample"' in line)
    honest = json.loads(first)
    honest["content"]["expected_output"] = "what the attacker likes"
    with pytest.raises(StoreError, match="`row_hash` is not the hash"):
        taken(target, tmp_path, resealed([json.dumps(honest).encode() if line == first else line for line in good]))
    assert run_content(target, name) == before


def test_up_to_a_hundred_issues_are_listed_with_lines(good, tmp_path):
    lines = [line.replace(b'"type":"score"', b'"type":"scor"') for line in good]
    (tmp_path / "runs.jsonl").write_bytes(b"\n".join(lines))
    with pytest.raises(StoreError) as caught:
        check_run_file(tmp_path / "runs.jsonl")
    wrong = [number for number, line in enumerate(lines, start=1) if b'"scor"' in line]
    assert [fault.where for fault in caught.value.issues] == [f"{tmp_path}/runs.jsonl:{number}" for number in wrong]
    head = good[:6]
    (tmp_path / "runs.jsonl").write_bytes(b"\n".join([*head, *[b"{}"] * 1000]))
    with pytest.raises(StoreError) as caught:
        check_run_file(tmp_path / "runs.jsonl")
    assert len(caught.value.issues) == 100


@pytest.mark.parametrize("kept", range(1, 29, 3))
def test_truncated_file_is_error(good, target, tmp_path, kept):
    assert len(good) >= 29
    with pytest.raises(StoreError):
        taken(target, tmp_path, b"\n".join(good[:kept]))
    data = resealed(good)
    with pytest.raises(StoreError):
        taken(target, tmp_path, data[: len(data) * kept // 30])
    assert set(rows_of(target).values()) == {0}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_changed_bytes_are_error_or_harmless(good, target, tmp_path, data):
    whole = bytearray(resealed(good))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(whole) - 1))
        how = data.draw(st.sampled_from(["flip", "insert", "drop", "copy"]))
        if how == "flip":
            whole[at] ^= 1 << data.draw(st.integers(0, 7))
        elif how == "insert":
            whole[at:at] = data.draw(st.binary(min_size=1, max_size=8) | st.sampled_from([b"\n", b"{", b'"', b"\0"]))
        elif how == "drop":
            del whole[at : at + data.draw(st.integers(1, 400))]
        else:
            whole[at:at] = whole[: data.draw(st.integers(1, 2000))]
    only_refused(target, tmp_path, bytes(whole))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_forged_file_is_error_or_valid_run(good, target, tmp_path, data):
    lines = list(good)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(lines) - 1))
        how = data.draw(st.sampled_from(["value", "value", "value", "drop", "twice", "swap"]))
        if how == "drop":
            del lines[at]
        elif how == "twice":
            lines.insert(at, lines[at])
        elif how == "swap":
            other = data.draw(st.integers(0, len(lines) - 1))
            lines[at], lines[other] = lines[other], lines[at]
        else:
            value = json.loads(lines[at])
            change(data, value)
            lines[at] = json.dumps(value).encode("utf-8", "surrogatepass")
    only_refused(target, tmp_path, resealed(lines))


def change(data, value):
    """Put something else somewhere into a value."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = data.draw(st.sampled_from(keys))
        if not isinstance(value[key], (dict, list)) or data.draw(st.booleans()):
            value[key] = data.draw(JSON | st.sampled_from([-1, 2**31, 2**63, 1e308, "", "\x00", [], {}]))
            return
        value = value[key]


class DiskFullError(StoreError):
    """A replacement for the error of a full store."""


@pytest.mark.parametrize("after", range(5))
def test_failed_import_is_rolled_back(good, target, tmp_path, monkeypatch, after):
    count = itertools.count()
    whole = importing_module._RunInserter._write

    def failing(self):
        if next(count) == after:
            raise DiskFullError("the disk is full")
        whole(self)

    monkeypatch.setattr(importing_module._RunInserter, "_write", failing)
    with pytest.raises(DiskFullError):
        taken(target, tmp_path, resealed(good))
    found = rows_of(target)
    assert {found[table] for table in TABLES if table != "contents"} == {0}


def test_file_changed_between_check_and_import_is_error(good, target, tmp_path, monkeypatch):
    path = tmp_path / "runs.jsonl"
    path.write_bytes(resealed(good))
    checked = check_run_file(path)
    monkeypatch.setattr(importing_module, "check_run_file", lambda _: checked)
    path.write_bytes(resealed(good).replace(b'"score":0.125', b'"score":0.375'))
    with pytest.raises(StoreError, match="The file changed while it was read"):
        import_runs(target, path)
    path.write_bytes(b"\n".join(good[:8]))
    with pytest.raises(StoreError, match="The file changed while it was read"):
        import_runs(target, path)
    found = rows_of(target)
    assert {found[table] for table in TABLES if table != "contents"} == {0}


def test_reader_never_sees_partial_import(tmp_path, target):
    with open_store(tmp_path / "source.db") as source:
        run = facts(samples=2000)
        lease = source.begin(run, samples(2000), cards=())
        with source.writer(run.id) as writer:
            writer.add([execution(position, marks=()) for position in range(2000)])
        lease.release()
        export_runs(source, [run.id], tmp_path / "run.jsonl")
    seen, ended = set(), threading.Event()

    def watch():
        with open_store(tmp_path / "target.db") as reader:
            while not ended.is_set():
                seen.update((row.samples, row.done, row.status) for row in reader.runs())

    watcher = threading.Thread(target=watch)
    watcher.start()
    import_runs(target, tmp_path / "run.jsonl")
    ended.set()
    watcher.join()
    assert seen <= {(2000, 2000, "running")}
    assert [row.done for row in target.runs()] == [2000]


def test_next_import_removes_rest_of_killed_import(good, target, tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importing_module, "delete_run", lambda *_: None)
        patch.setattr(importing_module._RunInserter, "finish", interrupt)
        with pytest.raises(KeyboardInterrupt):
            taken(target, tmp_path, resealed(good))
    assert target.runs() == []
    with sqlite3.connect(tmp_path / "target.db") as base:
        assert base.execute("SELECT COUNT(*) FROM outputs").fetchone()[0] > 0
    base.close()
    assert [run.is_known for run in taken(target, tmp_path, resealed(good))] == [False, False]
    assert list(find_damage(target)) == []


def interrupt(*_):
    raise KeyboardInterrupt


def test_imported_marks_equal_exported_marks(target, tmp_path):
    name = rest(target, written(target))
    export_runs(target, [name], tmp_path / "run.jsonl")
    target.remove(name)
    import_runs(target, tmp_path / "run.jsonl")
    assert [each.marks for each in target.executions(name)] == [(MARK,)] * 3
