"""A number with its interval and its count, as calibrations and audits give it."""

from __future__ import annotations

import msgspec

from deemster.stats import ConfidenceInterval


class Estimate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A number with its interval and how many samples it rests on; None where it is undefined."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int


def estimate_with(value: float | None, interval: ConfidenceInterval | None, n: int) -> Estimate:
    """A number with the ends of its interval, where it has one."""
    value = None if value is None else float(value)
    if interval is None:
        return Estimate(value=value, n=n)
    return Estimate(value=value, low=float(interval.lower), high=float(interval.upper), n=n)


def state_equal_labels(equal_labels: float) -> str:
    """What labels of an unequal draw bought, beside those of a plain random sample."""
    return f"a random sample would have needed about {round(equal_labels):,} for the same width"
