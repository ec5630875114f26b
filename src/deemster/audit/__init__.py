"""Audits of the evaluation itself: its judges, metrics, gate and dataset, as `deemster audit` does them."""

from deemster import lazy_names

__getattr__ = lazy_names(__name__)
