"""Valid documents with parts replaced by hypothesis; the smallest that breaks a parser is shown."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.mutation import parts, trees_of
from tests.fuzz.parsers import PARSERS, corpus

EXAMPLES = 60
TREES = {
    name: trees
    for name, parser in PARSERS.items()
    if parser.kind in ("json", "yaml")
    and (trees := [tree for data in corpus(name) for tree in trees_of(data, parser.kind)])
}

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["", "MET", "a"])
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=6,
)


@st.composite
def documents(draw, trees):
    """A tree in which one to three parts, named by their number in the order of the text, are others."""
    tree = draw(st.sampled_from(trees))
    count = sum(1 for _ in parts(tree))
    return replaced(tree, draw(st.dictionaries(st.integers(0, count - 1), values, min_size=1, max_size=3)))


def replaced(tree, others):
    """A copy of a tree with others in the place of some parts."""
    numbers = iter(range(1_000_000))

    def copy(part):
        number = next(numbers)
        if isinstance(part, dict):
            made = {key: copy(entry) for key, entry in part.items()}
        elif isinstance(part, list):
            made = [copy(entry) for entry in part]
        else:
            made = part
        return others.get(number, made)

    return copy(tree)


@pytest.mark.parametrize("name", TREES)
def test_document_with_other_parts_is_read_or_refused(name, tmp_path):
    parser = PARSERS[name]
    path = tmp_path / f"input{parser.suffix}"

    @settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow], database=None)
    @given(documents(TREES[name]))
    def fed(document):
        parser.feed(path, json.dumps(document).encode("utf-8", "surrogatepass"))

    fed()


def test_part_is_replaced_where_it_stands():
    assert replaced({"a": [1, 2], "b": "c"}, {2: "x", 4: None}) == {"a": ["x", 2], "b": None}
