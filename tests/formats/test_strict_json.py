"""The strict readers of JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deemster.datasets.fingerprint import row_digest, row_hash
from deemster.errors import DatasetError
from deemster.formats.canonical_json import canonical
from deemster.formats.document import Reading
from deemster.formats.plain_floats import has_exponent, plain_floats
from deemster.formats.strict_json import json_document, json_value, quotes

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4))


def read(text, **options):
    return json_document(text, Reading("f.json", error=DatasetError, **options))


@given(values)
def test_both_readers_read_back_written_value(value):
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)):
        assert repr(json_value(text.encode())) == repr(value)
        assert repr(read(text).value) == repr(value)


@given(st.text(alphabet='{}[]",:\\u0d8"ab1-.eE+ \n', max_size=30))
@example('{"a":1,"a":1}')
@example('{"\\"":1,"\\u0022":1}')
@example('["\\\\","\\""]')
def test_fast_reader_never_accepts_what_strict_reader_refuses(text):
    try:
        fast = json_value(text.encode())
    except ValueError:
        return
    assert repr(read(text).value) == repr(fast)


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ('{"a": NaN}', "1:7", "`NaN` is not a finite number"),
        ('{"a":\n -Infinity}', "2:2", "not a finite number"),
        ('{"a": 1e400}', "1:7", "too large"),
        ('{"a": 1,\n"a": 2}', "2:1", "The key `a` is given twice"),
        ("[" * 101, "1:101", "deeper than 100"),
        ("[" * 100_000, "1:101", "deeper than 100"),
        ('["\\ud800"]', "1:2", "lone surrogate"),
        ('{"\\udc00": 1}', "1:2", "lone surrogate"),
        ("[1,]", "1:4", "a value was expected"),
        ("{'a': 1}", "1:2", "a key in double quotes"),
        ('{"a" 1}', "1:6", "colon"),
        ("[1 2]", "1:4", "comma"),
        ("[01]", "1:3", "comma"),
        ("1 2", "1:3", "follows the end"),
        ("", "1:1", "the end of the text"),
        ('["a\tb"]', "1:4", "control character"),
        ("[" + "1" * 5000 + "]", "1:2", "digits"),
        ("\ufeff1", "1:1", "a value was expected"),
    ],
)
def test_refused_input_is_error_with_line_and_column(text, place, said):
    with pytest.raises(DatasetError) as caught:
        read(text)
    (fault,) = caught.value.issues
    assert said in fault.message
    assert fault.where == f"f.json:{place}"


def test_lone_surrogate_is_kept_on_request():
    assert read('["\\ud800"]', surrogates=True).value == ["\ud800"]


def test_every_part_has_its_line():
    document = read('{"a": [\n1,\n{"b":\n2}]}')
    assert document.where(("a", 1, "b")) == "f.json:3"
    assert document.where(("a", 0)) == "f.json:2"


@given(values)
def test_quotes_count_keys_and_strings(value):
    def count(part):
        if isinstance(part, dict):
            return sum(2 + count(entry) for entry in part.values())
        return sum(map(count, part)) if isinstance(part, list) else 2 * isinstance(part, str)

    assert quotes(json.dumps(value).encode()) == count(value)
    assert quotes(json.dumps(value, ensure_ascii=False).encode()) == count(value)


def reference(value):
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()


@given(values)
def test_fast_canonical_form_has_the_bytes_of_the_reference(value):
    floats = plain_floats(value, 100)
    assert floats is not None
    assert canonical(value, exponents=any(map(has_exponent, floats))) == reference(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(1e16)
@example(9999999999999998.0)
@example(1e-4)
@example(9.999999999999999e-05)
@example(-0.0)
@example(123456789012345.6)
def test_ordinary_float_is_written_same_by_both_encoders(number):
    if not has_exponent(number):
        assert canonical(number, exponents=False) == reference(number)
    assert canonical(number) == repr(number).encode()


def test_row_hash_equals_specification():
    given_input = {"question": "How long do I have to return it?", "lang": "en"}
    expected = "57ffec28cbc4e19794990d8b0777b882467503fccd2e27e184d4574d1582955b"
    assert row_hash(given_input, "30 days") == expected
    assert row_digest(given_input, "30 days", exponents=False).hex() == expected


def test_integer_and_float_of_same_value_differ():
    assert row_hash({}, 1) != row_hash({}, 1.0)


def test_line_number_counts_from_start_of_file():
    document = json_document('{"id": "a", "votes": {"b": [1]}}', Reading("votes.jsonl", error=DatasetError), line=40)
    for path in ((), ("id",), ("votes", "b", 0), ("absent",)):
        assert document.where(path) == "votes.jsonl:40"
