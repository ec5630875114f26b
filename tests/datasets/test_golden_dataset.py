"""Golden datasets: every format, every fault, hashes, and files too large to keep."""

from __future__ import annotations

import hashlib
import json
import os
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deemster.datasets import Dataset
from deemster.errors import ConfigurationError, DatasetError, InputError, MissingExtraError
from deemster.formats import read_document
from deemster.records import Sample
from tests.builders.json_lines import json_lines

ROWS = [
    {"id": "window", "input": {"question": "How long?", "lang": "en"}, "expected_output": "30 days",
     "metadata": {"tags": ["policy", " refunds ", "policy"], "level": "2"}},
    {"id": "é|b", "input": {"question": "007"}, "expected_output": None},
    {"id": "c", "input": {}, "expected_output": {"a": [1, 1.0, 1e-7, True, None, "x\u2028\x7f\ufeff"]}, "metadata": {}},
]  # fmt: skip


def load(folder, name, text):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return Dataset.load(path)


def faults_of(folder, name, text):
    with pytest.raises(DatasetError) as caught:
        load(folder, name, text)
    prefix = str(folder / name)
    return [(str(fault.where).removeprefix(prefix), fault.sample, fault.message) for fault in caught.value.issues]


def test_dataset_has_content_of_its_file(tmp_path):
    text = """\
schema_version: deemster.dataset.v1
name: support.refunds
description: About refunds
repetitions: 3
samples:
  - id: window
    input: { question: "How long do I have to return it?", lang: en }
    expected_output: "30 days"
    metadata: { tags: [policy, refunds] }
"""
    dataset = load(tmp_path, "golden.yml", text)
    assert (dataset.name, dataset.description, dataset.repetitions) == ("support.refunds", "About refunds", 3)
    assert dataset.schema_version == "deemster.dataset.v1"
    assert dataset.path == str(tmp_path / "golden.yml")
    (sample,) = dataset
    assert sample.tags == ("policy", "refunds")
    assert dataset.row_hashes[0] == "57ffec28cbc4e19794990d8b0777b882467503fccd2e27e184d4574d1582955b"


@pytest.mark.parametrize("kind", ["yml", "yaml", "json", "jsonl"])
def test_saved_dataset_loads_equal(tmp_path, kind):
    dataset = Dataset(ROWS, name="n: 'x'", description="d", repetitions=2)
    dataset.save(tmp_path / f"a.{kind}")
    again = Dataset.load(tmp_path / f"a.{kind}")
    assert list(again) == list(dataset)
    assert list(again) == list(again)
    assert (again.name, again.description, again.repetitions) == ("n: 'x'", "d", 2)
    assert list(again.row_hashes) == list(dataset.row_hashes)
    assert again.fingerprint == dataset.fingerprint
    assert len(again) == 3
    assert [path.name for path in tmp_path.iterdir()] == [f"a.{kind}"]


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.dictionaries(texts, values, max_size=3), values, st.dictionaries(st.just("m"), values)), min_size=1
    )
)
def test_all_formats_hold_the_same_data(tmp_path, parts):
    rows = [{"id": f"s{9 - at}", "input": a, "expected_output": b, "metadata": c} for at, (a, b, c) in enumerate(parts)]
    made = Dataset(rows, name="n")
    listed = sorted([row["id"], digest, row["metadata"]] for row, digest in zip(rows, made.row_hashes, strict=True))
    for kind in ("yml", "json", "jsonl"):
        made.save(tmp_path / f"a.{kind}")
        again = Dataset.load(tmp_path / f"a.{kind}")
        assert repr(list(again)) == repr(list(made))
        assert list(again.row_hashes) == [
            hashlib.sha256(_canonical({"expected_output": row["expected_output"], "input": row["input"]})).hexdigest()
            for row in rows
        ]
        assert again.fingerprint == hashlib.sha256(_canonical(listed)).hexdigest()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.none() | st.dictionaries(texts, values, max_size=3), min_size=1), st.booleans())
