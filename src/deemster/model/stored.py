"""Answers as files keep them, and as they come back."""

from __future__ import annotations

import base64
from decimal import Decimal

import msgspec
import numpy as np
import numpy.typing as npt

from deemster.records import Answer, Usage

_SMALLEST = "<f4"


class StoredVector(msgspec.Struct, frozen=True, kw_only=True):
    """One text's vector.

    Attributes:
        vector: Its parts, 32-bit little-endian floats as base64.
        model: The model that gave it.
    """

    vector: str
    model: str | None = None

    def values(self) -> npt.NDArray[np.float32]:
        """The parts of the vector.

        Raises:
            ValueError: The text is no base64, or no whole number of floats.
        """
        return np.frombuffer(base64.b64decode(self.vector, validate=True), dtype=_SMALLEST).astype(np.float32)


def stored_vector(values: npt.NDArray[np.float32], model: str | None) -> StoredVector:
    """A vector as files keep it."""
    return StoredVector(vector=base64.b64encode(values.astype(_SMALLEST).tobytes()).decode(), model=model)


def as_stored(answer: Answer) -> Answer:
    """An answer without what belongs to one call only: its latency and its cost."""
    usage = answer.usage
    if usage is None:
        return answer
    return msgspec.structs.replace(answer, usage=msgspec.structs.replace(usage, latency_ms=None, cost_usd=None))


def as_hit(answer: Answer) -> Answer:
    """An answer that comes from a file: no call, one cached call, no cost."""
    return msgspec.structs.replace(answer, usage=hit_usage(answer.usage, answer.model))


def hit_usage(usage: Usage | None = None, model: str | None = None) -> Usage:
    """The usage of what was answered without a call; the tokens are those of the answer."""
    free = Decimal(0)
    if usage is None:
        return Usage(calls=0, cached_calls=1, cost_usd=free, model=model)
    return msgspec.structs.replace(usage, calls=0, cached_calls=1, cost_usd=free, latency_ms=None)
