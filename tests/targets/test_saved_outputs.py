"""Saved outputs: every form, every fault."""

from __future__ import annotations

import json
import os
import pickle
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deemster.errors import InputError, MissingExtraError, OutputsError
from deemster.records import Output, Sample, TargetFailure
from deemster.targets.saved_outputs import SavedOutputs
from tests.builders.json_lines import json_lines


def load(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return SavedOutputs.load(path)


def messages(act):
    with pytest.raises(OutputsError) as caught:
        act()
    return [f"{fault.where}|{fault.sample}|{fault.message}" for fault in caught.value.issues]


def test_map_holds_texts_lists_or_entries():
    saved = SavedOutputs({"a": ["x", "y"], "b": {"outputs": ["p", "q"]}, "c": ["1", "2"]})
    assert saved.repetitions == 2
    assert len(saved) == 3
    assert saved.answers(["c", "a"], 1) == [Output("2"), Output("y")]
    assert SavedOutputs({"a": "x"}).answers(["a"]) == [Output("x")]


ENTRIES = [
    {"id": "a", "output": "x", "retrieved": ["d1"], "usage": {"prompt_tokens": 3}, "model": "m",
     "trajectory": {"tools": ["search"]}},
    {"id": "b", "actual_output": "y"},
    {"id": "c", "error": "time-out"},
    {"id": "d", "outputs": ["\ud800"]},
]  # fmt: skip


@pytest.mark.parametrize("kind", ["json", "jsonl", "python"])
def test_entries_read_same_in_every_form(tmp_path, kind):
    if kind == "python":
        saved = SavedOutputs(ENTRIES)
    else:
        root = {"schema_version": "deemster.outputs.v1", "outputs": ENTRIES}
        head = {"schema_version": "deemster.outputs.v1"}
        saved = load(tmp_path, f"o.{kind}", json.dumps(root) if kind == "json" else json_lines(head, *ENTRIES))
    first, *rest = saved.answers(["a", "b", "c", "d"])
    assert isinstance(first, Output)
    assert first.retrieved == ["d1"]
    assert first.usage is not None
    assert first.usage.prompt_tokens == 3
    assert first.trajectory is not None
    assert first.trajectory.tool_calls[0].name == "search"
    assert first.model == "m"
    assert rest == [Output("y"), TargetFailure("time-out"), Output("\ud800")]
    saved.check(["a", "b", "c", "d"], 1)


def test_csv_of_a_european_excel_and_workbook_are_read(tmp_path):
    import openpyxl

    saved = load(tmp_path, "o.csv", "\ufeffid;output\r\na;x, y\r\nb;z\r\n;\r\n")
    book = openpyxl.Workbook()
    for row in (["id", "output"], ["a", "x, y"], ["b", "z"]):
        book.active.append(row)
    book.save(tmp_path / "o.xlsx")
    same = SavedOutputs.load(tmp_path / "o.xlsx")
    assert saved.answers(["a", "b"]) == same.answers(["a", "b"]) == [Output("x, y"), Output("z")]


def test_yaml_and_csv_are_read(tmp_path):
    saved = load(tmp_path, "o.yml", "outputs:\n  a: 'x'\n  b: {output: y}\n")
    assert saved.answers(["b", "a"]) == [Output("y"), Output("x")]
    saved = load(tmp_path, "o.csv", "id,output,repetition\na,x,0\na,,1\nb,z,1\nb,w,0\n")
    assert saved.repetitions == 2
    assert saved.answers(["a", "b"], 1) == [Output(""), Output("z")]
    assert load(tmp_path, "o.tsv", "output\tid\nx,y\ta\n").answers(["a"]) == [Output("x,y")]


def write_parquet(path, columns, **options):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), path, **options)
    return path


def test_parquet_gives_the_answers_of_csv(tmp_path):
    columns = {"id": ["a", "a", "b", "b"], "output": ["x", "", "z", "w"], "repetition": [None, 1, 1, 0]}
    same = load(tmp_path, "o.csv", "id,output,repetition\na,x,\na,,1\nb,z,1\nb,w,0\n")
    saved = SavedOutputs.load(write_parquet(tmp_path / "o.parquet", columns))
    assert saved.repetitions == same.repetitions == 2
    for repetition in (0, 1):
        assert saved.answers(["b", "a"], repetition) == same.answers(["b", "a"], repetition)
    assert saved.check(["a", "b"], 2) is None


