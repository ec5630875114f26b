"""Renders what a run came to. No arithmetic beyond formatting."""

from deemster import load_lazily

load_lazily(__name__)
