"""A chat model with a prompt as the target: what it asks, and what comes of the answer."""

from __future__ import annotations

import pytest

import deemster as dm
from deemster.errors import ConfigurationError, InputError
from deemster.models.fake_models import FakeChat
from deemster.models.model_client import ModelFailure
from deemster.records import Answer, Message, Output, TargetFailure
from deemster.targets.chat_prompt import PromptSource, read_prompt
from deemster.targets.chat_target import ChatTarget

SAMPLES = [
    dm.Sample("a", {"question": "Capital of France?"}, "Paris"),
    dm.Sample("b", {"question": "Capital of Spain?"}, "Madrid"),
]
PROMPT = "Answer in one word: {{input.question}}"


def evaluated(model, *, target=None, samples=SAMPLES, **more):
    return dm.evaluate(
        dm.Dataset(samples, name="d"),
        target=target or ChatTarget("mini", PROMPT),
        metrics=["exact-match"],
        models={"mini": model},
        **more,
    )


def test_each_sample_fills_in_the_prompt_and_is_asked_once():
    model = FakeChat({"France": "Paris", "Spain": "Lisbon"})
    report = evaluated(model)
    assert report.metrics["exact-match"].mean == 0.5
    assert [ask.messages for ask in model.asked] == [
        (Message("user", "Answer in one word: Capital of France?"),),
        (Message("user", "Answer in one word: Capital of Spain?"),),
    ]


def test_nothing_is_sent_but_what_is_given():
    model = FakeChat(lambda ask: "x")
    evaluated(model)
    assert {(ask.temperature, ask.seed, ask.max_tokens, ask.schema) for ask in model.asked} == {
        (None, None, None, None)
    }


def test_each_repetition_is_a_question_of_its_own():
    answers = iter(["Paris", "Lyon", "Paris"])
    model = FakeChat(lambda ask: next(answers))
    report = evaluated(model, samples=SAMPLES[:1], repetitions=3)
    assert report.metrics["exact-match"].mean == pytest.approx(2 / 3)


def test_samples_that_are_asked_alike_are_asked_each():
    model = FakeChat(lambda ask: "x")
    evaluated(model, samples=[dm.Sample(name, {"question": "Why?"}, "x") for name in "abc"])
    assert len(model.asked) == 3


def test_model_that_fails_is_a_failure_of_the_target():
    with pytest.warns(UserWarning, match="Every sample failed"):
        report = evaluated(FakeChat(lambda ask: ModelFailure("refused", "No such model.")))
    assert report.metrics["exact-match"].unscored_by_cause == {"target_failed": 2}


@pytest.mark.parametrize(
    ("finish", "broken_off"),
    [("length", "length"), ("content_filter", "content_filter"), ("refusal", "content_filter"), ("stop", None)],
)
def test_answer_that_was_cut_or_filtered_says_so(finish, broken_off):
    script = ChatTarget("mini", PROMPT).script(dm.records.Invocation("a", SAMPLES[0].input))
    next(script)
    with pytest.raises(StopIteration) as done:
        script.send([Answer(text="Par", finish=finish)])
    assert done.value.value == Output("Par", broken_off=broken_off)


def test_input_that_lacks_what_the_prompt_names_is_a_failure_of_the_target():
    script = ChatTarget("mini", "{{input.questoin}}").script(dm.records.Invocation("a", SAMPLES[0].input))
    with pytest.raises(StopIteration) as done:
        next(script)
    assert done.value.value == TargetFailure("The input has no `input.questoin`. Did you mean `question`?")


