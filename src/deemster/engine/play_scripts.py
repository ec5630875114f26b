"""Plays scripts: sends a judge's requests to the models, and the replies back to the judge."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from typing import Any, TypeAlias

import msgspec

from deemster.errors.user_code_guard import UserCodeGuard
from deemster.metrics.score_outputs import user_mark
from deemster.records import Ask, Embed, Mark, MetricScore, NoAnswer, Output, Reply, Request, Sample, Unscored, Usage
from deemster.records.marks import FIRST_CAUSE, failed_votes
from deemster.records.shared_call_cost import reply_calls, with_calls
from deemster.records.usage import divide_usage, sum_usage

AskModels: TypeAlias = Callable[[Sequence[Request]], Awaitable[Sequence[Reply]]]
# More than any metric asks of one output.
SAMPLES = 1_000
# More than any script needs; a script that never stops asking would never let its run end.
ROUNDS = 1_000


def ask_in_repetition(ask: AskModels, repetition: int) -> AskModels:
    """A way to ask in which every repetition of a question counts as a new question.

    So a judge answers anew in every repetition, and its noise shows. A request marked `once` stays the same question.
    """
    if repetition == 0:
        return ask

    async def again(requests: Sequence[Request]) -> Sequence[Reply]:
        return await ask(
            [
                msgspec.structs.replace(request, sample=request.sample + repetition * SAMPLES)
                if isinstance(request, Ask) and not request.once
                else request
                for request in requests
            ]
        )

    return again


def ask_anew(ask: AskModels, earlier: Mark | None) -> AskModels:
    """A way to ask again for a mark whose replies could not be read.

    Every question counts as a new one, so that no cache gives the unreadable replies again.

    Args:
        ask: Answers one round of requests.
        earlier: The mark as it was; None or another kind of mark leaves the questions as they are.
    """
    if not _was_unreadable(earlier):
        return ask
    # A mark has the calls of all attempts, so the number grows with each attempt.
    tries = len(earlier.calls) + 2  # type: ignore[union-attr]

    async def put_anew(requests: Sequence[Request]) -> Sequence[Reply]:
        return await ask(
            [
                msgspec.structs.replace(request, again=request.again + tries) if isinstance(request, Ask) else request
                for request in requests
            ]
        )

    return put_anew


def _was_unreadable(earlier: Mark | None) -> bool:
    """Whether a reply behind a mark could not be read. Where judges were only down, what the others said is kept."""
    if not isinstance(earlier, (MetricScore, Unscored)):
        return False

    causes = [vote["cause"] for vote in failed_votes(earlier.details)]
    if isinstance(earlier, Unscored):
        if earlier.cause != "no_quorum":
            return earlier.cause == "unreadable"
        # Runs of earlier versions do not say which it was; all members of their panels are asked anew.
        causes = causes or [earlier.details.get(FIRST_CAUSE, "unreadable")]
    return "unreadable" in causes


async def play_script(metric: Any, sample: Sample, output: Output, *, ask: AskModels) -> Mark:
    """Play the script of a scorer; its mark, with the calls behind it.

    Args:
        metric: A scorer.
        sample: What was asked of the target.
        output: What it said.
        ask: Answers one round of requests.
    """
    replies: list[Reply] = []
    with UserCodeGuard() as caught:
        result = await script_result(metric.script(sample, output), ask, replies)
        mark = _unless_cut_short(user_mark(metric, result), replies)
        return mark if getattr(metric, "keeps_calls", False) else _with_calls(mark, replies)

    failed = Unscored("metric_failed", caught.message_with_place)
    return _with_calls(_unless_cut_short(failed, replies), replies)


async def play_batch_script(
    metric: Any, samples: Sequence[Sample], outputs: Sequence[Output], *, ask: AskModels
) -> list[Mark]:
    """Play one script for a batch; its marks, each with an equal share of what the script used.

    Args:
        metric: A scorer that has ``script_many``.
        samples: What was asked of the target.
        outputs: What it said to each.
        ask: Answers one round of requests.
    """
    replies: list[Reply] = []
    with UserCodeGuard() as caught:
        results = await script_result(metric.script_many(samples, outputs), ask, replies)
        marks = [user_mark(metric, result) for result in results]
        if len(marks) != len(samples):
            raise ValueError(f"`script_many` gave {len(marks)} marks for {len(samples)} outputs.")
        shares = zip(marks, _divide_usage(replies, len(marks)), strict=True)
        return [_with_usage(_unless_cut_short(mark, replies), share) for mark, share in shares]

    failed = _unless_cut_short(Unscored("metric_failed", caught.message_with_place), replies)
    return [_with_usage(failed, share) for share in _divide_usage(replies, len(samples))]


async def script_result(script: Any, ask: AskModels, replies: list[Reply]) -> Any:
    """Play a script to its end; what it returns.

    Args:
        script: The generator.
        ask: Answers one round of requests.
        replies: Gets every reply that the script was sent.

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
            _check_requests(requests)
            answered = await ask(requests)
            replies += answered
            requests = script.send(answered)
    except StopIteration as stop:
        ended = True
        return stop.value
    finally:
        if not ended:
            _close(script)
    raise RuntimeError(f"The script went on asking after {ROUNDS} rounds.")


def _check_requests(requests: Any) -> None:
    """Refuse what a script yields beside requests: only they reach a model."""
    if not isinstance(requests, (list, tuple)):
        raise TypeError(f"A script yields lists of requests (`Ask`, `Embed`), not a {type(requests).__name__}.")
    for request in requests:
        if not isinstance(request, (Ask, Embed)):
            raise TypeError(f"A request is an `Ask` or an `Embed`, not a {type(request).__name__}.")


def _unless_cut_short(mark: Mark, replies: Iterable[Reply]) -> Mark:
    """The mark of a script, or `not_run` where a budget, a stop or an open circuit kept a model from being asked.

    A script that goes on without a reply would otherwise leave a mark that looks final. A resumed run takes the mark
    up again: the replies that came are kept, and only the others are asked for.
    """
    if isinstance(mark, Unscored) and mark.cause == "not_run":
        return mark
    unasked = next((reply for reply in replies if isinstance(reply, NoAnswer) and reply.cause == "not_run"), None)
    if unasked is None:
        return mark
    return Unscored("not_run", unasked.message, details=getattr(mark, "details", {}))


def _close(script: Any) -> None:
    """Close a script; an error that it raises then must not replace the cancellation that closes it."""
    with UserCodeGuard():
        script.close()


def _with_usage(mark: Mark, usage: Usage | None) -> Mark:
    return mark if usage is None or mark.usage is not None else msgspec.structs.replace(mark, usage=usage)


def _divide_usage(replies: Sequence[Reply], parts: int) -> list[Usage | None]:
    return divide_usage(sum_usage(reply.usage for reply in replies if reply.usage is not None), parts)


def _with_calls(mark: Mark, replies: Sequence[Reply]) -> Mark:
    """A mark with the calls behind it, and what they used."""
    if mark.usage is not None:
        return mark
    return with_calls(mark, list(reply_calls(replies)))
