"""Every format of a report: by its name, what makes its bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from deemster.report import Report

NAMES = ("json", "md", "html", "csv", "junit", "junit-samples", "github", "pr-comment")
FORMATS: dict[str, Callable[[Report], Iterable[bytes]]] = {
    name: lambda report, name=name: report.forms()[name]() for name in NAMES
}
