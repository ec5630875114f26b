"""Privacy levels: what a report or a comparison leaves out when it is shown or written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

from deemster.comparison.comparison import ComparedSample, Comparison
from deemster.comparison.ranking import Ranking
from deemster.datasets import SelectedPart
from deemster.formats.streamed_list import Stream
from deemster.report.report_document import Report
from deemster.report.report_entries import (
    ExecutionEntry,
    FailureEntry,
    MarkEntry,
    PrivacyEntry,
    RunEntry,
    ScoreEntry,
    UnscoredEntry,
    UnscoredReason,
)
from deemster.results import RunMetricSummary, SampleEntry
from deemster.results.run_columns import ComparedRun
from deemster.results.sample_changes import SampleChange

DEFAULT = "default"
PUBLISH_SAFE = "publish-safe"
LEVELS = (DEFAULT, "outputs", "expected", "all", PUBLISH_SAFE)

_OUTPUT = ("executions.output", "executions.retrieved", "executions.trajectory")
_EXPECTED = ("samples.expected_output",)
_QUOTING = ("quoting details", "messages")
_HASHES = ("samples.row_hash", "dataset.fingerprint")
_WORDS = ("other details than numbers and booleans",)
_REMOVED: dict[str, tuple[str, ...]] = {
    DEFAULT: (),
    "outputs": (*_OUTPUT, *_QUOTING),
    "expected": (*_EXPECTED, *_QUOTING),
    "all": (*_EXPECTED, *_OUTPUT, *_QUOTING),
    PUBLISH_SAFE: (*_HASHES, *_EXPECTED, *_OUTPUT, *_QUOTING, *_WORDS),
}
REMOVABLE = frozenset(_REMOVED[PUBLISH_SAFE])

Quotes: TypeAlias = Callable[[str], frozenset[str] | None]


def redact_report(report: Report, *, level: str = DEFAULT, include_input: bool = False, quotes: Quotes) -> Report:
    """A report that shows what a level allows.

    Args:
        report: The report with everything in it, or one that already left something out.
        level: One of ``LEVELS``.
        include_input: Whether the samples' input is shown; never at `publish-safe`.
        quotes: Says by a metric's name which of its details may repeat text of a sample or output; None for all.
    """
    privacy = widen_privacy(report.privacy, level)
    removed = privacy.removed
    view = EntryView(frozenset(removed), quotes, keep_input=include_input and privacy.level != PUBLISH_SAFE)
    samples, executions, failures = report.samples, report.executions, report.failure_list
    return msgspec.structs.replace(
        report,
        run=_run_without_words(report.run) if _WORDS[0] in removed else report.run,
        metrics=_metrics_without_words(report.metrics) if _WORDS[0] in removed else report.metrics,
        privacy=privacy,
        dataset=msgspec.structs.replace(report.dataset, fingerprint=None)
        if "dataset.fingerprint" in removed
        else report.dataset,
        samples=Stream(lambda: map(view.sample, samples)),
        executions=Stream(lambda: map(view.execution, executions)) if removed else executions,
        failure_list=Stream(lambda: map(view.failure, failures)) if removed else failures,
    )


def redact_comparison(
    comparison: Comparison, *, level: str = DEFAULT, include_input: bool = False, quotes: Quotes
) -> Comparison:
    """A comparison that shows what a level allows.

    The question of a shown sample is kept at the level `default`; at others only with ``include_input``, and never at
    `publish-safe`.

    Args:
        comparison: The comparison with everything in it, or one that already left something out.
        level: One of ``LEVELS``.
        include_input: Whether the samples' input is shown at other levels than `default`.
        quotes: Says by a metric's name which of its details may repeat text of a sample or output; None for all.
    """
    privacy = widen_privacy(comparison.privacy, level)
    removed = frozenset(privacy.removed)
    keep_input = privacy.level == DEFAULT or (include_input and privacy.level != PUBLISH_SAFE)
    view = EntryView(removed, quotes, keep_input=keep_input)
    changes = comparison.changes
    return msgspec.structs.replace(
        comparison,
        privacy=privacy,
        baseline=_redact_run(comparison.baseline, removed),
        candidate=_redact_run(comparison.candidate, removed),
        changes=Stream(lambda: map(_without_hash, changes)) if "samples.row_hash" in removed else changes,
        examples=tuple(_redact_sample(example, view) for example in comparison.examples),
    )


def _without_hash(change: SampleChange) -> SampleChange:
    return msgspec.structs.replace(change, row_hash=None)


def _redact_run(run: ComparedRun, removed: frozenset[str]) -> ComparedRun:
    """A run without its fingerprint, label and target, and without what selected its part."""
    if "dataset.fingerprint" not in removed:
        return run
    return msgspec.structs.replace(run, fingerprint=None, label=None, target=None, part=_unselected(run.part))


def _metrics_without_words(metrics: Mapping[str, RunMetricSummary]) -> dict[str, RunMetricSummary]:
    """Metrics without the values of metadata in their `where`; its tags stay, as those of cohorts do."""
    return {
        name: figures
        if figures.where is None or not figures.where.metadata
        else msgspec.structs.replace(
            figures, where=msgspec.structs.replace(figures.where, metadata=dict.fromkeys(figures.where.metadata, ()))
        )
        for name, figures in metrics.items()
    }


def _redact_sample(example: ComparedSample, view: EntryView) -> ComparedSample:
    changes: dict[str, Any] = {} if view.keep_input else {"input": None}
    if "samples.expected_output" in view.removed:
        changes["expected_output"] = None
    if view.removed:
        for side in ("baseline", "candidate"):
            entry = getattr(example, side)
            changes[side] = None if entry is None else view.execution(entry)
    return msgspec.structs.replace(example, **changes)


def redact_ranking(ranking: Ranking, *, level: str = DEFAULT) -> Ranking:
    """A ranking that shows what a level allows: it holds names of runs, and no text of samples.

    Args:
        ranking: The ranking.
        level: One of ``LEVELS``.
    """
    removed = frozenset(_REMOVED[level])
    runs = (msgspec.structs.replace(entry, run=_redact_run(entry.run, removed)) for entry in ranking.runs)
    return msgspec.structs.replace(ranking, runs=tuple(runs))


def widen_privacy(before: PrivacyEntry, level: str) -> PrivacyEntry:
    """What is left out in the end, where a level is applied to a document that already left something out."""
    removed = tuple(name for name in _REMOVED[PUBLISH_SAFE] if name in _REMOVED[level] or name in before.removed)
    return PrivacyEntry(next(name for name in LEVELS if set(removed) <= set(_REMOVED[name])), removed)


def _run_without_words(run: RunEntry) -> RunEntry:
    """A run without its label, target and models, and without what selected its part, such as values of metadata."""
    return msgspec.structs.replace(run, part=_unselected(run.part), label=None, target=None, models=None)


def _unselected(part: SelectedPart | None) -> SelectedPart | None:
    """A part without what selected it."""
    return None if part is None else msgspec.structs.replace(part, selection=None)


class EntryView:
    """Copies entries without what was removed.

    Args:
        removed: What is left out.
        quotes: Says by a metric's name which of its details may repeat text; None for all.
        keep_input: Whether the input of samples stays.
    """

    def __init__(self, removed: frozenset[str], quotes: Quotes, *, keep_input: bool) -> None:
        self.removed = removed
        self.quotes = quotes
        self.keep_input = keep_input

    def sample(self, entry: SampleEntry) -> SampleEntry:
        """A sample with its figures."""
        changes: dict[str, Any] = {} if self.keep_input else {"input": None}
        if "samples.expected_output" in self.removed:
            changes["expected_output"] = None
        if "samples.row_hash" in self.removed:
            changes["row_hash"] = None
        return msgspec.structs.replace(entry, **changes)

    def execution(self, entry: ExecutionEntry) -> ExecutionEntry:
        """A sample in one repetition."""
        changes: dict[str, Any] = {"marks": {name: self._mark(name, mark) for name, mark in entry.marks.items()}}
        if "executions.output" in self.removed:
            changes |= {"output": None, "retrieved": None, "trajectory": None}
        return msgspec.structs.replace(entry, **changes)

    def failure(self, entry: FailureEntry) -> FailureEntry:
        """A mark that could not be made."""
        return msgspec.structs.replace(entry, message=None) if "messages" in self.removed else entry

    def _mark(self, name: str, mark: MarkEntry) -> MarkEntry:
        if isinstance(mark, ScoreEntry):
            return msgspec.structs.replace(mark, details=dict(self._details(name, mark.details)))
        return UnscoredEntry(unscored=UnscoredReason(mark.unscored.cause, None), usage=mark.usage)

    def _details(self, name: str, details: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        quotes = self.quotes(name)
        words = _WORDS[0] in self.removed
        if words and quotes is None:
            # Nobody said what this metric's details repeat, and even their names may be text from data.
            return
        for key, value in details.items():
            wordy = isinstance(value, (str, list, tuple, Mapping))
            quoting = wordy if quotes is None else key in quotes
            if quoting or (words and not isinstance(value, (bool, int, float))):
                continue
            yield key, value
