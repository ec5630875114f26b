"""Playing scripts: what a judge asks goes to the models, and what they reply goes back to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any, TypeAlias

import msgspec

from deemster.errors.user_code_guard import UserCodeGuard
from deemster.records import Ask as Question
from deemster.records import Embed, Mark, Output, Reply, Request, Sample, Unscored, Usage
from deemster.records.shared_call_cost import reply_calls, with_calls
from deemster.records.usage import divide_usage, sum_usage
from deemster.runs._score_batch import user_mark

Ask: TypeAlias = Callable[[Sequence[Request]], Awaitable[Sequence[Reply]]]
# More than any metric asks of one output.
SAMPLES = 1_000
# More than any script needs: one that goes on asking would never let its run end.
ROUNDS = 1_000


def ask_in_repetition(ask: Ask, repetition: int) -> Ask:
    """What answers the requests of one repetition: the same question is another one in each.

    So a judge that is asked about the same output again answers anew, and its noise is seen. What is asked `once` stays
    the same question: all repetitions have one judge.
    """
    if repetition == 0:
        return ask

    async def again(requests: Sequence[Request]) -> Sequence[Reply]:
        return await ask(
            [
                msgspec.structs.replace(each, sample=each.sample + repetition * SAMPLES)
                if isinstance(each, Question) and not each.once
                else each
                for each in requests
            ]
        )

    return again


def ask_anew(ask: Ask, earlier: Mark | None) -> Ask:
    """What answers the requests of a mark that could not be made because a reply could not be read.

    The questions are put as ones that were not put before, so that no cache gives the same replies again.

    Args:
        ask: Answers one round of requests.
        earlier: The mark as it was; None, or another one, where the same questions will do.
    """
    if not isinstance(earlier, Unscored) or earlier.cause not in ("unreadable", "no_quorum"):
        return ask
    # A mark keeps the calls of all attempts, so the number grows with each.
    tries = len(earlier.calls) + 2

    async def put_anew(requests: Sequence[Request]) -> Sequence[Reply]:
        return await ask(
            [
                msgspec.structs.replace(each, again=each.again + tries) if isinstance(each, Question) else each
                for each in requests
            ]
        )

    return put_anew


async def play_script(metric: Any, sample: Sample, output: Output, *, ask: Ask) -> Mark:
    """The mark a script ends with, and the calls it stands on.

    Args:
        metric: A scorer.
        sample: What was asked of the target.
        output: What it said.
        ask: Answers one round of requests.
    """
    heard: list[Reply] = []
    with UserCodeGuard() as caught:
        mark = user_mark(metric, await script_result(metric.script(sample, output), ask, heard))
        return _with_calls(mark, heard)
    return _with_calls(Unscored("metric_failed", caught.message), heard)


async def play_batch_script(
    metric: Any, samples: Sequence[Sample], outputs: Sequence[Output], *, ask: Ask
) -> list[Mark]:
    """The marks one script ends with for a batch; what it used is divided equally among them.

    Args:
        metric: A scorer that has ``script_many``.
        samples: What was asked of the target.
        outputs: What it said to each.
        ask: Answers one round of requests.
    """
    heard: list[Reply] = []
    with UserCodeGuard() as caught:
        marks = [
            user_mark(metric, mark) for mark in await script_result(metric.script_many(samples, outputs), ask, heard)
        ]
        if len(marks) != len(samples):
            raise ValueError(f"`script_many` gave {len(marks)} marks for {len(samples)} outputs.")
        return [_with_usage(mark, share) for mark, share in zip(marks, _shares(heard, len(marks)), strict=True)]
    return [Unscored("metric_failed", caught.message, share) for share in _shares(heard, len(samples))]


async def script_result(script: Any, ask: Ask, heard: list[Reply]) -> Any:
    """What a script returns in the end.

    Args:
        script: The generator.
        ask: Answers one round of requests.
        heard: Gets every reply that the script was sent.

    Raises:
        TypeError: It is no script, or yields what is no list of requests.
        RuntimeError: It never ends.
    """
    if not isinstance(script, Generator):
        _close(script)
        raise TypeError(f"A script is a generator that yields lists of requests, not a {type(script).__name__}.")
    ended = False
    try:
        requests = next(script)
        for _ in range(ROUNDS):
            replies = await ask(_checked(requests))
            heard += replies
            requests = script.send(replies)
    except StopIteration as stop:
        ended = True
        return stop.value
    finally:
        if not ended:
            _close(script)
    raise RuntimeError(f"The script went on asking after {ROUNDS} rounds.")


def _checked(requests: Any) -> Sequence[Request]:
    """One round of requests; whatever else a script yields reaches no model.

    Raises:
        TypeError: It is none.
    """
    if not isinstance(requests, (list, tuple)):
        raise TypeError(f"A script yields lists of requests (`Ask`, `Embed`), not a {type(requests).__name__}.")
    for request in requests:
        if not isinstance(request, (Question, Embed)):
            raise TypeError(f"A request is an `Ask` or an `Embed`, not a {type(request).__name__}.")
    return requests


def _close(script: Any) -> None:
    """End a script; what it raises then must not stand in for a cancellation that ends it."""
    with UserCodeGuard():
        script.close()


def _with_usage(mark: Mark, usage: Usage | None) -> Mark:
    return mark if usage is None or mark.usage is not None else msgspec.structs.replace(mark, usage=usage)


def _shares(heard: Sequence[Reply], parts: int) -> list[Usage | None]:
    return divide_usage(sum_usage(reply.usage for reply in heard if reply.usage is not None), parts)


def _with_calls(mark: Mark, heard: Sequence[Reply]) -> Mark:
    """A mark with the calls it stands on, and what it used if it is the first that stands on them."""
    if mark.usage is not None:
        return mark
    return with_calls(mark, list(reply_calls(heard)))
