"""Plays one script: its requests are answered, its result is a mark, and its errors fail only itself."""

from __future__ import annotations

import asyncio
import signal
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import deemster as dm
from deemster.engine import play_scripts as playing
from deemster.engine.play_scripts import SAMPLES, ask_anew, ask_in_repetition, play_batch_script, play_script
from deemster.records import Answer, Call, Embed, MetricScore, NoAnswer, Unscored, Usage
from tests.runs.make_scorers import (
    DOWN,
    OUTPUT,
    SAMPLE,
    Model,
    Scripted,
    Together,
    answer,
    question,
    rated,
    rated_together,
)


def play(script, model=None, *, name="scripted", **attributes):
    scorer = Scripted(script, name)
    for key, value in attributes.items():
        setattr(scorer, key, value)
    return asyncio.run(play_script(scorer, SAMPLE, OUTPUT, ask=model or Model()))


def play_together(script, count=3, model=None):
    samples = [dm.Sample(f"s{n}", {}, "x") for n in range(count)]
    return asyncio.run(play_batch_script(Together(script), samples, [OUTPUT] * count, ask=model or Model()))


def test_script_receives_replies_of_each_round_in_order():
    def script(sample, output):
        first = yield [question("a"), question("b")]
        second = yield [Embed(texts=("c",))]
        return MetricScore(1.0, {"heard": [reply.text for reply in [*first, *second]]})

    said = {"a": "A", "b": "B"}
    model = Model(lambda request: answer("C" if isinstance(request, Embed) else said[request.messages[0].content]))
    assert play(script, model).details["heard"] == ("A", "B", "C")
    assert [len(requests) for requests in model.rounds] == [2, 1]


def test_mark_has_usage_of_all_replies_and_failures():
    def script(sample, output):
        yield [question("a"), question("b")]
        yield [question("c")]
        return MetricScore(1.0)

    model = Model(lambda request: DOWN if request.messages[0].content == "b" else answer(tokens=10))
    usage = play(script, model).usage
    assert (usage.calls, usage.prompt_tokens, usage.completion_tokens) == (3, 21, 2)


UNASKED = NoAnswer(cause="not_run", message="The budget is exhausted.")


@pytest.mark.parametrize("says", [MetricScore(1.0), 0.5, dm.Unscored("no_quorum", "Too few."), "no mark at all"])
def test_mark_of_script_that_went_on_without_asking_a_model_is_not_run(says):
    def script(sample, output):
        yield [question("a"), question("b")]
        return says

    model = Model(lambda request: UNASKED if request.messages[0].content == "b" else answer(tokens=10))
    mark = play(script, model)
    assert (mark.cause, mark.message) == ("not_run", UNASKED.message)
    assert mark.usage.prompt_tokens == 10


def test_all_marks_of_batch_that_was_cut_short_are_not_run():
    def script(samples, outputs):
        yield [question("a"), question("b")]
        return [1.0] * len(samples)

    model = Model(lambda request: UNASKED if request.messages[0].content == "b" else answer(tokens=10))
    assert [mark.cause for mark in play_together(script, model=model)] == ["not_run"] * 3


def test_mark_with_own_usage_is_unchanged():
    def script(sample, output):
        yield [question("a")]
        return MetricScore(1.0, usage=Usage(calls=7))

    assert play(script).usage == Usage(calls=7)


def test_script_without_requests_has_no_usage():
    def script(sample, output):
        return MetricScore(0.25)
        yield

    model = Model()
    mark = play(script, model)
    assert (mark.score, mark.usage, model.rounds) == (0.25, None, [])


def test_script_may_return_number_boolean_or_mark():
    def script(sample, output):
        (reply,) = yield [question("a")]
        return reply.text == "0.5"

    assert play(script).score == 1.0


def test_marks_have_threshold_and_direction_of_scorer():
    def script(sample, output):
        return 0.3
        yield

    mark = play(script, threshold=0.4, higher_is_better=False)
    assert (mark.threshold, mark.higher_is_better, mark.success) == (0.4, False, True)


