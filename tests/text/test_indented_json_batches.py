"""Long lists are written in batches with the same bytes as entry by entry."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.text.indented_json import indented_json, json_pieces

ODD = [2 / 3, 1e-7, 1e16, -0.0, 536870912.8398438, -4194304.3000000003, 2**70, "\ud800", 1e-10]


def written(entries):
    return b"".join(json_pieces(iter([("entries", iter(entries))])))


def plain(entries):
    """The same bytes by the plain writer."""
    texts = [indented_json(entry).replace("\ud800", "\ufffd") for entry in entries]
    joined = ",\n    ".join(msgspec.json.format(text, indent=-1) for text in texts)
    return f'{{\n  "entries": [\n    {joined}\n  ]\n}}\n'.encode()


@pytest.mark.parametrize("count", [1, 63, 64, 65, 128, 200])
def test_no_entry_is_lost_or_repeated_at_batch_boundary(count):
    entries = [{"id": f"s{place}", "score": 0.5} for place in range(count)]
    assert written(entries) == plain(entries)


@pytest.mark.parametrize("value", ODD)
@pytest.mark.parametrize("place", [0, 40, 69])
def test_unusual_value_does_not_affect_others(value, place):
    entries = [{"id": f"s{at}", "score": value if at == place else 0.25} for at in range(70)]
    assert written(entries) == plain(entries)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(ODD), min_size=1, max_size=70))
def test_numbers_of_any_size_are_written_as_the_plain_writer_does(values):
    entries = [{"value": value} for value in values]
    assert written(entries) == plain(entries)


def test_empty_list_is_two_brackets():
    assert written([]) == b'{\n  "entries": []\n}\n'


@pytest.mark.parametrize(
    "text", ["a 0.12345678901", "b: 1e-7,\n 1e-7,\n", ' -0.0,"', '"x": 0.12345678901,', " 12345678.25\n", "\\"]
)
def test_text_that_looks_like_number_is_unchanged(text):
    entries = [{text: [text, 2 / 3, 1e-7], "cost_usd": None, "score": -0.0}, {"z": {"deep": [12345678.3, text]}}]
    assert written(entries) == plain(entries)
