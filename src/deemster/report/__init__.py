"""Renders what a run came to. No arithmetic beyond formatting."""

from deemster import lazy_names

__getattr__ = lazy_names(__name__)