class WordlessError(Exception):
    def __str__(self):
        raise ValueError("no text either")


def raising(error):
    def script(sample, output):
        yield [question("a")]
        raise error

    return script


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("no\x1b[31m"),
        WordlessError(),
        SystemExit(3),
        StopIteration(1),
        MemoryError(),
        KeyboardInterrupt(),
        GeneratorExit(),
        asyncio.CancelledError(),
    ],
)
def test_raising_script_is_metric_failed_with_its_usage(error):
    mark = play(raising(error))
    assert mark.cause == "metric_failed"
    assert mark.usage.prompt_tokens == 10
    assert "\x1b" not in mark.message


def test_interrupt_that_the_script_raises_itself_is_failed_mark():
    mark = play(raising(KeyboardInterrupt()))
    assert (mark.cause, mark.message.partition(" ")[0]) == ("metric_failed", "KeyboardInterrupt")


def test_ctrl_c_inside_script_is_raised():
    def script(sample, output):
        signal.raise_signal(signal.SIGINT)
        yield [question("a")]

    with pytest.raises(KeyboardInterrupt):
        play(script)


async def coroutine(sample, output):
    return MetricScore(1.0)


async def async_generator(sample, output):
    yield [question("a")]


@pytest.mark.parametrize(
    ("script", "found"),
    [
        (coroutine, "coroutine"),
        (async_generator, "async_generator"),
        (lambda sample, output: MetricScore(1.0), "MetricScore"),
        (lambda sample, output: None, "NoneType"),
        (lambda sample, output: iter([[question("a")]]), "list_iterator"),
    ],
)
def test_script_that_is_no_generator_is_metric_failed(script, found):
    model = Model()
    mark = play(script, model)
    assert mark.cause == "metric_failed"
    assert f"not a {found}" in mark.message
    assert model.rounds == []


@pytest.mark.parametrize(
    ("rubbish", "found"),
    [
        (None, "NoneType"),
        ("ask", "str"),
        (question("a"), "Ask"),
        ({"a": 1}, "dict"),
        ([question("a"), "b"], "str"),
        ([[question("a")]], "list"),
        ([None], "NoneType"),
    ],
)
def test_invalid_request_of_script_reaches_no_model(rubbish, found):
    closed = []

    def script(sample, output):
        try:
            yield rubbish
        finally:
            closed.append(True)

    model = Model()
    mark = play(script, model)
    assert mark.cause == "metric_failed"
    assert f"not a {found}." in mark.message
    assert model.rounds == []
    assert closed == [True]


@pytest.mark.parametrize("rubbish", [None, "high", 1.5, float("nan"), -0.1, object(), [0.5], {"score": 0.5}])
def test_invalid_return_of_script_is_metric_failed(rubbish):
    def script(sample, output):
        yield [question("a")]
        return rubbish

    mark = play(script)
    assert mark.cause == "metric_failed"
    assert mark.usage.calls == 1


def test_endless_script_is_ended(monkeypatch):
    monkeypatch.setattr(playing, "ROUNDS", 20)

    def script(sample, output):
        while True:
            yield [question("a")]

    model = Model()
    mark = play(script, model)
    assert mark.cause == "metric_failed"
    assert "20 rounds" in mark.message
    assert len(model.rounds) == mark.usage.calls == 20


async def test_script_that_refuses_to_close_is_still_cancelled():
    def script(sample, output):
        try:
            yield [question("a")]
        except GeneratorExit:
            yield [question("b")]

    started = asyncio.Event()

    async def wait(_):
        started.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(play_script(Scripted(script), SAMPLE, OUTPUT, ask=Model(wait=wait)))
    await started.wait()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


async def test_cancelled_script_is_closed():
    closed = []

    def script(sample, output):
        try:
            yield [question("a")]
        finally:
            closed.append(True)

    async def never(_):
        await asyncio.Event().wait()

    task = asyncio.create_task(play_script(Scripted(script), SAMPLE, OUTPUT, ask=Model(wait=never)))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert closed == [True]


