"""The usage and cost of a run: calls, tokens, latency and money, by metric and by model."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterable
from decimal import Context, Decimal
from operator import attrgetter

import msgspec
import numpy as np

from deemster.records import Usage
from deemster.records.usage import count_tokens
from deemster.stats import quantile

FIELDS = (
    "prompt_tokens",
    "completion_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "total_tokens",
    "cached_call_tokens",
)
# What comparisons look at, for each output.
USAGE = ("cost_usd", "tokens", "latency_ms")
UNNAMED = "(unnamed)"
_NOTHING = (None,) * len(FIELDS)
_counts = attrgetter(*FIELDS)
_SURROGATE = re.compile("[\ud800-\udfff]")
# Amounts are added without rounding, so that the order of additions changes no digit.
_sum = Context(prec=200).add


def usage_numbers(usage: Usage) -> tuple[float, float, float]:
    """What one output used, in the order of `USAGE`; NaN for what is not known.

    >>> usage_numbers(Usage(prompt_tokens=7, latency_ms=12.5))
    (nan, 7.0, 12.5)
    """
    tokens = count_tokens(usage, -1)
    return (
        math.nan if usage.cost_usd is None else float(usage.cost_usd),
        math.nan if tokens < 0 else float(tokens),
        math.nan if usage.latency_ms is None else usage.latency_ms,
    )


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """How long model calls took, in milliseconds."""

    count: int
    total: float
    mean: float
    p50: float
    p95: float
    max: float


class UsageTotals(msgspec.Struct, frozen=True, kw_only=True):
    """The sum of usages. `reported` says how many calls reported a field; a field that none reported is None.

    Tokens are those of the calls that reached a model. Only `cached_call_tokens` are those of cached calls.
    """

    calls: int
    cached_calls: int
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None
    reasoning_tokens: int | None
    total_tokens: int | None
    cached_call_tokens: int | None = None
    reported: dict[str, int]
    latency_ms: Latency | None


class RunUsage(msgspec.Struct, frozen=True, kw_only=True):
    """The usage of the target, of scoring, of all together, and of each metric.

    `reruns` is what was used beside the samples, without latencies: for anchors, and in runs of earlier versions for
    newly failing samples that were run again; None where nothing was.
    """

    target: UsageTotals
    scoring: UsageTotals
    total: UsageTotals
    by_metric: dict[str, UsageTotals]
    reruns: UsageTotals | None = None


class ModelCost(msgspec.Struct, frozen=True, kw_only=True):
    """What one model cost."""

    model: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: Decimal | None
    priced: bool


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What a run cost. If `complete` is false, calls without a price are missing from the total."""

    total_usd: Decimal
    reported_usd: Decimal
    derived_usd: Decimal
    complete: bool
    calls: int
    unpriced_calls: int
    unpriced_models: tuple[str, ...]
    models: tuple[ModelCost, ...]


class _Model:
    """The running account of one model."""

    def __init__(self) -> None:
        self.calls = self.unpriced = self.prompt_tokens = self.completion_tokens = 0
        self.reported = self.derived = Decimal(0)


class UsageAccount:
    """A running account of usage."""

    def __init__(self) -> None:
        self.calls = 0
        self.cached_calls = 0
        self.tokens: dict[str, int] = {}
        self.reported = dict.fromkeys(FIELDS, 0)
        self.latencies = array("d")
        self.models: dict[str, _Model] = {}

    def add(self, usage: Usage, *, model: str | None = None) -> None:
        """Count the usage of one answer or mark."""
        self.calls += usage.calls
        self.cached_calls += usage.cached_calls
        counts = _counts(usage)
        # A target that is no model reports a time and no tokens.
        if counts != _NOTHING:
            for field, count in zip(FIELDS, counts, strict=True):
                if count is not None:
                    self.tokens[field] = self.tokens.get(field, 0) + count
                    self.reported[field] += usage.cached_calls if field == "cached_call_tokens" else usage.calls
        is_hit = usage.cached_calls > 0 and usage.calls == 0
        if usage.latency_ms is not None and not is_hit:
            self.latencies.append(usage.latency_ms)
        # A part of a shared call has tokens and no call. A cache hit has neither.
        if usage.calls or usage.prompt_tokens or usage.completion_tokens:
            account = self._account(usage.model or model or UNNAMED)
            account.calls += usage.calls
            account.prompt_tokens += usage.prompt_tokens or 0
            account.completion_tokens += usage.completion_tokens or 0
            if usage.cost_usd is None:
                account.unpriced += usage.calls
            elif usage.cost_source == "derived":
                account.derived = _sum(account.derived, usage.cost_usd)
            else:
                account.reported = _sum(account.reported, usage.cost_usd)

    def _account(self, name: str) -> _Model:
        account = self.models.get(name)
        # A report cannot hold a lone surrogate, so names are counted as the report will write them.
        return account or self.models.setdefault(_SURROGATE.sub("\ufffd", name), _Model())


