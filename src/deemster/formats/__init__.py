"""Reads and writes files: strict YAML, JSON, JSONL and CSV with lines; declared shapes."""

from deemster.formats.canonical_json import canonical
from deemster.formats.document import NO_DOCUMENT, Document, NoDocument, Reading, missing_file, sort_issues
from deemster.formats.read_file import file_format, read_document, read_value

__all__ = [
    "NO_DOCUMENT",
    "Document",
    "NoDocument",
    "Reading",
    "canonical",
    "file_format",
    "missing_file",
    "read_document",
    "read_value",
    "sort_issues",
]
