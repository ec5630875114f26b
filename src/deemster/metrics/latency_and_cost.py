"""Limits for what an answer may take: `latency-below` in time, `cost-below` in money."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any, ClassVar

from deemster.errors import show_value
from deemster.metrics.builtin_metric import BuiltinMetric, UnscoredError, invalid_sample, unscorable_sample
from deemster.metrics.option_checks import Amount, is_amount
from deemster.records import MetricScore, Output, Sample


class LimitMetric(BuiltinMetric, frozen=True, kw_only=True):
    """A metric that compares a number of the output's usage with a limit.

    A subclass names the option and the key of the metadata that hold the limit, and the field of the usage.
    """

    family: ClassVar[str] = "limits"
    reads_expected: ClassVar[bool] = False
    limit_option: ClassVar[str]
    limit_key: ClassVar[str]
    usage_field: ClassVar[str]

    @property
    def needs(self) -> tuple[str, ...]:
        """The limit, where the metric has none."""
        return (self.limit_key,) if getattr(self, self.limit_option) is None else ()

    def expect(self, sample: Sample) -> float:
        """The limit: the sample's, else the metric's.

        Raises:
            UnscoredError: There is none, or it is no amount.
        """
        key, option = self.limit_key, self.limit_option
        limit: Any = sample.metadata.get(key)
        if limit is None:
            limit = getattr(self, option)
            if limit is None:
                raise unscorable_sample(f"The sample has no `metadata.{key}`, and the metric was given no `{option}`.")
        elif not is_amount(limit):
            raise invalid_sample(f"`metadata.{key}` is a number of at least 0, not {show_value(limit)}.")
        return float(limit)

    def read(self, output: Output) -> Decimal | float:
        """The number of the output's usage.

        Raises:
            UnscoredError: Nothing was recorded.
        """
        measured = None if output.usage is None else getattr(output.usage, self.usage_field)
        if measured is None:
            raise UnscoredError("no_usage", f"The output has no usage with a `{self.usage_field}`.")
        return measured  # type: ignore[no-any-return]

    def grade(self, expected: float, actual: Decimal | float) -> MetricScore:
        """1 up to the limit as it is written, else 0."""
        measured = float(actual)
        limit = Decimal(repr(expected)) if isinstance(actual, Decimal) else expected
        details = {"measured": measured if math.isfinite(measured) else None, "limit": expected}
        return self.mark(1.0 if actual <= limit else 0.0, details)


class LatencyBelow(LimitMetric, frozen=True, kw_only=True):
    """1 if the target's model calls took no longer than a limit, else 0.

    Reads the output's usage (unscored without a latency) and `metadata.max_latency_ms`, else the option `max_ms`. It
    does not read `expected_output`.
    Options: `max_ms`, in milliseconds.
    Details: measured, limit.
    Example: 840 ms with `max_ms: 1000` scores 1.

    Worked examples:
        - {usage: {latency_ms: 840}, options: {max_ms: 1000}}
        - {usage: {latency_ms: 1840}, options: {max_ms: 1000}}
    """

    alias: ClassVar[str] = "latency-below"
    reads: ClassVar[frozenset[str]] = frozenset({"max_latency_ms"})
    limit_option: ClassVar[str] = "max_ms"
    limit_key: ClassVar[str] = "max_latency_ms"
    usage_field: ClassVar[str] = "latency_ms"

    max_ms: Amount | None = None


class CostBelow(LimitMetric, frozen=True, kw_only=True):
    """1 if the target's model calls cost no more than a limit, else 0.

    Reads the output's usage (unscored without a cost) and `metadata.max_cost_usd`, else the option `max_usd`. It does
    not read `expected_output`.
    Options: `max_usd`, in US dollars.
    Details: measured, limit.
    Example: 0.004 dollars with `max_usd: 0.004` scores 1.

    Worked examples:
        - {usage: {cost_usd: 0.004}, options: {max_usd: 0.004}}
    """

    alias: ClassVar[str] = "cost-below"
    reads: ClassVar[frozenset[str]] = frozenset({"max_cost_usd"})
    limit_option: ClassVar[str] = "max_usd"
    limit_key: ClassVar[str] = "max_cost_usd"
    usage_field: ClassVar[str] = "cost_usd"

    max_usd: Amount | None = None
