"""The system under test: a Python function, an HTTP endpoint, a command, saved outputs."""

from deemster import load_lazily

load_lazily(__name__)
