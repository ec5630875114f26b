"""Tokens, cost and latency of model calls: sums, parts, cached calls."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import ROUND_DOWN, Decimal
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from deemster.records.field_checks import check_fields

_CENT = Decimal("1e-12")
_FREE = Decimal(0)
_AND = " + "
_COUNTS = (
    "calls",
    "cached_calls",
    "prompt_tokens",
    "completion_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "total_tokens",
    "cached_call_tokens",
)
_TOKENS = _COUNTS[2:-1]
Count: TypeAlias = Annotated[int, Meta(ge=0)]
Amount: TypeAlias = Annotated[float, Meta(ge=0)]
_Usd: TypeAlias = Annotated[Decimal, Meta(title="an amount of at least 0", extra_json_schema={"minimum": 0})]


class Usage(msgspec.Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
    """Tokens, money and time of one or more model calls. What no provider reported is None, not 0.

    Attributes:
        calls: Calls that reached a model.
        cached_calls: Calls answered from a cache, or by a call that another mark paid for. They cost nothing and have
            no latency.
        prompt_tokens: Tokens sent by the calls that reached a model.
        completion_tokens: Tokens received by the calls that reached a model.
        cached_tokens: Of the prompt tokens, those the provider had cached.
        reasoning_tokens: Of the completion tokens, those spent on reasoning.
        total_tokens: The provider's own total.
        cached_call_tokens: Tokens of the cached calls, sent and received. No other field counts them. Where a usage
            with cached calls only leaves it out, all its tokens are counted here.
        latency_ms: Time the calls took.
        cost_usd: Money, where known.
        cost_source: Whether the provider reported the cost or a price table gave it.
        model: The model that answered.

    Raises:
        ValueError: A count, a time or a cost is negative or not finite.
    """

    calls: Count = 1
    cached_calls: Count = 0
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    cached_tokens: Count | None = None
    reasoning_tokens: Count | None = None
    total_tokens: Count | None = None
    cached_call_tokens: Count | None = None
    latency_ms: Amount | None = None
    cost_usd: _Usd | None = None
    cost_source: Literal["reported", "derived"] = "reported"
    model: str | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if self.cost_usd is not None and not isinstance(self.cost_usd, Decimal):
            # As in a file, a number or its digits.
            msgspec.structs.force_setattr(self, "cost_usd", Decimal(str(self.cost_usd)))
        # The typed decoder has no bounds for a Decimal, and a bound of 0 lets infinity pass.
        if self.latency_ms is not None and not math.isfinite(self.latency_ms):
            raise ValueError(f"latency_ms is {self.latency_ms}, which is not a finite number.")
        if self.cost_usd is not None and not (self.cost_usd.is_finite() and self.cost_usd >= 0):
            raise ValueError(f"cost_usd is an amount of at least 0, not {self.cost_usd}.")
        if self.cached_calls and not self.calls and self.cached_call_tokens is None:
            for name, count in _as_cached_tokens(self).items():
                msgspec.structs.force_setattr(self, name, count)


class Call(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One call that a model answered. Several marks may share it; the first of them in order pays.

    Attributes:
        id: Tells the calls of a run apart; 0 where no other mark can share it.
        usage: What it used; None where the record that holds the call has the usage.
        run: The run that made it, where it is kept beyond that.
    """

    id: int
    usage: Usage | None = None
    run: str | None = None


def cached_usage(usage: Usage | None = None, *, calls: int = 1, model: str | None = None) -> Usage:
    """The usage of what was answered without a call: cached calls with their tokens, no cost, no latency.

    >>> hit = cached_usage(Usage(prompt_tokens=7, latency_ms=120.0))
    >>> hit.calls, hit.cached_calls, hit.prompt_tokens, hit.cached_call_tokens, hit.latency_ms
    (0, 1, None, 7, None)

    Args:
        usage: What the calls used that gave the answer; None where that is unknown.
        calls: How many cached calls it counts as; 0 for a part of a call.
        model: The model, where there is no usage.
    """
    if usage is None:
        return Usage(calls=0, cached_calls=calls, cost_usd=_FREE, model=model)
    tokens = _as_cached_tokens(usage)
    return msgspec.structs.replace(usage, calls=0, cached_calls=calls, cost_usd=_FREE, latency_ms=None, **tokens)


