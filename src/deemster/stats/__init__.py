"""Arithmetic on arrays and labels. Knows no sample and no judge."""

from deemster.stats.intervals import Interval, clustered_wilson, effective_size, student, wilson
from deemster.stats.location import exact_mean, exact_stdev, quantile

__all__ = [
    "Interval",
    "clustered_wilson",
    "effective_size",
    "exact_mean",
    "exact_stdev",
    "quantile",
    "student",
    "wilson",
]
