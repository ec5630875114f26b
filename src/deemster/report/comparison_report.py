"""The comparison of two runs as a document: `ComparisonReport`, which can be shown and written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from deemster.errors import ReportError, list_names
from deemster.report._comparison_dataframe import comparison_dataframe
from deemster.report._comparison_page import comparison_notebook, comparison_page
from deemster.report.comparison import Comparison, CorrectedComparison
from deemster.report.comparison_sections import comparison_sections, comparison_summary, comparison_verdict
from deemster.report.pull_request_comment import comparison_comment
from deemster.report.report_entries import ExecutionEntry, PrivacyEntry
from deemster.results import GateDecision
from deemster.text.destination import Destination, write_pieces
from deemster.text.indented_json import json_pieces
from deemster.text.markdown_layout import render_markdown

if TYPE_CHECKING:
    import pandas as pd

EXTENSIONS = {".json": "json", ".md": "markdown", ".html": "html", ".xml": "junit"}


# What a file has only where labels of people, or anchors, brought it.
OPTIONAL = frozenset({"corrected", "anchors"})


class ComparedSample(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A sample that changed, with what was asked and what both runs answered.

    Attributes:
        id: Its id in the candidate, or in the baseline where it was removed.
        status: How it changed.
        tags: Its tags.
        input: What the target received.
        expected_output: What should come out.
        baseline: Its first repetition in the baseline that shows the change.
        candidate: The same in the candidate.
    """

    id: str
    status: str
    tags: tuple[str, ...] = ()
    input: Any = None
    expected_output: Any = None
    baseline: ExecutionEntry | None = None
    candidate: ExecutionEntry | None = None


class ComparisonReport(Comparison, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The comparison of two runs.

    The fields are those of `deemster.comparison.v1`, in its order. `changes` lists every sample that did not stay as it
    was; `examples` shows some of them with the question and both answers. `gate` is what a gate decided, where one was
    asked; `privacy` says what was left out on purpose. `corrected` is there where people labelled outputs of both runs.
    """

    examples: tuple[ComparedSample, ...] = ()
    gate: GateDecision | None = None
    privacy: PrivacyEntry = PrivacyEntry()
    corrected: dict[str, CorrectedComparison] | None = None

    @property
    def verdict(self) -> str:
        """Whether the candidate is worse, in one sentence."""
        return comparison_verdict(self)

    def pieces(self) -> Iterator[bytes]:
        """The canonical JSON of the comparison, in pieces."""
        return json_pieces(
            (name, iter(self.changes) if name == "changes" else getattr(self, name)) for name in self._written()
        )

    def head(self) -> bytes:
        """The canonical JSON of the comparison without the list of its changed samples."""
        names = (name for name in self._written() if name != "changes")
        return b"".join(json_pieces((name, getattr(self, name)) for name in names))

    def _written(self) -> Iterator[str]:
        """The fields that a file has: all, but what only labels of people bring."""
        return (name for name in self.__struct_fields__ if name not in OPTIONAL or getattr(self, name) is not None)

    def to_json(self) -> str:
        """The comparison as canonical JSON: the same runs are the same bytes."""
        return b"".join(self.pieces()).decode()

    def to_markdown(self) -> str:
        """The comparison as Markdown."""
        return render_markdown(comparison_sections(self))

    def to_html(self) -> str:
        """The comparison as one HTML page that loads nothing."""
        return comparison_page(self)

    def to_dataframe(self, form: Literal["metrics", "samples"] = "metrics") -> pd.DataFrame:
        """The comparison as a pandas table.

        Args:
            form: `metrics` for a row for each number that was compared, overall and by cohort; `samples` for a row for
                each sample that did not stay as it was.

        Raises:
            ReportError: There is no such form.
            MissingExtraError: pandas is not installed.
        """
        return comparison_dataframe(self, form)

    def _repr_html_(self) -> str:
        return comparison_notebook(self)

    def save(self, path: str | Path) -> None:
        """Write the comparison, in the format its extension says: .json, .md, .html or .xml (JUnit).

        Raises:
            ReportError: The extension is none of these, or the file cannot be written.
        """
        suffix = Path(path).suffix.lower()
        if suffix not in EXTENSIONS:
            raise ReportError(f"A comparison is written as {list_names(EXTENSIONS)}, not as `{suffix}`.")
        write_comparison(self, Destination(EXTENSIONS[suffix], str(path)))

    def __repr__(self) -> str:
        return f"<ComparisonReport {self.baseline.id} to {self.candidate.id}: {self.verdict}>"


def _junit(comparison: ComparisonReport, *, samples_fail: bool = False) -> Iterable[bytes]:
    from deemster.report._junit_xml import comparison_junit  # noqa: PLC0415 - its XML library loads an HTTP client

    return comparison_junit(comparison, samples_fail=samples_fail)


COMPARISON_FORMATS: dict[str, Callable[[ComparisonReport], Iterable[bytes]]] = {
    "json": lambda comparison: comparison.pieces(),
    "markdown": lambda comparison: (comparison.to_markdown().encode(),),
    "html": lambda comparison: (comparison.to_html().encode(),),
    "junit": _junit,
    "junit-samples": lambda comparison: _junit(comparison, samples_fail=True),
    "github": lambda comparison: (comparison_summary(comparison).encode(),),
    "pr-comment": lambda comparison: (comparison_comment(comparison).encode(),),
}


def write_comparison(comparison: ComparisonReport, destination: Destination) -> None:
    """Write a comparison.

    Raises:
        ReportError: It cannot be written.
    """
    write_pieces(COMPARISON_FORMATS[destination.format](comparison), destination)