def test_fingerprint_of_jsonl_does_not_depend_on_row_order(tmp_path, metadata, rising):
    rows = [{"id": f"s{at:04d}", "input": {}, "expected_output": 0.5} for at in range(len(metadata))]
    rows = [row if each is None else {**row, "metadata": each} for row, each in zip(rows, metadata, strict=True)]
    digest = hashlib.sha256(_canonical({"expected_output": 0.5, "input": {}})).hexdigest()
    listed = [[row["id"], digest, row.get("metadata", {})] for row in rows]
    dataset = load(tmp_path, "a.jsonl", json_lines(*(rows if rising else rows[::-1])))
    assert dataset.fingerprint == hashlib.sha256(_canonical(listed)).hexdigest()


def _canonical(value):
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()


def test_very_long_keys_round_trip_yaml(tmp_path):
    dataset = Dataset([{"id": "a", "input": {"k" * 3000: {"j" * 2000: 1}}, "expected_output": 1}], name="n")
    dataset.save(tmp_path / "a.yml")
    assert list(Dataset.load(tmp_path / "a.yml")) == list(dataset)


def test_csv_and_parquet_give_the_same_samples(tmp_path):
    text = (
        "\ufeffid,input.question,input.n:json,expected_output,tags,metadata.note\r\n"
        'a,"How\nlong?",[1],yes,x| y ,\r\n\r\nb,007,,,,n\r\n'
    )
    dataset = load(tmp_path, "golden.csv", text)
    assert dataset.name == "golden"
    assert list(dataset) == [
        Sample("a", {"question": "How\nlong?", "n": [1]}, "yes", {"tags": ["x", "y"]}),
        Sample("b", {"question": "007"}, None, {"note": "n"}),
    ]
    assert list(load(tmp_path, "golden.tsv", "id\tinput:json\texpected_output:json\na\t{}\t[1]\n")) == [
        Sample("a", {}, [1], {})
    ]
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    table = pa.table(
        {
            "id": ["a", "b"],
            "input": [{"question": "How\nlong?", "n": [1]}, {"question": "007", "n": None}],
            "expected_output": ["yes", None],
            "tags": [["x", "y"], None],
            "metadata": [{"note": None}, {"note": "n"}],
        }
    )
    pq.write_table(table, tmp_path / "golden.parquet")
    assert list(Dataset.load(tmp_path / "golden.parquet")) == list(dataset)


def test_csv_of_a_european_excel_and_workbook_give_the_same_samples(tmp_path):
    import openpyxl

    plain = load(tmp_path, "plain.csv", 'id,input.q,expected_output,tags\na,Why?,yes,x|y\nb,"1,5",,\n')
    excel = "\ufeffid;input.q;expected_output;tags\r\na;Why?;yes;x|y\r\nb;1,5;;\r\n;;;\r\n"
    assert list(load(tmp_path, "excel.csv", excel)) == list(plain)
    book = openpyxl.Workbook()
    for row in (["id", "input.q", "expected_output", "tags"], ["a", "Why?", "yes", "x|y"], ["b", "1,5"]):
        book.active.append(row)
    book.save(tmp_path / "book.xlsx")
    assert list(Dataset.load(tmp_path / "book.xlsx")) == list(plain)


def test_data_frame_gives_the_samples_of_csv_with_types():
    import pandas as pd

    frame = pd.DataFrame(
        {
            "id": [1, 2],
            "input.q": ["How?", "Why?"],
            "input.n": [1.5, None],
            "input.ids": [[1], None],
            "expected_output": ["yes", None],
            "tags": ["x|y", float("nan")],
        },
        index=[7, 7],
    )
    assert list(Dataset.from_dataframe(frame)) == [
        Sample("1", {"q": "How?", "n": 1.5, "ids": [1]}, "yes", {"tags": ["x", "y"]}),
        Sample("2", {"q": "Why?"}, None, {}),
    ]
    maps = pd.DataFrame({"id": ["a"], "input": [{"q": "How?"}], "expected_output": [None], "metadata": [{"n": 1}]})
    assert list(Dataset.from_dataframe(maps)) == [Sample("a", {"q": "How?"}, None, {"n": 1})]


