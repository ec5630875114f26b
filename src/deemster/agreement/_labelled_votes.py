"""Reads votes with ground truth: the items that count, in id order, their scores, and a column for each criterion."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from deemster.agreement._criterion_columns import BlockRows, CriterionColumn, Floats, Indices, build_columns
from deemster.agreement._item_clusters import Cluster, with_clusters
from deemster.agreement._verdict_classes import AbstentionModes
from deemster.datasets import Derived, RubricDataset, Votes, derive, with_ground_truth
from deemster.datasets.join_ground_truth import changed_labels
from deemster.datasets.judge_selection import select_judges
from deemster.errors import InputError, Issue, did_you_mean, list_names, plural, visible
from deemster.formats.json_values import name_kind
from deemster.rubrics import Rubric
from deemster.stats.nan_arithmetic import merge_rounded

_Readable = TypeVar("_Readable", Votes, RubricDataset)

# Codes below this one stand for failed calls; this one stands for a missing verdict.
FAILED_BELOW = -1
# The fourth powers of larger scores, which variances need, overflow.
LARGEST_SCORE = 1e90
_SAME = 1e-9


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

    def judge_place(self, name: str) -> int:
        """The place of a judge.

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
    votes = _read(result, Votes, "result", "Votes or the path of a votes file")
    warnings: list[str] = []
    if judges is not None:
        votes = _select_judges(votes, judges, warnings)

    shared_ids: frozenset[str] | None = None
    if dataset is not None:
        known = _read(dataset, RubricDataset, "dataset", "a RubricDataset, the path of one, or None")
        votes, shared_ids = _join_truth(votes, known, warnings)

    labelled = _lay_out(votes, shared_ids, modes, warnings)
    cluster = votes.cluster if cluster is None else cluster
    return labelled if cluster is None else with_clusters(labelled, cluster)


def _read(source: Any, kind: type[_Readable], argument: str, expected: str) -> _Readable:
    if kind is Votes and callable(getattr(source, "votes", None)):
        source = source.votes()
    if isinstance(source, kind):
        return source
    if not isinstance(source, (str, os.PathLike)):
        hint = " `Votes.parse` reads a map." if kind is Votes and isinstance(source, Mapping) else ""
        raise InputError(f"`{argument}` is {expected}, not {name_kind(source)}.{hint}")
    loaded: _Readable = kind.load(Path(source))
    return loaded


def _select_judges(votes: Votes, judges: Collection[str], warnings: list[str]) -> Votes:
    if isinstance(judges, str) or not isinstance(judges, Collection):
        raise InputError(f"`judges` is a list of names, not {name_kind(judges)}.")
    if not judges:
        raise InputError("`judges` names no judge; leave it out for all of them.")

    known = [judge.id for judge in votes.judges]
    issues = [Issue(_unknown_judge(name, known)) for name in dict.fromkeys(judges) if name not in known]
    if issues:
        raise InputError(issues)

    fewer, dropped = select_judges(votes, frozenset(judges))
    if dropped:
        warnings.append(
            f"recorded-dropped: what was recorded on {plural(dropped, 'item')} is the whole panel's; it is derived "
            "from the votes of the chosen judges."
        )
    return fewer


def _unknown_judge(name: str, known: Sequence[str]) -> str:
    return f"There is no judge {visible(str(name), limit=60)!r} among the votes. {did_you_mean(str(name), known)}"


def _join_truth(votes: Votes, dataset: RubricDataset, warnings: list[str]) -> tuple[Votes, frozenset[str]]:
    """The votes with the dataset's truth, and the ids that both have."""
    voted = frozenset(votes.ids)
    known = [str(item.id) for item in dataset.items]
    missing = sorted(set(known) - voted)
    extra = sorted(voted.difference(known))
    if missing:
        warnings.append(
            f"missing-items: {plural(len(missing), 'item')} of the dataset without votes: {_list_names(missing)}."
        )
    if extra:
        warnings.append(
            f"extra-items: {plural(len(extra), 'item')} of the votes not in the dataset: {_list_names(extra)}."
        )

    joined = with_ground_truth(votes, dataset)
    differing, others = changed_labels(votes, joined)
    if differing:
        which = f"{plural(differing, 'label')} of the votes on {plural(len(others), 'item')}"
        warnings.append(
            f"other-truth: {which} differ from the dataset: {_list_names(others)}; those of the dataset are used."
        )
    return joined, voted.intersection(known)


def _list_names(names: Iterable[str]) -> str:
    return list_names((visible(name, limit=60) for name in names), limit=5)


