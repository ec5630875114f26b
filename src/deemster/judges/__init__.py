"""Scorers that ask a chat model. Scripts only: nothing here does I/O."""

from deemster import load_lazily

load_lazily(__name__)
