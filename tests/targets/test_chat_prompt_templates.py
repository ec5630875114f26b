"""Prompts in Jinja2: what they are given, and what they cannot do."""

from __future__ import annotations

import pytest

import deemster as dm
from deemster.errors import ConfigurationError, InputError
from deemster.models.fake_models import FakeChat
from deemster.targets.chat_prompt import PromptSource, read_prompt, stored_prompt

INPUT = {"question": "Why?", "passages": [{"id": "p1", "text": "A"}, {"id": "p2", "text": "B"}], "items": "mine"}


def template(folder, source):
    (folder / "prompt.j2").write_text(source, encoding="utf-8")
    return read_prompt("prompt.j2", PromptSource(folder=folder))


def filled(folder, source, **more):
    (message,) = template(folder, source).fill({**INPUT, **more})
    return message.content


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (
            "{% for p in input.passages %}[{{ p.id }}] {{ p.text }} {% endfor %}{{ input.question }}",
            "[p1] A [p2] B Why?",
        ),
        ("{{ input.passages[0] }} {{ input.items }}", '{"id":"p1","text":"A"} mine'),
        ("{{ none }} {{ 3 }} {{ true }}", "null 3 true"),
        ("{% if input.extra is defined %}x{% endif %}y", "y"),
        ("a\n\n", "a"),
    ],
)
def test_template_says_what_placeholders_cannot(tmp_path, source, text):
    assert filled(tmp_path, source) == text


def test_text_of_a_sample_is_no_template(tmp_path):
    assert filled(tmp_path, "{{ input.question }}", question="{{ input.items }} <b>") == "{{ input.items }} <b>"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("{{ input.qestion }}", "The input has no `qestion`. Did you mean `question`?"),
        ("{{ input.passages[0].txt }}", "The input has no `txt`. Did you mean `text`?"),
        ("{{ input.passages[9].text }}", "no element 9"),
        ("{{ 1 / 0 }}", "The template cannot be filled in: ZeroDivisionError"),
        ("{{ ''.__class__.__mro__ }}", "cannot be filled in"),
        ("{{ input.passages.append(1) }}", "cannot be filled in"),
        ("{% include 'other' %}", "cannot be filled in"),
    ],
)
def test_template_that_cannot_be_filled_in_says_why(tmp_path, source, said):
    with pytest.raises(LookupError) as raised:
        filled(tmp_path, source)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("a\n{% for %}", "prompt.j2:2: The template cannot be read"),
        ("{{ question }}", "Write `{{ input.question }}` for the sample's."),
        ("{{ expected_output }}", "`expected_output` names nothing a target is given."),
    ],
)
def test_template_that_cannot_be_used_is_an_error_with_its_file(tmp_path, source, said):
    with pytest.raises(ConfigurationError) as raised:
        template(tmp_path, source)
    assert said in str(raised.value)


def test_sample_that_lacks_what_a_template_names_is_an_error_before_the_run(tmp_path):
    model = FakeChat(lambda ask: "x")
    target = dm.ChatTarget("mini", template(tmp_path, "{% for p in input.passages %}{{ p.text }}{% endfor %}"))
    samples = [dm.Sample("a", INPUT, "x"), dm.Sample("b", {"question": "Why?"}, "x")]
    with pytest.raises(InputError, match=r"b.*The input has no `passages`"):
        dm.evaluate(dm.Dataset(samples, name="d"), target=target, metrics=["exact-match"], models={"mini": model})
    assert model.asked == []


def test_stored_identity_gives_the_prompt_back(tmp_path):
    prompt = template(tmp_path, "{{ input.question }}")
    assert stored_prompt(dm.ChatTarget("mini", prompt).identity) == prompt
    assert not prompt.is_fixed
    assert template(tmp_path, "Hello").is_fixed


@pytest.mark.parametrize("identity", [None, 3, {}, {"chat": "m"}, {"chat": "m", "prompt": {"jinja2": 3}}])
def test_identity_that_holds_no_prompt_gives_none(identity):
    assert stored_prompt(identity) is None
