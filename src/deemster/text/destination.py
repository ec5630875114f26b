"""Where `--to` writes what is shown, and in which format; a file is never seen half written."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from deemster.errors import Issue, ReportError, ReportWriteError, break_ci_commands, is_storage_failure, list_names
from deemster.formats.atomic_write import write_aside

STDOUT = "-"
# GitHub names here the file in which a step of a job writes its summary.
STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
# How the name of a file ends, by what is written to it; the longest ending that fits decides.
ENDINGS: dict[str, tuple[str, ...]] = {
    "json": (".json",),
    "md": (".md",),
    "html": (".html",),
    "csv": (".csv",),
    "junit": ("junit.xml", ".xml"),
    "pr-comment": ("pr-comment.md",),
    "brief": ("brief.md",),
    "methods": ("methods.md",),
    "github": (),
    "votes": ("votes.json", ".jsonl"),
    "rubric": (".yml", ".yaml"),
}
_SEPARATORS = tuple({"/", os.sep})


def read_destination(text: str, formats: Collection[str]) -> Destination:
    """Where a value of `--to` says that something goes.

    Args:
        text: A file whose ending says the format, `FORMAT:FILE`, `-` for JSON on standard output, or `github` for the
            summary of the step that runs.
        formats: What can be written, keys of `ENDINGS`.

    Raises:
        ReportError: It says no format, one that cannot be written, or `github` outside of a GitHub job.
    """
    if text == STDOUT and "json" in formats:
        return Destination("json", STDOUT)
    if text == "github" and text in formats:
        summary = os.environ.get(STEP_SUMMARY)
        if not summary:
            raise ReportError("`--to github` is for a step of a GitHub job. Elsewhere, name the file: `github:FILE`.")
        return Destination(text, summary)

    prefix, colon, path = text.partition(":")
    if colon and path and prefix in ENDINGS:
        if prefix not in formats:
            message = f"This is not written as `{prefix}`. Known are {list_names(list_endings(formats))}."
            raise ReportError(Issue(message, text))
        return Destination(prefix, path)
    try:
        return Destination(format_by_ending(text, formats), text)
    except ReportError as error:
        message = f"{error.issues[0].message} For another name, say the format first: `{next(iter(formats))}:{text}`."
        raise ReportError(Issue(message, text)) from None


def format_by_ending(path: str, formats: Collection[str]) -> str:
    """The format of a file by how its name ends.

    >>> format_by_ending("out/pr-comment.md", ["json", "md", "pr-comment"])
    'pr-comment'

    Args:
        path: The file.
        formats: What can be written, keys of `ENDINGS`.

    Raises:
        ReportError: The ending is that of no format.
    """
    name = Path(path).name.lower()
    matches = [
        (len(ending), -rank, format_name)
        for rank, format_name in enumerate(formats)
        for ending in ENDINGS[format_name]
        if name == ending or (ending.startswith(".") and name.endswith(ending))
    ]
    if not matches:
        message = f"The ending of the name says no format. Known are {list_names(list_endings(formats))}."
        raise ReportError(Issue(message, path))
    return max(matches)[2]


def list_endings(formats: Collection[str]) -> list[str]:
    """One ending or known name of each format, as helps and errors list them.

    >>> list_endings(["json", "junit", "github"])
    ['.json', 'junit.xml', 'github']
    """
    return [ENDINGS[name][0] if ENDINGS[name] else name for name in formats]


class Destination(NamedTuple):
    """Where a report goes, and in which format."""

    format: str
    path: str

    @property
    def is_stdout(self) -> bool:
        """Whether it goes to standard output."""
        return self.path == STDOUT

    def check(self) -> None:
        """Make sure, before anything runs, that the report can be written.

        Raises:
            ReportError: It is a folder, or the place cannot be written.
        """
        if self.is_stdout:
            return
        path = Path(self.path)
        if path.is_dir() or self.path.endswith(_SEPARATORS):
            raise ReportError(Issue("This is a folder; a report is a file.", self.path))
        if _is_device(path):
            return
        # Missing folders are made when something is written.
        folder = next(folder for folder in path.absolute().parents if folder.exists())
        with _name_place(self.path), tempfile.NamedTemporaryFile(dir=folder, prefix=".deemster-"):
            pass


def write_pieces(pieces: Iterable[bytes], destination: Destination) -> None:
    """Write the bytes of a report to its destination. What is printed holds no command for the agent of a CI service.

    Raises:
        ReportError: It cannot be written.
    """
    if destination.is_stdout:
        with _name_place("standard output"):
            try:
                sys.stdout.buffer.writelines(_printable_lines(pieces, destination.format))
                sys.stdout.buffer.flush()
            except BrokenPipeError:
                drop_output()
        return
    path = Path(destination.path)
    if _is_device(path):
        with _name_place(destination.path), path.open("wb") as file:
            file.writelines(_printable_lines(pieces, destination.format))
        return
    with _name_place(destination.path):
        if path == Path(os.environ.get(STEP_SUMMARY) or os.devnull):
            # The step may have written something before.
            with path.open("ab") as file:
                file.writelines(pieces)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_aside(path, pieces)


def drop_output() -> None:
    """Print nothing more, since nobody reads it. The exit code stays the command's own: 1 says that a gate failed."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _printable_lines(pieces: Iterable[bytes], format: str) -> Iterator[bytes]:  # noqa: A002 - what formats are called
    """The same bytes, line by line, without commands for the agent of a CI service."""
    begun = b""
    for piece in pieces:
        lines, newline, rest = (begun + piece).rpartition(b"\n")
        begun = rest
        if newline:
            yield break_ci_commands(lines.decode(), format=format).encode() + newline
    yield break_ci_commands(begun.decode(), format=format).encode()


def _is_device(path: Path) -> bool:
    """Whether a path is a terminal, a pipe or the like, which is written to and must never be replaced by a file."""
    return path.exists() and not path.is_file()


@contextlib.contextmanager
def _name_place(place: str) -> Iterator[None]:
    """Turn an operating system error into one that names the place and the cause."""
    try:
        yield
    except OSError as error:
        make_error = ReportWriteError if is_storage_failure(error) else ReportError
        raise make_error(Issue(f"The report cannot be written: {error.strerror or error}.", place)) from None