def test_wrong_data_frame_is_error_with_the_nearest_column():
    import pandas as pd

    with pytest.raises(DatasetError, match="`question` is no column of a dataset"):
        Dataset.from_dataframe(pd.DataFrame({"id": ["a"], "question": ["x"], "expected_output": ["y"]}))
    with pytest.raises(DatasetError, match="given twice, first at dataframe#/0"):
        Dataset.from_dataframe(pd.DataFrame({"id": ["a", "a"], "input.q": ["x", "y"], "expected_output": ["", ""]}))


def test_parquet_type_without_a_json_value_is_an_error(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    table = pa.table({"id": ["a"], "input.x": [b"bytes"], "expected_output": ["x"]})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(DatasetError, match=r"`input.x` has the Parquet type binary"):
        Dataset.load(tmp_path / "a.parquet")
    assert "not Parquet" in faults_of(tmp_path, "b.parquet", "PAR1")[0][2]


def test_excerpt_of_parquet_is_read_in_the_file(tmp_path):
    import pickle

    import pyarrow as pa
    import pyarrow.parquet as pq

    ids = [f"s{number}" for number in range(100)]
    inputs = [{"q": f"{name} word", "n": None} for name in ids]
    pq.write_table(pa.table({"id": ids, "input": inputs, "expected_output": ids}), tmp_path / "a.parquet")
    dataset = Dataset.load(tmp_path / "a.parquet")
    sent = pickle.dumps(dataset.in_order(ids[::-1]).excerpt([3, 1, 2]))
    assert b"word" not in sent
    part = pickle.loads(sent)
    assert len(part) == 3
    assert list(part) == [dataset.in_order(ids[::-1])[at] for at in (3, 1, 2)]
    assert part[1:] == list(part)[1:]


def test_parquet_without_pyarrow_is_error_naming_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match="parquet"):
        load(tmp_path, "a.parquet", "PAR1")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.yml", "", "The file is empty."),
        ("a.jsonl", "\n \n", "There are no samples."),
        ("a.json", " ", "The file is empty."),
        ("a.csv", "\n", "The file is empty."),
        ("a.yml", b"name: \xff", "not UTF-8: byte 0xff"),
        ("a.json", b'{"name": "\xff"}', "not UTF-8"),
        ("a.jsonl", b'{"id": "\xff"}', "not UTF-8"),
        ("a.csv", b"id\xff", "not UTF-8"),
        ("a.txt", "x", "The extension `.txt` does not say how to read it"),
        ("a", "x", "A file without an extension"),
    ],
)
def test_unreadable_file_is_error_with_reason(tmp_path, name, content, said):
    assert said in faults_of(tmp_path, name, content)[0][2]


def test_missing_file_and_a_folder_are_errors(tmp_path):
    for name in ("no.yml", "no.jsonl", "no.csv", "no.parquet"):
        with pytest.raises(DatasetError, match="There is no such file"):
            Dataset.load(tmp_path / name)
    for name in ("d.yml", "d.jsonl"):
        (tmp_path / name).mkdir()
        with pytest.raises(DatasetError, match="cannot be read"):
            Dataset.load(tmp_path / name)
    with pytest.raises(DatasetError, match=r"no format.*`json`"):
        Dataset.load(tmp_path / "no.yml", format="jsn")


VERSIONS = "schema_version must be `deemster.dataset.v1` or `eval-harness.dataset.v1`"
GOOD = "samples: [{id: a, input: {}, expected_output: 1}]\n"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("- a", 1, "A dataset must be a map with `samples`, not a list."),
        (
            "name: n\nschema_version: deemster.dataset.v9\n" + GOOD,
            2,
            f"{VERSIONS}, not `deemster.dataset.v9`",
        ),
        (
            "name: n\nschema_version: 1\n" + GOOD,
            2,
            f"{VERSIONS}, not a number",
        ),
        ("name: ' '\n" + GOOD, 1, "name is blank"),
        ("name: 7\n" + GOOD, 1, "name must be text, not a number"),
        ("name: n\nrepetitions: 0\n" + GOOD, 2, "at least 1, not 0"),
        ("name: n\nrepetitions: true\n" + GOOD, 2, "whole number"),
        ("name: n\nrepetitions: 1.5\n" + GOOD, 2, "whole number"),
        ("name: n\ndescription: [x]\n" + GOOD, 2, "description must be text"),
        ("name: n\n", 1, "`samples` is missing."),
        ("name: n\nsamples: {}\n", 2, "samples must be a list, not a map"),
        ("name: n\nsamples: []\n", 2, "samples is empty."),
        ("name: n\nsampels: []\n" + GOOD, 2, "Did you mean `samples`?"),
    ],
)
def test_issue_at_root_has_line(tmp_path, text, line, said):
    (fault,) = faults_of(tmp_path, "a.yml", text)
    assert fault[0] == f":{line}"
    assert said in fault[2]