def _lay_out(
    votes: Votes, shared_ids: frozenset[str] | None, modes: AbstentionModes, warnings: list[str]
) -> LabelledVotes:
    derived = derive(votes)
    size = len(votes.ids)
    labelled = np.zeros(size, dtype=bool)
    errored = np.zeros(size, dtype=bool)
    for block, facts in zip(votes.blocks, derived, strict=True):
        # An item on which annotators differ was labelled too; left out, it would make people look more certain.
        labelled[block.items] = block.labelled | block.no_consensus.any(axis=1)
        errored[block.items] = block.errored | (facts.final.codes < FAILED_BELOW).all(axis=1)

    shared = np.ones(size, dtype=bool)
    if shared_ids is not None:
        shared = np.fromiter((name in shared_ids for name in votes.ids), dtype=bool, count=size)
    used = shared & labelled & ~errored
    _require_items(int(used.sum()), int((shared & labelled).sum()), int(shared.sum()))

    order = sorted(np.flatnonzero(used).tolist(), key=votes.ids.__getitem__)
    item_index = np.full(size, -1, dtype=np.intp)
    item_index[order] = np.arange(len(order))
    parts = _block_rows(votes, item_index, shared & labelled & errored)
    rubrics = [votes.blocks[part.block].rubric for part in parts if len(part.rows) + len(part.errored)]
    scores = _scores(derived, parts, items=len(order), judges=len(votes.judges))

    laid_out = LabelledVotes(
        votes=votes,
        derived=derived,
        ids=tuple([votes.ids[index] for index in order]),
        item_index=item_index,
        judges=tuple(judge.id for judge in votes.judges),
        columns=build_columns(votes, derived, parts, modes),
        predicted=np.ascontiguousarray(scores[:, 0]),
        true=np.ascontiguousarray(scores[:, 1]),
        judge_scores=np.ascontiguousarray(scores[:, 2:]),
        tags=tuple([votes.tags[index] for index in order]),
        clusters=None,
        clusters_of_all=None,
        mixed_rubrics=_differ(rubrics),
        warnings=(),
    )
    n_unlabelled = int((shared & ~labelled).sum())
    return replace(laid_out, warnings=(*warnings, *_warnings(laid_out, parts, n_unlabelled)))


def _require_items(used: int, labelled: int, shared: int) -> None:
    if used:
        return
    if not shared:
        raise InputError("The votes and the dataset have no item in common: ids match nowhere.")
    if not labelled:
        raise InputError(f"No item has ground truth ({plural(shared, 'item')} looked at), so nothing can be compared.")
    raise InputError(f"Every labelled item failed to be graded ({plural(labelled, 'item')}); nothing can be compared.")


def _block_rows(votes: Votes, item_index: Indices, errored: NDArray[np.bool_]) -> list[BlockRows]:
    parts = []
    for number, block in enumerate(votes.blocks):
        items = item_index[block.items]
        rows = np.flatnonzero(items >= 0)
        rows = rows[np.argsort(items[rows])]
        parts.append(BlockRows(number, rows, items[rows], np.flatnonzero(errored[block.items])))
    # By the item that comes first, so that the order of the file does not matter.
    parts.sort(key=lambda part: (int(part.items.min(initial=len(item_index))), part.block))
    return parts


def _scores(derived: Sequence[Derived], parts: Sequence[BlockRows], *, items: int, judges: int) -> Floats:
    """The scores of the final verdict, the truth and each judge, ``[items, 2 + judges]``."""
    scores = np.full((items, 2 + judges), np.nan)
    for part in parts:
        facts = derived[part.block]
        scores[part.items, 0] = facts.score[part.rows]
        scores[part.items, 1] = facts.true_score[part.rows]
        scores[part.items, 2:] = facts.judge_scores[part.rows]

    largest = float(np.nanmax(np.abs(scores), initial=0.0))
    if largest > LARGEST_SCORE:
        raise InputError(
            f"Scores reach {largest:.3g}, and their squares are more than a number can hold: use smaller weights, or "
            "leave `normalize` true."
        )
    return merge_rounded(scores)


def _differ(rubrics: Sequence[Rubric]) -> bool:
    """Whether these are several rubrics, and not one under several names."""
    return any(rubric != rubrics[0] for rubric in rubrics[1:])


def _warnings(labelled: LabelledVotes, parts: Sequence[BlockRows], n_unlabelled: int) -> Iterator[str]:
    """What a reader has to know of the votes, each led by its code."""
    if n_unlabelled:
        yield f"no-truth: {plural(n_unlabelled, 'item')} without ground truth left out."
    if n_errored := sum(len(part.errored) for part in parts):
        yield f"errored-items: grading failed on {plural(n_errored, 'labelled item')}; they count only as not covered."
    if n_failed := sum(int(((column.final < FAILED_BELOW) & (column.truth >= 0)).sum()) for column in labelled.columns):
        yield f"failed-cells: every call failed on {plural(n_failed, 'labelled cell')} of other items; left out."
    if n_tied := sum(int(labelled.votes.blocks[part.block].no_consensus[part.rows].sum()) for part in parts):
        yield f"no-consensus: annotators are tied on {plural(n_tied, 'cell')}; they count only as not covered."
    if n_differing := sum(_differing_records(labelled, part) for part in parts):
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


def _differing_records(labelled: LabelledVotes, part: BlockRows) -> int:
    """On how many rows of a block the recorded verdicts or score differ from what the votes give."""
    block = labelled.votes.blocks[part.block]
    facts = labelled.derived[part.block]

    recorded = block.recorded_final.codes[part.rows]
    has_other_verdict = ((recorded != -1) & (recorded != facts.derived_final.codes[part.rows])).any(axis=1)
    for place, numbers in block.recorded_final.numbers.items():
        distance = np.abs(numbers[part.rows] - facts.derived_final.numbers[place][part.rows])
        has_other_verdict |= distance > _SAME

    score = block.recorded_score[part.rows]
    has_other_score = ~np.isnan(score) & ~(np.abs(score - facts.derived_score[part.rows]) <= _SAME)
    return int((has_other_verdict | has_other_score).sum())
