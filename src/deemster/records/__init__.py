"""The records that travel between rooms: immutable, and they refuse impossible values."""

from deemster import load_lazily

load_lazily(__name__)
