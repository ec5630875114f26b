"""What a reader has to know of votes that are compared with a truth: warnings, each led by its code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from deemster.agreement._criterion_columns import BlockRows, is_failed
from deemster.datasets import RubricDataset, Votes
from deemster.datasets.join_ground_truth import changed_labels
from deemster.errors import list_names, plural, visible
from deemster.rubrics.verdicts import MISSING

if TYPE_CHECKING:
    from deemster.agreement._labelled_votes import LabelledVotes

_SAME = 1e-9


def judge_warnings(n_dropped: int) -> Iterator[str]:
    """What some judges, chosen from a panel, mean for the items whose record was that of the whole panel."""
    if n_dropped:
        yield (
            f"recorded-dropped: what was recorded on {plural(n_dropped, 'item')} is the whole panel's; it is derived "
            "from the votes of the chosen judges."
        )


def join_warnings(votes: Votes, dataset: RubricDataset, joined: Votes) -> Iterator[str]:
    """Where votes and the dataset that has their truth differ: items of one alone, and labels."""
    dataset_ids = [str(item.id) for item in dataset.items]
    if missing := sorted(set(dataset_ids).difference(votes.ids)):
        yield f"missing-items: {plural(len(missing), 'item')} of the dataset without votes: {_list_ids(missing)}."
    if extra := sorted(set(votes.ids).difference(dataset_ids)):
        yield f"extra-items: {plural(len(extra), 'item')} of the votes not in the dataset: {_list_ids(extra)}."

    n_changed, relabelled_ids = changed_labels(votes, joined)
    if n_changed:
        labels = f"{plural(n_changed, 'label')} of the votes on {plural(len(relabelled_ids), 'item')}"
        differing = f"{labels} differ from the dataset: {_list_ids(relabelled_ids)}"
        yield f"other-truth: {differing}; those of the dataset are used."


def layout_warnings(labelled: LabelledVotes, blocks: Sequence[BlockRows], n_unlabelled: int) -> Iterator[str]:
    """What is left out of the votes, what stands in place of what, and where items differ in their rubrics."""
    if n_unlabelled:
        yield f"no-truth: {plural(n_unlabelled, 'item')} without ground truth left out."
    if n_errored := sum(len(block_rows.errored) for block_rows in blocks):
        yield f"errored-items: grading failed on {plural(n_errored, 'labelled item')}; they count only as not covered."
    if n_failed := sum(int((is_failed(column.final) & (column.truth >= 0)).sum()) for column in labelled.columns):
        yield f"failed-cells: every call failed on {plural(n_failed, 'labelled cell')} of other items; left out."

    if n_tied := sum(
        int(labelled.votes.blocks[block_rows.block].no_consensus[block_rows.rows].sum()) for block_rows in blocks
    ):
        yield f"no-consensus: annotators are tied on {plural(n_tied, 'cell')}; they count only as not covered."

    if n_differing := sum(_differing_records(labelled, block_rows) for block_rows in blocks):
        differing = f"on {plural(n_differing, 'item')} what was recorded differs from what the votes give"
        yield f"recorded-final: {differing}; the record is used."

    if listed := [column.name for column in labelled.columns if column.criterion.is_in_listed_order]:
        names = list_names((visible(name, limit=60) for name in listed), limit=10)
        yield (
            f"listed-order: the values of {names} neither rise nor fall from option to option, so the options are "
            "taken in the order in which they are listed. `order` gives another one, lowest first."
        )

    if labelled.mixed_rubrics:
        yield "mixed-rubrics: items have different rubrics; each criterion rests on the items that have it."


def _differing_records(labelled: LabelledVotes, block_rows: BlockRows) -> int:
    """On how many rows of a block the recorded verdicts or score differ from what the votes give."""
    block = labelled.votes.blocks[block_rows.block]
    derived = labelled.derived[block_rows.block]

    recorded = block.recorded_final.codes[block_rows.rows]
    has_other_verdict = ((recorded != MISSING) & (recorded != derived.derived_final.codes[block_rows.rows])).any(axis=1)
    for column, numbers in block.recorded_final.numbers.items():
        distance = np.abs(numbers[block_rows.rows] - derived.derived_final.numbers[column][block_rows.rows])
        has_other_verdict |= distance > _SAME

    score = block.recorded_score[block_rows.rows]
    has_other_score = ~np.isnan(score) & ~(np.abs(score - derived.derived_score[block_rows.rows]) <= _SAME)
    return int((has_other_verdict | has_other_score).sum())


def _list_ids(ids: Iterable[str]) -> str:
    return list_names((visible(name, limit=60) for name in ids), limit=5)
