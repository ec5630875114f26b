"""The system under test: a Python function, an HTTP endpoint, a command, saved outputs."""

from deemster import lazy_names

__getattr__ = lazy_names(__name__)