@pytest.mark.parametrize(
    ("columns", "where", "said"),
    [
        ({"id": ["a"], "outptu": ["x"]}, "", "Did you mean `output`?"),
        ({"output": ["x"]}, "", "The column `id` is missing."),
        ({"id": [1], "output": ["x"]}, "", "The column `id` has the Parquet type int64; text must stand there."),
        ({"id": ["a"], "output": ["x"], "repetition": ["0"]}, "", "string; whole numbers must stand there."),
        ({"id": ["a", "b"], "output": ["x", None]}, "#/1", "output must be text (a failure is an `error`), not null."),
        ({"id": ["a", " "], "output": ["x", "y"]}, "#/1", "id is blank."),
        ({"id": ["a", "a"], "output": ["x", "y"]}, "#/1", "Repetition 0 is given twice."),
        ({"id": ["a"], "output": ["x"], "repetition": [-1]}, "#/0", "at least 0"),
    ],
)
def test_issue_of_parquet_has_row(tmp_path, columns, where, said):
    path = write_parquet(tmp_path / "o.parquet", columns)
    with pytest.raises(OutputsError) as caught:
        SavedOutputs.load(path)
    assert said in str(caught.value)
    assert caught.value.issues[0].where == f"{path}{where}"


def test_parquet_without_rows_or_that_is_none_is_error(tmp_path):
    import pyarrow as pa

    nothing = pa.array([], pa.string())
    with pytest.raises(OutputsError, match="There are no outputs"):
        SavedOutputs.load(write_parquet(tmp_path / "o.parquet", {"id": nothing, "output": nothing}))
    with pytest.raises(OutputsError, match="This is not Parquet"):
        load(tmp_path, "p.parquet", "PAR1")


def test_outputs_in_parquet_without_pyarrow_name_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"deemster\[parquet\]") as caught:
        load(tmp_path, "o.parquet", "PAR1")
    # A worker of a cluster sends it.
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_excerpt_of_parquet_is_read_in_the_file(tmp_path):
    ids = [f"s{number}" for number in range(100)]
    columns = {"id": ids * 2, "output": [f"{name} word" * 50 for name in ids * 2], "repetition": [0] * 100 + [1] * 100}
    path = write_parquet(tmp_path / "o.parquet", columns, row_group_size=100)
    saved = SavedOutputs.load(path)
    sent = pickle.dumps(saved.excerpt(ids[40:60]))
    assert b"word" not in sent
    part = pickle.loads(sent)
    assert (len(part), part.repetitions) == (20, 2)
    asked = ids[59:39:-1]
    assert part.answers(asked, 1) == saved.answers(asked, 1)
    os.utime(path, (1, 1))
    with pytest.raises(OutputsError, match="has changed since it was loaded"):
        pickle.loads(sent).answers(["s40"])


BAD = [
    ({"id": "a"}, "A saved output has one of `output`, `actual_output`, `outputs`, `error`; this one gives none."),
    ({"id": "a", "output": "x", "error": "y"}, "this one gives `output`, `error`"),
    ({"output": "x"}, "`id` is missing."),
    ({"id": " ", "output": "x"}, "id is blank."),
    ({"id": 7, "output": "x"}, "id must be text, not a number. Quote it."),
    ({"id": "a", "output": 7}, "output must be text (a failure is an `error`), not a number. Quote it."),
    ({"id": "a", "output": {"x": 1}}, "output must be text (a failure is an `error`), not a map."),
    ({"id": "a", "output": None}, "output must be text (a failure is an `error`), not null."),
    ({"id": "a", "error": 7}, "error must be text"),
    ({"id": "a", "outputs": []}, "outputs is empty."),
    ({"id": "a", "outputs": ["x", 1]}, "outputs[1] must be text (a failure is an `error`), not a number. Quote it."),
    ({"id": "a", "outputs": ["x"], "repetition": 0}, "leave `repetition` out"),
    ({"id": "a", "output": "x", "repetition": -1}, "at least 0 and below 1000000, not -1"),
    ({"id": "a", "output": "x", "repetition": True}, "whole number"),
    ({"id": "a", "output": "x", "repetition": 1e99}, "whole number"),
    ({"id": "a", "output": "x", "ouput": "x"}, "Did you mean `output`?"),
    ({"id": "a", "output": "x", "usage": {"prompt_tokens": -1}}, "prompt_tokens"),
    ({"id": "a", "output": "x", "usage": 1}, "usage"),
    ({"id": "a", "output": "x", "trajectory": {"tols": []}}, "no key of a trajectory"),
    ({"id": "a", "output": "x", "model": 4}, "model must be text"),
    ("x", "A saved output must be a map with `id`, not text."),
]


