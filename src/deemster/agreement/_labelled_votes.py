"""Reads votes with ground truth: the items that count, in id order, their scores, and a column for each criterion."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from deemster.agreement._criterion_columns import BlockRows, CriterionColumn, Floats, Indices, build_columns, is_failed
from deemster.agreement._item_clusters import Cluster, with_clusters
from deemster.agreement._verdict_classes import AbstentionModes
from deemster.agreement._vote_warnings import join_warnings, judge_warnings, layout_warnings
from deemster.datasets import Derived, RubricDataset, Votes, derive, with_ground_truth
from deemster.datasets.judge_selection import select_judges
from deemster.errors import InputError, Issue, did_you_mean, plural, visible
from deemster.formats.json_values import name_kind
from deemster.rubrics import Rubric
from deemster.stats.nan_arithmetic import merge_rounded

_Readable = TypeVar("_Readable", Votes, RubricDataset)

# The fourth powers of larger scores, which variances need, overflow.
_LARGEST_SCORE = 1e90


@dataclass(frozen=True, slots=True, eq=False)
class LabelledVotes:
    """The items with a truth and a grading, in id order, and all that is known of them.

    Attributes:
        votes: Where they come from, truth included.
        derived: The verdicts and scores of all items of the votes, block by block.
        ids: The items.
        item_index: For each of ``votes.ids`` its place in ``ids``; -1 where it is not used.
        judges: Ids of the judges.
        columns: The criteria, in order of first appearance by item id.
        predicted: Score of the final verdicts; NaN is none.
        true: Score of the truth; NaN is none.
        judge_scores: Score of each judge, ``[items, judges]``; NaN is none.
        tags: The tags of each item.
        clusters: The number of each item's cluster, from 0 without a gap; None where items stand alone.
        clusters_of_all: That of each of ``votes.ids``; further ones for clusters of which no item is used.
        mixed_rubrics: Whether items have different rubrics.
        warnings: What a reader has to know, each led by its code.
    """

    votes: Votes
    derived: tuple[Derived, ...]
    ids: tuple[str, ...]
    item_index: Indices
    judges: tuple[str, ...]
    columns: tuple[CriterionColumn, ...]
    predicted: Floats
    true: Floats
    judge_scores: Floats
    tags: tuple[tuple[str, ...], ...]
    clusters: Indices | None
    clusters_of_all: Indices | None
    mixed_rubrics: bool
    warnings: tuple[str, ...]

    @property
    def unit(self) -> str:
        """The word for what a bootstrap draws."""
        if self.clusters is None:
            return "item"
        return "sample" if self.votes.cluster == "sample" else "cluster"

    @property
    def n_units(self) -> int:
        """How many units a bootstrap draws from."""
        return len(self.ids) if self.clusters is None else int(self.clusters.max()) + 1

    @property
    def unit_of_item(self) -> Indices:
        """The number of each item's resampling unit."""
        return np.arange(len(self.ids)) if self.clusters is None else self.clusters

    def judge_index(self, name: str) -> int:
        """The index of a judge.

        Raises:
            InputError: There is no such judge.
        """
        if name not in self.judges:
            raise InputError(_unknown_judge(name, self.judges))
        return self.judges.index(name)


class HasVotes(Protocol):
    """Something that holds votes, such as a `Grading`."""

    def votes(self) -> Votes:
        """The votes."""
        ...


def read_labelled_votes(
    result: Votes | HasVotes | str | Path,
    dataset: RubricDataset | str | Path | None = None,
    *,
    modes: AbstentionModes,
    cluster: Cluster | None = None,
    judges: Collection[str] | None = None,
) -> LabelledVotes:
    """Match votes with their truth and lay them out by criterion.

    Args:
        result: Votes, a grading, or the path of a votes file.
        dataset: Where the truth comes from; None where the votes carry it.
        modes: What an abstention counts as.
        cluster: A metadata key, or the cluster of each item by id; None for what the votes say.
        judges: The judges that make up the panel; None for all.

    Raises:
        InputError: No item has a truth and a grading, an item has no cluster, there is no such judge, an abstention
            shall be a class of an ordinal criterion, or a file cannot be used.
    """
    votes = _load_if_path(result, Votes, "result", "Votes or the path of a votes file")
    warnings: list[str] = []
    if judges is not None:
        votes, n_dropped = select_judges(votes, _known_judges(votes, judges))
        warnings += judge_warnings(n_dropped)

    ids = frozenset(votes.ids)
    if dataset is not None:
        truth = _load_if_path(dataset, RubricDataset, "dataset", "a RubricDataset, the path of one, or None")
        joined = with_ground_truth(votes, truth)
        warnings += join_warnings(votes, truth, joined)
        ids = ids.intersection(str(item.id) for item in truth.items)
        votes = joined

    labelled = _lay_out(votes, ids, modes, warnings)
    cluster = votes.cluster if cluster is None else cluster
    return labelled if cluster is None else with_clusters(labelled, cluster)


def _load_if_path(source: Any, kind: type[_Readable], argument: str, expected: str) -> _Readable:
    if kind is Votes and callable(getattr(source, "votes", None)):
        source = source.votes()
    if isinstance(source, kind):
        return source
    if not isinstance(source, (str, os.PathLike)):
        hint = " `Votes.parse` reads a map." if kind is Votes and isinstance(source, Mapping) else ""
        raise InputError(f"`{argument}` is {expected}, not {name_kind(source)}.{hint}")
    loaded: _Readable = kind.load(Path(source))
    return loaded