BAD_ROWS = [
    (
        {"id": "x", "input": {}, "expected_output": 1, "metadata": {"tags": None}},
        "tags must be text or a list of texts",
    ),
    ({"input": {}, "expected_output": 1}, "`id` is missing."),
    ({"id": 7, "input": {}, "expected_output": 1}, "id must be text, not a number. Quote it."),
    ({"id": None, "input": {}, "expected_output": 1}, "id must be text, not null."),
    ({"id": " ", "input": {}, "expected_output": 1}, "id is blank."),
    ({"id": "a\tb", "input": {}, "expected_output": 1}, "id holds control characters."),
    ({"id": "a\x85", "input": {}, "expected_output": 1}, "id holds control characters."),
    ({"id": "a" * 257, "input": {}, "expected_output": 1}, "id has 257 characters; at most 256 are allowed."),
    ({"id": "x", "expected_output": 1}, "`input` is missing."),
    ({"id": "x", "input": [], "expected_output": 1}, "input must be a map, not a list."),
    ({"id": "x", "input": "q", "expected_output": 1}, "input must be a map, not text."),
    ({"id": "x", "input": {}}, "`expected_output` is missing; write null where there is none."),
    ({"id": "x", "input": {}, "expected_output": 1, "metadata": []}, "metadata must be a map, not a list."),
    ({"id": "x", "input": {}, "expected_output": 1, "metadata": None}, "metadata must be a map, not null."),
    (
        {"id": "x", "input": {}, "expected_output": 1, "metadata": {"tags": 1}},
        "metadata.tags must be text or a list of texts, not a number",
    ),
    (
        {"id": "x", "input": {}, "expected_output": 1, "metadata": {"tags": ["a", 1]}},
        "metadata.tags[1] must be text, not a number. Quote it.",
    ),
    ({"id": "x", "input": {}, "expected_output": 1, "metadata": {"tags": ["a", " "]}}, "metadata.tags[1] is blank."),
    ({"id": "x", "input": {}, "expected_output": 1, "metadata": {"tags": ""}}, "metadata.tags is blank."),
    ({"id": "x", "input": {}, "expected": 1, "expected_output": 1}, "Did you mean `expected_output`?"),
    ([1], "not a list"),
]


@pytest.mark.parametrize(("row", "said"), BAD_ROWS)
def test_issue_of_sample_has_same_message_in_every_format(tmp_path, row, said):
    good = {"id": "good", "input": {}, "expected_output": None}
    name = row.get("id") if isinstance(row, dict) and isinstance(row.get("id"), str) else None
    root = {"name": "n", "samples": [good, row]}
    shown = json.dumps(root["samples"], indent=None)
    for kind, text, line in (
        ("jsonl", json_lines(good, row), 2),
        ("json", json.dumps(root), 1),
        ("yml", f"name: n\nsamples:\n  - {json.dumps(good)}\n  - {json.dumps(row)}\n", 4),
        ("yaml", f"name: n\nsamples: {shown}\n", 2),
    ):
        (fault,) = faults_of(tmp_path, f"a.{kind}", text)
        assert fault[:2] == (f":{line}", name)
        assert said in fault[2]
    with pytest.raises(DatasetError) as caught:
        Dataset([good, row], name="n")
    assert said in caught.value.issues[0].message
    assert caught.value.issues[0].where == "samples[1]"


