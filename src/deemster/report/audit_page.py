"""An audit as an HTML page: what it found on the first screen, then its tables."""

from __future__ import annotations

from collections.abc import Sequence

from deemster.text.html_page import PageHead, render_page
from deemster.text.text_sections import TextSection


def audit_page(sections: Sequence[TextSection]) -> str:
    """An audit as a page; text from data is escaped and stands inside code elements.

    Args:
        sections: What the audit says, its overview first.
    """
    overview, *rest = sections
    head = PageHead(TextSection(overview.title, overview.lines))
    if overview.table is not None:
        rest.insert(0, TextSection(("Overview",), table=overview.table, after=overview.after))
    return render_page(f"deemster audit: {''.join(overview.title)}", head, rest)
