"""The script of a judge: ask, read the reply strictly, ask once more if it is unreadable, and mark."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec

from deemster.judges.prompt_templates import text_hash
from deemster.judges.reply_parser import UnreadableReplyError
from deemster.metrics.builtin_metric import BuiltinScorer, UnscoredError
from deemster.records import Answer, Ask, Call, NoAnswer, Output, Reply, Request, Sample, Script, Unscored
from deemster.records.model_requests import JUDGE
from deemster.records.shared_call_cost import reply_calls

T = TypeVar("T")
Asking: TypeAlias = Generator[Sequence[Request], Sequence[Reply], T]


class NoAnswerError(Exception):
    """A judge gave no answer that can be used. It never leaves a script: it becomes an unscored mark.

    Attributes:
        cause: The cause of the unscored mark.
        message: What happened, for a person.
        details: What else the unscored mark says.
    """

    def __init__(self, no_answer: NoAnswer, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(no_answer.message)
        self.cause, self.message = no_answer.cause, no_answer.message
        self.details = details or {}


class ParsedReply(NamedTuple, Generic[T]):
    """A reply that was read.

    Attributes:
        value: What was read from it.
        answer: The reply itself.
    """

    value: T
    answer: Answer


class QuestionOutcome(NamedTuple, Generic[T]):
    """What came of one question, asked once or twice.

    Attributes:
        parts: For each part of the question what was read, or why nothing was.
        calls: The calls that the replies come from, each with what it used.
    """

    parts: list[T | NoAnswer]
    calls: list[Call]


def ask_with_retry(
    asks: Sequence[Ask], read: Callable[[int, Answer], Sequence[T | NoAnswer]], *, parts: Sequence[int] | None = None
) -> Asking[list[QuestionOutcome[T]]]:
    """Ask all questions in one round; in a second round ask again where a reply cannot be read completely.

    What was read of a first reply stands; the second reply is read for the rest. The models' gateway has already
    repeated a request that failed, so a failure is not asked again here.

    Args:
        asks: The questions.
        read: Reads the parts of the answer to the question at a place, or raises `UnreadableReplyError` for all.
        parts: How many parts each question has; one each unless given.
    """
    counts = parts or [1] * len(asks)

    def read_parts(place: int, reply: Reply) -> list[T | NoAnswer]:
        found = _read_reply(reply, lambda answer: [*read(place, answer)])
        return [found] * counts[place] if isinstance(found, NoAnswer) else found

    first = yield asks
    found = [QuestionOutcome(read_parts(place, reply), [*reply_calls([reply])]) for place, reply in enumerate(first)]
    again = [
        place
        for place, reply in enumerate(first)
        if not isinstance(reply, NoAnswer) and any(isinstance(part, NoAnswer) for part in found[place].parts)
    ]
    if again:
        for place, reply in zip(again, (yield _repeat_asks(asks, again)), strict=True):
            outcome = found[place]
            for at, part in enumerate(read_parts(place, reply)):
                if isinstance(outcome.parts[at], NoAnswer):
                    outcome.parts[at] = part
            outcome.calls.extend(reply_calls([reply]))
    return found


def ask_all(asks: Sequence[Ask], read: Callable[[Answer], T]) -> Asking[list[ParsedReply[T] | NoAnswer]]:
    """Ask all in one round, and once more in a second round where a reply cannot be read.

    Args:
        asks: The questions.
        read: Reads an answer, or raises `UnreadableReplyError`.

    Returns:
        For each question what was read, or why nothing was.
    """
    outcomes = yield from ask_with_retry(asks, lambda _, answer: [ParsedReply(read(answer), answer)])
    return [outcome.parts[0] for outcome in outcomes]


def _read_reply(reply: Reply, read: Callable[[Answer], T]) -> T | NoAnswer:
    """What was read from a reply, or why nothing was; a failure as it is."""
    if isinstance(reply, Answer):
        try:
            return read(reply)
        except UnreadableReplyError as error:
            return unreadable_reply(error.message)
    if isinstance(reply, NoAnswer):
        return reply
    return unreadable_reply("The model sent vectors where an answer was expected.")


def _repeat_asks(asks: Sequence[Ask], places: Sequence[int]) -> list[Ask]:
    """Some of the questions, put once more, so that no cache answers them."""
    return [msgspec.structs.replace(asks[place], again=asks[place].again + 1) for place in places]


def ask_model(ask: Ask, read: Callable[[Answer], T]) -> Asking[ParsedReply[T]]:
    """Ask, and ask once more if the reply cannot be read.

    Args:
        ask: The question.
        read: Reads an answer, or raises `UnreadableReplyError`.

    Raises:
        NoAnswerError: No answer came, or the second one cannot be read either.
    """
    (found,) = yield from ask_all((ask,), read)
    if isinstance(found, NoAnswer):
        raise NoAnswerError(found)
    return found


def unreadable_reply(message: str) -> NoAnswer:
    """The failure of a model whose reply cannot be read.

    Args:
        message: What was wrong and what was expected.
    """
    return NoAnswer(cause="unreadable", message=message)


class JudgeMetric(BuiltinScorer, frozen=True, kw_only=True):
    """A metric that asks a chat model.

    A subclass writes ``judge_output`` and ``prompt_text``, ``expect`` if it reads more of a sample than its expected
    output, and ``roles`` if it asks other models than `judge`.
    """

    family: ClassVar[str] = "judge"
    edition: ClassVar[str] = "1"

    if TYPE_CHECKING:

        def judge_output(self, sample: Sample, output: Output) -> Script:
            """Ask and mark.

            Raises:
                UnscoredError: The sample or output cannot be read.
                NoAnswerError: No usable answer came.
                UnreadableReplyError: A reply cannot be used, though it was asked for again.
            """

        def prompt_text(self) -> str:
            """The whole prompt, as a person reads it."""

    @property
    def version(self) -> str:  # type: ignore[override]
        """The edition of the judge and the hash of its prompt: a changed prompt is another judge."""
        return f"{self.edition}.{self.prompt_hash}"

    @property
    def prompt_hash(self) -> str:
        """The hash that identifies the prompt."""
        return text_hash(self.prompt_text())

    @property
    def roles(self) -> tuple[str, ...]:
        """The model roles it asks."""
        return (JUDGE,)

    def script(self, sample: Sample, output: Output) -> Script:
        """Mark one output; every yield is a round of requests."""
        try:
            return (yield from self.judge_output(sample, output))
        except UnscoredError as error:
            return Unscored(error.cause, error.message)
        except NoAnswerError as error:
            return Unscored(error.cause, error.message, details=error.details)
        except UnreadableReplyError as error:
            return Unscored("unreadable", error.message)
