"""Laws that hold for every metric of the catalog."""

import importlib
import json
import os
import subprocess
import sys
from typing import Annotated, Literal, get_args, get_origin

import msgspec
import pytest
import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from deemster.errors import ConfigurationError
from deemster.judges import metric_catalog as catalog
from deemster.judges._metric_table import PLACES
from deemster.records import CAUSES, MetricScore, Output, Sample, Trajectory, Unscored, Usage, freeze

few = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

CANARY = "k4n4ry"
# Every string that a detail may hold outside the quoted ones.
VOCABULARY = {"marker", "evidence", "chars", "words", "lines", "linear", "exponential"}

whole_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
any_text = whole_text | st.text(max_size=6) | st.sampled_from(["", " ", "a b c", "[1, 2", "NaN", "42", "\ud800"])
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | whole_text
)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(whole_text, inner, max_size=3),
    max_leaves=10,
)
names = st.sampled_from(["search", "pay", "book"])
name_lists = st.lists(names, max_size=3, unique=True)
ids = st.sampled_from(["d1", "d2", "d3", "d4"])
normalize = st.sampled_from([(), True, ["nfc"], ["casefold", "strip"], False])

calls = st.fixed_dictionaries(
    {"tool": names, "arguments": st.dictionaries(st.sampled_from("ab"), json_values, max_size=2)}
)
expectations = {
    "tools": name_lists,
    "forbidden_tools": name_lists,
    "tool_arguments": st.lists(calls, max_size=2),
    "order": st.lists(names, max_size=4),
    "max_steps": st.integers(1, 5),
    "requires_approval": name_lists,
}
shapes = {
    "relevant": st.lists(ids, min_size=1, max_size=4) | st.dictionaries(ids, st.floats(0, 3), max_size=4),
    "k": st.integers(1, 5),
    "ordinal_scale": st.just(["low", "medium", "high"]),
    "citations": st.lists(whole_text.filter(str.strip), min_size=1, max_size=3),
    "citation_evidence": st.lists(
        st.fixed_dictionaries({"citation": st.sampled_from(["[1]", "a"]), "quote": st.sampled_from(["a", "b c"])}),
        min_size=1,
        max_size=2,
    ),
    "json_schema": st.sampled_from([True, {"type": "object"}, {"items": {"type": "integer"}}, {"maxLength": 2}]),
    "max_latency_ms": st.floats(0, 100),
    "max_cost_usd": st.integers(0, 3),
    "trajectory": st.fixed_dictionaries(expectations),
    "adversarial": st.fixed_dictionaries(
        {"canary": st.sampled_from(["MEDIUM", "GRAIN-4417"])},
        optional={"forbidden_tools": name_lists, "private_patterns": st.sampled_from(["4[0-9]", r"\[1\]"])},
    ),
}
shaped_metadata = st.fixed_dictionaries({}, optional=shapes)
KEYS = list(shapes)
metadata = shaped_metadata | st.dictionaries(st.sampled_from(KEYS) | whole_text, json_values, max_size=4)
samples = st.builds(
    Sample,
    st.just("s"),
    st.just({}),
    json_values | st.sampled_from(["low", "high", "a b", "42", '{"a": [1, {}]}', ["d1", "d2"]]),
    metadata,
)
whole_trajectories = st.builds(
    Trajectory,
    tool_calls=st.lists(
        names
        | st.fixed_dictionaries({"name": names, "arguments": st.dictionaries(st.sampled_from("ab"), json_values)}),
        max_size=4,
    ),
    steps=st.none() | st.integers(0, 9),
    pending_approvals=st.integers(0, 2),
    approvals=name_lists,
)
trajectories = st.none() | whole_trajectories
usages = st.none() | st.builds(
    Usage,
    latency_ms=st.none() | st.floats(0, 200),
    cost_usd=st.none() | st.decimals(0, 5, allow_nan=False, allow_infinity=False),
)
passages = st.lists(
    ids | st.fixed_dictionaries({"id": ids, "text": whole_text}) | st.dictionaries(whole_text, json_values, max_size=2),
    max_size=5,
)
outputs = st.builds(
    Output,
    any_text | json_values.map(json.dumps) | st.sampled_from(["low", "medium", '["d1", "d2"]', "a b"]),
    retrieved=st.none() | passages | json_values,
    trajectory=trajectories,
    usage=usages,
)

