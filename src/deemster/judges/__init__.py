"""Scorers that ask a chat model. Scripts only: nothing here does I/O."""
