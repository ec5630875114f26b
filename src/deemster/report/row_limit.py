"""How many rows the table of a report has at most, and the line below one that has more."""

from __future__ import annotations

from collections.abc import Sequence

from deemster.text.text_sections import TextLine

MOST_ROWS = 50


def more_line(count: int, rows: Sequence[TextLine]) -> list[TextLine]:
    """How many rows of so many are left out; nothing where all are there."""
    return [(f"... and {count - len(rows):,} more.",)] if count > len(rows) else []
