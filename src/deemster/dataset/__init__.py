"""Golden datasets: reading, checking, fingerprints, writing; and strict reading of YAML and JSON for other rooms."""

from deemster.dataset.canonical import canonical, row_hash
from deemster.dataset.document import Document, Reading
from deemster.dataset.files import format_of, read_document, read_value
from deemster.dataset.golden import Dataset

__all__ = ["Dataset", "Document", "Reading", "canonical", "format_of", "read_document", "read_value", "row_hash"]