def test_empty_tags_and_empty_input_are_valid(tmp_path):
    row = {"id": "x" * 256, "input": {}, "expected_output": 1, "metadata": {"tags": []}}
    assert next(iter(load(tmp_path, "a.jsonl", json_lines(row)))).tags == ()


def test_id_given_twice_names_both_places(tmp_path):
    rows = [{"id": name, "input": {}, "expected_output": None} for name in ("b", "a", "b")]
    text = json_lines(*rows[:2]) + "\n" + json_lines(rows[2])
    path = str(tmp_path / "a.jsonl")
    assert faults_of(tmp_path, "a.jsonl", text) == [(":4", "b", f"The id is given twice, first at {path}:1.")]
    listed = "name: n\nsamples:\n" + "".join(f"  - {json.dumps(row)}\n" for row in rows)
    path = str(tmp_path / "a.yml")
    assert faults_of(tmp_path, "a.yml", listed) == [(":5", "b", f"The id is given twice, first at {path}:3.")]


def test_all_issues_are_listed_at_once_in_file_order(tmp_path):
    good = '{"id": "%s", "input": {}, "expected_output": 1}\n'
    text = good % "z" + "nonsense\n" + good % "z" + '{"id": "k", "input": {"a": 1, "a": 2}, "expected_output": 1}\n[]\n'
    found = faults_of(tmp_path, "a.jsonl", text)
    assert [place for place, _, _ in found] == [":2:1", ":3", ":4:31", ":5"]
    assert "The key `a` is given twice." in found[2][2]
    assert "A sample must be a map with `id`, `input` and `expected_output`, not a list." in found[3][2]


def test_number_of_listed_issues_is_bounded(tmp_path):
    faults = faults_of(tmp_path, "a.jsonl", "x\n" * 400_000)
    assert "stopped" in faults[-1][2]
    assert len(faults) == 10_001


@pytest.mark.parametrize("kind", ["json", "jsonl"])
@pytest.mark.parametrize(
    ("value", "said"),
    [("NaN", "finite"), ("-Infinity", "finite"), ("1e999", "too large"), ('"\\ud800"', "lone surrogate"),
     ('{"a":1,"a":2}', "given twice"), ("[" * 97 + "]" * 97, "deeper than 100"), ("[" * 50_000, "deeper than 100")],
)  # fmt: skip
def test_values_refused_by_strict_json_are_error(tmp_path, kind, value, said):
    row = '{"id": "a", "input": {"x": %s}, "expected_output": 1}'
    first = row.replace('"a"', '"0"') % 1 + "\n"
    text = first + row % value if kind == "jsonl" else '{"name": "n", "samples": [' + row % value + "]}"
    ((_, _, message),) = faults_of(tmp_path, f"a.{kind}", text)
    assert said in message


def test_depth_limit_is_same_in_every_format(tmp_path):
    nested = json.loads("[" * 96 + "]" * 96)
    dataset = Dataset([{"id": "a", "input": {"x": nested}, "expected_output": 1}], name="n")
    for kind in ("yml", "json", "jsonl"):
        dataset.save(tmp_path / f"a.{kind}")
        assert list(Dataset.load(tmp_path / f"a.{kind}")) == list(dataset)
    with pytest.raises(DatasetError, match="deeper than 100"):
        Dataset([{"id": "a", "input": {"x": [nested]}, "expected_output": 1}], name="n")


def test_samples_made_in_python_follow_the_same_rules():
    dataset = Dataset([Sample("a", {"x": (1, 2)}, None, {"tags": ("p",)})], name="n")
    assert next(iter(dataset)).input == {"x": [1, 2]}
    for value, said in ((float("nan"), "not a finite number"), ({1}, "input.x is a set"), ("\ud800", "lone surrogate"),
                        ({1: 2}, "keys are text"), (object(), "not a JSON value")):  # fmt: skip
        with pytest.raises(DatasetError, match=said):
            Dataset([Sample("a", {"x": value})], name="n")
    with pytest.raises(DatasetError, match="samples is empty"):
        Dataset([], name="n")
    with pytest.raises(DatasetError, match="name is blank"):
        Dataset(ROWS, name=" ")