def test_failing_gateway_does_not_end_the_run():
    async def broken(_):
        raise OSError("the gateway is gone")

    mark = asyncio.run(play_script(Scripted(rated), SAMPLE, OUTPUT, ask=broken))
    assert mark.cause == "metric_failed"


@given(st.integers(1, 30), st.lists(st.integers(0, 10_000), min_size=1, max_size=5))
def test_usage_of_batch_is_split_to_exact_sum(count, tokens):
    def script(samples, outputs):
        yield [question(str(place)) for place in range(len(tokens))]
        return [MetricScore(0.5)] * len(samples)

    def reply(request):
        usage = Usage(prompt_tokens=tokens[int(request.messages[0].content)], cost_usd=Decimal("0.0000001"))
        return Answer(text="x", usage=usage)

    marks = play_together(script, count, Model(reply))
    assert sum(mark.usage.prompt_tokens for mark in marks) == sum(tokens)
    assert sum(mark.usage.calls for mark in marks) == len(tokens)
    assert sum(mark.usage.cost_usd for mark in marks) == Decimal("0.0000001") * len(tokens)


def test_batch_gets_its_marks_in_order():
    model = Model(lambda request: answer(f"0.{request.messages[0].content[1]}"))
    assert [mark.score for mark in play_together(rated_together, 3, model)] == [0.0, 0.1, 0.2]


@pytest.mark.parametrize("marks", [[], [MetricScore(1.0)] * 2, [MetricScore(1.0)] * 4, None, 0.5])
def test_batch_with_wrong_number_of_marks_is_metric_failed_for_all(marks):
    def script(samples, outputs):
        yield [question("a")]
        return marks

    found = play_together(script)
    assert [mark.cause for mark in found] == ["metric_failed"] * 3
    assert sum(mark.usage.prompt_tokens for mark in found) == 10


def test_one_invalid_mark_of_batch_fails_alone():
    def script(samples, outputs):
        yield []
        return [MetricScore(1.0), "rubbish", True]

    assert [getattr(mark, "cause", "scored") for mark in play_together(script)] == ["scored", "metric_failed", "scored"]


async def test_repetitions_ask_anew_but_share_embeddings():
    model = Model()
    requests = [question("a"), question("a", sample=3), Embed(texts=("a",))]

    for repetition in range(3):
        await ask_in_repetition(model, repetition)(requests)
    assert [[getattr(each, "sample", None) for each in made] for made in model.rounds] == [
        [0, 3, None],
        [SAMPLES, SAMPLES + 3, None],
        [2 * SAMPLES, 2 * SAMPLES + 3, None],
    ]


CALLS = (Call(1), Call(2))
VOTES = {"votes": [{"score": 1.0}, {"cause": "model_failed"}]}


@pytest.mark.parametrize(
    ("earlier", "again"),
    [
        (None, 0),
        (MetricScore(1.0, VOTES, calls=CALLS), 0),
        (MetricScore(1.0, {"votes": [*VOTES["votes"], {"cause": "unreadable"}]}, calls=CALLS), 4),
        (Unscored("unreadable", "No verdict.", calls=CALLS), 4),
        (Unscored("model_failed", "It was down.", calls=CALLS), 0),
        (Unscored("no_quorum", "Too few.", calls=CALLS, details={"first_cause": "rate_limited"}), 0),
        (Unscored("no_quorum", "Too few.", calls=CALLS, details={"first_cause": "unreadable"}), 4),
        (Unscored("no_quorum", "Too few.", calls=CALLS, details=VOTES), 0),
        # As a run of an earlier version has it.
        (Unscored("no_quorum", "Too few.", calls=CALLS), 4),
    ],
)
def test_questions_are_new_ones_where_a_reply_behind_the_mark_could_not_be_read(earlier, again):
    model = Model()
    asyncio.run(ask_anew(model, earlier)([question("a")]))
    assert [ask.again for ask in model.rounds[0]] == [again]