def sum_accounts(accounts: Iterable[UsageAccount]) -> UsageTotals:
    """The sum of several accounts."""
    every = list(accounts)
    reported = {field: sum(account.reported[field] for account in every) for field in FIELDS}
    known = {field: [account.tokens[field] for account in every if field in account.tokens] for field in FIELDS}
    latencies = np.sort(np.concatenate([np.frombuffer(account.latencies) for account in every] or [np.empty(0)]))
    return UsageTotals(
        calls=sum(account.calls for account in every),
        cached_calls=sum(account.cached_calls for account in every),
        reported=reported,
        latency_ms=_latency(latencies.tolist()),
        **{field: sum(counts) if counts else None for field, counts in known.items()},
    )


def _latency(ascending: list[float]) -> Latency | None:
    median, high = quantile(ascending, 0.5), quantile(ascending, 0.95)
    if median is None or high is None:
        return None
    total = math.fsum(ascending)
    return Latency(
        count=len(ascending), total=total, mean=total / len(ascending), p50=median, p95=high, max=ascending[-1]
    )


def run_usage(target: UsageAccount, scoring: dict[str, UsageAccount], reruns: UsageAccount) -> RunUsage:
    """The usage of a run from the accounts of its target, of each metric, and of what was run again."""
    again = sum_accounts([reruns])
    return RunUsage(
        target=sum_accounts([target]),
        scoring=sum_accounts(scoring.values()),
        total=sum_accounts([target, *scoring.values(), reruns]),
        by_metric={name: sum_accounts([account]) for name, account in scoring.items()},
        reruns=again if again.calls or again.cached_calls else None,
    )


def total_cost(accounts: Iterable[UsageAccount]) -> Cost | None:
    """What the calls of several accounts cost; None if no model was called."""
    models: dict[str, list[_Model]] = {}
    for account in accounts:
        for name, model in account.models.items():
            models.setdefault(name, []).append(model)
    if not models:
        return None
    lines = tuple(_model_cost(name, models[name]) for name in sorted(models))
    reported = sum((model.reported for parts in models.values() for model in parts), Decimal(0))
    derived = sum((model.derived for parts in models.values() for model in parts), Decimal(0))
    unpriced = {name: sum(model.unpriced for model in parts) for name, parts in models.items()}
    return Cost(
        total_usd=reported + derived,
        reported_usd=reported,
        derived_usd=derived,
        complete=not any(unpriced.values()),
        calls=sum(line.calls for line in lines),
        unpriced_calls=sum(unpriced.values()),
        unpriced_models=tuple(name for name in sorted(unpriced) if unpriced[name]),
        models=lines,
    )


def _model_cost(name: str, parts: list[_Model]) -> ModelCost:
    calls = sum(part.calls for part in parts)
    unpriced = sum(part.unpriced for part in parts)
    return ModelCost(
        model=name,
        calls=calls,
        prompt_tokens=sum(part.prompt_tokens for part in parts),
        completion_tokens=sum(part.completion_tokens for part in parts),
        cost_usd=None if unpriced == calls else sum((part.reported + part.derived for part in parts), Decimal(0)),
        priced=unpriced == 0,
    )
