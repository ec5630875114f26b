"""What one call used, as its client reports it and as a budget counts it."""

from __future__ import annotations

from decimal import Decimal
from operator import attrgetter
from typing import Any

from deemster.models.budget import UsageBound
from deemster.models.model_client import ModelFailure
from deemster.records import Usage
from deemster.records.usage import count_tokens

NOTHING = UsageBound()
# Far above what any one call uses. Sums of smaller amounts can be written and divided exactly.
_LARGEST_COUNT = 10**12
_LARGEST_USD = Decimal(10**9)
_counts = attrgetter(
    "calls",
    "cached_calls",
    "prompt_tokens",
    "completion_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "total_tokens",
)


def check_usage(result: Any) -> None:
    """Check that what a client says beside its answer can be counted.

    Args:
        result: Something with a usage and a model.

    Raises:
        ModelFailure: The usage is not a ``Usage``, or the model is not text.
    """
    usage, model = result.usage, result.model
    if usage is not None and not isinstance(usage, Usage):
        message = f"`usage` of {type(result).__name__} is a Usage, not a {type(usage).__name__}."
        raise ModelFailure("shape", message, may_cost=True)
    if model is not None and not isinstance(model, str):
        message = f"`model` of {type(result).__name__} is text, not a {type(model).__name__}."
        raise ModelFailure("shape", message, may_cost=True)


def plausible_usage(usage: Usage) -> Usage:
    """A reported usage; one without counts where no call can have used that much, or nothing at all.

    >>> plausible_usage(Usage(prompt_tokens=10**30, model="m")).prompt_tokens is None
    True
    >>> plausible_usage(Usage(prompt_tokens=0, completion_tokens=0)).completion_tokens is None
    True
    """
    if usage.prompt_tokens == 0 or (usage.prompt_tokens is None and usage.total_tokens == 0):
        return Usage(model=usage.model, latency_ms=usage.latency_ms, cost_usd=usage.cost_usd or None)
    if max(filter(None, _counts(usage)), default=0) <= _LARGEST_COUNT and (usage.cost_usd or 0) <= _LARGEST_USD:
        return usage
    return Usage(model=usage.model, latency_ms=usage.latency_ms)


def budget_use(usage: Usage, bound: UsageBound) -> UsageBound:
    """What a usage takes from a budget. What it does not report counts at the most, as an estimate."""
    tokens, estimated_tokens = count_tokens(usage, -1), 0
    if tokens < 0:
        tokens = estimated_tokens = bound.tokens
    usd, estimated_usd = usage.cost_usd, NOTHING.usd
    if usd is None:
        usd = estimated_usd = bound.usd
    return UsageBound(tokens, usd, estimated_tokens, estimated_usd)