def _as_cached_tokens(usage: Usage) -> dict[str, int | None]:
    """The token counts of a usage, all of them counted as tokens of cached calls."""
    cached = usage.cached_call_tokens
    if any(getattr(usage, name) is not None for name in _TOKENS):
        cached = (cached or 0) + count_tokens(usage, 0)
    return {**dict.fromkeys(_TOKENS), "cached_call_tokens": cached}


def count_tokens(usage: Usage, otherwise: int) -> int:
    """All tokens of the calls that reached a model; `otherwise` where the provider reported none.

    >>> count_tokens(Usage(prompt_tokens=7, completion_tokens=2), 0)
    9
    """
    if usage.total_tokens is not None:
        return usage.total_tokens
    known = [count for count in (usage.prompt_tokens, usage.completion_tokens) if count is not None]
    return sum(known) if known else otherwise


def sum_usage(usages: Iterable[Usage]) -> Usage | None:
    """Several usages as one; None where there is none.

    A count that no provider reported stays None. The cost is known only where every call that reached a model has a
    price; it is derived where any part of it is. Several models become one name, such as `a + b`.
    """
    every = list(usages)
    if len(every) <= 1:
        return every[0] if every else None
    counts = {name: _total([getattr(usage, name) for usage in every]) for name in _COUNTS}
    is_part = counts["cached_calls"] and not counts["calls"] and any(counts[name] is not None for name in _TOKENS)
    if is_part and counts["cached_call_tokens"] is None:
        # Tokens of a part of a call are not those of a cached call beside it that reported none.
        counts["cached_call_tokens"] = 0
    paid = [usage for usage in every if usage.calls]
    known = [usage.cost_usd for usage in every if usage.cost_usd is not None]
    priced = bool(known) and all(usage.cost_usd is not None for usage in paid)
    models = sorted({name for usage in every if usage.model is not None for name in usage.model.split(_AND)})
    return Usage(
        **counts,
        latency_ms=_total([usage.latency_ms for usage in every]),
        cost_usd=sum(known, _FREE) if priced else None,
        cost_source="derived" if any(usage.cost_source == "derived" for usage in paid) else "reported",
        model=_AND.join(models) or None,
    )


def divide_usage(usage: Usage | None, parts: int) -> list[Usage | None]:
    """A usage in equal parts that add up to it exactly; what cannot be divided falls to the first of them."""
    if usage is None or parts <= 1:
        return [usage] * parts
    # Only as many parts as there were calls pay.
    payers = min(parts, max(usage.calls, 1))
    each = None if usage.cost_usd is None else (usage.cost_usd / payers).quantize(_CENT, ROUND_DOWN)
    shares: list[Usage | None] = []
    for part in range(parts):
        counts = {
            name: None if (count := getattr(usage, name)) is None else (count + parts - 1 - part) // parts
            for name in _COUNTS
        }
        if usage.calls:
            # A part without a call has no cached call: its tokens would be those of the cached call.
            counts["cached_calls"] = usage.cached_calls if part == 0 else 0
        cost = each
        if usage.cost_usd is not None and each is not None:
            cost = usage.cost_usd - each * (payers - 1) if part == 0 else each if part < payers else Decimal(0)
        # The first part has the latency of the call.
        latency_ms = usage.latency_ms if part == 0 else None
        shares.append(msgspec.structs.replace(usage, **counts, latency_ms=latency_ms, cost_usd=cost))
    return shares


def _total(counts: Sequence[Any]) -> Any:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
