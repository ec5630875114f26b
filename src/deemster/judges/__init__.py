"""Scorers that ask a chat model. Scripts only: nothing here does I/O."""

from deemster import lazy_names

__getattr__ = lazy_names(__name__)
