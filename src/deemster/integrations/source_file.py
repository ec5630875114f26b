"""A file of another tool: read once, as JSON, JSON lines, YAML, a table, a zip archive or lines of text."""

from __future__ import annotations

import functools
import struct
import zipfile
import zlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

from deemster.errors import InputError, MissingExtraError, visible
from deemster.formats import Reading
from deemster.formats.document import DEPTH, MOST_UNPACKED, Document
from deemster.formats.jsonl_lines import parse_line
from deemster.formats.read_file import parse_document, quick_json
from deemster.formats.read_table import read_table_lines
from deemster.formats.strict_json import json_document, json_value

_MOST_MEMBERS = 100_000
_ZSTANDARD = 93
_ZIP = b"PK\x03\x04"


class SourceFile:
    """A file of another tool, which is hostile data: nothing in it is run, and no path in it is opened.

    Args:
        path: The file, or a folder.

    Attributes:
        path: Its path.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.reading = Reading(str(path), error=InputError, keeps_not_finite=True)

    @property
    def name(self) -> str:
        """The name of the file, without its folder."""
        return self.path.name

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return self.path.is_dir()

    @functools.cached_property
    def data(self) -> bytes:
        """Its bytes; none of a folder.

        Raises:
            InputError: It cannot be read.
        """
        return b"" if self.is_folder else self.reading.content(self.path)

    @functools.cached_property
    def value(self) -> Any:
        """What it holds as one JSON or YAML document; None where it is none.

        Raises:
            InputError: It cannot be read.
        """
        start = self.data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
        if start in (b"{", b"["):
            return self._json(self.data)
        if self.path.suffix.lower() in (".yaml", ".yml"):
            return self.document.value
        return None

    @functools.cached_property
    def document(self) -> Document:
        """What it holds as one JSON or YAML document, with the line of every value.

        Raises:
            InputError: It cannot be read.
        """
        kind = "yaml" if self.path.suffix.lower() in (".yaml", ".yml") else "json"
        return parse_document(self.data, kind, self.reading)

    def _json(self, data: bytes) -> Any:
        """A JSON document; None where it is none, as a file of JSON lines."""
        try:
            return quick_json(data)
        except ValueError:
            pass
        try:
            return json_document(self.reading.text(data), self.reading).value
        except InputError:
            if self.rows:
                return None
            raise

    @functools.cached_property
    def rows(self) -> list[dict[str, Any]]:
        """Its lines, where each is a JSON map; otherwise none."""
        lines = [line for line in self.data.splitlines() if line.strip()]
        if not lines or not lines[0].lstrip(b"\xef\xbb\xbf").startswith(b"{"):
            return []
        found = []
        for number, line in enumerate(lines, 1):
            row = self._row(line, number)
            if not isinstance(row, dict):
                return []
            found.append(row)
        return found

    def _row(self, line: bytes, number: int) -> Any:
        try:
            return json_value(line.removeprefix(b"\xef\xbb\xbf"))
        except ValueError:
            pass
        try:
            return parse_line(line, number, self.reading).value
        except InputError:
            # The first line tells what the file is. A later one that cannot be read is an error.
            if number == 1:
                return None
            raise

    @functools.cached_property
    def table(self) -> list[dict[str, str]]:
        """Its rows as a table with a header, CSV or TSV by its name; otherwise none.

        Raises:
            InputError: It cannot be read.
        """
        kind = self.path.suffix.lower().removeprefix(".")
        if kind not in ("csv", "tsv"):
            return []
        lines = iter(read_table_lines(self.data, kind, self.reading))
        _, header = next(lines, (0, []))
        return [dict(zip(header, cells, strict=False)) for _, cells in lines]

    @property
    def is_zip(self) -> bool:
        """Whether it is a zip archive."""
        return self.data.startswith(_ZIP)

    @functools.cached_property
    def members(self) -> dict[str, zipfile.ZipInfo]:
        """The members of a zip archive by name. Nothing is written to disk, so a name is never a path.

        Raises:
            InputError: It is no readable archive, or has too many members.
        """
        try:
            with zipfile.ZipFile(BytesIO(self.data)) as archive:
                found = {member.filename: member for member in archive.infolist()}
        except (zipfile.BadZipFile, OSError, ValueError, RuntimeError) as error:
            self.reading.refuse(f"The archive cannot be read: {visible(str(error), limit=200)}.")
        if len(found) > _MOST_MEMBERS:
            self.reading.refuse(f"The archive has more than {_MOST_MEMBERS:,} members.")
        unpacked = sum(member.file_size for member in found.values())
        self.reading.check_unpacked(unpacked, packed=len(self.data), most=MOST_UNPACKED)
        return found

    def member(self, name: str) -> Any:
        """A member of the archive as JSON.

        Raises:
            InputError: It cannot be read, or is no JSON.
        """
        data = self._unpack(self.members[name])
        try:
            return json_value(data)
        except ValueError:
            reading = Reading(f"{self.path}:{visible(name, limit=200)}", error=InputError, keeps_not_finite=True)
            return json_document(reading.text(data), reading, depth=DEPTH).value

    def _unpack(self, member: zipfile.ZipInfo) -> bytes:
        try:
            if member.compress_type == _ZSTANDARD:
                data = self._unpack_zstandard(member)
            else:
                with zipfile.ZipFile(BytesIO(self.data)) as archive, archive.open(member) as file:
                    # The size that the archive states may be a lie.
                    data = file.read(member.file_size + 1)
        except (zipfile.BadZipFile, OSError, ValueError, RuntimeError, EOFError, struct.error) as error:
            self.reading.refuse(f"`{member.filename}` in the archive cannot be read: {visible(str(error), limit=200)}.")
        if len(data) > member.file_size:
            self.reading.refuse(f"`{member.filename}` in the archive is longer than it says.")
        return data

    def _unpack_zstandard(self, member: zipfile.ZipInfo) -> bytes:
        """A member that is compressed by Zstandard, which `zipfile` reads from Python 3.14 on."""
        try:
            import zstandard  # noqa: PLC0415 - an extra
        except ImportError:
            raise MissingExtraError("An archive that is compressed by Zstandard", extra="inspect") from None
        # The header of a member is 30 bytes long, and its name and its further fields follow.
        start = member.header_offset
        name, further = struct.unpack("<HH", self.data[start + 26 : start + 30])
        start += 30 + name + further
        packed = self.data[start : start + member.compress_size]
        try:
            with zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(packed) as reader:
                data: bytes = reader.read(member.file_size + 1)
        except zstandard.ZstdError as error:
            raise ValueError(str(error)) from None
        if zlib.crc32(data) != member.CRC:
            raise ValueError("its check sum is wrong")
        return data

    def files(self, pattern: str) -> Iterator[SourceFile]:
        """The files of a folder whose names match a pattern, by name; links are not followed."""
        for path in sorted(self.path.glob(pattern)):
            if path.is_file() and not path.is_symlink():
                yield SourceFile(path)
