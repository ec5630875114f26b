"""Small pieces of HTML for notebooks: a heading, sentences and tables, with all text escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from deemster.errors import visible

_LONGEST = 200


def notebook_part(title: str, *, lines: Iterable[str] = (), tables: Iterable[str] = ()) -> str:
    """A part of a page: a heading, sentences, and tables of `notebook_table`.

    >>> notebook_part("a<b", lines=["One."])
    '<div><h4>a&lt;b</h4><p>One.</p></div>'
    """
    body = "".join(f"<p>{_escape(line)}</p>" for line in lines)
    return f"<div><h4>{_escape(title)}</h4>{body}{''.join(tables)}</div>"


def notebook_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of text.

    >>> notebook_table(["name"], [["<b>"]])
    '<table><thead><tr><th>name</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """
    top = "".join(f"<th>{_escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{_escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _escape(text: str) -> str:
    # A dollar sign would begin a formula in a notebook.
    return html.escape(visible(text, limit=_LONGEST)).replace("$", "&#36;")
