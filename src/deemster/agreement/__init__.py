"""Judges against people, and against each other: `compute_metrics` and the models of its result."""

from deemster import load_lazily

load_lazily(__name__)
