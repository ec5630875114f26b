"""What model calls used."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Literal

import msgspec

_COUNTS = (
    "calls",
    "cached_calls",
    "prompt_tokens",
    "completion_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "total_tokens",
)


class Usage(msgspec.Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
    """Tokens, money and time of one or more model calls. What nobody reported is None, not 0.

    Attributes:
        calls: Calls that reached a model.
        cached_calls: Calls answered from a cache; they cost nothing and have no latency.
        prompt_tokens: Tokens sent.
        completion_tokens: Tokens received.
        cached_tokens: Of the prompt tokens, those the provider had cached.
        reasoning_tokens: Of the completion tokens, those spent on reasoning.
        total_tokens: The provider's own total.
        latency_ms: Time the calls took.
        cost_usd: Money, where known.
        cost_source: Whether the provider reported the cost or a price table gave it.
        model: The model that answered.

    Raises:
        ValueError: A count, a time or a cost is negative or not finite.
    """

    calls: int = 1
    cached_calls: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    total_tokens: int | None = None
    latency_ms: float | None = None
    cost_usd: Decimal | None = None
    cost_source: Literal["reported", "derived"] = "reported"
    model: str | None = None

    def __post_init__(self) -> None:
        for name in _COUNTS:
            count = getattr(self, name)
            if count is not None and (type(count) is not int or count < 0):
                raise ValueError(f"{name} is a whole number of at least 0, not {count!r}.")
        if self.latency_ms is not None and not (math.isfinite(self.latency_ms) and self.latency_ms >= 0):
            raise ValueError(f"latency_ms is a time of at least 0, not {self.latency_ms!r}.")
        if self.cost_usd is not None:
            if isinstance(self.cost_usd, (int, float)):
                msgspec.structs.force_setattr(self, "cost_usd", Decimal(str(self.cost_usd)))
            if not self.cost_usd.is_finite() or self.cost_usd < 0:
                raise ValueError(f"cost_usd is an amount of at least 0, not {self.cost_usd}.")
