"""Corrects the comparison of two runs by labels of people on the outputs of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.comparison.compare_columns import ComparisonSettings, comparable_metrics
from deemster.comparison.comparison import Comparison
from deemster.comparison.judged_outputs import find_judge_change
from deemster.datasets.human_labels import HumanLabel, LabelKind, join_labels, label_kind, labels_by_subject
from deemster.errors import ConfigurationError, DatasetError, Issue, did_you_mean
from deemster.results.compared_numbers import CorrectedComparison
from deemster.results.metric_summary import SCORED
from deemster.results.run_columns import RunColumns, join_samples
from deemster.runs.run_labels import VIEWER, read_run_labels
from deemster.stats import LabelledSide, corrected_difference
from deemster.stats.confidence_interval import interval_ends

if TYPE_CHECKING:
    from deemster.comparison.run_source import RunSource


def use_labels(
    comparison: Comparison,
    runs: tuple[RunSource, RunSource],
    labels: str | Path | Sequence[str | Path],
    *,
    settings: ComparisonSettings,
    warn: Callable[[str], None],
) -> Comparison:
    """A comparison that knows labels of people: its difference is corrected, or its two judges are held against them.

    Args:
        comparison: The comparison.
        runs: The runs.
        labels: A sheet for each run in their order, or `viewer`; where both have the same outputs, sheets of these.
        settings: How they are compared.
        warn: Gets a warning where labels are left out, or were not drawn at random.

    Raises:
        DatasetError: Labels cannot be read or used.
        ConfigurationError: There are not the labels that a corrected comparison needs.
        StoreError: A run cannot be read.
    """
    if comparison.judge_change is None:
        both = read_both_labels(labels, runs, warn=warn)
        return msgspec.structs.replace(comparison, corrected=compare_labels(*runs, both, settings=settings))

    files = [labels] if isinstance(labels, (str, Path)) else labels
    sheets = [label for file in files if file != VIEWER for label in read_run_labels(file, None, warn=warn)]
    change = find_judge_change(*runs, settings=settings, labels=[*sheets, *labels_in_viewer(*runs)])
    return msgspec.structs.replace(comparison, judge_change=change)


def labels_in_viewer(*runs: RunSource) -> Iterator[HumanLabel]:
    """The labels of samples drawn at random that people gave some runs in the viewer; none where there are none.

    Raises:
        StoreError: They cannot be read.
    """
    for run in runs:
        if run.stored is None or not any(label.verdict is not None for label in run.stored[0].labels(run.stored[1])):
            continue
        labels = read_run_labels(VIEWER, run.stored, warn=lambda _: None)
        # A label of another shape, such as an option, is about something else than the metric as a whole.
        yield from (label for label in labels if label.is_drawn and isinstance(label.verdict, float))


def read_both_labels(
    labels: str | Path | Sequence[str | Path], runs: tuple[RunSource, RunSource], *, warn: Callable[[str], None]
) -> tuple[list[HumanLabel], list[HumanLabel]]:
    """The labels of the outputs of two runs.

    Args:
        labels: A sheet for each run in their order, or `viewer`, which has those of both.
        runs: The runs.
        warn: Gets a warning where labels are left out, or were not drawn at random.

    Raises:
        ConfigurationError: There is not one for each, or a report is to have labels of the viewer.
        DatasetError: A sheet cannot be read, or nobody has labelled a run in the viewer.
        StoreError: They cannot be read.
    """
    files = [labels] if isinstance(labels, (str, Path)) else list(labels)
    files = [VIEWER, VIEWER] if files == [VIEWER] else files
    if len(files) != len(runs):
        raise ConfigurationError("Give `--labels` twice: a sheet of the baseline, then one of the candidate.")
    before, after = (read_run_labels(file, run.stored, warn=warn) for file, run in zip(files, runs, strict=True))
    return before, after


def compare_labels(
    baseline: RunSource,
    candidate: RunSource,
    labels: tuple[Sequence[HumanLabel], Sequence[HumanLabel]],
    *,
    settings: ComparisonSettings,
) -> dict[str, CorrectedComparison]:
    """The difference of two runs in each metric that has labels on both, corrected by them.

    Args:
        baseline: The run before.
        candidate: The run now.
        labels: The labels of the outputs of each.
        settings: The level of the intervals.

    Raises:
        DatasetError: A label is about an unknown sample or metric, or is no label; all are listed.
        ConfigurationError: No metric has labels on both runs, people gave options, or a run has no label of a sample
            that was drawn at random.
        ReportError: The runs do not hold what the comparison needs.
        StoreError: A run cannot be read.
    """
    if not all(label.is_drawn for side in labels for label in side):
        message = "Labels of picked samples cannot correct a comparison: label samples that are drawn at random."
        raise ConfigurationError(message)
    declared = candidate.cluster if candidate.cluster == baseline.cluster else None
    runs = baseline.columns(cluster=None), candidate.columns(cluster=settings.cluster or declared)
    compared, _ = comparable_metrics(*runs)
    default = compared[0] if len(compared) == 1 else None
    names = {card.name: card.name for card in runs[1].marks.cards}
    before, after = (labels_by_subject(side, names, default=default) for side in labels)
    both = [name for name in compared if name in before and name in after]
    if not both:
        raise ConfigurationError("A corrected comparison needs labels of one metric on the outputs of both runs.")
    joined = join_samples(*runs)
    places = joined.before, joined.after
    clusters = None if runs[1].clusters is None else [repr(runs[1].clusters[place]) for place in joined.after.tolist()]
    found = {}
    for name in both:
        kind = label_kind([*before[name], *after[name]])
        sides = [
            _side(run, at, name, own, kind)
            for run, at, own in zip(runs, places, (before[name], after[name]), strict=True)
        ]
        found[name] = _compare(sides[0], sides[1], clusters, kind, settings.confidence)
    return found


class _Side(NamedTuple):
    """One run in one metric: its numbers, where it has some, and its labels."""

    values: NDArray[np.float64]
    known: NDArray[np.bool_]
    labelled: dict[int, tuple[float, float, float | None]]


def _side(
    run: RunColumns, places: NDArray[np.int64], name: str, labels: Sequence[HumanLabel], kind: LabelKind
) -> _Side:
    column = next(at for at, card in enumerate(run.marks.cards) if card.name == name)
    scored = run.marks.causes[:, :, column] == SCORED
    marks = run.marks.scores if kind == "score" else run.marks.passed
    numbers = np.where(scored, marks[:, :, column], 0.0)
    counts = np.maximum(scored.sum(axis=1), 1)
    means = np.asarray(numbers.sum(axis=1) / counts)
    everywhere = run.ids(list(range(run.marks.samples)))
    positions = {sample: place for place, sample in enumerate(everywhere)}
    unknown = {label.id: label for label in labels if label.id not in positions}
    if unknown:
        raise DatasetError(
            Issue(f"The run `{run.run.id}` has no sample `{one.id}`. {did_you_mean(one.id, positions)}", one.where)
            for one in unknown.values()
        )
    joined = {int(position): place for place, position in enumerate(places.tolist())}
    labelled: dict[int, list[tuple[float, float, float | None]]] = {}
    for (sample, repetition), said in join_labels(labels, kind).items():
        position = positions[sample]
        if isinstance(said.truth, float) and position in joined and scored[position, repetition]:
            found = said.truth, float(numbers[position, repetition]), said.probability
            labelled.setdefault(joined[position], []).append(found)
    once = {place: _once(found) for place, found in labelled.items()}
    return _Side(means[places], scored.any(axis=1)[places], once)


def _once(repetitions: Sequence[tuple[float, float, float | None]]) -> tuple[float, float, float | None]:
    """The labels of the repetitions of a sample as one: the mean of what people and the judge say."""
    truths, scores, chances = zip(*repetitions, strict=True)
    return sum(truths) / len(truths), sum(scores) / len(scores), chances[0]


def _compare(
    before: _Side, after: _Side, clusters: Sequence[str] | None, kind: LabelKind, confidence: float
) -> CorrectedComparison:
    """The corrected difference over the samples that both runs scored."""
    both = np.flatnonzero(before.known & after.known)
    order = {int(place): at for at, place in enumerate(both.tolist())}
    sides = []
    for side in (before, after):
        own = [(order[place], *side.labelled[place]) for place in sorted(side.labelled) if place in order]
        chances = [chance for *_, chance in own if chance is not None]
        sides.append(
            LabelledSide(
                side.values[both],
                [at for at, *_ in own],
                [truth for _, truth, *_ in own],
                [judged for _, _, judged, _ in own],
                [1 / chance for chance in chances] if own and len(chances) == len(own) else None,
            )
        )
    units = None if clusters is None else [clusters[place] for place in both.tolist()]
    found = corrected_difference(*sides, units=units, confidence=confidence)
    return CorrectedComparison(
        number="mean" if kind == "score" else "pass-rate",
        n=len(both),
        labels=found.labels,
        naive=found.naive,
        difference=found.value,
        interval=interval_ends(found.interval),
        error_difference=found.error_difference,
        error_interval=interval_ends(found.error_interval),
        is_error_different=found.is_error_different,
    )