def test_first_line_without_id_is_the_header_of_jsonl(tmp_path):
    head = {"schema_version": "deemster.dataset.v1", "name": "n", "repetitions": 4}
    row = {"id": "a", "input": {}, "expected_output": 1}
    dataset = load(tmp_path, "a.jsonl", "\n" + json_lines(head) + "\r\n" + json_lines(row))
    assert (dataset.name, dataset.repetitions, len(dataset), [s.id for s in dataset]) == ("n", 4, 1, ["a"])
    assert load(tmp_path, "b.jsonl", b"\xef\xbb\xbf" + json_lines(row).encode()[:-1]).name == "b"
    assert "Did you mean `name`?" in faults_of(tmp_path, "c.jsonl", json_lines({"nam": "n"}, row))[0][2]
    assert (":2", None, "`id` is missing.") in faults_of(tmp_path, "d.jsonl", json_lines(row, {"name": "n"}))


def test_unknown_root_keys_of_the_older_format_are_a_warning(tmp_path):
    dataset = load(tmp_path, "a.yml", "schema_version: eval-harness.dataset.v1\nname: n\nowner: me\n" + GOOD)
    assert dataset.schema_version == "eval-harness.dataset.v1"
    (warning,) = dataset.warnings
    assert "`owner`" in warning


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("id,input.q,expected_output,id\na,b,c,d\n", ":1", "given twice"),
        ("id,input.q,expected_output,expected_output:json\na,b,c,d\n", ":1", "given twice"),
        ("id,input.q,expectd_output\na,b,c\n", ":1", "Did you mean `expected_output`?"),
        ("id,input.q,expected_output\na,b\n", ":2", "The line has 2 cells; the header has 3."),
        ('id,input.q,expected_output\n"a\nb",b,c,d\n', ":2", "The line has 4 cells"),
        ("id,input:json,input.q,expected_output\na,{},b,c\n", ":1", "beside"),
        ("id,input:json,expected_output\na,{x},c\n", ":2", "The cell of `input` is not JSON"),
        ("id,input:json,expected_output\na,,c\n", ":2", "`input` is missing"),
        ("id,input.q,expected_output,tags\na,b,c,x||y\n", ":2", "metadata.tags[1] is blank."),
        ('id,input.q,expected_output\na,"b"c,d\n', ":2", "This is not CSV"),
        ("id,input.q,expected_output\n,b,c\n", ":2", "`id` is missing."),
        ("id,input.q,expected_output\n", "", "samples is empty."),
    ],
)
def test_issue_of_table_has_line(tmp_path, text, place, said):
    found = faults_of(tmp_path, "a.csv", text)
    assert any(said in message and where == place for where, _, message in found)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,input.q,expected_output\na,b\n", "The line has 2 cells; the header has 3."),
        (
            "id,input:json,expected_output\na,{x},c\n",
            "The cell of `input` is not JSON: a key in double quotes was expected.",
        ),
        (
            "id,input.q,expected_output:json\na,b,[\n",
            "The cell of `expected_output` is not JSON: a value was expected, not the end of the text.",
        ),
        ("id,input.q,input.q,expected_output\na,b,c,d\n", "The column `input.q` is given twice."),
        (
            "id,input.q,input.q:json,expected_output\na,b,1,d\n",
            "The column `input.q:json` is given twice, also as `input.q`.",
        ),
        ("id,input.q,expected_output,metadata:json,tags\na,b,c,[1],x\n", "metadata must be a map, not a list."),
        ("id,input.q,expected_output,tags,metadata:json\na,b,c,x,[1]\n", "metadata must be a map, not a list."),
    ],
)
def test_one_error_in_table_is_one_issue(tmp_path, text, message):
    assert [said for _, _, said in faults_of(tmp_path, "a.csv", text)] == [message]


def test_missing_columns_are_error_with_names(tmp_path):
    messages = " ".join(message for _, _, message in faults_of(tmp_path, "a.csv", "tags\nx\n"))
    assert "`input.<field>`" in messages
    assert "`expected_output`" in messages


def test_long_cell_is_read(tmp_path):
    text = f"id,input.q,expected_output\na,{'x' * 200_000},c\n"
    assert len(next(iter(load(tmp_path, "a.csv", text))).input["q"]) == 200_000


