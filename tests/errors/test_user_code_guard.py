"""User code that raises: a value, one line, nothing that could do harm."""

from __future__ import annotations

import asyncio
import json
import signal
import types

import pytest

from deemster.errors.user_code_guard import UserCodeGuard


def caught(error):
    with UserCodeGuard() as guard:
        raise error
    return guard


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("no"), "ValueError: no"),
        (ValueError(), "ValueError"),
        (KeyError("k"), "KeyError: 'k'"),
        (ValueError("two\nlines\x1b[31m"), "ValueError: two lines\\x1b[31m"),
        (SystemExit(3), "SystemExit: 3"),
        (ValueError("\ud800\u202e"), "ValueError: \ufffd\\u202e"),
    ],
)
def test_exception_is_described_in_one_safe_line(error, message):
    assert caught(error).message == message


def test_long_message_is_cut():
    assert len(caught(ValueError("x" * 10_000)).message) == 300


def test_exception_with_failing_str_is_described():
    class RudeError(Exception):
        def __str__(self):
            raise RuntimeError("no text")

    assert caught(RudeError()).message == "RudeError: (its text cannot be shown: RuntimeError)"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), asyncio.CancelledError(), GeneratorExit()])
def test_interrupt_or_cancellation_that_code_raises_itself_is_held(error):
    assert caught(error).error is error


@pytest.mark.parametrize("everything", [False, True])
def test_ctrl_c_passes_through_unless_everything_is_held(everything):
    def interrupted():
        with UserCodeGuard(everything=everything) as guard:
            signal.raise_signal(signal.SIGINT)
        return guard

    if everything:
        assert isinstance(interrupted().error, KeyboardInterrupt)
    else:
        with pytest.raises(KeyboardInterrupt):
            interrupted()


def test_ctrl_c_that_runs_through_a_finally_block_passes_through():
    def asked():
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            asyncio.Event()

    with pytest.raises(KeyboardInterrupt), UserCodeGuard():
        asked()


async def test_cancellation_of_the_task_passes_through():
    async def waits():
        with UserCodeGuard():
            await asyncio.Event().wait()

    task = asyncio.create_task(waits())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


async def test_cancelled_future_that_code_awaits_is_held():
    future = asyncio.get_running_loop().create_future()
    future.cancel()
    with UserCodeGuard() as guard:
        await future
    assert isinstance(guard.error, asyncio.CancelledError)


def test_closing_a_coroutine_passes_through():
    @types.coroutine
    def pauses():
        yield

    async def waits():
        with UserCodeGuard():
            await pauses()
        raise AssertionError("a closed coroutine goes on")

    coroutine = waits()
    coroutine.send(None)
    coroutine.close()


def test_without_exception_there_is_no_message():
    with UserCodeGuard() as guard:
        pass
    assert (guard.error, guard.message) == (None, "")


def fails(depth, text="no"):
    if depth:
        return fails(depth - 1, text)
    raise ValueError(text)


def traceback_of(call):
    with UserCodeGuard() as guard:
        call()
    return guard.traceback


def test_traceback_names_every_frame_of_the_code_and_what_caused_it():
    def wraps():
        try:
            fails(1)
        except ValueError as error:
            raise KeyError("q1") from error

    lines = traceback_of(wraps).splitlines()
    assert [line.split(", in ")[1] for line in lines if ", in " in line] == [
        "wraps",
        "fails",
        "fails",
        "traceback_of",
        "wraps",
    ]
    assert [line for line in lines if "Error: " in line] == ["ValueError: no", "KeyError: 'q1'"]


def test_traceback_begins_at_the_first_frame_of_the_user_and_goes_on_into_libraries():
    text = traceback_of(lambda: json.loads("{"))
    assert text.splitlines()[1].endswith("in traceback_of")
    assert "in raw_decode" in text


def test_traceback_is_bounded_in_frames_and_in_size():
    deep = traceback_of(lambda: fails(900))
    assert "fails" in deep
    assert len(deep) < 2_000
    long = traceback_of(lambda: fails(0, "x" * 100_000))
    assert len(long) < 8_100
    assert "in fails" in long


def test_without_a_frame_of_the_user_there_is_no_traceback():
    error = ValueError("no")
    assert UserCodeGuard().traceback is None
    with UserCodeGuard() as guard:
        pass
    guard.error = error
    assert guard.traceback is None
