"""Conditions on samples: what they mean, and how they are read and told."""

from __future__ import annotations

import pytest

from deemster.datasets.where_condition import applies, describe_where, parse_condition
from deemster.errors import ConfigurationError
from deemster.records import Sample, Where

SAMPLE = Sample(
    "fee",
    {"context": "A text."},
    "none",
    {"tags": ["money", "policy"], "lang": "de", "level": 2, "empty": None, "author": {"name": "Ada"}, "list": []},
)


@pytest.mark.parametrize(
    ("given", "holds"),
    [
        ({"tags": "money"}, True),
        ({"tags": ["chat", "policy"]}, True),
        ({"tags": "chat"}, False),
        ({"has": "lang"}, True),
        ({"has": "empty"}, False),
        ({"has": "list"}, True),
        ({"has": "missing|lang"}, True),
        ({"has": ["lang", "missing"]}, False),
        ({"has": ["author.name", "expected_output", "input.context", "metadata.lang"]}, True),
        ({"has": "input.other"}, False),
        ({"metadata": {"lang": "de"}}, True),
        ({"metadata": {"lang": ["fr", "de"]}}, True),
        ({"metadata": {"level": 2}}, True),
        ({"metadata": {"level": "2"}}, True),
        ({"metadata": {"level": True}}, False),
        ({"metadata": {"author.name": "Ada", "lang": "fr"}}, False),
        ({"tags": "money", "has": "lang", "metadata": {"lang": "de"}}, True),
    ],
)
def test_sample_must_meet_all_keys_and_one_of_the_values_of_each(given, holds):
    where = parse_condition(given, called="m")
    assert applies(where, SAMPLE) is holds
    assert parse_condition(where, called="m") is where


def test_without_a_condition_a_metric_applies_to_every_sample():
    assert applies(None, SAMPLE)


def test_every_issue_of_a_condition_is_listed():
    with pytest.raises(ConfigurationError) as caught:
        parse_condition({"tag": "a", "has": [1], "metadata": 3}, called="m")
    assert len(caught.value.issues) == 3


def test_condition_in_words_names_every_part():
    where = Where(("a", "b"), ("c|d", "e"), {"f": (1, None)})
    assert describe_where(where) == "tag a or b; has c or d; has e; metadata.f is 1 or null"
