"""Audits of the evaluation itself: its judges, metrics, gate and dataset, as `deemster audit` does them."""

from deemster import load_lazily

load_lazily(__name__)
