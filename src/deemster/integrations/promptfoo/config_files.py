"""The files that a config of promptfoo names, and the list of what is not taken in."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from deemster.errors import InputError, visible
from deemster.formats.document import Document
from deemster.integrations.source_file import SourceFile

FILE = "file://"
_CODE = frozenset({".js", ".cjs", ".mjs", ".ts", ".cts", ".mts", ".py", ".rb", ".go"})
_DATA = frozenset({".json", ".yaml", ".yml"})
_LINES_SHOWN = 5


class LeftOutError(Exception):
    """Why a part of a config is not taken in."""


class LeftOut:
    """What a config has and no file of the suite holds, with the lines on which it stands.

    Args:
        document: The config.
    """

    def __init__(self, document: Document) -> None:
        self._document = document
        self._lines: dict[str, set[int]] = {}

    def note(self, what: str, path: Sequence[str | int]) -> None:
        """Note a part by its path; a path into another file has the line on which that file is named."""
        self._lines.setdefault(what, set()).add(self._document.line(path))

    def note_keys(self, entries: Mapping[str, Any], known: frozenset[str], path: Sequence[str | int], of: str) -> None:
        """Note the keys of a map that mean nothing here."""
        for key in entries:
            if key not in known:
                self.note(f"`{visible(str(key), limit=80)}` of {of}", (*path, key))

    def sentences(self) -> tuple[str, ...]:
        """One sentence for each part."""
        return tuple(f"{what}, {_line_list(sorted(lines))}" for what, lines in self._lines.items())


def _line_list(lines: Sequence[int]) -> str:
    if len(lines) == 1:
        return f"line {lines[0]}"
    more = f" and {len(lines) - _LINES_SHOWN:,} more" if len(lines) > _LINES_SHOWN else ""
    return f"lines {', '.join(map(str, lines[:_LINES_SHOWN]))}{more}"


class ConfigFiles:
    """Opens the files that a config names. They are below its folder; others are not opened, and code is not run.

    Args:
        config: The config.
    """

    def __init__(self, config: SourceFile) -> None:
        self._folder = config.path.parent

    def find(self, reference: str) -> list[SourceFile]:
        """The files that a reference such as `file://cases/*.yaml` names, by name.

        Raises:
            LeftOutError: There are none, they are not below the folder, or they are code.
        """
        shown = visible(reference, limit=80)
        pattern = reference.removeprefix(FILE).removeprefix("./")
        if "://" in pattern:
            raise LeftOutError(f"`{shown}` is on the network, which is not asked")
        if PurePosixPath(pattern.partition(":")[0]).suffix in _CODE:
            raise LeftOutError(f"`{shown}` is code, which is not run")
        if not pattern or PurePosixPath(pattern).is_absolute() or ".." in PurePosixPath(pattern).parts:
            raise LeftOutError(f"`{shown}` is not below the folder of the config, and is not opened")

        root = self._folder.resolve()
        paths = [path for path in sorted(self._glob(pattern)) if path.is_file()]
        if not paths:
            raise LeftOutError(f"there is no file `{shown}`")
        if not all(path.resolve().is_relative_to(root) for path in paths):
            raise LeftOutError(f"`{shown}` is not below the folder of the config, and is not opened")
        return [SourceFile(path) for path in paths]

    def _glob(self, pattern: str) -> list[Path]:
        try:
            plain = self._folder / pattern
            return [plain] if plain.is_file() else list(self._folder.glob(pattern))
        except (OSError, ValueError, IndexError):
            return []

    def names(self, reference: str) -> list[str]:
        """The files that a reference with `*` names, as references of their own.

        Raises:
            LeftOutError: There are none, or they are not opened.
        """
        return [f"{FILE}{source.path.relative_to(self._folder).as_posix()}" for source in self.find(reference)]

    def content(self, reference: str) -> Any:
        """What one file holds: JSON and YAML as data, anything else as text without white space around it.

        Raises:
            LeftOutError: It cannot be read.
        """
        source = self.find(reference)[0]
        is_data = source.path.suffix.lower() in _DATA
        try:
            return source.document.value if is_data else source.reading.text(source.data).strip()
        except InputError as error:
            reason = f"`{visible(source.name, limit=80)}` cannot be read: {error.issues[0].message}"
            raise LeftOutError(reason) from None

    def variable(self, reference: str) -> Any:
        """What a variable is whose value is a file: its text; of a YAML file, what it holds as JSON.

        Raises:
            LeftOutError: It cannot be read as text.
        """
        content = self.content(reference)
        if isinstance(content, str):
            return content
        if PurePosixPath(reference).suffix.lower() == ".json":
            return self.find(reference)[0].data.decode("utf-8", "replace").strip()
        return json.dumps(content, ensure_ascii=False, separators=(",", ":"), default=str)
