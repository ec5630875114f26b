"""Reads files that hold facts and a list of items, as one document or as JSONL with a header line."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path as FilePath
from typing import Any, NamedTuple, TypeVar

import msgspec

from deemster.errors import InputError, Issue
from deemster.formats.document import Document, Reading, sort_issues
from deemster.formats.json_values import Path, name_kind, pointer
from deemster.formats.jsonl_lines import BOM, parse_line
from deemster.formats.read_file import file_format, parse_document, quick_json
from deemster.formats.schema_validation import check_shape
from deemster.formats.strict_json import json_value

ITEMS = "items"
Struct = TypeVar("Struct", bound=msgspec.Struct)


class ItemFile(NamedTuple):
    """What a file holds, and how to find the place of a part of it.

    Attributes:
        root: The facts, and the items under `items`.
        document: The precise document of a path and the path in it, or None where a value comes from no file.
        reading: How the file is called and what its errors are.
    """

    root: Any
    document: Callable[[Path], tuple[Document, Path]] | None
    reading: Reading

    def where(self, path: Path) -> str | None:
        """The place of a part: `file:line`, else the position of the item it lies in."""
        if self.document is not None:
            document, rest = self.document(path)
            return document.where(rest)
        return pointer(path[:2]) if path[:1] == (ITEMS,) and len(path) > 1 else None


class IssueList:
    """Collects the issues of one file, each with its place and its item.

    Attributes:
        issues: What was found so far.
        item: The id of the item that is being read.
        is_malformed: Whether the reader met a value that its shape does not allow; the validator finds the words.
    """

    def __init__(self, file: ItemFile) -> None:
        self._file = file
        self.issues: list[Issue] = []
        self.item: str | None = None
        self.is_malformed = False
        self._root: Any = None
        self._shape: Any = None

    def add(self, path: Path, message: str) -> None:
        """Add an issue about the value at a path."""
        self.issues.append(Issue(message, self._file.where(path), self.item))

    def decode(self, root: Any, shape: type[Struct]) -> Struct | None:
        """A root as its struct; None where it does not have that shape, and `refuse` will say why.

        Args:
            root: What the file holds; what has a shape of its own, such as a rubric, is left out.
            shape: The struct that declares the format.
        """
        self._root, self._shape = root, shape
        try:
            if self._file.document is None:
                # Python values may hold what no file can, such as NaN or a lone surrogate.
                json.dumps(root, ensure_ascii=False, allow_nan=False).encode()
            return msgspec.convert(root, shape)
        except (ValueError, TypeError, RecursionError):
            self.is_malformed = True
            return None

    def refuse(self) -> None:
        """Raise everything that was found, with what is wrong with the shape; do nothing where nothing was.

        Raises:
            InputError: Something was found.
        """
        if self.is_malformed or self._file.reading.has_not_finite:
            self.issues += check_shape(self._root, self._shape, document=self._file, items=ITEMS)
        if self.issues:
            raise self._file.reading.error(sort_issues(self.issues))


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Reading makes many objects and no cycles; looking for cycles meanwhile costs as much as the reading."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def read_item_file(path: str | FilePath, reading: Reading, *, known: tuple[str, ...], item_key: str | None) -> ItemFile:
    """Read a file by its extension.

    Args:
        path: The file.
        reading: How the file is called and what its errors are.
        known: The formats it may have.
        item_key: A key by which the first line of JSONL is seen to be an item; None where it is always the header.

    Raises:
        InputError: The file cannot be read, or is not of its format.
    """
    kind = file_format(path, reading, known=known)
    data = reading.content(path)
    if kind == "jsonl":
        return _read_lines(data, reading, item_key=item_key)
    precise: list[Document] = []

    def document(path: Path) -> tuple[Document, Path]:
        if not precise:
            precise.append(parse_document(data, kind, reading))
        return precise[0], path

    return ItemFile(_root(data, kind, document), document, reading)


def _root(data: bytes, kind: str, document: Callable[[Path], tuple[Document, Path]]) -> Any:
    """What a file of one document holds."""
    if kind == "json":
        with suppress(ValueError):
            return quick_json(data)
    return document(())[0].value


def _read_lines(data: bytes, reading: Reading, *, item_key: str | None) -> ItemFile:
    """Read JSONL; raise the issues of all lines that cannot be read at once."""
    rows: list[Any] = []
    numbers: list[int] = []
    texts = data.removeprefix(BOM).split(b"\n")
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
    header: Any = {}
    if item_key is None or not (isinstance(rows[0], dict) and item_key in rows[0]):
        header, *rows = rows
    start = len(numbers) - len(rows)
    if not isinstance(header, dict):
        reading.refuse(f"The first line is the header, a map, not {name_kind(header)}.", line=numbers[0])
    if ITEMS in header:
        reading.refuse("`items` is no key of a header line; items follow it, one a line.", line=numbers[0])

    def document(path: Path) -> tuple[Document, Path]:
        inside = len(path) > 1 and path[0] == ITEMS and isinstance(path[1], int)
        at = start + int(path[1]) if inside else 0
        found = parse_line(texts[numbers[at] - 1], numbers[at], reading)
        return found, path[2:] if inside else path

    return ItemFile({**header, ITEMS: rows}, document, reading)


def _line_value(line: bytes, number: int, reading: Reading) -> Any:
    try:
        return json_value(line)
    except ValueError:
        return parse_line(line, number, reading).value


def name_in_item(path: Path) -> str:
    """A path as messages name it: from its item on, where it is inside of one.

    >>> name_in_item(("items", 3, "votes", "a", 0)), name_in_item(("judges", 1, "id"))
    ('votes.a[0]', 'judges[1].id')
    """
    inner = path[2:] if path[:1] == (ITEMS,) else path
    return pointer(inner) if inner else ""


def repeated_ids(rows: Any, key: str, where: Callable[[Path], str | None]) -> Iterator[Issue]:
    """An issue for every row whose id an earlier row has.

    Args:
        rows: Maps with an `id`; anything else is passed over.
        key: The key of the root that holds the rows.
        where: The place of a path.
    """
    first: dict[str, int] = {}
    for at, row in enumerate(rows if isinstance(rows, list) else ()):
        name = row.get("id") if isinstance(row, dict) else None
        if isinstance(name, str) and (earlier := first.setdefault(name, at)) != at:
            message = f"The id is given twice, first at {where((key, earlier))}."
            yield Issue(message, where((key, at)), name)
