"""Compares two runs, or ranks more: where they are read as columns, and what is shown of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Never, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster import __version__
from deemster.comparison.compare_columns import DEFAULT_SETTINGS, ComparisonSettings, compare_columns
from deemster.comparison.compare_labels import labels_in_viewer, use_labels
from deemster.comparison.compared_sample import ComparedSample
from deemster.comparison.comparison import Comparison
from deemster.comparison.find_runs import RunSources
from deemster.comparison.judged_outputs import find_judge_change
from deemster.comparison.ranking import Ranking, rank_columns
from deemster.comparison.run_source import RunSource, with_declared_cluster
from deemster.comparison.without_text import join_privacy
from deemster.datasets import SelectedPart
from deemster.datasets.only_expression import Only, condition_text
from deemster.datasets.sample_selection import Selection, select_positions
from deemster.engine.run_sync import warner
from deemster.errors import ConfigurationError
from deemster.report import Report
from deemster.report.report_entries import ExecutionEntry, ScoreEntry
from deemster.results.sample_changes import ChangedSamples, Status

# So many samples of each status are shown with their question and both answers.
SHOWN: dict[Status, int] = {"newly_failing": 20, "newly_passing": 20, "regressed": 20, "unscored_now": 20}
_WORSE = frozenset({"newly_failing", "regressed", "unscored_now"})


def compare(
    baseline: Report | str | Path,
    candidate: Report | str | Path,
    /,
    *others: Never,
    store: str | Path | None = None,
    confidence: float = 0.95,
    margin: float | None = None,
    cluster: str | None = None,
    seed: int = 0,
    labels: str | Path | Sequence[str | Path] | None = None,
) -> Comparison:
    """Compare two runs sample by sample: is the second one worse, where, and why?

    Args:
        baseline: The run before: a report, the file of one, a run file, or a stored run by its id, name,
            `latest`, `previous` or `baseline`.
        candidate: The run now.
        others: None. ``rank`` is for more runs.
        store: The store of runs that are given by name; `.deemster/runs.db` where not given.
        confidence: The level of the intervals, and of one-sided bounds.
        margin: The drop that would still be acceptable.
        cluster: The metadata key whose equal values make one unit, such as a document or a customer.
        seed: The seed of what is drawn.
        labels: A sheet of people's labels of each run in their order, or `viewer`: the difference is corrected by them
            (`corrected`). Where the outputs are the same and the judge is not, sheets of labels of these outputs:
            both judges are held against them (`judge_change`).

    Raises:
        ReportError: The runs share no sample, or do not hold what the comparison needs.
        StoreError: A run is not there, or cannot be read.
        ConfigurationError: There are more than two runs, or no labels for each.
        DatasetError: The labels cannot be used; every issue is given with its place.
    """
    if others:
        raise ConfigurationError("`compare` is for two runs. Rank more: `dm.rank(first, second, third)`.")

    settings = ComparisonSettings(confidence=confidence, margin=margin, cluster=cluster, seed=seed)
    with RunSources(store) as sources:
        before, now = sources.find_pair(baseline, candidate)
        comparison = compare_sources(before, now, settings=settings)
        if labels is None:
            return comparison

        return use_labels(comparison, (before, now), labels, settings=settings, warn=warner())


def rank(
    first: Report | str | Path,
    second: Report | str | Path,
    /,
    *others: Report | str | Path,
    store: str | Path | None = None,
    confidence: float = 0.95,
    cluster: str | None = None,
    seed: int = 0,
) -> Ranking:
    """Rank runs by their pass-rate: which is best, and which cannot be told apart?

    Args:
        first: The run that each other one is compared with: a report, the file of one, a run file, or a stored run by
            its id, name, `latest`, `previous` or `baseline`.
        second: Another run.
        others: More runs.
        store: The store of runs that are given by name; `.deemster/runs.db` where not given.
        confidence: The level of the intervals of all runs together.
        cluster: The metadata key whose equal values make one unit, such as a document or a customer.
        seed: The seed of what is drawn.

    Raises:
        ReportError: Two of the runs share no sample, or do not hold what the comparison needs.
        StoreError: A run is not there, or cannot be read.
    """
    settings = ComparisonSettings(confidence=confidence, cluster=cluster, seed=seed)
    with RunSources(store) as sources:
        beside = sources.find(second)
        runs = [sources.find(first, beside=beside), beside, *map(sources.find, others)]
        return rank_sources(runs, settings=settings)


def rank_sources(sources: Sequence[RunSource], *, settings: ComparisonSettings = DEFAULT_SETTINGS) -> Ranking:
    """Rank three or more runs, each compared with the first and with all others.

    Args:
        sources: The runs.
        settings: How they are compared.

    Raises:
        ReportError: Two of the runs share no sample, or do not hold what the comparison needs.
        StoreError: A run cannot be read.
    """
    settings = with_declared_cluster(settings, sources)
    columns = [source.columns(cluster=settings.cluster) for source in sources]
    return rank_columns(columns, settings=settings, tool_version=__version__)


def compare_sources(
    baseline: RunSource,
    candidate: RunSource,
    *,
    settings: ComparisonSettings = DEFAULT_SETTINGS,
    only: Only | None = None,
) -> Comparison:
    """Compare two runs sample by sample.

    Args:
        baseline: The run before.
        candidate: The run now.
        settings: How they are compared.
        only: Which samples are looked at; all unless given.

    Raises:
        ReportError: The runs share no sample, or do not hold what the comparison needs.
        DatasetError: No sample of the candidate fits, or none has a tag, id or value that is asked for.
        StoreError: A run cannot be read.
    """
    # Only the candidate says which samples belong together. The columns have no other name, so that they are dropped
    # when they are no longer needed.
    settings = with_declared_cluster(settings, [candidate])
    wanted = None if only is None else _find_wanted(candidate, only)
    comparison = compare_columns(
        baseline.columns(cluster=None),
        candidate.columns(cluster=settings.cluster),
        settings=settings,
        tool_version=__version__,
        wanted=wanted,
    )
    if comparison.not_comparable:
        labels = list(labels_in_viewer(baseline, candidate))
        change = find_judge_change(baseline, candidate, settings=settings, labels=labels, wanted=wanted)
        comparison = msgspec.structs.replace(comparison, judge_change=change)
    if only is not None:
        comparison = _as_part(comparison, only)

    # A comparison that is computed, not read from a file, has its samples in a table.
    changes = cast("ChangedSamples", comparison.changes)
    return msgspec.structs.replace(
        comparison,
        examples=tuple(_examples(changes, baseline, candidate)),
        privacy=join_privacy(candidate.privacy, baseline.privacy),
    )


def _find_wanted(run: RunSource, only: Only) -> NDArray[np.int64]:
    """The positions of the samples that are wanted."""
    selection = Selection(tags=only.tags, ids=only.ids, where=only.where)
    return np.array(select_positions(run.every_sample(), selection, file=None), dtype=np.int64)


def _as_part(comparison: Comparison, only: Only) -> Comparison:
    """The comparison, whose candidate says which part of it was looked at."""
    run = comparison.candidate
    of = run.samples
    selection = condition_text(only)
    if run.part is not None:
        of = run.part.of
        if run.part.selection is not None:
            selection = f"{run.part.selection} {selection}"

    looked_at = comparison.samples.paired + comparison.samples.added
    part = SelectedPart(samples=looked_at, of=of, selection=selection)
    warning = f"Of the candidate `{run.id}` only a part is compared: {part.describe()}."
    return msgspec.structs.replace(
        comparison,
        candidate=msgspec.structs.replace(run, part=part),
        warnings=(warning, *comparison.warnings),
    )


def _examples(changes: ChangedSamples, baseline: RunSource, candidate: RunSource) -> Iterator[ComparedSample]:
    """The first samples of each status that shows a change, with what both runs answered."""
    shown = [change for status, most in SHOWN.items() for change in changes.first(status, most)]
    before = baseline.samples([change.baseline.position for change in shown if change.baseline is not None])
    after = candidate.samples([change.candidate.position for change in shown if change.candidate is not None])

    for change, (_, earlier), (sample, later) in zip(shown, before, after, strict=True):
        yield ComparedSample(
            id=sample.id,
            status=change.status,
            tags=sample.tags,
            input=sample.input,
            expected_output=sample.expected_output,
            baseline=_telling(earlier, passing=change.status in _WORSE),
            candidate=_telling(later, passing=change.status not in _WORSE),
        )


def _telling(executions: Sequence[ExecutionEntry], *, passing: bool) -> ExecutionEntry | None:
    """The first repetition that passed, or that did not; the first one where all are alike."""
    for execution in executions:
        marks = execution.marks.values()
        if all(isinstance(mark, ScoreEntry) and mark.success for mark in marks) is passing:
            return execution
    return executions[0] if executions else None
