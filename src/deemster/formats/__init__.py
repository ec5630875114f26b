"""Reads and writes files: strict YAML, JSON, JSONL and CSV with lines; declared shapes."""

from deemster import lazy_names

__getattr__ = lazy_names(__name__)
