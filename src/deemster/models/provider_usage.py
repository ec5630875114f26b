"""What a provider says that a call used."""

from __future__ import annotations

from decimal import Decimal

import msgspec

from deemster.records import Usage


class _Details(msgspec.Struct, gc=False):
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class Used(msgspec.Struct):
    """The `usage` of a reply, in the names that providers give it."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    completion_tokens_details: _Details | None = None
    prompt_cache_hit_tokens: int | None = None
    cost: Decimal | None = None


class Responded(msgspec.Struct):
    """The `usage` of a reply in the names of later APIs."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    input_tokens_details: _Details | None = None
    output_tokens_details: _Details | None = None
    cost: Decimal | None = None


_NO_DETAILS = _Details()


def parse_usage(used: Used | Responded, model: str | None) -> Usage:
    """What was used, as a record.

    Args:
        used: What the reply says.
        model: The model that answered.

    Raises:
        ValueError: A count makes no sense.

    >>> usage_of(Responded(input_tokens=7, output_tokens=2), "m").prompt_tokens
    7
    """
    if isinstance(used, Responded):
        used = Used(
            prompt_tokens=used.input_tokens,
            completion_tokens=used.output_tokens,
            total_tokens=used.total_tokens,
            prompt_tokens_details=used.input_tokens_details,
            completion_tokens_details=used.output_tokens_details,
            cost=used.cost,
        )
    cached = (used.prompt_tokens_details or _NO_DETAILS).cached_tokens
    return Usage(
        prompt_tokens=used.prompt_tokens,
        completion_tokens=used.completion_tokens,
        cached_tokens=used.prompt_cache_hit_tokens if cached is None else cached,
        reasoning_tokens=(used.completion_tokens_details or _NO_DETAILS).reasoning_tokens,
        total_tokens=used.total_tokens,
        cost_usd=used.cost,
        model=model,
    )
