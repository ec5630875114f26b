"""The command line: parses arguments, connects the rooms, prints, chooses the exit code."""

from deemster import load_lazily

load_lazily(__name__)
