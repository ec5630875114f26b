"""Canonical bytes: the same report is the same file."""

from __future__ import annotations

import json
import re
from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deemster as dm
from deemster.report import report_entries as entries
from deemster.text.indented_json import indented_json, json_number, json_pieces
from tests.report.runs import full_report, small_report

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | FLOATS | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (0.0, "0.0"),
        (-0.0, "0.0"),
        (2 / 3, "0.666666667"),
        (0.00001, "0.00001"),
        (1e-9, "0.000000001"),
        (4e-10, "0.0"),
        (-4e-10, "0.0"),
        (1e16, "10000000000000000.0"),
        (1e22, "10000000000000000000000.0"),
        (0.1 + 0.2, "0.3"),
        (0.0000000025, "0.000000003"),
        (0.5, "0.5"),
        (0.125, "0.125"),
        (-1.25, "-1.25"),
    ],
)
def test_float_has_nine_decimals_at_most_and_never_an_exponent(value, text):
    assert json_number(value) == indented_json(value) == text


def test_exact_half_goes_to_the_even_neighbour():
    assert json_number(Decimal("0.000000125"), places=8) == "0.00000012"
    assert json_number(Decimal("0.000000135"), places=8) == "0.00000014"


@given(FLOATS)
def test_written_float_reads_back_within_half_a_unit(value):
    text = json_number(value)
    assert re.fullmatch(r"-?[0-9]+\.[0-9]{1,9}", text)
    assert text != "-0.0"
    assert not re.search(r"[0-9]0$", text.partition(".")[2]) or text.endswith(".0")
    assert abs(float(text) - value) <= 6e-10 + abs(value) * 1e-15


def streamed(value):
    """The bytes of a value as an entry of a long list, which uses the fast writer."""
    return b"".join(json_pieces(iter([("entries", iter([value]))])))


def plain(value):
    """The same bytes by the plain writer."""
    line = msgspec.json.format(indented_json(value).encode("utf-8", "replace"), indent=-1)
    return b'{\n  "entries": [\n    %b\n  ]\n}\n' % line


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_fast_writer_gives_same_bytes_as_plain_writer(value):
    assert streamed(value) == plain(value)


@given(st.floats(0, 1), st.dictionaries(st.text(), JSON, max_size=3), st.none() | st.decimals(0, 10, places=9))
def test_fast_writer_gives_same_marks_as_plain_writer(score, details, cost):
    usage = None if cost is None else dm.Usage(cost_usd=cost, latency_ms=score * 1000)
    mark = entries.ScoreEntry(score=score, success=True, threshold=0.5, rubric_score=None, details=details, usage=usage)
    assert streamed(mark) == plain(mark)


@given(JSON)
def test_canonical_json_reads_back_equal(value):
    def near(one, other):
        if isinstance(one, float):
            return abs(one - other) <= 6e-10 + abs(one) * 1e-15
        if isinstance(one, dict):
            return list(other) == sorted(one) and all(near(one[key], other[key]) for key in one)
        if isinstance(one, list):
            return len(one) == len(other) and all(map(near, one, other))
        return type(one) is type(other) and one == other

    assert near(value, json.loads(indented_json(value)))


def test_maps_are_by_code_point_and_records_by_their_fields():
    assert indented_json({"b": 1, "a": 2, "\U00010000": 3, "\uffff": 4}) == (
        '{\n  "a": 2,\n  "b": 1,\n  "\uffff": 4,\n  "\U00010000": 3\n}'
    )
    assert indented_json(entries.PrivacyEntry("default", ("x",))) == (
        '{\n  "level": "default",\n  "removed": [\n    "x"\n  ]\n}'
    )


def test_empty_maps_and_lists_take_no_line():
    assert indented_json({"a": {}, "b": []}) == '{\n  "a": {},\n  "b": []\n}'


def test_non_json_value_is_error():
    with pytest.raises(TypeError, match="object has no canonical form"):
        indented_json(object())


def test_report_is_utf_8_with_line_feeds_two_spaces_and_a_final_newline():
    report = small_report("naïve 日本")
    text = report.to_json()
    assert text.endswith("\n}\n")
    assert "\r" not in text
    assert "naïve 日本" in text
    assert '\n  "run": {\n    "id": ' in text

    document = json.loads(text)
    for name in ("samples", "executions", "failures"):
        del document[name]
    assert report.head().decode() == json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def test_report_has_every_sample_execution_and_failure_on_a_line():
    text = full_report().to_json()
    document = json.loads(text)
    lines = [json.loads(line.rstrip(",")) for line in text.split("\n") if line.startswith('    {"')]
    assert lines == [*document["samples"], *document["executions"], *document["failures"]]


def test_report_rendered_twice_is_identical():
    report = full_report()
    assert report.to_json() == report.to_json()
    assert report.to_markdown() == report.to_markdown()
    assert report.to_csv() == report.to_csv()


def test_no_number_in_a_report_has_an_exponent_or_more_than_nine_decimals():
    text = re.sub(r'"(?:[^"\\]|\\.)*"', '""', full_report().to_json())
    numbers = re.findall(r"-?[0-9][0-9.eE+-]*", text)
    assert numbers
    assert all(re.fullmatch(r"-?[0-9]+(\.[0-9]{1,9})?", found) for found in numbers)
