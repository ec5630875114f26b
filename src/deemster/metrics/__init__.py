"""Metrics: scorers that need no judge."""

from deemster import lazy_names

__getattr__ = lazy_names(__name__)