# Everything any metric reads is there, so that most pairs are scored.
ready_samples = st.builds(
    Sample,
    st.just("s"),
    st.just({}),
    st.sampled_from(["low", "high", "a b", "42", "[1, 2.5]"]),
    st.fixed_dictionaries(shapes),
)
ready_outputs = st.builds(
    Output,
    st.sampled_from(["low", "medium", "a b", "b", "41", "42", "[1, 2]", "[1] b c"]),
    retrieved=st.lists(st.fixed_dictionaries({"id": ids, "text": whole_text}), max_size=5),
    trajectory=whole_trajectories,
    usage=st.builds(Usage, latency_ms=st.floats(0, 200), cost_usd=st.decimals(0, 5)),
)
pairs = st.tuples(samples, outputs) | st.tuples(ready_samples, ready_outputs)

# What the type of an option does not say.
OPTIONS = {
    "regex": {"pattern": st.sampled_from([None, "a+", "/B$/i", "x|y"]), "syntax": st.just("auto")},
    "rouge-l": {"max_cells": st.sampled_from([1, 100, 2.5e9])},
    "bleu": {
        "max_order": st.integers(1, 4),
        "smooth": st.just("exp"),
        "tokenize": st.sampled_from(["13a", "char", "none", "intl"]),
    },
    "chrf": {"char_order": st.integers(1, 6), "word_order": st.integers(0, 2), "beta": st.sampled_from([1, 2, 3])},
    "levenshtein": {"max_cells": st.sampled_from([4, 1e10])},
    "length-within": {"min": st.integers(0, 3), "max": st.integers(3, 9)},
    "json-schema": {"schema": st.sampled_from([True, {"type": "object"}, {"items": {"enum": [1, "a", [2]]}}])},
    "json-match": {
        "rel_tol": st.floats(0, 0.9),
        "ignore": st.lists(st.sampled_from(["a", "/0", "/*/a", "/a~1b"]), max_size=2),
    },
    "numeric-close": {"rel_tol": st.floats(0, 2), "abs_tol": st.floats(0, 1e300)},
    "ordinal-distance": {
        "scale": st.lists(whole_text.filter(lambda text: len(text.strip()) > 0), min_size=2, max_size=4, unique=True)
        | st.just(["low", "medium", "high"]),
        "normalize": st.just(()),
    },
    "latency-below": {"max_ms": st.floats(0, 1e6) | st.integers(0, 9)},
    "cost-below": {"max_usd": st.floats(0, 9)},
    "tool-called": {"tools": expectations["tools"]},
    "tool-not-called": {"forbidden_tools": expectations["forbidden_tools"]},
    "tool-called-with": {"tool_arguments": expectations["tool_arguments"]},
    "tool-call-order": {"order": expectations["order"]},
    "steps-below": {"max_steps": expectations["max_steps"]},
    "approval-gated": {"requires_approval": expectations["requires_approval"]},
}
# Options of several metrics.
BY_NAME = {
    "k": st.integers(1, 9),
    "normalize": normalize,
    # The keys of the metadata that are there, hold a text or not, or are missing.
    "expected": st.sampled_from([None, "citations", "json_schema", "missing"]),
}
SHARED = {
    "name": st.sampled_from(["mine", "a b", "true", "x@3", 'q"(']) | whole_text.filter(lambda text: text.strip()),
    "threshold": st.floats(0, 1),
}
NEEDED = {"length-within": {"max": 5}}


def made(alias, options=None):
    return catalog.resolve({alias: {**NEEDED.get(alias, {}), **(options or {})}})


def drawn_option(alias, field):
    """Values of an option: as its type says, else those that the worked examples of its metric give it."""
    if field.name in BY_NAME:
        return BY_NAME[field.name]
    kind = get_args(field.type)[0] if get_origin(field.type) is Annotated else field.type
    if kind is bool:
        return st.booleans()
    if get_origin(kind) is Literal:
        return st.sampled_from(get_args(kind))
    examples = yaml.safe_load(catalog.describe(alias).examples)
    shown = [example["options"][field.name] for example in examples if field.name in example.get("options", {})]
    assert shown, (
        f"Nothing draws the option `{field.name}` of `{alias}`: show it in a worked example, or add it to OPTIONS."
    )
    return st.sampled_from(shown)


