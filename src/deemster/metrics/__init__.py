"""Metrics: scorers that need no judge."""

from deemster import load_lazily

load_lazily(__name__)
