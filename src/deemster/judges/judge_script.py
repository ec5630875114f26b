"""What judges have in common: a script that asks, reads strictly, asks once more, and ends with a mark."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, ClassVar, Generic, TypeAlias, TypeVar

import msgspec

from deemster.judges.prompt_templates import text_hash
from deemster.judges.reply_parser import Unreadable
from deemster.metrics.builtin_metric import BuiltinScorer, UnscoredError
from deemster.records import Answer, Ask, NoAnswer, Output, Reply, Request, Sample, Script, Unscored, Usage
from deemster.records.model_requests import JUDGE
from deemster.records.usage import added

T = TypeVar("T")
Asking: TypeAlias = Generator[Sequence[Request], Sequence[Reply], T]


class Silent(Exception):  # noqa: N818 - it never leaves this room: it becomes an unscored mark
    """A judge gave no answer that can be used.

    Attributes:
        no_answer: Why no answer came.
    """

    def __init__(self, no_answer: NoAnswer) -> None:
        super().__init__(no_answer.message)
        self.no_answer = no_answer


class Told(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """A reply that was read.

    Attributes:
        value: What was read from it.
        answer: The reply itself.
        usage: What it used, an unreadable first reply included.
    """

    value: T
    answer: Answer
    usage: Usage | None = None


def asked(ask: Ask, read: Callable[[Answer], T]) -> Asking[Told[T]]:
    """Ask, and ask once more where the reply cannot be read.

    Args:
        ask: The question.
        read: Takes the verdict from an answer, or raises `Unreadable`.

    Raises:
        Silent: No answer came, or the second one cannot be read either.
    """
    (told,) = yield from asked_all((ask,), read)
    if isinstance(told, NoAnswer):
        raise Silent(told)
    return told


def asked_all(asks: Sequence[Ask], read: Callable[[Answer], T]) -> Asking[list[Told[T] | NoAnswer]]:
    """Ask all in one round, and in a second round once more those whose reply cannot be read.

    Args:
        asks: The questions.
        read: Takes the verdict from an answer, or raises `Unreadable`.

    Returns:
        For each question what was read, or why nothing was.
    """
    first = yield asks
    found = [_heard(reply, read) for reply in first]
    # The gateway has already asked again, as often as makes sense, where it says that no answer came.
    again = [
        place
        for place, told in enumerate(found)
        if isinstance(told, NoAnswer) and not isinstance(first[place], NoAnswer)
    ]
    if again:
        replies = yield [msgspec.structs.replace(asks[place], again=1) for place in again]
        for place, reply in zip(again, replies, strict=True):
            second = _heard(reply, read)
            usage = added(usage for usage in (found[place].usage, second.usage) if usage is not None)
            found[place] = msgspec.structs.replace(second, usage=usage)
    return found


def _heard(reply: Reply, read: Callable[[Answer], T]) -> Told[T] | NoAnswer:
    if isinstance(reply, Answer):
        try:
            return Told(read(reply), reply, reply.usage)
        except Unreadable as error:
            return NoAnswer(cause="unreadable", message=error.message, usage=reply.usage)
    if isinstance(reply, NoAnswer):
        return reply
    return NoAnswer(cause="unreadable", message="The model sent vectors where an answer was expected.")


class Judged(BuiltinScorer, frozen=True, kw_only=True):
    """A metric that asks a chat model.

    A subclass writes ``trial`` and ``prompt_text``, ``expect`` where it reads more of a sample than its expected
    output, and ``roles`` where it asks others than `judge`.
    """

    family: ClassVar[str] = "judge"
    edition: ClassVar[str] = "1"

    if TYPE_CHECKING:

        def trial(self, sample: Sample, output: Output) -> Script:
            """Ask and mark.

            Raises:
                UnscoredError: The sample or output cannot be read.
                Silent: No usable answer came.
                Unreadable: A reply cannot be used, though it was asked for again.
            """

        def prompt_text(self) -> str:
            """The whole prompt, as a person reads it."""

    @property
    def version(self) -> str:  # type: ignore[override]
        """The edition of the judge and the hash of its prompt: a changed prompt is another judge."""
        return f"{self.edition}.{self.prompt_hash}"

    @property
    def prompt_hash(self) -> str:
        """What tells this prompt from every other."""
        return text_hash(self.prompt_text())

    @property
    def roles(self) -> tuple[str, ...]:
        """The model roles it asks."""
        return (JUDGE,)

    def script(self, sample: Sample, output: Output) -> Script:
        """Mark one output, asking as it goes."""
        try:
            return (yield from self.trial(sample, output))
        except UnscoredError as error:
            return Unscored(error.cause, error.message)
        except Silent as silent:
            return Unscored(silent.no_answer.cause, silent.no_answer.message)
        except Unreadable as error:
            return Unscored("unreadable", error.message)