@pytest.mark.parametrize("kind", ["yml", "jsonl"])
def test_equal_rows_are_listed_and_every_edit_changes_fingerprint(tmp_path, kind):
    rows = [{"id": f"s{at}", "input": {"q": at % 3}, "expected_output": 1.5} for at in (4, 3, 2, 1, 0, 9)]
    base = Dataset(rows, name="n")
    base.save(tmp_path / f"a.{kind}")
    dataset = Dataset.load(tmp_path / f"a.{kind}")
    assert dataset.duplicates == [["s4", "s1"], ["s3", "s0", "s9"]]
    assert dataset.fingerprint == base.fingerprint == Dataset(rows[::-1], name="m").fingerprint
    for edit in ({"id": "new"}, {"expected_output": 2}, {"metadata": {"tags": "x"}}, {"input": {}}):
        assert Dataset([{**rows[0], **edit}, *rows[1:]], name="n").fingerprint != base.fingerprint
    assert Dataset([{**rows[0], "id": "new"}, *rows[1:]], name="n").row_hashes[0] == base.row_hashes[0]


def test_large_jsonl_in_any_order_is_read_through_blocks(tmp_path):
    rows = [
        {
            "id": f"id-{at:06d}-é",
            "input": {"q": "x" * (at % 400)},
            "expected_output": at / 7,
            "metadata": {"n": at * 1e-9},
        }
        for at in range(20_000)
    ]
    random.Random(3).shuffle(rows)
    dataset = load(tmp_path, "big.jsonl", json_lines(*rows))
    assert [sample.id for sample in dataset] == [row["id"] for row in rows]
    assert dataset.fingerprint == Dataset(rows, name="n").fingerprint
    assert dataset.row_hashes[-1] == Dataset(rows[-1:], name="n").row_hashes[0]
    rows[7] = {**rows[7], "id": rows[-1]["id"]}
    ((place, _, message),) = faults_of(tmp_path, "big.jsonl", json_lines(*rows))
    assert place == ":20000"
    assert message.endswith(":8.")


def test_changed_file_is_error(tmp_path):
    dataset = load(tmp_path, "a.jsonl", json_lines(*ROWS))
    os.utime(tmp_path / "a.jsonl", ns=(1, 1))
    with pytest.raises(DatasetError, match="has changed since it was loaded"):
        list(dataset)
    with pytest.raises(DatasetError, match="has changed"):
        _ = dataset.fingerprint


def test_saving_somewhere_impossible_is_an_error(tmp_path):
    dataset = Dataset(ROWS, name="n")
    with pytest.raises(DatasetError, match="cannot be written"):
        dataset.save(tmp_path / "no" / "a.yml")
    with pytest.raises(DatasetError, match="Known formats"):
        dataset.save(tmp_path / "a.csv")


def test_documents_have_line_numbers(tmp_path):
    (tmp_path / "suite.yml").write_text("a: 1\nb:\n  c: 2\n")
    document = read_document(tmp_path / "suite.yml")
    assert document.value == {"a": 1, "b": {"c": 2}}
    assert document.where(("b", "c")) == f"{tmp_path / 'suite.yml'}:3"
    with pytest.raises(ConfigurationError, match="There is no such file"):
        read_document(tmp_path / "no.yml")


PIECES = st.sampled_from(
    [b"{", b"}", b"[", b"]", b'"id"', b'"input"', b'"expected_output"', b":", b",", b'"a"', b"\n", b" ", b"- ", b"id",
     b"samples:", b"name: n\n", b"\xff", b"\\ud800", b"!", b"&a", b"*a", b"1", b"\t", b"'", b'"', b"#", b"|", b"\x00"]
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60) | st.lists(PIECES, max_size=25).map(b"".join))
def test_any_bytes_give_a_dataset_or_a_typed_error(tmp_path, data):
    for kind in ("yml", "json", "jsonl", "csv", "tsv"):
        try:
            list(load(tmp_path, f"a.{kind}", data))
        except InputError as error:
            said = str(error)
            assert said
