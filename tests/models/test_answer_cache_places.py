"""The table of places against a dictionary."""

from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from deemster.models.answer_cache import Place, Places

keys = st.integers(0, 40).map(lambda number: number.to_bytes(32, "big"))
steps = st.lists(st.tuples(st.sampled_from(["put", "drop"]), keys, st.integers(0, 2**40), st.integers(1, 2**31)))


@given(steps)
def test_it_holds_what_a_dictionary_would_hold(taken):
    table, plain = Places(), {}
    for step, key, start, length in taken:
        if step == "put":
            table.put(key, Place(start, length))
            plain[key] = (start, length)
        else:
            table.drop(key)
            plain.pop(key, None)
        assert len(table) == len(plain)
        assert (key in table) == (step == "put")
    for key, place in plain.items():
        assert table.get(key) == place


def test_it_grows_and_forgets_nothing():
    table = Places()
    digests = [hashlib.sha256(bytes([at % 256, at // 256])).digest() for at in range(5000)]
    for at, key in enumerate(digests):
        table.put(key, Place(at * 100, at + 1))
    assert len(table) == 5000
    assert all(table.get(key) == (at * 100, at + 1) for at, key in enumerate(digests))
    assert table.get(hashlib.sha256(b"other").digest()) is None


def test_what_is_dropped_again_and_again_takes_no_more_room():
    table = Places()
    for at in range(20_000):
        key = hashlib.sha256(at.to_bytes(4, "big")).digest()
        table.put(key, Place(at, 1))
        table.drop(key)
    assert len(table) == 0
    assert table.get(key) is None
    assert len(table._names) == 1024
