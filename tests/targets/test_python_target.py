"""Python functions as targets: what they get, what they may return."""

from __future__ import annotations

import asyncio
import datetime as dt
import functools
import threading

import pytest

import deemster as dm
from deemster.errors import ConfigurationError
from deemster.records import Invocation, TargetFailure
from deemster.targets.command_target import CommandTarget
from deemster.targets.python_target import PythonTarget, as_output, as_target
from tests.builders.target_calls import outcomes
from tests.targets.fake_clocks import Hasty, Still

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
def test_other_return_types_are_failure(value):
    with pytest.raises(TypeError, match="A target returns text, an Output or JSON data"):
        said(lambda asked: value)


def test_coroutine_from_sync_function_is_failure_and_closed():
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
        dm.Output("x", trajectory=dm.records.Trajectory(tool_calls=[dm.records.ToolCall("t", result=float("inf"))])),
        dm.Output("x", trajectory=dm.records.Trajectory(tool_calls=[dm.records.ToolCall("t", result=object())])),
    ],
)
def test_unserializable_output_is_failure(output):
    with pytest.raises(TypeError, match="An Output holds JSON data"):
        as_output(output)


def test_output_keeps_everything_it_holds():
    output = dm.Output("x", retrieved=["d1"], usage=dm.Usage(calls=2), model="m")
    assert said(lambda asked: output) is output


def test_target_gets_its_own_copy_of_input():
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
    assert fields == ("id", "input", "repetition", "settings")
    assert "secret" not in repr(invocation)
    assert "hidden" not in repr(invocation)


def test_change_to_the_input_reaches_neither_metrics_nor_later_repetitions():
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
def test_target_that_asks_for_the_invocation_gets_it(function):
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
def test_non_callable_is_error(function):
    with pytest.raises(ConfigurationError, match="A target is a function, not"):
        PythonTarget(function)


@pytest.mark.parametrize("function", [lambda: 1, lambda a, b: 1, lambda *, asked: 1])
def test_target_with_wrong_parameters_is_error(function):
    with pytest.raises(ConfigurationError, match="A target takes one argument, the input"):
        PythonTarget(function)


def tried(target, clock=None, asked=ASKED):
    (outcome,) = outcomes(target, asked, clock=clock)
    return outcome


def test_raising_function_is_retried_up_to_limit():
    seen = []

    def answer(invocation):
        seen.append(invocation.repetition)
        if len(seen) < 3:
            raise OSError("not yet")
        return "fine"

    clock = Hasty()
    assert tried(PythonTarget(answer, retries=2), clock).text == "fine"
    assert (seen, len(clock.waits)) == ([2, 2, 2], 2)


def test_function_is_called_once_by_default():
    seen = []

    async def answer(asked):
        seen.append(asked)
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        tried(PythonTarget(answer))
    assert len(seen) == 1
    line = answer.__code__.co_firstlineno + 2
    assert tried(PythonTarget(answer, retries=1)).message == f"OSError: no (test_python_target.py:{line}) (2 attempts)"
    assert len(seen) == 3


def test_timed_out_function_is_failure_sync_and_async():
    held = threading.Event()

    async def later(asked):
        await asyncio.Event().wait()

    try:
        for function in (lambda asked: held.wait(), later):
            found = tried(PythonTarget(function, timeout_s=0.05))
            assert found == TargetFailure("The target did not answer within 0.05 s.")
    finally:
        held.set()


def test_timeout_error_of_function_keeps_its_message():
    def answer(asked):
        raise TimeoutError("upstream")

    line = answer.__code__.co_firstlineno + 1
    assert tried(PythonTarget(answer, timeout_s=60)).message == f"TimeoutError: upstream (test_python_target.py:{line})"


def test_latency_is_that_of_last_attempt():
    seen = []

    def answer(asked):
        seen.append(1)
        if len(seen) == 1:
            raise OSError
        return "x"

    clock = Hasty()
    found = tried(PythonTarget(answer, retries=1), clock)
    assert clock.waits[0] > 0.0
    assert found.usage.latency_ms < 1000 * clock.waits[0] + 1000
    assert tried(PythonTarget(lambda asked: "x", retries=1), Still()).usage is None


@pytest.mark.parametrize("options", [{"timeout_s": 0}, {"retries": -1}, {"concurrency": 0}, {"concurrency": "1-2"}])
def test_setting_out_of_range_is_refused(options):
    with pytest.raises(ConfigurationError):
        PythonTarget(lambda asked: "x", **options)


def test_identity_is_the_name_and_the_digest_of_the_file():
    import hashlib
    from pathlib import Path

    source = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    name = f"{__name__}:said"
    assert PythonTarget(functools.partial(said, 1)).identity == {"python": name, "source": source}

    class App:
        def __call__(self, asked):
            return "x"

    assert PythonTarget(App()).identity["python"].endswith(".<locals>.App")
    assert PythonTarget(App()).identity["source"] == source


def test_target_object_is_accepted_and_class_is_error():
    target = PythonTarget(lambda asked: "x")
    assert as_target(target) is target
    assert isinstance(as_target(said), PythonTarget)
    with pytest.raises(ConfigurationError, match="make one"):
        as_target(CommandTarget)


def test_object_with_roles_and_messages_of_its_own_is_called_like_any_other():
    class Agent:
        is_async = False
        roles = ("planner", "writer")
        messages = ()

        def call(self, invocation):
            return dm.Output(invocation.input["q"])

    samples = [dm.Sample("a", {"q": "x"}, "x")]
    report = dm.evaluate(dm.Dataset(samples, name="d"), target=Agent(), metrics=["exact-match"])
    assert report.metrics["exact-match"].mean == 1.0