def _known_judges(votes: Votes, judges: Collection[str]) -> frozenset[str]:
    """The judges that make up the panel, once it is sure that there are such judges."""
    if isinstance(judges, str) or not isinstance(judges, Collection):
        raise InputError(f"`judges` is a list of names, not {name_kind(judges)}.")
    if not judges:
        raise InputError("`judges` names no judge; leave it out for all of them.")

    judge_ids = [judge.id for judge in votes.judges]
    issues = [Issue(_unknown_judge(name, judge_ids)) for name in dict.fromkeys(judges) if name not in judge_ids]
    if issues:
        raise InputError(issues)
    return frozenset(judges)


def _unknown_judge(name: str, judges: Sequence[str]) -> str:
    return f"There is no judge {visible(str(name), limit=60)!r} among the votes. {did_you_mean(str(name), judges)}"


class _ItemMasks(NamedTuple):
    """For each item of the votes: whether it may count, whether it is labelled, whether its grading failed."""

    eligible: NDArray[np.bool_]
    labelled: NDArray[np.bool_]
    errored: NDArray[np.bool_]

    @property
    def used(self) -> NDArray[np.bool_]:
        return self.eligible & self.labelled & ~self.errored


def _lay_out(votes: Votes, ids: Collection[str], modes: AbstentionModes, warnings: Sequence[str]) -> LabelledVotes:
    """Lay out the items of these ids that have a truth and a grading.

    Raises:
        InputError: There is none.
    """
    derived = derive(votes)
    masks = _item_masks(votes, derived, ids)
    _require_items(masks)

    order = sorted(np.flatnonzero(masks.used).tolist(), key=votes.ids.__getitem__)
    item_index = np.full(len(votes.ids), -1, dtype=np.intp)
    item_index[order] = np.arange(len(order))
    blocks = _block_rows(votes, item_index, masks.eligible & masks.labelled & masks.errored)

    rubrics = [
        votes.blocks[block_rows.block].rubric for block_rows in blocks if len(block_rows.rows) + len(block_rows.errored)
    ]
    scores = _scores(derived, blocks, items=len(order), judges=len(votes.judges))
    laid_out = LabelledVotes(
        votes=votes,
        derived=derived,
        ids=tuple([votes.ids[index] for index in order]),
        item_index=item_index,
        judges=tuple(judge.id for judge in votes.judges),
        columns=build_columns(votes, derived, blocks, modes),
        predicted=np.ascontiguousarray(scores[:, 0]),
        true=np.ascontiguousarray(scores[:, 1]),
        judge_scores=np.ascontiguousarray(scores[:, 2:]),
        tags=tuple([votes.tags[index] for index in order]),
        clusters=None,
        clusters_of_all=None,
        mixed_rubrics=_differ(rubrics),
        warnings=(),
    )

    n_unlabelled = int((masks.eligible & ~masks.labelled).sum())
    return replace(laid_out, warnings=(*warnings, *layout_warnings(laid_out, blocks, n_unlabelled)))


def _item_masks(votes: Votes, derived: Sequence[Derived], ids: Collection[str]) -> _ItemMasks:
    size = len(votes.ids)
    labelled = np.zeros(size, dtype=bool)
    errored = np.zeros(size, dtype=bool)
    for block, verdicts in zip(votes.blocks, derived, strict=True):
        # An item on which annotators differ was labelled too; left out, it would make people look more certain.
        labelled[block.items] = block.labelled | block.no_consensus.any(axis=1)
        errored[block.items] = block.errored | is_failed(verdicts.final.codes).all(axis=1)

    eligible = np.fromiter((name in ids for name in votes.ids), dtype=bool, count=size)
    return _ItemMasks(eligible, labelled, errored)


def _require_items(masks: _ItemMasks) -> None:
    n_eligible = int(masks.eligible.sum())
    n_labelled = int((masks.eligible & masks.labelled).sum())
    if not n_eligible:
        raise InputError("The votes and the dataset have no item in common: ids match nowhere.")
    if not n_labelled:
        looked_at = plural(n_eligible, "item")
        raise InputError(f"No item has ground truth ({looked_at} looked at), so nothing can be compared.")
    if not masks.used.any():
        failed = plural(n_labelled, "item")
        raise InputError(f"Every labelled item failed to be graded ({failed}); nothing can be compared.")


def _block_rows(votes: Votes, item_index: Indices, errored: NDArray[np.bool_]) -> list[BlockRows]:
    """The rows of each block that count, in the order of the items, so that the file's order does not matter."""
    blocks = []
    for number, block in enumerate(votes.blocks):
        items = item_index[block.items]
        rows = np.flatnonzero(items >= 0)
        rows = rows[np.argsort(items[rows])]
        blocks.append(BlockRows(number, rows, items[rows], np.flatnonzero(errored[block.items])))

    blocks.sort(key=lambda block_rows: (int(block_rows.items.min(initial=len(item_index))), block_rows.block))
    return blocks


def _scores(derived: Sequence[Derived], blocks: Sequence[BlockRows], *, items: int, judges: int) -> Floats:
    """The scores of the final verdict, the truth and each judge, ``[items, 2 + judges]``."""
    scores = np.full((items, 2 + judges), np.nan)
    for block_rows in blocks:
        verdicts = derived[block_rows.block]
        scores[block_rows.items, 0] = verdicts.score[block_rows.rows]
        scores[block_rows.items, 1] = verdicts.true_score[block_rows.rows]
        scores[block_rows.items, 2:] = verdicts.judge_scores[block_rows.rows]

    largest = float(np.nanmax(np.abs(scores), initial=0.0))
    if largest > _LARGEST_SCORE:
        raise InputError(
            f"Scores reach {largest:.3g}, and their squares are more than a number can hold: use smaller weights, or "
            "leave `normalize` true."
        )
    return merge_rounded(scores)


def _differ(rubrics: Sequence[Rubric]) -> bool:
    """Whether these are several rubrics, and not one under several names."""
    return any(rubric != rubrics[0] for rubric in rubrics[1:])
