"""What an answer may cost, in time and money."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any, ClassVar

import msgspec

from deemster.errors import show_value
from deemster.metrics.builtin_metric import BuiltinMetric, UnscoredError, invalid_sample, unscorable_sample
from deemster.metrics.option_checks import check_amount, is_amount
from deemster.records import MetricScore, Output, Sample


class LatencyBelow(BuiltinMetric, frozen=True, kw_only=True):
    """1 if the target's model calls took no longer than a limit, else 0.

    Reads the output's usage (unscored without a latency) and `metadata.max_latency_ms`, else the option `max_ms`. It
    does not read `expected_output`.
    Options: `max_ms`, in milliseconds.
    Details: measured, limit.
    Example: 840 ms with `max_ms: 1000` scores 1.
    """

    alias: ClassVar[str] = "latency-below"
    family: ClassVar[str] = "limits"
    reads: ClassVar[frozenset[str]] = frozenset({"max_latency_ms"})
    reads_expected: ClassVar[bool] = False

    max_ms: float | None = None

    def validate(self) -> None:
        """Refuse a limit below 0.

        Raises:
            ConfigurationError: `max_ms` is not what it should be.
        """
        if self.max_ms is not None:
            msgspec.structs.force_setattr(self, "max_ms", check_amount(self.max_ms, option="max_ms", metric=self.alias))

    def expect(self, sample: Sample) -> float:
        """The limit in milliseconds.

        Raises:
            UnscoredError: There is none, or it is no amount.
        """
        return _limit(sample, "max_latency_ms", given=self.max_ms, option="max_ms")

    def read(self, output: Output) -> float:
        """The latency of the output in milliseconds.

        Raises:
            UnscoredError: Nothing was recorded.
        """
        if output.usage is None or output.usage.latency_ms is None:
            raise UnscoredError("no_usage", "The output has no usage with a `latency_ms`.")
        return float(output.usage.latency_ms)

    def grade(self, expected: float, actual: float) -> MetricScore:
        """1 up to the limit, else 0."""
        return self.mark(1.0 if actual <= expected else 0.0, {"measured": actual, "limit": expected})


class CostBelow(BuiltinMetric, frozen=True, kw_only=True):
    """1 if the target's model calls cost no more than a limit, else 0.

    Reads the output's usage (unscored without a cost) and `metadata.max_cost_usd`, else the option `max_usd`. It does
    not read `expected_output`.
    Options: `max_usd`, in US dollars.
    Details: measured, limit.
    Example: 0.004 dollars with `max_usd: 0.004` scores 1.
    """

    alias: ClassVar[str] = "cost-below"
    family: ClassVar[str] = "limits"
    reads: ClassVar[frozenset[str]] = frozenset({"max_cost_usd"})
    reads_expected: ClassVar[bool] = False

    max_usd: float | None = None

    def validate(self) -> None:
        """Refuse a limit below 0.

        Raises:
            ConfigurationError: `max_usd` is not what it should be.
        """
        if self.max_usd is not None:
            msgspec.structs.force_setattr(
                self, "max_usd", check_amount(self.max_usd, option="max_usd", metric=self.alias)
            )

    def expect(self, sample: Sample) -> float:
        """The limit in US dollars.

        Raises:
            UnscoredError: There is none, or it is no amount.
        """
        return _limit(sample, "max_cost_usd", given=self.max_usd, option="max_usd")

    def read(self, output: Output) -> Decimal:
        """The cost of the output in US dollars.

        Raises:
            UnscoredError: Nothing was recorded.
        """
        if output.usage is None or output.usage.cost_usd is None:
            raise UnscoredError("no_usage", "The output has no usage with a `cost_usd`.")
        return output.usage.cost_usd

    def grade(self, expected: float, actual: Decimal) -> MetricScore:
        """1 up to the limit as it is written, else 0."""
        measured = float(actual)
        details = {"measured": measured if math.isfinite(measured) else None, "limit": expected}
        return self.mark(1.0 if actual <= Decimal(repr(expected)) else 0.0, details)


def _limit(sample: Sample, key: str, *, given: float | None, option: str) -> float:
    limit: Any = sample.metadata.get(key)
    if limit is None:
        if given is None:
            raise unscorable_sample(f"The sample has no `metadata.{key}`, and the metric was given no `{option}`.")
        return given
    if not is_amount(limit):
        raise invalid_sample(f"`metadata.{key}` is a number of at least 0, not {show_value(limit)}.")
    return float(limit)
