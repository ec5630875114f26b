"""What everything that is shown can do once it knows its sections: Markdown, a page, a notebook, a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import msgspec

from deemster.errors import Issue, ReportError, list_names
from deemster.text.destination import ENDINGS, Destination, format_by_ending, write_pieces
from deemster.text.html_page import plain_page, render_part
from deemster.text.indented_json import json_pieces
from deemster.text.markdown_layout import render_markdown
from deemster.text.text_sections import TextSection

Forms: TypeAlias = dict[str, Callable[[], Iterable[bytes]]]


class Rendered:
    """A result that is shown. It knows its sections; every form is made of them."""

    __slots__ = ()

    def sections(self) -> list[TextSection]:
        """What it says to people, in order."""
        raise AssertionError("every result that is shown says its own sections")

    def pieces(self) -> Iterable[bytes]:
        """All of it as JSON, in pieces, so that a result of any length is written; equal results are equal bytes."""
        return (msgspec.json.format(msgspec.json.encode(self, order="deterministic"), indent=2), b"\n")

    def to_json(self) -> str:
        """All of it as JSON; equal results are equal text."""
        return b"".join(self.pieces()).decode()

    def to_markdown(self) -> str:
        """What it says, as Markdown."""
        return render_markdown(self.sections())

    def to_html(self) -> str:
        """What it says, as one HTML page that loads nothing."""
        return plain_page(self.sections())

    def _repr_html_(self) -> str:
        return render_part(self.sections())

    def forms(self) -> Forms:
        """By the name of a format, what makes the bytes of a file."""
        return {
            "json": self.pieces,
            "md": lambda: (self.to_markdown().encode(),),
            "html": lambda: (self.to_html().encode(),),
        }

    def write(self, destination: Destination) -> None:
        """Write it to a destination.

        Raises:
            ReportError: It has no such format, or cannot be written.
        """
        forms = self.forms()
        if destination.format not in forms:
            raise ReportError(f"This is written as {list_names(forms)}, not as {destination.format}.")
        try:
            write_pieces(forms[destination.format](), destination)
        except UnicodeEncodeError:
            message = "This cannot be written: a text holds a lone surrogate, which is no character."
            raise ReportError(Issue(message, destination.path)) from None

    def save(self, path: str | Path) -> None:
        """Write it, in the format that the name of the file says, such as `.json` or `.md`; folders are created.

        Raises:
            ReportError: It has no such format, or the file cannot be written.
        """
        formats = [name for name in self.forms() if ENDINGS.get(name)]
        destination = Destination(format_by_ending(str(path), formats), str(path))
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ReportError(Issue(f"This cannot be written: {error.strerror or error}.", str(path))) from None
        self.write(destination)


class RenderedRecord(Rendered):
    """A result that is written field by field, in the order of its fields, so that long lists never stand in memory.

    Attributes:
        long_fields: Those that grow with the run.
        optional_fields: Those that are left out where there is nothing of them.
    """

    __slots__ = ()
    long_fields: ClassVar[frozenset[str]] = frozenset()
    optional_fields: ClassVar[frozenset[str]] = frozenset()

    def pieces(self) -> Iterator[bytes]:
        """All of it as canonical JSON, in pieces: the same run is the same bytes."""
        return json_pieces(self._fields())

    def head(self) -> bytes:
        """The canonical JSON without the fields that grow with the run: its numbers."""
        return b"".join(json_pieces(self._fields(without=self.long_fields)))

    def _fields(self, *, without: frozenset[str] = frozenset()) -> Iterator[tuple[str, Any]]:
        record: Any = self
        for name, field in zip(record.__struct_encode_fields__, record.__struct_fields__, strict=True):
            value = getattr(self, field)
            if field not in without and not (value is None and field in self.optional_fields):
                yield name, iter(value) if field in self.long_fields else value
