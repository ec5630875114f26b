"""Inter-annotator agreement of people: the ceiling for any judge, and the judge's gap to it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deemster.agreement._annotator_sums import AnnotatorSums
from deemster.agreement._annotators import Annotators, annotator_trials_by_criterion, read_annotators
from deemster.agreement._bootstrap_replicates import BootstrapSettings, smoothed_results
from deemster.agreement._labelled_votes import LabelledVotes
from deemster.agreement.result_models import (
    BootstrapResult,
    DisputedCell,
    HumanAgreement,
    HumanCriterion,
    Intervals,
    ReferenceAgreement,
)
from deemster.rubrics.criterion import MISSING
from deemster.stats.alternative_annotator_test import FEWEST_ANNOTATORS, AlternativeAnnotator

_HEADLINES = (
    "krippendorff_alpha",
    "ceiling_accuracy",
    "ceiling_kappa",
    "panel.accuracy",
    "panel.mean_kappa",
    "accuracy_gap",
    "kappa_gap",
    "pairwise_kappa",
    "panel_pairwise_kappa",
    "pairwise_kappa_gap",
)


def human_agreement(votes: LabelledVotes, drawing: BootstrapSettings, *, epsilon: float = 0.2) -> HumanAgreement | None:
    """Measure how people agree among each other, and how far the judges are from that.

    Each annotator in turn is compared with the consensus of all others; the ceiling is the mean over annotators. The
    panel and every judge are compared with the same references, on the cells where the annotator who was left out has a
    label, and are averaged in the same way. An accuracy pools cells; a kappa is the mean over criteria. Numbers are
    compared with the mean of all others, and have their concordance in place of a kappa.

    Args:
        votes: The labelled votes.
        drawing: How units are resampled.
        epsilon: How much worse than a person the judge may be in the alternative annotator test.

    Returns:
        None with fewer than two annotators.

    Reference: L. Zheng et al., Judging LLM-as-a-judge with MT-Bench and Chatbot Arena, arXiv:2306.05685 (2023).
    """
    if not any(block.annotations for block in votes.votes.blocks):
        return None
    annotators = read_annotators(votes)
    if len(annotators.names) < 2:
        return None

    sums = AnnotatorSums(votes, annotators)
    results = smoothed_results(sums.values, units=votes.n_units, drawing=drawing)
    intervals = dict(zip(_HEADLINES, results, strict=False)) if drawing.replicates else None
    tests = None
    if len(annotators.names) >= FEWEST_ANNOTATORS:
        tests = annotator_trials_by_criterion(votes, annotators, epsilon=epsilon)
    return _build_agreement(votes, annotators, sums, results, intervals=intervals, tests=tests)


def _build_agreement(
    votes: LabelledVotes,
    annotators: Annotators,
    sums: AnnotatorSums,
    results: Sequence[BootstrapResult],
    *,
    intervals: Intervals,
    tests: dict[str, AlternativeAnnotator] | None,
) -> HumanAgreement:
    figures = (result.estimate for result in results)
    headlines = {name: next(figures) for name in _HEADLINES}
    criteria = tuple(
        HumanCriterion(
            name=column.name,
            index=column.index,
            criterion_type=column.criterion.kind,
            krippendorff_alpha=next(figures),
            n_units=criterion.n_units,
        )
        for column, criterion in zip(votes.columns, sums.criteria, strict=True)
    )

    n_pairs = [*sums.n_pairs[:, 1:].sum(axis=0).tolist(), *sums.n_pairs[:, 0].tolist()]
    panel, *others = [
        ReferenceAgreement(name=name, accuracy=next(figures), mean_kappa=next(figures), n_samples=n)
        for name, n in zip(("panel", *votes.judges, *annotators.names), n_pairs, strict=True)
    ]
    return HumanAgreement(
        n_annotators=len(annotators.names),
        n_items=_shared_items(votes, annotators),
        per_criterion=criteria,
        annotators=tuple(others[len(votes.judges) :]),
        panel=panel,
        judges=tuple(others[: len(votes.judges)]),
        n_cells=sum(criterion.n_units for criterion in sums.criteria),
        n_labelled_cells=sum(criterion.n_labelled for criterion in sums.criteria),
        disputed=_disputed_cells(votes, annotators),
        annotator_tests=tests,
        intervals=intervals,
        **{name: number for name, number in headlines.items() if "." not in name},
    )


def _disputed_cells(votes: LabelledVotes, annotators: Annotators) -> tuple[DisputedCell, ...]:
    """The cells on which annotators are tied, by item and criterion, with what each of them said."""
    cells: dict[tuple[int, int], DisputedCell] = {}
    for column in votes.columns:
        codes = annotators.labels[column.index]
        numbers = annotators.numbers[column.index]
        for row in np.flatnonzero(column.disputed).tolist():
            labels = {
                name: column.criterion.labels[code]
                for name, code in zip(annotators.names, codes[row].tolist(), strict=True)
                if code >= 0
            }
            if numbers is not None:
                stated = zip(annotators.names, numbers[row].tolist(), strict=True)
                labels |= {name: f"{number:g}" for name, number in stated if not np.isnan(number)}
            item = int(column.rows[row])
            cells[item, column.index] = DisputedCell(votes.ids[item], column.name, labels)
    return tuple(cells[key] for key in sorted(cells))


def _shared_items(votes: LabelledVotes, annotators: Annotators) -> int:
    """How many items have labels of two people or more."""
    labelled = np.zeros((len(votes.ids), len(annotators.names)), dtype=bool)
    for column in votes.columns:
        labelled[column.rows] |= annotators.labels[column.index] != MISSING
    return int((labelled.sum(axis=1) >= 2).sum())
