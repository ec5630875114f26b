"""Scorers that need no judge."""
