"""Making text from data harmless in Markdown, HTML, CSV and on a terminal."""

from __future__ import annotations

import re

from deemster.errors import visible

LIMIT = 200
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"} | {char: f"&#{ord(char)};" for char in "\"'|`\\*_[]~@#!$"}
_SPECIAL = re.compile(r"""[&<>"'|`\\*_\[\]~@#!$]|:(?=//)|(?<=www)\.""", re.IGNORECASE)
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.\-]*(@[0-9]+)?")
_PLAIN_SENTENCE = re.compile(r"[a-z0-9][a-z0-9 .,;'()=+-]{0,199}")
_FORMULA = re.compile("[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")


def escape_markup(text: str) -> str:
    r"""Text as it may stand in Markdown or HTML: on one line, cut, with everything that could mean something escaped.

    >>> escape_markup("<b>a|b</b>`\x1b[31m")
    '&lt;b&gt;a&#124;b&lt;/b&gt;&#96;&#92;x1b&#91;31m'
    """
    return _SPECIAL.sub(lambda match: _ENTITIES.get(match[0]) or f"&#{ord(match[0])};", visible(text, limit=LIMIT))


def code_element(text: str) -> str:
    """Text from data for Markdown and HTML, inside a code element, so that nothing mentions, links or loads."""
    return f"<code>{escape_markup(text)}</code>"


def escape_metric_name(text: str) -> str:
    """A metric's name for Markdown: as it is where it is a plain word, else as any text from data."""
    return text if _PLAIN_NAME.fullmatch(text) and "www." not in text.lower() else code_element(text)


def escape_sentence(text: str) -> str:
    """A sentence for Markdown: as it is where it holds plain words and numbers only, else as any text from data."""
    return text if _PLAIN_SENTENCE.fullmatch(text) and "www." not in text else code_element(text)


def escape_line(text: str) -> str:
    """Text from data for a terminal: on one line, cut, with nothing that could move the cursor."""
    return visible(text, limit=LIMIT)


def escape_terminal_line(text: str) -> str:
    r"""Text from data for a terminal that may be a CI log: as a line, and nowhere the start of a `::` command.

    A long text is folded, so that a command may start anywhere in it.

    >>> escape_terminal_line("::error::x")
    ':\\x3aerror:\\x3ax'
    """
    return escape_line(text).replace("::", ":\\x3a")


def escape_csv_cell(text: str, *, raw: bool = False) -> str:
    """Text from data for a CSV cell: on one line, and never a formula unless asked for.

    >>> escape_csv_cell("=1+1")
    "'=1+1"
    """
    guarded = "" if raw or not _FORMULA.match(text) else "'"
    return guarded + visible(text)
