"""Python functions as targets: what they get, what they may return."""

from __future__ import annotations

import asyncio
import datetime as dt
import functools

import pytest

import deemster as dm
from deemster.errors import ConfigurationError
from deemster.records import Invocation
from deemster.target.python import PythonTarget, output_of

ASKED = Invocation("a", {"q": ["x"]}, 2)


def said(function, invocation=ASKED):
    target = PythonTarget(function)
    return asyncio.run(target.call_async(invocation)) if target.is_async else target.call(invocation)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("text", "text"),
        ("", ""),
        ({"b": 1, "a": [True, None]}, '{"b":1,"a":[true,null]}'),
        ([1, "x"], '[1,"x"]'),
        (7, "7"),
        (0.5, "0.5"),
        (False, "false"),
        ({"day": dt.date(2024, 2, 29), "words": {"b", "c", "a"}}, '{"day":"2024-02-29","words":["a","b","c"]}'),
        (dm.Output("o"), "o"),
    ],
)
def test_text_an_output_and_json_data_are_answers(value, text):
    assert said(lambda asked: value).text == text


@pytest.mark.parametrize(
    "value",
    [None, object(), {1: object()}, lambda: 1, b"text", {"a": b"text"}, float("nan"), {"a": [float("inf")]}],
)
def test_anything_else_is_a_failure(value):
    with pytest.raises(TypeError, match="A target returns text, an Output or JSON data"):
        said(lambda asked: value)


def test_a_coroutine_from_a_plain_function_is_a_failure_and_is_closed():
    async def later():
        return "x"

    with pytest.raises(TypeError, match="not coroutine"):
        said(lambda asked: later())


@pytest.mark.parametrize(
    "output",
    [
        dm.Output("x", retrieved=[float("nan")]),
        dm.Output("x", retrieved=object()),
        dm.Output("x", retrieved={"a": {1, 2}}),
        dm.Output("x", trajectory=dm.Trajectory(tool_calls=[dm.ToolCall("t", result=float("inf"))])),
        dm.Output("x", trajectory=dm.Trajectory(tool_calls=[dm.ToolCall("t", result=object())])),
    ],
)
def test_an_output_that_holds_what_no_report_can_show_is_a_failure(output):
    with pytest.raises(TypeError, match="An Output holds JSON data"):
        output_of(output)


def test_an_output_keeps_everything_it_holds():
    output = dm.Output("x", retrieved=["d1"], usage=dm.Usage(calls=2), model="m")
    assert said(lambda asked: output) is output


def test_a_target_gets_the_input_alone_as_a_dict_of_its_own():
    held = {"q": ["x"]}

    def answer(asked):
        assert type(asked) is dict
        asked["q"].append("y")
        asked["more"] = 1
        return "x"

    said(answer, Invocation("a", held))
    assert held == {"q": ["x"]}


def test_neither_the_expected_output_nor_metadata_reaches_a_target():
    seen = []

    def answer(invocation):
        seen.append((vars(invocation) if hasattr(invocation, "__dict__") else invocation.__struct_fields__, invocation))
        return "x"

    sample = dm.Sample("a", {"q": 1}, "secret", {"tags": ["hidden"]})
    dm.evaluate(dm.Dataset([sample], name="d"), target=answer, metrics=["exact-match"])
    ((fields, invocation),) = seen
    assert fields == ("id", "input", "repetition")
    assert "secret" not in repr(invocation)
    assert "hidden" not in repr(invocation)


def test_a_change_to_the_input_reaches_neither_metrics_nor_later_repetitions():
    turns = []

    @dm.metric("untouched")
    def untouched(input):  # noqa: A002 - metrics are bound by name
        return input == {"q": []}

    def answer(asked):
        turns.append(len(asked["q"]))
        asked["q"].append("changed")
        return "x"

    report = dm.evaluate(
        dm.Dataset([dm.Sample("a", {"q": []}, "x")], name="d"), target=answer, metrics=[untouched], repetitions=3
    )
    assert turns == [0, 0, 0]
    assert report.metrics["untouched"].mean == 1.0


def by_name(invocation):
    return f"{invocation.id} {invocation.repetition}"


def by_annotation(call: Invocation):
    return f"{call.id} {call.repetition}"


class Callable:
    async def __call__(self, invocation):
        return f"{invocation.id} {invocation.repetition}"


@pytest.mark.parametrize("function", [by_name, by_annotation, Callable()])
def test_a_target_that_asks_for_the_invocation_gets_it(function):
    assert said(function).text == "a 2"


def test_partial_functions_and_methods_are_targets():
    def answer(prefix, asked):
        return prefix + asked["q"][0]

    class App:
        async def ask(self, asked):
            return asked["q"][0]

    assert said(functools.partial(answer, "> ")).text == "> x"
    assert said(App().ask).text == "x"


@pytest.mark.parametrize("function", [42, "app:answer", None])
def test_what_cannot_be_called_is_no_target(function):
    with pytest.raises(ConfigurationError, match="A target is a function, not"):
        PythonTarget(function)


@pytest.mark.parametrize("function", [lambda: 1, lambda a, b: 1, lambda *, asked: 1])
def test_a_target_takes_one_argument(function):
    with pytest.raises(ConfigurationError, match="A target takes one argument, the input"):
        PythonTarget(function)
