"""Files that hold facts and a list of items: one JSON or YAML document, or JSONL with a header line."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path as FilePath
from typing import Any, NamedTuple

from deemster.errors import InputError, Issue, did_you_mean, listing
from deemster.formats.document import Document, Reading, in_order
from deemster.formats.json_values import SURROGATE, Path, kind_of, pointer
from deemster.formats.read_file import document_of, format_of, quick_value
from deemster.formats.strict_json import json_document, json_value

ITEMS = "items"
_BOM = b"\xef\xbb\xbf"
_NO_NUMBER = re.compile(r"\b(?:nan|inf)\b")


class Finding(NamedTuple):
    """Something that is wrong, by its path from the root.

    Attributes:
        path: Keys and positions from the root.
        message: What is wrong.
        item: The id of the item concerned.
    """

    path: Path
    message: str
    item: str | None = None


class Source(NamedTuple):
    """What a file holds, and how to find the place of a part of it.

    Attributes:
        root: The facts, and the items under `items`.
        document: The precise document of a path and the path in it, or None where a value comes from no file.
        reading: How the file is called and what its errors are.
        issues: Numbers that are none.
    """

    root: Any
    document: Callable[[Path], tuple[Document, Path]] | None
    reading: Reading
    issues: tuple[Issue, ...] = ()

    def refuse(self, findings: Iterable[Finding]) -> None:
        """Raise everything that was found, with places; do nothing where nothing was.

        Raises:
            InputError: Something was found.
        """
        issues = [Issue(text, self._where(path), item) for path, text, item in findings]
        # What a finding tells of such a number says more than that it is none.
        told = {issue.where for issue in issues if _NO_NUMBER.search(issue.message)}
        issues += [issue for issue in self.issues if str(issue.where).rpartition(":")[0] not in told]
        if issues:
            raise self.reading.error(in_order(issues))

    def place(self, path: Path) -> str:
        """Where a part stands, for the middle of a message."""
        where = self._where(path)
        return f"as {pointer(path)}" if where is None else f"at {where}"

    def _where(self, path: Path) -> str | None:
        if self.document is None:
            return None
        document, rest = self.document(path)
        return document.where(rest)


@contextmanager
def collector_off() -> Iterator[None]:
    """Reading makes many objects and no cycles; looking for cycles meanwhile costs as much as the reading."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def source_of_value(value: Any, reading: Reading) -> Source:
    """A source that is no file."""
    return Source(value, None, reading)


def source_of_file(path: str | FilePath, reading: Reading, *, known: tuple[str, ...], item_key: str | None) -> Source:
    """Read a file by its extension.

    Args:
        path: The file.
        reading: How the file is called and what its errors are.
        known: The formats it may have.
        item_key: A key by which the first line of JSONL is seen to be an item; None where it is always the header.

    Raises:
        InputError: The file cannot be read, or is not of its format.
    """
    kind = format_of(path, reading, known=known)
    data = reading.content(path)
    reading.odd = []
    if kind == "jsonl":
        return _lines(data, reading, item_key=item_key)
    precise: list[Document] = []

    def document(path: Path) -> tuple[Document, Path]:
        if not precise:
            precise.append(document_of(data, kind, reading))
        return precise[0], path

    try:
        root = quick_value(data, kind)
    except ValueError:
        root = document(())[0].value
    return Source(root, document, reading, tuple(reading.odd))


def _lines(data: bytes, reading: Reading, *, item_key: str | None) -> Source:
    """Read JSONL; lines that cannot be read are issues, so that all of them are told at once."""
    rows: list[Any] = []
    numbers: list[int] = []
    texts = data.removeprefix(_BOM).split(b"\n")
    issues: list[Issue] = []
    for number, line in enumerate(texts, start=1):
        if not line or line.isspace():
            continue
        try:
            rows.append(_line_value(line, number, reading))
            numbers.append(number)
        except InputError as error:
            issues += error.issues
    if issues:
        # With a line that cannot be read nothing else is certain: later issues may follow from it.
        raise reading.error(issues)
    if not rows:
        reading.refuse("The file is empty.")
    odd = tuple(reading.odd or ())
    header: Any = {}
    if item_key is None or not (isinstance(rows[0], dict) and item_key in rows[0]):
        header, *rows = rows
    start = len(numbers) - len(rows)
    if not isinstance(header, dict):
        reading.refuse(f"The first line is the header, a map, not {kind_of(header)}.", line=numbers[0])
    if ITEMS in header:
        reading.refuse("`items` is no key of a header line; items follow it, one a line.", line=numbers[0])

    def document(path: Path) -> tuple[Document, Path]:
        inside = len(path) > 1 and path[0] == ITEMS and isinstance(path[1], int)
        at = start + int(path[1]) if inside else 0
        found = json_document(texts[numbers[at] - 1].decode(), reading, line=numbers[at])
        return found, path[2:] if inside else path

    return Source({**header, ITEMS: rows}, document, reading, odd)


def _line_value(line: bytes, number: int, reading: Reading) -> Any:
    try:
        return json_value(line)
    except ValueError:
        pass
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        reading.refuse(f"The line is not UTF-8: byte 0x{line[error.start]:02x} cannot be read.", line=number)
    return json_document(text, reading, line=number).value


def shown_path(path: Path) -> str:
    """A path as messages name it: from its item on, where it is inside of one.

    >>> shown_path(("items", 3, "votes", "a", 0)), shown_path(("judges", 1, "id"))
    ('votes.a[0]', 'judges[1].id')
    """
    inner = path[2:] if path[:1] == (ITEMS,) else path
    return pointer(inner) if inner else ""


def _prefix(path: Path) -> str:
    shown = shown_path(path)
    return f"{shown}: " if shown else ""


def key_findings(value: dict[Any, Any], known: tuple[str, ...], path: Path, *, what: str) -> Iterable[Finding]:
    """The keys that a map should not have, each with the nearest that it may have."""
    for key in value:
        if key not in known:
            message = f"{_prefix(path)}`{key}` is no key of {what}. {did_you_mean(str(key), known)}"
            yield Finding((*path, key), message)


def version_findings(root: dict[str, Any], schema: str, *, required: bool) -> Iterable[Finding]:
    """What is wrong with the schema_version of a root."""
    if "schema_version" not in root:
        if required:
            yield Finding((), f"schema_version is missing; write `{schema}`.")
        return
    version = root["schema_version"]
    if not isinstance(version, str):
        yield Finding(("schema_version",), f"schema_version is text, not {kind_of(version)}: `{schema}`.")
    elif version != schema:
        message = f"schema_version `{version}` is not supported. Supported: {listing([schema])}."
        yield Finding(("schema_version",), message)


def text_findings(value: Any, path: Path) -> Iterable[Finding]:
    """What is wrong with a value that should be text."""
    name = shown_path(path)
    if not isinstance(value, str):
        yield Finding(path, f"{name} is text, not {kind_of(value)}.")
    elif not value.isascii() and SURROGATE.search(value):
        yield Finding(path, f"{name} holds a lone surrogate, which is no character.")
