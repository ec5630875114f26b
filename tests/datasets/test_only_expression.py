"""What `--only` says, and how it is written again."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.datasets.only_expression import LATEST, Only, condition_text, parse_only
from deemster.errors import ConfigurationError


@pytest.mark.parametrize(
    ("expressions", "only"),
    [
        (["tag:policy", "tag:money"], Only(tags=("policy", "money"))),
        (["tag:a=b"], Only(tags=("a=b",))),
        (["id:q*", "id:a:b"], Only(ids=("q*", "a:b"))),
        (["failed"], Only(failed=(LATEST,))),
        (["failed:before", "failed:baseline"], Only(failed=("before", "baseline"))),
        (["answered"], Only(answered=True)),
        (["lang=de", "lang=fr"], Only(where={"metadata.lang": ["de", "fr"]})),
        (["url=http://x?a=b"], Only(where={"metadata.url": ["http://x?a=b"]})),
        (["metadata.lang=de"], Only(where={"metadata.lang": ["de"]})),
        (["meta.failed=yes"], Only(where={"metadata.failed": ["yes"]})),
        (["meta.input.x=1", "input.x=1"], Only(where={"metadata.input.x": ["1"], "input.x": ["1"]})),
    ],
)
def test_expressions_say_which_samples(expressions, only):
    assert parse_only(expressions) == only
    assert parse_only(shlex.split(condition_text(only))[1::2]) == only


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("policy", "`--only policy` says nothing that is known: `tag:x`, `id:q*`, `KEY=VALUE` for metadata"),
        ("tags:policy", "Did you mean `tag`?"),
        ("failled", "Did you mean `failed`?"),
        ("tag:", "says nothing that is known"),
        ("failed:", "says nothing that is known"),
        ("answered:yes", "says nothing that is known"),
        ("=x", "says nothing that is known"),
        ("failed=before", "write `failed:before`, or `meta.failed=before` for a key of the metadata with this name."),
        ("tag=policy", "write `tag:policy`"),
    ],
)
def test_what_says_nothing_is_an_error_that_shows_the_right_way(expression, message):
    with pytest.raises(ConfigurationError) as raised:
        parse_only([expression, "lang=de"])
    assert message in str(raised.value)


def test_every_fault_is_named_at_once():
    with pytest.raises(ConfigurationError) as raised:
        parse_only(["policy", "tag:", "lang=de"])
    assert len(raised.value.issues) == 2


_NAMES = st.text(min_size=1)
_PATHS = st.builds(lambda section, key: f"{section}.{key}", st.sampled_from(["metadata", "input"]), _NAMES)


@given(st.lists(_NAMES), st.lists(_NAMES), st.dictionaries(_PATHS, st.lists(_NAMES, min_size=1)), st.booleans())
def test_what_is_written_is_read_again(tags, ids, where, answered):
    keys = {path: values for path, values in where.items() if "=" not in path}
    only = Only(tags=tuple(tags), ids=tuple(ids), where=keys, answered=answered)
    words = shlex.split(condition_text(only)) if condition_text(only) else []
    assert parse_only(words[1::2]) == only