def test_issues_of_outputs_table_are_listed_with_lines(tmp_path):
    with pytest.raises(OutputsError) as caught:
        load(tmp_path, "o.csv", "id,output,repetition\na,x,0\nb,x,0\na,y,1\nc,x,one\n")
    assert [(fault.where or "").rpartition(":")[2] for fault in caught.value.issues] == ["3", "5"]


@pytest.mark.parametrize(("entry", "said"), BAD)
def test_issue_of_entry_has_line(tmp_path, entry, said):
    good = {"id": "good", "output": "x"}
    for name, text in (
        ("o.jsonl", json_lines(good, entry)),
        ("o.json", '{"outputs": [' + json.dumps(good) + ",\n" + json.dumps(entry) + "]}"),
        ("o.yml", f"outputs:\n- {json.dumps(good)}\n- {json.dumps(entry)}\n"),
    ):
        (found,) = messages(lambda name=name, text=text: load(tmp_path, name, text))
        assert said in found
        assert found.startswith(f"{tmp_path / name}:{3 if name == 'o.yml' else 2}")
    (found,) = messages(lambda: SavedOutputs([good, entry]))
    assert said in found
    assert found.startswith("outputs[1]")


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([("a", 0), ("a", 0)], "Repetition 0 is given twice."),
        ([("a", 0), ("a", 2)], "Repetition 1 is missing."),
        ([("a", 1)], "Repetition 0 is missing."),
        ([("a", 0), ("a", 1), ("b", 0)], "1 of 2 repetitions are recorded"),
        ([], "There are no outputs."),
    ],
)
def test_incomplete_repetitions_are_error(tmp_path, entries, said):
    rows = [{"id": name, "output": "x", "repetition": number} for name, number in entries]
    assert any(said in found for found in messages(lambda: SavedOutputs(rows)))
    assert any(said in found for found in messages(lambda: load(tmp_path, "o.jsonl", json_lines(*rows) or "\n")))
    assert any(said in found for found in messages(lambda: load(tmp_path, "o.json", json.dumps({"outputs": rows}))))


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("o.json", "[]", "a map with `outputs`"),
        ("o.json", "{}", "`outputs` is missing."),
        ("o.json", '{"outputs": 1}', "outputs must be a map or a list, not a number."),
        ("o.json", '{"outputs": {}, "output": 1}', "Did you mean `outputs`?"),
        ("o.json", '{"outputs": {"a": "x"}, "schema_version": "v9"}', "must be `deemster.outputs.v1`, not `v9`"),
        ("o.json", '{"outputs": {"a": "x", "a": "y"}}', "given twice"),
        ("o.json", '{"outputs": {"a": {"id": "a", "output": "x"}}}', "`id` is no key of a saved output."),
        ("o.json", '{"outputs": {"a": 1}}', "text, a list of texts or a map, not a number. Quote it."),
        ("o.json", '{"outputs": {" ": "x"}}', "outputs has a blank key."),
        ("o.yml", "outputs: {a: yes, b: 1}", "not a number"),
        ("o.yml", "outputs: {a: !x y}", "Tags are not read"),
        ("o.jsonl", '{"id": "a", "output": "x", "output": "y"}', "The key `output` is given twice."),
        ("o.jsonl", b'{"id": "a", "output": "\xff"}', "not UTF-8"),
        ("o.jsonl", "nonsense", "not JSON"),
        ("o.jsonl", '{"schema_version": "v9"}\n{"id": "a", "output": "x"}', "must be `deemster.outputs.v1`, not `v9`"),
        ("o.csv", "id,outptu\na,x\n", "Did you mean `output`?"),
        ("o.csv", "id,output,id\na,x,b\n", "given twice"),
        ("o.csv", "id,output\na\n", "The line has 1 cells"),
        ("o.csv", "id,output,repetition\na,x,one\n", "whole number"),
        ("o.txt", "x", "Known formats: `yaml`, `json`, `jsonl`, `csv`, `tsv`, `xlsx`, `parquet`."),
        ("o.json", "", "empty"),
    ],
)
def test_unusable_file_is_error_with_reason(tmp_path, name, text, said):
    assert any(said in found for found in messages(lambda: load(tmp_path, name, text)))


@pytest.mark.parametrize(
    "text", ['\ufeff{\n\t"outputs": {"a": "\\ud83d\\ude00", "b": "y"}}', "outputs:\n  a: \U0001f600\n  b: y\n"]
)
def test_file_without_extension_is_read_as_its_content_says(tmp_path, text):
    outputs = load(tmp_path, "saved", text)
    assert [output.text for output in outputs.answers(["a", "b"])] == ["\U0001f600", "y"]


