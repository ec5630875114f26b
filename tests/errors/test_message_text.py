from __future__ import annotations

from deemster.errors import show_value

ENDLESS = 10**5000


def test_value_with_failing_repr_is_shown_by_type():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    assert [show_value(value) for value in (5, "a", ENDLESS, [ENDLESS], {"a": ENDLESS}, deep)] == [
        "5",
        "'a'",
        "a number",
        "a list",
        "a map",
        "a list",
    ]
    while deep:
        deep = deep.pop()
