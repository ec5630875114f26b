"""Audits of the evaluation itself: its judges, metrics, gate and dataset, as `deemster audit` does them."""

from deemster import lazy_names

_FILES = {"deemster.audit.suite_audits": ("dataset", "gate", "judge", "metrics")}

__getattr__, __all__ = lazy_names(__name__, _FILES)
