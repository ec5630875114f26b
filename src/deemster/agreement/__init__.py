"""Judges against people, and against each other: `compute_metrics` and the models of its result."""

from deemster import lazy_names

__getattr__ = lazy_names(__name__)
