"""Writing reports: aside first, then renamed, so that a reader never sees half of one."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from deemster.errors import Issue, ReportError
from deemster.formats.atomic_write import write_aside
from deemster.report.report_document import Report

STDOUT = "-"
_SEPARATORS = tuple({"/", os.sep})


def _json(report: Report) -> Iterable[bytes]:
    return report.pieces()


def _markdown(report: Report) -> Iterable[bytes]:
    return (report.to_markdown().encode(),)


def _csv(report: Report) -> Iterable[bytes]:
    from deemster.report._csv_report import rows  # noqa: PLC0415 - a renderer is loaded where it is used

    return (row.encode() for row in rows(report))


def _raw_csv(report: Report) -> Iterable[bytes]:
    from deemster.report._csv_report import rows  # noqa: PLC0415 - a renderer is loaded where it is used

    return (row.encode() for row in rows(report, raw=True))


def _html(report: Report) -> Iterable[bytes]:
    from deemster.report._html_report import page  # noqa: PLC0415 - a renderer is loaded where it is used

    return (page(report).encode(),)


def _junit(report: Report) -> Iterable[bytes]:
    from deemster.report._junit_xml import suites  # noqa: PLC0415 - a renderer is loaded where it is used

    return suites(report)


def _github(report: Report) -> Iterable[bytes]:
    from deemster.report._markdown_report import job_summary  # noqa: PLC0415 - a renderer is loaded where it is used

    return (job_summary(report).encode(),)


FORMATS: dict[str, Callable[[Report], Iterable[bytes]]] = {
    "json": _json,
    "markdown": _markdown,
    "csv": _csv,
    "csv-raw": _raw_csv,
    "html": _html,
    "junit": _junit,
    "github": _github,
}


class Destination(NamedTuple):
    """Where a report goes, and as what."""

    format: str
    path: str

    @property
    def is_stdout(self) -> bool:
        """Whether it goes to standard output."""
        return self.path == STDOUT

    def check(self) -> None:
        """Make sure, before anything runs, that the report can be written.

        Raises:
            ReportError: The folder does not exist, or the place cannot be written.
        """
        if self.is_stdout:
            return
        path = Path(self.path)
        if path.is_dir() or self.path.endswith(_SEPARATORS):
            raise ReportError(Issue("This is a folder; a report is a file.", self.path))
        if not path.parent.is_dir():
            raise ReportError(Issue(f"The folder `{path.parent}` does not exist.", self.path))
        if _is_device(path):
            return
        with _told(self.path), tempfile.NamedTemporaryFile(dir=path.parent, prefix=".deemster-"):
            pass


def written(report: Report, destination: Destination) -> None:
    """Write a report.

    Raises:
        ReportError: It cannot be written.
    """
    deliver(FORMATS[destination.format](report), destination)


def deliver(pieces: Iterable[bytes], destination: Destination) -> None:
    """Write what a report is made of to where it goes.

    Raises:
        ReportError: It cannot be written.
    """
    if destination.is_stdout:
        with _told("standard output"):
            sys.stdout.buffer.writelines(pieces)
            sys.stdout.buffer.flush()
        return
    path = Path(destination.path)
    if _is_device(path):
        with _told(destination.path), path.open("wb") as file:
            file.writelines(pieces)
        return
    with _told(destination.path):
        write_aside(path, pieces)


def _is_device(path: Path) -> bool:
    """Whether a path is a terminal, a pipe or the like, which is written to and must never be replaced by a file."""
    return path.exists() and not path.is_file()


@contextlib.contextmanager
def _told(place: str) -> Iterator[None]:
    """Turn a failing disk into an error that names the place and the cause."""
    try:
        yield
    except OSError as error:
        raise ReportError(Issue(f"The report cannot be written: {error.strerror or error}.", place)) from None
