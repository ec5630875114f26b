"""Escapes text from data for Markdown, HTML, CSV and terminals."""

from __future__ import annotations

import re
from collections.abc import Iterable

from deemster.errors import visible
from deemster.text.text_sections import AddedText, PassageText, RemovedText

LIMIT = 200
SENTENCE_LIMIT = 400
PASSAGE_LIMIT = 2_000
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"} | {char: f"&#{ord(char)};" for char in "\"'|`\\*_[]~@#!$"}
_SPECIAL = re.compile(r"""[&<>"'|`\\*_\[\]~@#!$]|:(?=//)|(?<=www)\.""", re.IGNORECASE)
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.\-]*(@[0-9]+)?")
# Capitals begin words, and names stand between backticks: `GH-1` would be a link.
_PLAIN_SENTENCE = re.compile(
    r"(?=[A-Za-z0-9])(?:[a-z0-9 .,;'()=+%-]|[A-Z](?=[a-z ])|:(?= )|`[A-Za-z0-9][A-Za-z0-9 ._:-]*`){1,400}"
)
_INDENT = re.compile("[+-]? *")
_FORMULA = re.compile("[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")


def escape_markup(text: str, *, limit: int = LIMIT) -> str:
    r"""Escape text for Markdown or HTML: on one line, cut, with every special character as an entity.

    >>> escape_markup("<b>a|b</b>`\x1b[31m")
    '&lt;b&gt;a&#124;b&lt;/b&gt;&#96;&#92;x1b&#91;31m'
    """
    return _SPECIAL.sub(lambda match: _ENTITIES.get(match[0]) or f"&#{ord(match[0])};", visible(text, limit=limit))


def code_element(text: str, *, limit: int = LIMIT) -> str:
    """Escape text from data for Markdown and HTML, and put it into a code element: nothing in it links or loads."""
    return f"<code>{escape_markup(text, limit=limit)}</code>"


def passage_element(text: PassageText) -> str:
    """Escape a longer text from data for Markdown and HTML; what was removed or added is marked as such."""
    element = code_element(text, limit=PASSAGE_LIMIT)
    if isinstance(text, RemovedText):
        return f"<del>{element}</del>"
    return f"<ins>{element}</ins>" if isinstance(text, AddedText) else element


def escape_metric_name(text: str) -> str:
    """Escape a metric's name for Markdown, unless it is a plain word."""
    return text if _PLAIN_NAME.fullmatch(text) and "www." not in text.lower() else code_element(text)


def escape_sentence(text: str) -> str:
    """Escape a sentence for Markdown, unless it has only plain words and numbers."""
    is_plain = _PLAIN_SENTENCE.fullmatch(text) and "www." not in text.lower()
    return text if is_plain else code_element(text, limit=SENTENCE_LIMIT)


def escape_line(text: str, *, limit: int | None = LIMIT) -> str:
    """Escape text from data for a terminal: on one line, cut, with no control character."""
    return visible(text, limit=limit)


def escape_terminal_line(text: str, *, limit: int | None = LIMIT) -> str:
    r"""Escape text from data for a terminal that may be a CI log, where `::` at the start of a line is a command.

    A terminal folds long text, so `::` is escaped everywhere.

    >>> escape_terminal_line("::error::x")
    ':\\x3aerror:\\x3ax'
    """
    return escape_line(text, limit=limit).replace("::", ":\\x3a")


def split_indent(line: str) -> tuple[str, str]:
    """A line of a text that is shown whole: what it begins with, which every escape keeps, and the rest.

    >>> split_indent("+    indented")
    ('+    ', 'indented')
    """
    start = _INDENT.match(line)
    size = 0 if start is None else start.end()
    return line[:size], line[size:]


def escape_csv_cell(text: str) -> str:
    """Escape text from data for a CSV cell: on one line, and no formula.

    >>> escape_csv_cell("=1+1")
    "'=1+1"
    """
    guarded = "'" if _FORMULA.match(text) else ""
    return guarded + visible(text)


def csv_line(cells: Iterable[str]) -> str:
    r"""A line of a CSV file with its end; text from data in it is escaped already.

    >>> csv_line(["q1", 'a "b" c'])
    'q1,"a ""b"" c"\n'
    """
    return ",".join(f'"{cell.replace(chr(34), chr(34) * 2)}"' if _is_special(cell) else cell for cell in cells) + "\n"


def _is_special(cell: str) -> bool:
    return any(character in cell for character in ',"\r\n')