def test_role_that_is_not_there_is_an_error_with_the_nearest_name():
    with pytest.raises(InputError, match="Did you mean `mini`"):
        evaluated(FakeChat(lambda ask: "x"), target=ChatTarget("mimi", PROMPT))


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"temperature": -1}, "temperature"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"top_p": 2}, "top_p"),
        ({"stop": 3}, "stop"),
        ({"response_format": "json"}, "response_format"),
    ],
)
def test_parameter_out_of_range_is_an_error(parameters, said):
    with pytest.raises(ConfigurationError, match=said):
        ChatTarget("mini", PROMPT, **parameters)


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("Q: {{input.q}}", [("user", "Q: Why?")]),
        ({"system": "Be brief.", "user": "{{input.q}}"}, [("system", "Be brief."), ("user", "Why?")]),
        (
            [{"role": "assistant", "content": "Hi"}, {"role": "user", "content": "{{input.docs.0.id}}"}],
            [("assistant", "Hi"), ("user", "d1")],
        ),
        ("{{input.docs}} {{ input.n }}", [("user", '[{"id":"d1"}] 3')]),
        ("{{input.docs}}", [("user", '[{"id":"d1"}]')]),
        ({"system": "S", "user": "{{input.messages}}"}, [("system", "S"), ("user", "Hi"), ("assistant", "Yes?")]),
        ("{{  input.messages }}\n", [("user", "Hi"), ("assistant", "Yes?")]),
    ],
)
def test_prompts_have_several_forms(written, sent):
    asked = {
        "q": "Why?",
        "n": 3,
        "docs": [{"id": "d1"}],
        "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}],
    }
    assert [tuple(message) for message in read_prompt(written).fill(asked)] == sent


def test_text_of_a_sample_is_not_filled_in_again():
    filled = read_prompt("<{{input.a}}>").fill({"a": "{{input.b}} ${HOME}", "b": "secret"})
    assert filled == (Message("user", "<{{input.b}} ${HOME}>"),)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("{{expected_output}}", "never given to a target. There is `{{input}}`."),
        ("{{id}}", "names nothing a target is given"),
        ("  ", "The prompt is empty."),
        ({"system": "S"}, "prompt: `user` is missing."),
        ({"system": "S", "usr": "x", "user": "y"}, "`usr` is no key of a prompt. Did you mean `user`?"),
        ([], "prompt is empty"),
        (
            [{"role": "tool", "content": "x"}],
            "prompt[0].role must be one of `assistant`, `system`, `user`, not `tool`.",
        ),
        (3, "A prompt is text, a path"),
        ("prompts/no-such-file.txt", "There is no file"),
    ],
)
def test_prompt_that_cannot_be_used_is_an_error(written, said):
    with pytest.raises(ConfigurationError) as raised:
        read_prompt(written)
    assert said in str(raised.value)


def test_files_of_prompts_are_text_or_chats(tmp_path):
    (tmp_path / "short.txt").write_text("Q: {{input.q}}\n", encoding="utf-8")
    (tmp_path / "chat.yml").write_text("- {role: system, content: S}\n- {role: user, content: '{{input.q}}'}\n")
    source = PromptSource({"short": "short.txt"}, tmp_path)
    assert read_prompt("short", source).fill({"q": "Why?"}) == (Message("user", "Q: Why?"),)
    assert read_prompt("chat.yml", source).fill({"q": "Why?"}) == (Message("system", "S"), Message("user", "Why?"))


def test_misspelt_name_of_a_prompt_is_no_prompt_text():
    with pytest.raises(ConfigurationError, match="Did you mean `short`"):
        read_prompt("shrot", PromptSource({"short": "Q: {{input.q}}"}))


@pytest.mark.parametrize(
    "held",
    [[], [{"role": "tool", "content": "x"}], [{"role": "user", "content": [{"type": "image_url"}]}], {"role": 3}],
)
def test_conversation_that_is_no_list_of_messages_says_what_is_wrong(held):
    with pytest.raises(LookupError, match=r"input\.messages"):
        read_prompt("{{input.messages}}").fill({"messages": held})


def test_secret_among_the_parameters_is_not_in_the_identity():
    first, second = (ChatTarget("mini", PROMPT, extra={"api_key": key}) for key in ("hush-hush-1", "hush-hush-2"))
    assert "hush" not in repr(first.identity)
    assert first.identity != second.identity
    assert first.secrets.redact("hush-hush-1") == "[removed]"
