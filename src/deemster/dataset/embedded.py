"""Rubrics that stand inside other files."""

from __future__ import annotations

from typing import Any

from deemster.dataset.entries import Codebook
from deemster.dataset.source import Source
from deemster.documents.values import Path
from deemster.errors import Fault
from deemster.rubrics.reading import read_rubric
from deemster.rubrics.rubric import Rubric


def book_of(value: Any, path: Path, source: Source) -> tuple[Codebook | None, list[Fault]]:
    """The codes of a rubric that stands inside a file, or everything that is wrong with it.

    Args:
        value: A rubric, or what a file has for one.
        path: Where it stands.
        source: The file.
    """
    if isinstance(value, Rubric):
        return Codebook(value), []
    rubric, faults = read_rubric(value, None, path)
    if faults and source.document is not None:
        document, rest = source.document(path)
        rubric, faults = read_rubric(value, document, rest)
    return (None, faults) if rubric is None else (Codebook(rubric), [])
