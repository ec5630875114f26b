"""Templates of requests: one pass, named placeholders, never the expected output."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.errors import ConfigurationError
from deemster.records import Invocation
from deemster.targets._json_path import parse_path, value_at
from deemster.targets._request_template import compile_template, template_issues

ASKED = Invocation("s-1", {"question": "Why?", "k": 3, "docs": [{"id": "d1"}], "who": {"name": "Ann"}}, 2)


@pytest.mark.parametrize(
    ("template", "sent"),
    [
        ("{{input}}", ASKED.input),
        ("{{input.k}}", 3),
        ("{{ input.k }}", 3),
        ("{{input.docs}}", [{"id": "d1"}]),
        ("{{input.docs.0.id}}", "d1"),
        ("{{input.docs.-1.id}}", "d1"),
        ("{{id}}", "s-1"),
        ("{{repetition}}", 2),
        ("Q: {{input.question}} ({{input.k}} of {{input.docs}})", 'Q: Why? (3 of [{"id":"d1"}])'),
        ("{{input.question}}{{input.question}}", "Why?Why?"),
        ({"q": "{{input.question}}", "n": [1, None, "{{input.who.name}}!"]}, {"q": "Why?", "n": [1, None, "Ann!"]}),
        ({"fixed": True, "price": 0.5}, {"fixed": True, "price": 0.5}),
        ("a } {{ b", "a } {{ b"),
    ],
)
def test_placeholder_alone_keeps_type_and_inside_text_becomes_text(template, sent):
    assert compile_template(template)(ASKED) == sent


def test_inserted_text_is_not_expanded_again():
    asked = Invocation("x", {"a": "{{input.b}} {{id}} ${HOME}", "b": "secret"}, 0)
    assert compile_template("<{{input.a}}>")(asked) == "<{{input.b}} {{id}} ${HOME}>"


@given(st.text())
def test_any_text_of_sample_arrives_unchanged(text):
    asked = Invocation("x", {"a": text}, 0)
    assert compile_template({"deep": ["{{input.a}}"]})(asked) == {"deep": [text]}
    assert compile_template("-{{input.a}}-")(asked) == f"-{text}-"


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{{expected_output}}", "never given to a target"),
        ("{{metadata.tags}}", "never given to a target"),
        ("{{inputs.a}}", "Did you mean `input`?"),
        ("{{question}}", "An entry of the input is `{{input.question}}`."),
        ("{{id.length}}", "only the input has parts"),
        ("{{}}", "is no placeholder"),
        ("{{input..a}}", "is no placeholder"),
        ("{{input.a}", "`{{input.a` is not closed: a placeholder ends with `}}`."),
        ("{{ input.a {{input.b}}", "`{{input.a` is not closed"),
        ({"{{input.a}}": 1}, "has a placeholder in a key"),
        ({"a": [float("nan")]}, "not a finite number"),
    ],
)
def test_unknown_placeholder_is_error(template, said):
    with pytest.raises(ConfigurationError) as raised:
        compile_template(template)
    assert said in str(raised.value)


@pytest.mark.parametrize("text", ['{"a": {"b": 1}}', "{{", "{input.a}", "{{inputs", '{{"input": {} }'])
def test_braces_that_are_no_placeholder_are_left_alone(text):
    assert compile_template(text)(Invocation("x", {}, 0)) == text


def test_template_issue_has_its_path():
    found = list(template_issues({"a": [{"b": "{{x}}"}, "{{input}}"]}))
    assert [path for path, _ in found] == [("body", "a", 0, "b")]


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{{input.qestion}}", "The input has no `input.qestion`. Did you mean `question`?"),
        ("{{input.docs.5.id}}", "The input has no `input.docs[5].id`."),
        ("{{input.question.name}}", "The input has no `input.question.name`."),
    ],
)
def test_missing_placeholder_value_is_error_with_its_name(template, said):
    with pytest.raises(LookupError, match="The input has no") as raised:
        compile_template(template)(ASKED)
    assert raised.value.args[0] == said


@pytest.mark.parametrize("path", ["", ".", "a.", ".a", "a..b", " a", "a. b", 7, [], [None], [1.5], {"a": 1}])
def test_invalid_path_is_error(path):
    with pytest.raises(ValueError, match="a path is"):
        parse_path(path)


LEAF = st.none() | st.integers() | st.text(max_size=5)


@given(LEAF, st.lists(st.text("abz", min_size=1, max_size=3) | st.integers(0, 3), min_size=1, max_size=5))
def test_path_finds_only_its_value(leaf, steps):
    value = leaf
    for step in reversed(steps):
        value = {step: value} if isinstance(step, str) else [None] * step + [value]
    assert value_at(value, steps) == leaf
    assert value_at(value, parse_path(".".join(map(str, steps)))) == leaf
    with pytest.raises(LookupError):
        value_at(value, [*steps, "further"])
    with pytest.raises(LookupError):
        value_at(value, [*steps[:-1], "missing" if isinstance(steps[-1], str) else 99])