@pytest.mark.parametrize("kind", ["json", "jsonl"])
def test_missing_and_unknown_ids_are_all_listed(tmp_path, kind):
    rows = [{"id": f"s{at}", "output": "x"} for at in range(30)]
    saved = load(tmp_path, f"o.{kind}", json.dumps({"outputs": rows}) if kind == "json" else json_lines(*rows))
    saved.check([f"s{at}" for at in range(30)])
    saved.check((Sample(f"s{at}", {}) for at in range(30)), 5)
    missing, unknown = messages(lambda: saved.check([f"t{at}" for at in range(25)] + ["s3", "s4"]))
    assert "25 samples without a saved output: `t0`, `t1`" in missing
    assert "and 5 more" in missing
    assert "28 saved outputs for no sample of the dataset: `s0`, `s1`, `s2`, `s5`" in unknown
    assert "and 8 more" in unknown
    assert "No output is saved." in messages(lambda: saved.answers(["s1", "nobody"]))[0]


@pytest.mark.parametrize("kind", ["json", "jsonl"])
def test_one_output_serves_every_repetition_and_any_other_mismatch_is_an_error(tmp_path, kind):
    one = [{"id": "a", "output": "x"}]
    two = [{"id": "a", "outputs": ["x", "y"]}]
    first, second = (
        load(tmp_path, f"{at}.{kind}", json.dumps({"outputs": rows}) if kind == "json" else json_lines(*rows))
        for at, rows in enumerate((one, two))
    )
    first.check(["a"], 7)
    assert first.answers(["a"], 6) == [Output("x")]
    second.check(["a"], 2)
    assert second.answers(["a"], 1) == [Output("y")]
    for repetitions in (1, 3):
        (found,) = messages(lambda repetitions=repetitions: second.check(["a"], repetitions))
        assert f"2 repetitions are recorded and {repetitions} are asked for" in found
    assert "Repetition 2 is not recorded" in messages(lambda: second.answers(["a"], 2))[0]


def test_jsonl_in_any_order_is_read_by_id(tmp_path):
    rows = [{"id": f"s{at}", "output": f"{at}/{turn}", "repetition": turn} for at in range(3000) for turn in range(2)]
    random.Random(5).shuffle(rows)
    saved = load(tmp_path, "o.jsonl", json_lines(*rows))
    ids = [f"s{at}" for at in range(3000)]
    saved.check(ids, 2)
    assert saved.answers(ids, 1) == [Output(f"{at}/1") for at in range(3000)]
    assert saved.answers([]) == []


def test_changed_file_is_error(tmp_path):
    saved = load(tmp_path, "o.jsonl", json_lines({"id": "a", "output": "x"}))
    os.utime(tmp_path / "o.jsonl", ns=(1, 1))
    with pytest.raises(OutputsError, match="has changed since it was loaded"):
        saved.answers(["a"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60) | st.text(alphabet='{}[]":,\n idoutps\\u1ax-', max_size=40).map(str.encode))
def test_any_bytes_give_outputs_or_a_typed_error(tmp_path, data):
    for kind in ("yml", "json", "jsonl", "csv", "tsv"):
        try:
            saved = load(tmp_path, f"o.{kind}", data)
        except InputError as error:
            said = str(error)
            assert said
        else:
            assert len(saved) > 0


def test_identity_of_saved_outputs_is_their_content(tmp_path):
    import hashlib

    for name, text in (("a.json", '{"outputs": {"a": "x"}}'), ("a.jsonl", '{"id": "a", "output": "x"}\n')):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        assert SavedOutputs.load(path).identity == {"outputs": hashlib.sha256(text.encode()).hexdigest()}
    first = SavedOutputs({"a": "x", "b": "y\ud800"}).identity
    assert SavedOutputs({"b": "y\ud800", "a": "x"}).identity == first
    assert SavedOutputs({"b": "y", "a": "x"}).identity != first


def test_excerpt_has_the_identity_of_its_file_or_of_its_answers(tmp_path):
    path = tmp_path / "o.json"
    path.write_text('{"outputs":{"a":"x","b":"y"}}')
    whole = SavedOutputs.load(path)
    assert pickle.loads(pickle.dumps(whole.excerpt(["b"]))).identity == whole.identity

    given = SavedOutputs({"a": "x", "b": "y"})
    part = pickle.loads(pickle.dumps(given.excerpt(["b"])))
    assert part.identity == SavedOutputs({"b": "y"}).identity != given.identity
