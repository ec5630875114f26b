"""The `aggregator` section of a suite: its aggregators and its issues."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.errors import ConfigurationError
from deemster.results import AtLeast, Critical, MinAggregator
from deemster.results.aggregator_section import build_aggregator

SCHEMAS = Path(__file__).parents[2] / "schemas"
METRICS = {"right": "right", "short": "short", "mrr": "retrieval-mrr", "retrieval-mrr": "retrieval-mrr"}
UNKNOWN = "The aggregator names the metric `{}`, which this run does not have."
MAP = {"1": 0, "2": 0.5, "3": 1}


class Suite:
    """Knows the place of every value."""

    def where(self, path):
        return "s#" + "/".join(map(str, path[1:]))


def read(value, metrics=None, idle=()):
    return str(build_aggregator(value, document=Suite(), metrics=metrics, idle=frozenset(idle)))


def faults(value, metrics=None, idle=()):
    with pytest.raises(ConfigurationError) as caught:
        read(value, metrics, idle)
    return [(fault.where, fault.message) for fault in caught.value.issues]


def weighted(weights, mapping=None):
    return {"kind": "weighted", "weights": weights, "score_mapping": mapping or dict.fromkeys(weights, MAP)}


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("and", "and"),
        ("min", "min"),
        ("geometric", "geometric"),
        ({"kind": "min"}, "min"),
        ({"at-least": 2}, "at-least 2"),
        ({"critical": ["mrr", "right"]}, "critical retrieval-mrr, right"),
        (
            weighted({"right": 2, "short": 1, "mrr": 0}),
            "weighted right 2 (1: 0, 2: 0.5, 3: 1), short 1 (1: 0, 2: 0.5, 3: 1), retrieval-mrr 0 (1: 0, 2: 0.5, 3: 1)",
        ),
    ],
)
def test_each_section_form_builds_its_aggregator(value, name):
    assert read(value, METRICS) == name


def test_without_metrics_names_are_unchanged():
    assert read({"critical": ["anything"]}) == "critical anything"


SHAPES = (
    "An aggregator is `and`, `min`, `geometric`, `{kind: weighted, weights: ..., score_mapping: ...}`, "
    "`{at-least: 2}`, `{critical: [names]}`, or an import path such as `aggs:Forgiving`"
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (7, [("s#", f"{SHAPES}, not a number.")]),
        ([], [("s#", f"{SHAPES}, not a list.")]),
        ({}, [("s#", f"{SHAPES}, not a map with no keys.")]),
        ("mni", [("s#", "aggregator must be one of `and`, `geometric`, `min`, not `mni`. Did you mean `min`?")]),
        ("weighted", [("s#", "aggregator must be one of `and`, `geometric`, `min`, not `weighted`.")]),
        (
            {"kind": "geometrik"},
            [
                (
                    "s#kind",
                    (
                        "aggregator.kind must be one of `and`, `geometric`, `min`, not `geometrik`. "
                        "Did you mean `geometric`?"
                    ),
                )
            ],
        ),
        ({"kind": 3}, [("s#kind", "aggregator.kind must be one of `and`, `geometric`, `min`, not a number.")]),
        ({"kind": ["min"]}, [("s#kind", "aggregator.kind must be one of `and`, `geometric`, `min`, not a list.")]),
        (
            {"kind": "min", "weights": {}},
            [("s#weights", "aggregator: `weights` is no key of an aggregator without settings. Known: `kind`.")],
        ),
        ({"atleast": 2}, [("s#atleast", "`atleast` is no key of `aggregator`. Did you mean `at-least`?")]),
        ({"at-least": 0}, [("s#at-least", "aggregator.at-least must be a whole number of at least 1, not 0.")]),
        ({"at-least": 2, "critical": ["a"]}, [("s#", f"{SHAPES}, not a map with `at-least`, `critical`.")]),
        ({"critical": []}, [("s#critical", "aggregator.critical is empty.")]),
        ({"critical": "right"}, [("s#critical", "aggregator.critical must be a list of texts, not text.")]),
        ({"weights": {}}, [("s#", f"{SHAPES}, not a map with `weights`.")]),
        (
            {"kind": "weighted", "weights": {}},
            [("s#", "aggregator: `score_mapping` is missing.")],
        ),
        (
            {"kind": "weighted", "weigths": {}},
            [
                ("s#", "aggregator: `weights` is missing."),
                ("s#", "aggregator: `score_mapping` is missing."),
                ("s#weigths", "aggregator: `weigths` is no key of a weighted aggregator. Did you mean `weights`?"),
            ],
        ),
        (
            weighted({"c": -1}, {"c": {"1": 2}}),
            [
                ("s#weights/c", "aggregator.weights.c must be a number of at least 0, not -1."),
                ("s#score_mapping/c/1", "aggregator.score_mapping.c.1 must be a number from 0 to 1, not 2."),
            ],
        ),
        (
            weighted({"c": 1, "d": 1}, {"c": {"x": 0}}),
            [
                ("s#weights/d", "`d` has a weight and no mapping: add it to `score_mapping`."),
                ("s#score_mapping/c/x", "The mapping of `c` has the key 'x', which is no rubric value."),
            ],
        ),
        (
            weighted({"c": 1}, {"c": {"1": 0, "1.0": 1}}),
            [("s#score_mapping/c/1.0", "The mapping of `c` has the key 1 twice.")],
        ),
    ],
)
def test_unusable_section_is_error_with_line(value, expected):
    assert faults(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            weighted({"rihgt": 1, "short": 1, "mrr": 1}),
            [
                (
                    "s#weights/rihgt",
                    "The aggregator names the metric `rihgt`, which this run does not have. Did you mean `right`?",
                )
            ],
        ),
        (
            weighted({"right": 1, "short": 1}),
            [("s#weights", "The metric `retrieval-mrr` has no weight in the aggregator. Known: `right`, `short`.")],
        ),
        (
            weighted({"right": 1, "short": 1, "mrr": 1, "retrieval-mrr": 2}),
            [("s#weights/retrieval-mrr", "The aggregator names the metric `retrieval-mrr` twice.")],
        ),
        (
            {"critical": ["right", "long"]},
            [
                (
                    "s#critical/1",
                    f"{UNKNOWN.format('long')} Known: `right`, `short`, `retrieval-mrr`.",
                )
            ],
        ),
        (
            {"at-least": 4},
            [("s#at-least", "`at-least` asks for 4 metrics, and this run has 3: it could never succeed.")],
        ),
    ],
)
def test_aggregator_that_does_not_fit_the_metrics_is_refused(value, expected):
    assert faults(value, METRICS) == expected


def test_settings_of_left_out_metrics_are_ignored():
    only = {"right": "right"}
    assert read({"critical": ["right", "short"]}, only, idle=METRICS) == "critical right"
    assert read(weighted({"right": 1, "short": 2}), only, idle=METRICS) == "weighted right 1 (1: 0, 2: 0.5, 3: 1)"
    assert faults({"critical": ["short"]}, only, idle=METRICS) == [
        ("s#critical", "None of the critical metrics is part of this run.")
    ]


def test_python_accepts_object_or_suite_form():
    given = MinAggregator()
    assert build_aggregator(given, metrics=METRICS) is given
    assert str(build_aggregator({"at-least": 3}, metrics=METRICS)) == "at-least 3"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            MinAggregator,
            "An aggregator is an object with `aggregate`, or what a suite would say; not the class `MinAggr",
        ),
        (7, "aggregator: An aggregator is `and`, `min`, `geometric`, `{kind: weighted"),
        (AtLeast(9), "aggregator.at-least: `at-least` asks for 9 metrics, and this run has 3: it could never succeed."),
        (
            Critical(["wrong"]),
            "aggregator.critical[0]: The aggregator names the metric `wrong`, which this run does not",
        ),
        ("mni", "aggregator must be one of `and`, `geometric`, `min`, not `mni`. Did you mean `min`?"),
    ],
)
def test_aggregator_from_python_is_validated(value, message):
    with pytest.raises(ConfigurationError) as caught:
        build_aggregator(value, metrics=METRICS)
    assert str(caught.value).startswith(message)


def fits_the_schema(value):
    schema = json.loads((SCHEMAS / "deemster.suite.v1.json").read_text(encoding="utf-8"))
    suite = {"dataset": "golden.yml", "metrics": ["right"], "aggregator": value}
    return jsonschema_rs.validator_for(schema).is_valid(suite)


@pytest.mark.parametrize(
    "value",
    ["min", {"kind": "and"}, {"at-least": 2}, {"critical": ["a"]}, weighted({"a": 1}), weighted({})],
    ids=str,
)
def test_accepted_section_fits_json_schema(value):
    assert read(value)
    assert fits_the_schema(value)


@pytest.mark.parametrize(
    "value",
    [
        "mni",
        "weighted",
        7,
        [],
        {},
        {"kind": "min", "weights": {}},
        {"kind": "weighted", "weights": {}},
        {"at-least": 0},
        {"at-least": 2, "critical": ["a"]},
        {"critical": []},
        weighted({"a": -1}),
        weighted({"a": 1}, {"a": {"1": 2}}),
        weighted({"a": 1}, {"a": {}}),
    ],
    ids=str,
)
def test_rejected_section_fails_json_schema(value):
    assert faults(value)
    assert not fits_the_schema(value)


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
WORDS = st.sampled_from(["kind", "weights", "score_mapping", "at-least", "critical", "weighted", "min", "right", "1"])
JSON = st.recursive(
    SCALARS | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS | st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_any_section_content_is_read_or_error_with_lines(value):
    found = []
    try:
        build_aggregator(value, document=Suite(), metrics=METRICS)
    except ConfigurationError as error:
        found = [fault.where.startswith("s#") and bool(fault.message) for fault in error.issues] or [False]
    assert all(found)
