"""Answers as files keep them, and as they come back."""

from __future__ import annotations

import base64

import msgspec
import numpy as np
import numpy.typing as npt

from deemster.records import Answer, Call, Token, Usage
from deemster.records.usage import cached

_SMALLEST = "<f4"


class StoredVector(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One text's vector.

    Attributes:
        vector: Its parts, 32-bit little-endian floats as base64.
        model: The model that gave it.
        usage: Its part of what the call used.
        call: The call, with the run that made it.
    """

    vector: str
    model: str | None = None
    usage: Usage | None = None
    call: Call | None = None

    def values(self) -> npt.NDArray[np.float32]:
        """The parts of the vector.

        Raises:
            ValueError: The text is no base64, or no whole number of floats.
        """
        return np.frombuffer(base64.b64decode(self.vector, validate=True), dtype=_SMALLEST).astype(np.float32)


def stored_vector(
    values: npt.NDArray[np.float32], model: str | None, *, call: Call | None = None, run: str | None = None
) -> StoredVector:
    """A vector as files keep it.

    Args:
        values: Its parts.
        model: The model that gave it.
        call: The part of a call that it took.
        run: The run that made the call.
    """
    text = base64.b64encode(values.astype(_SMALLEST).tobytes()).decode()
    if call is None:
        return StoredVector(vector=text, model=model)
    return StoredVector(vector=text, model=model, usage=call.usage, call=Call(call.id, run=run))


class RecordedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer without what belongs to one call only: its latency, its cost, and which call it was.

    Attributes:
        text: The answer.
        usage: Tokens.
        model: The model that says it answered.
        tokens: The answer token by token, where log-probabilities were asked for and offered.
        thinking: The model's reasoning, where it is told apart from the answer.
        finish: Why the model stopped, in the provider's word.
    """

    text: str
    usage: Usage | None = None
    model: str | None = None
    tokens: tuple[Token, ...] | None = None
    thinking: str | None = None
    finish: str | None = None

    @property
    def answer(self) -> Answer:
        """The answer as scripts are sent it."""
        return Answer(**msgspec.structs.asdict(self))


def as_recorded(answer: Answer) -> RecordedAnswer:
    """An answer as recordings keep it."""
    usage = answer.usage
    if usage is not None:
        usage = msgspec.structs.replace(usage, latency_ms=None, cost_usd=None)
    return RecordedAnswer(
        text=answer.text,
        usage=usage,
        model=answer.model,
        tokens=answer.tokens,
        thinking=answer.thinking,
        finish=answer.finish,
    )


def as_kept(answer: Answer, run: str) -> Answer:
    """An answer with the run that paid for it."""
    if answer.call is None:
        return answer
    return msgspec.structs.replace(answer, usage=answer.call.usage, call=Call(answer.call.id, run=run))


def as_hit(answer: Answer, call: Call | None = None) -> Answer:
    """An answer that needed no call of its own: none, one cached call, no cost.

    Args:
        answer: The answer.
        call: The call of this run that it comes from; None where it comes from an earlier one.
    """
    usage = cached(answer.usage if call is None else call.usage, model=answer.model)
    return msgspec.structs.replace(answer, usage=usage, call=call)
