"""Reads and writes files: strict YAML, JSON, JSONL and CSV with lines; declared shapes."""

from deemster import load_lazily

load_lazily(__name__)
