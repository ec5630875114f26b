"""Outputs that should be JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.errors import ConfigurationError
from deemster.metrics.json_validity import DEEPEST, InvalidJson, JsonSchema, JsonValid, ParsedJson, read_json
from deemster.records import Output, Sample

PERSON = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def schema_mark(text, given=None, **options):
    metadata = {} if given is None else {"json_schema": given}
    return JsonSchema(**options).score(Sample("s", {}, None, metadata), Output(text))


@pytest.mark.parametrize(
    "text",
    ["null", " 1 ", "-0", '"a"', "[]", '{"a": [1, 2.5e-3, true]}', "1e999", "9" * 5000, '"\\ud800"', "\t[1]\r\n"],
)
def test_one_rfc_8259_value_is_valid(text):
    assert JsonValid().score(Sample("s", {}), Output(text)).score == 1.0


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("", 1, 1),
        ("{} {}", 1, 4),
        ('{"a": 1 2}', 1, 9),
        ("[1,\n 2,\n x]", 3, 2),
        ("NaN", 1, 1),
        ('["NaN",\n -Infinity]', 2, 2),
        ("01", 1, 2),
        ("'a'", 1, 1),
        ('"\t"', 1, 2),
        ("\ufeff1", 1, 1),
        ("[1]\u00a0", 1, 4),
        ("// no\n1", 1, 1),
        ("[" * 100_000, 1, DEEPEST + 1),
        ('{"a":' * 100_000, 1, DEEPEST * 5 + 1),
    ],
)
def test_invalid_json_scores_zero_with_position(text, line, column):
    mark = JsonValid().score(Sample("s", {}), Output(text))
    assert (mark.score, mark.details) == (0.0, {"valid": False, "line": line, "column": column})


def test_nesting_limit_is_two_hundred():
    assert isinstance(read_json("[" * 200 + "]" * 200), ParsedJson)
    assert read_json("[" * 201 + "]" * 201) == InvalidJson(1, 201)
    assert isinstance(read_json("[" + ",".join(["[]"] * 5000) + "]"), ParsedJson)
    assert isinstance(read_json(json.dumps("[" * 5000)), ParsedJson)
    assert isinstance(read_json(json.dumps(['\\"[{' * 300])), ParsedJson)


def test_numbers_beyond_a_float_stay_finite_and_distinct():
    assert read_json("1e999").value == read_json("10e998").value
    assert read_json("1e999").value != read_json("1e998").value
    assert read_json("-1e99999999999999999999").value < 0


@pytest.mark.parametrize("fence", ["```\n{}\n```", " ```json\n{}\n```\n", "~~~\n{}\n~~~", "````json\n{}\n````"])
def test_one_code_fence_is_removed_on_request(fence):
    assert JsonValid().score(Sample("s", {}), Output(fence)).score == 0.0
    assert JsonValid(fenced=True).score(Sample("s", {}), Output(fence)).score == 1.0


@pytest.mark.parametrize(
    "text", ["```", "``````", "```\n", "```\n{}", "Here:\n```\n{}\n```", "```\n```\n{}\n```\n```", "```{}```"]
)
def test_incomplete_fence_is_not_removed(text):
    assert JsonValid(fenced=True).score(Sample("s", {}), Output(text)).score == 0.0


def test_positions_inside_fence_count_from_start_of_output():
    mark = JsonValid(fenced=True).score(Sample("s", {}), Output("\n```json\n[1,\n x]\n```"))
    assert (mark.details["line"], mark.details["column"]) == (4, 2)


@given(st.text())
def test_any_text_is_parsed_or_has_error_position(text):
    for fenced in (False, True):
        read = read_json(text, fenced=fenced)
        assert isinstance(read, ParsedJson) or (read.line >= 1 and read.column >= 1)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_written_json_reads_back(value):
    assert read_json(json.dumps(value)).value == value
    assert read_json(f"```json\n{json.dumps(value)}\n```", fenced=True).value == value


def test_schema_mismatch_names_the_paths():
    assert schema_mark('{"name": "Ada"}', PERSON).score == 1.0
    mark = schema_mark('{"name": 1}', PERSON)
    assert (mark.score, mark.details) == (0.0, {"valid": True, "errors": 1, "paths": ("/name",)})
    assert schema_mark("[]", PERSON).details == {"valid": True, "errors": 1, "paths": ("",)}


def test_non_json_output_fails_schema():
    assert schema_mark("{", True).details == {"valid": False, "line": 1, "column": 2}


def test_schema_of_sample_overrides_option():
    assert schema_mark("1", {"type": "integer"}, schema={"type": "string"}).score == 1.0
    assert schema_mark("1", schema=None).cause == "bad_sample"
    assert JsonSchema(schema={"type": "string"}).score(Sample("s", {}), Output("1")).score == 0.0


def test_formats_are_checked_only_on_request():
    schema = {"format": "date"}
    assert schema_mark('"tomorrow"', schema).score == 1.0
    assert schema_mark('"tomorrow"', schema, formats=True).score == 0.0


def test_draft_is_2020_12_unless_the_schema_names_another():
    array = {"prefixItems": [{"type": "string"}]}
    assert schema_mark("[1]", array).score == 0.0
    assert schema_mark("[1]", {"$schema": "http://json-schema.org/draft-07/schema#", **array}).score == 1.0


@pytest.mark.parametrize(
    "reference", ["http://127.0.0.1:9/x.json", "https://example.com/x", "file:///etc/passwd", "x.json", "urn:x:y"]
)
def test_remote_reference_stops_the_run_and_is_named(reference):
    schema = {"properties": {"a": {"$ref": reference}}}
    (issue,) = JsonSchema().check(Sample("s", {}, None, {"json_schema": schema}))
    assert not issue.warning
    assert f"`{reference}`" in issue.message
    with pytest.raises(ConfigurationError, match="outside the schema"):
        JsonSchema(schema=schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "strin"},
        {"$ref": "#/$defs/gone"},
        {"$schema": "http://example.com/unknown"},
        {"pattern": "(?=a)b"},
        {"pattern": "(a)\\1"},
        {"minimum": float("nan")},
        {1: 2, "a": 3},
        {"const": object()},
        [],
        "string",
        7,
    ],
)
def test_invalid_schema_stops_the_run(schema):
    (issue,) = JsonSchema().check(Sample("s", {}, None, {"json_schema": schema}))
    assert not issue.warning
    with pytest.raises(ConfigurationError):
        JsonSchema(schema=schema)


def test_deeply_nested_schema_is_error():
    schema = {}
    for _ in range(5000):
        schema = {"items": schema}
    (issue,) = JsonSchema().check(Sample("s", {}, None, {"json_schema": schema}))
    assert not issue.warning


def test_references_within_the_schema_are_followed():
    tree = {"type": "array", "items": {"$ref": "#"}}
    assert schema_mark("[[], [[]]]", tree).score == 1.0
    assert schema_mark("[" * 200 + "]" * 200, tree).score == 1.0
    assert schema_mark("[[], [1]]", tree).details["paths"] == ("/1/0",)


def test_patterns_take_linear_time():
    assert schema_mark(json.dumps("a" * 50_000 + "!"), {"pattern": "^(a+)+$"}).score == 0.0


def test_paths_are_cut_at_twenty():
    details = schema_mark(json.dumps(list(range(30))), {"items": {"type": "string"}}).details
    assert (details["errors"], len(details["paths"]), details["truncated"]) == (30, 20, True)


def test_lone_surrogate_in_json_counts_as_one_character():
    assert schema_mark('"\\ud800"', {"maxLength": 1}).score == 1.0
    assert schema_mark('{"\\ud800": 1}', {"additionalProperties": {"type": "string"}}).score == 0.0


NINES = "9" * 5000


@pytest.mark.parametrize(
    ("text", "schema", "paths"),
    [
        (NINES, {"maximum": 5}, ("",)),
        (NINES, {"type": "string"}, ("",)),
        (f"[1, {NINES}]", {"items": {"maximum": 5}}, ("/1",)),
        (NINES, {"multipleOf": 2}, ("",)),
        ('["\\ud800"]', {"type": "string"}, ("",)),
        (f'["\\ud800", {NINES}]', {"items": {"type": "null"}}, ("/0", "/1")),
    ],
    ids=range(6),
)
def test_unprintable_values_fail_schema_normally(text, schema, paths):
    mark = schema_mark(text, schema)
    assert (mark.score, mark.details["paths"]) == (0.0, paths)


def test_integer_of_any_length_is_an_integer():
    assert schema_mark(NINES, {"type": "integer", "minimum": 5}).score == 1.0


@pytest.mark.parametrize("option", [{"formats": 1}, {"fenced": "yes"}])
def test_non_boolean_flag_is_error(option):
    with pytest.raises(ConfigurationError, match="true or false"):
        JsonSchema(**option)