def options_of(alias):
    """What draws each option of a metric beside those that all have."""
    fields = msgspec.structs.fields(catalog._metric_class(alias))
    own = {field.name: field for field in fields if field.name not in (*SHARED, "where")}
    by_hand = OPTIONS.get(alias, {})
    return by_hand | {name: drawn_option(alias, field) for name, field in own.items() if name not in by_hand}


def metrics(alias):
    optional = {**options_of(alias), **SHARED}
    return st.fixed_dictionaries({}, optional=optional).map(lambda options: made(alias, options))


def strings_of(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, entry in value.items():
            yield key
            yield from strings_of(entry)
    elif isinstance(value, (list, tuple)):
        for entry in value:
            yield from strings_of(entry)


# Those that ask a model have laws of their own: test_judges.py, test_quality.py and test_specs.py here.
PLAIN = [alias for alias in PLACES if hasattr(catalog._metric_class(alias), "score")]
every = pytest.mark.parametrize("alias", PLAIN)
reading = [alias for alias in PLAIN if catalog.describe(alias).reads_expected]


@every
@few
@given(st.data())
def test_mark_is_a_score_in_range_or_unscored_with_a_known_cause(alias, data):
    metric, (sample, output) = data.draw(metrics(alias)), data.draw(pairs)
    mark = metric.score(sample, output)
    if isinstance(mark, Unscored):
        assert mark.cause in CAUSES
        assert mark.message
    else:
        assert 0 <= mark.score <= 1
        assert mark.threshold == metric.threshold
    assert metric.score(sample, output) == mark
    assert catalog.parse_metric(str(metric)).score(sample, output) == mark
    for issue in metric.check(sample):
        assert issue.message
        assert isinstance(mark, Unscored)


def immense(number):
    return [number, -number, [number], {"a": number}, {number: 1}, [{number: 1}]]


@every
@pytest.mark.parametrize("digits", [400, 5000])
def test_huge_numbers_are_scored_or_unscored(alias, digits):
    metric = made(alias)
    output = Output("5", ["a"], trajectory=Trajectory(), usage=Usage(latency_ms=1.0, cost_usd=1))
    for value in immense(10**digits):
        metadata = [{key: value} for key in KEYS] + [{"trajectory": {key: value}} for key in expectations]
        for sample in (Sample("s", {}, value), *(Sample("s", {}, "a", entry) for entry in metadata)):
            issues = metric.check(sample)
            assert all(issue.message for issue in issues)
            assert isinstance(metric.score(sample, output), Unscored if issues else (MetricScore, Unscored))


@every
def test_huge_options_are_error_with_message(alias):
    for option in catalog.describe(alias).options:
        for value in immense(10**5000):
            with pytest.raises(ConfigurationError) as caught:
                made(alias, {option.name: value})
            assert str(caught.value)


@every
@few
@given(st.data())
def test_spec_round_trips(alias, data):
    metric = data.draw(metrics(alias))
    assert catalog.parse_metric(str(metric)) == metric
    assert str(catalog.parse_metric(str(metric))) == str(metric)


@every
def test_spec_with_where_round_trips_and_where_is_no_part_of_the_identity(alias):
    for where in ("auto", {"tags": ["a b", "c"], "has": "d|e", "metadata": {"f": [1, None, "g"]}}):
        metric = made(alias, {"where": where})
        assert catalog.parse_metric(str(metric)) == metric
        card, plain = catalog.card(metric), catalog.card(made(alias))
        assert card._replace(where=None) == plain
        assert plain.where is None


@every
@few
@given(st.data())
def test_details_round_trip_json(alias, data):
    mark = made(alias).score(*data.draw(pairs))
    if isinstance(mark, MetricScore):
        assert freeze(msgspec.json.decode(msgspec.json.encode(mark.details))) == mark.details


def with_canary(value):
    if isinstance(value, str):
        return CANARY + value
    if isinstance(value, dict):
        return {(CANARY + key): with_canary(entry) for key, entry in value.items()}
    return [with_canary(entry) for entry in value] if isinstance(value, list) else value


@every
@few
@given(st.data())
def test_only_declared_details_quote_text(alias, data):
    metric = data.draw(metrics(alias))
    expected = with_canary(data.draw(json_values))
    words = [CANARY, CANARY + " b", CANARY + "low"]
    sample = Sample(
        "s",
        {},
        data.draw(st.sampled_from([expected, json.dumps(expected), *words, words])),
        {
            "relevant": words,
            "ordinal_scale": words,
            "citations": words,
            **data.draw(st.sampled_from([{}, {"citation_evidence": [{"citation": CANARY, "quotes": words}]}])),
            "json_schema": {"required": words},
            "trajectory": {
                "tools": words,
                "forbidden_tools": words,
                "order": words,
                "requires_approval": words,
                "tool_arguments": [{"tool": word, "arguments": {word: word}} for word in words],
            },
        },
    )
    output = Output(
        data.draw(st.sampled_from([json.dumps(with_canary(data.draw(json_values))), *words, "{}"])),
        retrieved=data.draw(st.none() | st.just([{"id": word, "text": word} for word in words[1:]])),
        trajectory=Trajectory(tool_calls=words[:2], approvals=words[1:2]),
    )
    mark = metric.score(sample, output)
    if isinstance(mark, MetricScore):
        for key, value in mark.details.items():
            assert CANARY not in key
            if key == "signature":
                assert all(CANARY not in text for text in strings_of(value))
            elif key not in metric.quotes:
                assert set(strings_of(value)) <= VOCABULARY


@pytest.mark.parametrize("alias", reading)
@few
@given(outputs)
def test_missing_expected_output_is_unscored(alias, output):
    options = {"scale": ["low", "high"]} if alias == "ordinal-distance" else {}
    metric = made(alias, options)
    assert metric.score(Sample("s", {}), output).cause == "no_expected"
    assert all(issue.warning for issue in metric.check(Sample("s", {})))


@pytest.mark.parametrize("alias", [alias for alias in PLAIN if hasattr(made(alias), "score_many")])
@few
@given(st.data())
def test_batch_gives_same_marks_as_pairs(alias, data):
    metric = made(alias)
    drawn = data.draw(st.lists(pairs, max_size=4))
    batch = metric.score_many([sample for sample, _ in drawn], [output for _, output in drawn])
    for mark, pair in zip(batch, drawn, strict=True):
        single = metric.score(*pair)
        assert type(mark) is type(single)
        if isinstance(single, Unscored):
            assert mark.cause == single.cause
        else:
            assert mark.score == pytest.approx(single.score, abs=1e-12)
            assert mark.details == single.details


def ideal(alias, data):
    """An expected answer and the output that gives it."""
    if alias == "json-match":
        value = data.draw(json_values.filter(lambda value: value is not None and not isinstance(value, str)))
        return Sample("s", {}, value), Output(json.dumps(value))
    if alias == "numeric-close":
        number = data.draw(st.integers() | st.floats(allow_nan=False, allow_infinity=False))
        return Sample("s", {}, number), Output(str(number))
    if alias == "ordinal-distance":
        label = data.draw(st.sampled_from(["low", "medium", "high"]))
        return Sample("s", {}, label, {"ordinal_scale": ["low", "medium", "high"]}), Output(label)
    if alias == "answer-containment-at-k":
        text = data.draw(whole_text.filter(lambda text: text.strip()))
        return Sample("s", {}, text), Output("", retrieved=[{"id": "d", "text": f"so {text} it is"}])
    if alias.startswith("retrieval-"):
        gains = data.draw(st.dictionaries(ids, st.floats(0.1, 3), min_size=1))
        order = sorted(gains, key=gains.get, reverse=True)
        return Sample("s", {}, gains, {"k": len(gains)}), Output("", retrieved=order)
    text = data.draw(whole_text.filter(lambda text: text.strip()))
    return Sample("s", {}, text), Output(text)


@pytest.mark.parametrize("alias", [alias for alias in reading if alias != "regex"])
@few
@given(st.data())
def test_expected_answer_scores_one(alias, data):
    sample, output = ideal(alias, data)
    assert made(alias).score(sample, output).score == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize(
    "spec",
    [
        "exact-match",
        "rouge-l",
        "token-f1",
        "levenshtein",
        'ordinal-distance(scale=["a b","c","d"])',
        'ordinal-distance(credit=linear,scale=["a b","c","d"])',
        "json-match(mode=exact)",
    ],
)
@few
@given(st.data())
def test_symmetric_metrics_are_symmetric(spec, data):
    metric = catalog.parse_metric(spec)
    # Few letters, so that equal and overlapping texts occur.
    texts = st.sampled_from(["a b", "c", "d"]) if spec.startswith("ordinal") else st.text("aB .é", max_size=5)
    if spec.startswith("json"):
        texts = json_values.map(json.dumps)
    one, other = data.draw(texts), data.draw(texts)
    there = metric.score(Sample("s", {}, one), Output(other))
    back = metric.score(Sample("s", {}, other), Output(one))
    assert there.score == pytest.approx(back.score, abs=1e-12)


@few
@given(st.integers(2, 9), st.sampled_from(["step", "linear"]), st.data())
def test_credit_never_rises_with_distance(levels, credit, data):
    scale = [f"level {n}" for n in range(levels)]
    metric = catalog.resolve({"ordinal-distance": {"scale": scale, "credit": credit}})
    expected, near, far = (data.draw(st.integers(0, levels - 1)) for _ in range(3))
    assume(abs(near - expected) <= abs(far - expected))
    given = [metric.score(Sample("s", {}, scale[expected]), Output(scale[n])).score for n in (near, far)]
    assert given[0] >= given[1]


SCRIPT = """
import json, msgspec
from deemster.records import Output, Sample, Trajectory, Usage
from deemster.judges import metric_catalog as catalog
from deemster.judges._metric_table import PLACES
words = ["search", "pay", "b a", "c"]
meta = {"relevant": words, "ordinal_scale": words, "citations": words, "json_schema": {"required": words},
        "max_latency_ms": 1, "max_cost_usd": 1, "trajectory": {"tools": words, "forbidden_tools": words, "order": words,
        "requires_approval": words, "max_steps": 2, "tool_arguments": [{"tool": "x", "arguments": {}}]}}
for alias in PLACES:
    if not hasattr(catalog._metric_class(alias), "score"):
        continue
    metric = catalog.resolve({alias: {"max": 5} if alias == "length-within" else {}})
    for expected in ("b a", words, {"a": 1, "b": [1, 2], "c": {}}, "42"):
        for text in ("b a", "the c a b", '{"a": 1, "d": {"e": 1}}', "42"):
            output = Output(text, retrieved=["c", "x", "pay"], trajectory=Trajectory(tool_calls=["pay", "y"]),
                            usage=Usage(latency_ms=1.0, cost_usd=1))
            mark = metric.score(Sample("s", {}, expected, meta), output)
            print(alias, repr(msgspec.to_builtins(mark)))
"""


def test_marks_are_the_same_in_any_process_and_hash_seed():
    printed = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1
    assert "score" in printed.pop()


def declared_options():
    for alias in PLACES:
        module, name = PLACES[alias].split(":")
        kind = getattr(importlib.import_module(f"deemster.{module}"), name)
        for field in msgspec.structs.fields(kind):
            is_checked = field.type is bool or get_origin(field.type) is Literal
            if is_checked or "Annotated" in repr(field.type):
                yield pytest.param(kind, field.name, id=f"{alias}-{field.name}")


@pytest.mark.parametrize(("kind", "option"), list(declared_options()))
@pytest.mark.parametrize("value", ["no such word", -1, [1]])
def test_option_that_is_not_as_it_is_declared_is_refused(kind, option, value):
    with pytest.raises(ConfigurationError, match=f"`{option}` of {kind.alias} (is|knows) "):
        kind(**{option: value})


def test_many_options_are_checked_by_their_declaration():
    assert len(list(declared_options())) > 50
