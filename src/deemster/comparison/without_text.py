"""Reports, comparisons and rankings without text: what `--without-text` leaves out, and what stays.

No input, output, expected text, reason, message or value of metadata is left, nor a hash or fingerprint from which a
short text could be guessed. Ids, tags, names of metrics, scores, counts, causes, and numbers in details stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

from deemster.comparison.compared_sample import ComparedSample
from deemster.comparison.comparison import Comparison
from deemster.comparison.experiment import Experiment
from deemster.comparison.judge_change import JudgeChange
from deemster.comparison.ranking import Ranking
from deemster.datasets import SelectedPart
from deemster.formats.streamed_list import Stream, map_stream
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
from deemster.results import SampleEntry
from deemster.results.metric_summary import RunMetricSummary
from deemster.results.run_columns import ComparedRun
from deemster.results.sample_changes import SampleChange

WITHOUT_TEXT = PrivacyEntry(
    "without-text",
    (
        "samples.row_hash",
        "dataset.fingerprint",
        "samples.input",
        "samples.expected_output",
        "executions.output",
        "executions.retrieved",
        "executions.trajectory",
        "quoting details",
        "messages",
        "other details than numbers and booleans",
    ),
)
# Levels that files have; those between the first and the last were written by earlier versions, the strictest last.
LEVELS = ("default", "outputs", "expected", "all", "publish-safe", WITHOUT_TEXT.level)

# What may be shown of a run. Every other field of it is left out: a new one is private until it stands here.
PUBLIC_OF_RUN = frozenset(
    ("id", "suite", "status", "reason", "started_at", "finished_at", "duration_s", "seed", "varied")
)

Quotes: TypeAlias = Callable[[str], frozenset[str] | None]


def report_without_text(report: Report, *, quotes: Quotes) -> Report:
    """A report that holds no text of samples, outputs and judges.

    Args:
        report: The report.
        quotes: Says by a metric's name which of its details may repeat text of a sample or output; None for all.
    """
    remover = TextRemover(quotes)
    samples, executions, failures = report.samples, report.executions, report.failure_list
    return msgspec.structs.replace(
        report,
        run=_run_without_words(report.run),
        metrics=_metrics_without_words(report.metrics),
        privacy=WITHOUT_TEXT,
        dataset=msgspec.structs.replace(report.dataset, fingerprint=None),
        samples=map_stream(samples, remover.sample),
        executions=map_stream(executions, remover.execution),
        failure_list=map_stream(failures, remover.failure),
    )


def comparison_without_text(comparison: Comparison, *, quotes: Quotes) -> Comparison:
    """A comparison that holds no text of samples, outputs and judges.

    Args:
        comparison: The comparison.
        quotes: Says by a metric's name which of its details may repeat text of a sample or output; None for all.
    """
    remover = TextRemover(quotes)
    changes = comparison.changes
    return msgspec.structs.replace(
        comparison,
        privacy=WITHOUT_TEXT,
        baseline=_compared_without_words(comparison.baseline),
        candidate=_compared_without_words(comparison.candidate),
        changes=Stream(lambda: map(_without_hash, changes)),
        examples=tuple(map(remover.example, comparison.examples)),
        judge_change=_judges_without_words(comparison.judge_change, remover),
    )


def ranking_without_text(ranking: Ranking) -> Ranking:
    """A ranking that holds no names that its author gave to runs; it has no text of samples."""
    runs = (msgspec.structs.replace(entry, run=_compared_without_words(entry.run)) for entry in ranking.runs)
    return msgspec.structs.replace(ranking, runs=tuple(runs))


def experiment_without_text(experiment: Experiment) -> Experiment:
    """An experiment that holds no text; the names of its variants stay, as those of metrics do."""
    ranking = ranking_without_text(experiment.ranking)
    named = (
        msgspec.structs.replace(entry, run=msgspec.structs.replace(entry.run, label=variant.name))
        for entry, variant in zip(ranking.runs, experiment.variants, strict=True)
    )
    return msgspec.structs.replace(
        experiment,
        ranking=msgspec.structs.replace(ranking, runs=tuple(named)),
        missing=tuple(msgspec.structs.replace(variant, reason="it has no run") for variant in experiment.missing),
    )


def join_privacy(first: PrivacyEntry, second: PrivacyEntry) -> PrivacyEntry:
    """What is left out of something that is made of two documents."""
    level = max(first.level, second.level, key=LEVELS.index)
    removed = {*first.removed, *second.removed}
    return PrivacyEntry(level, tuple(name for name in WITHOUT_TEXT.removed if name in removed))


def is_known_privacy(privacy: PrivacyEntry) -> bool:
    """Whether this version, or an earlier one, leaves out such a thing."""
    return privacy.level in LEVELS and set(privacy.removed) <= set(WITHOUT_TEXT.removed)


def _judges_without_words(change: JudgeChange | None, remover: TextRemover) -> JudgeChange | None:
    """A change of judge whose flips have no text."""
    if change is None:
        return None
    metrics = {
        name: msgspec.structs.replace(metric, flips=tuple(map(remover.example, metric.flips)))
        for name, metric in change.metrics.items()
    }
    return msgspec.structs.replace(change, metrics=metrics)


def _without_hash(change: SampleChange) -> SampleChange:
    return msgspec.structs.replace(change, row_hash=None)


def _compared_without_words(run: ComparedRun) -> ComparedRun:
    """A run without its fingerprint, label and target, and without what selected its part."""
    return msgspec.structs.replace(run, fingerprint=None, label=None, target=None, part=_unselected(run.part))


def _run_without_words(run: RunEntry) -> RunEntry:
    """A run without what is private, and without what selected its part, such as values of metadata."""
    private = dict.fromkeys(name for name in run.__struct_fields__ if name not in PUBLIC_OF_RUN)
    return msgspec.structs.replace(run, **{**private, "part": _unselected(run.part)})


def _unselected(part: SelectedPart | None) -> SelectedPart | None:
    """A part without what selected it."""
    return None if part is None else msgspec.structs.replace(part, selection=None)


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


class TextRemover:
    """Copies entries without their texts.

    Args:
        quotes: Says by a metric's name which of its details may repeat text; None for all.
    """

    def __init__(self, quotes: Quotes) -> None:
        self.quotes = quotes

    def sample(self, entry: SampleEntry) -> SampleEntry:
        """A sample with its figures."""
        return msgspec.structs.replace(entry, input=None, expected_output=None, row_hash=None)

    def example(self, example: ComparedSample) -> ComparedSample:
        """A sample of a comparison, with what either run answered."""
        baseline, candidate = (
            None if entry is None else self.execution(entry) for entry in (example.baseline, example.candidate)
        )
        return msgspec.structs.replace(
            example, input=None, expected_output=None, baseline=baseline, candidate=candidate
        )

    def execution(self, entry: ExecutionEntry) -> ExecutionEntry:
        """A sample in one repetition."""
        marks = {name: self._mark(name, mark) for name, mark in entry.marks.items()}
        return msgspec.structs.replace(entry, marks=marks, output=None, retrieved=None, trajectory=None)

    def failure(self, entry: FailureEntry) -> FailureEntry:
        """A mark that could not be made."""
        return msgspec.structs.replace(entry, message=None)

    def _mark(self, name: str, mark: MarkEntry) -> MarkEntry:
        if isinstance(mark, ScoreEntry):
            return msgspec.structs.replace(mark, details=dict(self._numbers(name, mark.details)))
        return UnscoredEntry(unscored=UnscoredReason(mark.unscored.cause, None), usage=mark.usage)

    def _numbers(self, name: str, details: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """The numbers in the details of a score."""
        quotes = self.quotes(name)
        if quotes is None:
            # Nobody said what this metric's details repeat, and even their names may be text from data.
            return
        for key, value in details.items():
            if key not in quotes and isinstance(value, (bool, int, float)):
                yield key, value
