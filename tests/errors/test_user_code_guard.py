"""User code that raises: a value, one line, nothing that could do harm."""

from __future__ import annotations

import asyncio

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


def test_a_long_message_is_cut():
    assert len(caught(ValueError("x" * 10_000)).message) == 300


def test_exception_with_failing_str_is_described():
    class RudeError(Exception):
        def __str__(self):
            raise RuntimeError("no text")

    assert caught(RudeError()).message == "RudeError: (its text cannot be shown: RuntimeError)"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), asyncio.CancelledError(), GeneratorExit()])
def test_interrupts_and_cancellation_pass_through(error):
    with pytest.raises(type(error)), UserCodeGuard():
        raise error


def test_without_exception_there_is_no_message():
    with UserCodeGuard() as guard:
        pass
    assert (guard.error, guard.message) == (None, "")
