"""The command line: parses arguments, connects the rooms, prints, chooses the exit code."""

from deemster.cli.main import app, main

__all__ = ["app", "main"]
