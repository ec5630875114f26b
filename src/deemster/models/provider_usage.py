"""Reads the `usage` of a provider's reply, in the names of older and of later APIs."""

from __future__ import annotations

from decimal import Decimal

import msgspec

from deemster.records import Usage


class _Details(msgspec.Struct, gc=False):
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class ReportedUsage(msgspec.Struct):
    """The `usage` of a reply. Later APIs say `input` and `output` where older ones say `prompt` and `completion`."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    completion_tokens_details: _Details | None = None
    prompt_cache_hit_tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _Details | None = None
    output_tokens_details: _Details | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cost: Decimal | None = None


_NO_DETAILS = _Details()


def parse_usage(reported: ReportedUsage, model: str | None) -> Usage:
    """What a reply reports, as a record.

    Args:
        reported: What the reply says.
        model: The model that answered.

    Raises:
        ValueError: A count makes no sense.

    >>> parse_usage(ReportedUsage(input_tokens=7, output_tokens=2), "m").prompt_tokens
    7
    """
    sent = reported.prompt_tokens_details or reported.input_tokens_details or _NO_DETAILS
    received = reported.completion_tokens_details or reported.output_tokens_details or _NO_DETAILS
    input_tokens = reported.input_tokens
    if input_tokens is not None:
        # Anthropic counts what its cache holds apart from the rest of the prompt.
        input_tokens += (reported.cache_read_input_tokens or 0) + (reported.cache_creation_input_tokens or 0)
    return Usage(
        prompt_tokens=_first(reported.prompt_tokens, input_tokens),
        completion_tokens=_first(reported.completion_tokens, reported.output_tokens),
        cached_tokens=_first(
            sent.cached_tokens, _first(reported.prompt_cache_hit_tokens, reported.cache_read_input_tokens)
        ),
        reasoning_tokens=received.reasoning_tokens,
        total_tokens=reported.total_tokens,
        cost_usd=reported.cost,
        model=model,
    )


def _first(count: int | None, otherwise: int | None) -> int | None:
    return otherwise if count is None else count
