"""What alignment looks at: the labelled items in id order, and a column for each criterion."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from deemster.alignment._clusters import Cluster, clusters_of
from deemster.datasets import Derived, RubricDataset, Votes, derive, with_truth
from deemster.datasets.join_ground_truth import overruled
from deemster.datasets.judge_selection import seated
from deemster.errors import InputError, Issue, counted, did_you_mean, listing, visible
from deemster.formats.json_values import kind_of
from deemster.rubrics import Criterion

Codes: TypeAlias = NDArray[np.int16]
Places: TypeAlias = NDArray[np.intp]
Floats: TypeAlias = NDArray[np.float64]
_Readable = TypeVar("_Readable", Votes, RubricDataset)

# The codes of a cell without a judgement: not there, or failed (two stand-ins).
FAILED_BELOW = -1
# Powers of larger scores, which variances and their corrections need, are more than a number can hold.
VAST = 1e90


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One criterion over the items that have it.

    Attributes:
        name: Its name, with ``#2`` and so on where different criteria share one.
        index: Its place among the columns.
        criterion: What is asked, as first met.
        rows: Places of its items in the panel, ascending.
        truth: Codes of the truth, by row.
        final: Codes of the final verdicts, by row.
        votes: Codes of the judges' votes, ``[rows, judges]``.
        worst: The code that stands for the worst case, by row: the sign of a weight may differ between rubrics.
        lost: Labelled cells on errored items, which are not among the rows.
        sources: Where it comes from: numbers of blocks, and of the criterion there.
    """

    name: str
    index: int
    criterion: Criterion
    rows: Places
    truth: Codes
    final: Codes
    votes: Codes
    worst: Codes
    lost: int
    sources: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """Labelled items that did not err, in id order, with all that is known of them.

    Attributes:
        votes: Where it comes from, truth included.
        derived: The verdicts and scores of all items of the votes, block by block.
        ids: The items.
        order: Of each item: its place in ``votes.ids``.
        place: Of each of ``votes.ids``: its place here, -1 where it is not used.
        judges: Ids of the judges.
        columns: The criteria, in order of first appearance by item id.
        predicted: Score of the final verdicts; NaN is none.
        true: Score of the truth; NaN is none.
        judge_scores: Score of each judge, ``[items, judges]``; NaN is none.
        tags: Of each item.
        clusters: Number of each item's cluster, from 0 without a gap; None where items stand alone.
        errored: Labelled items whose grading failed as a whole.
        mixed: Whether items have different rubrics.
        warnings: What a reader has to know, each led by its code.
    """

    votes: Votes
    derived: tuple[Derived, ...]
    ids: tuple[str, ...]
    order: Places
    place: Places
    judges: tuple[str, ...]
    columns: tuple[Column, ...]
    predicted: Floats
    true: Floats
    judge_scores: Floats
    tags: tuple[tuple[str, ...], ...]
    clusters: Places | None
    errored: int
    mixed: bool
    warnings: tuple[str, ...]

    @property
    def unit(self) -> str:
        """What a bootstrap draws."""
        return "item" if self.clusters is None else "cluster"

    @property
    def n_units(self) -> int:
        """How many units a bootstrap draws from."""
        return len(self.ids) if self.clusters is None else int(self.clusters.max()) + 1


class Graded(Protocol):
    """What holds votes, as a `Grading` does, which lives in a room above."""

    def votes(self) -> Votes:
        """The votes."""
        ...


def panel(
    result: Votes | Graded | str | Path,
    dataset: RubricDataset | str | Path | None = None,
    *,
    cluster: Cluster | None = None,
    judges: Collection[str] | None = None,
) -> Panel:
    """Match votes with their truth and lay them out by criterion.

    Args:
        result: Votes, a grading, or the path of a votes file.
        dataset: Where the truth comes from; None where the votes carry it.
        cluster: A metadata key, or the cluster of each item by id.
        judges: The judges that make up the panel; None for all.

    Raises:
        InputError: No item has a truth and a grading, an item has no cluster, there is no such judge, or a file cannot
            be used.
    """
    votes = _read(result, Votes, "result", "Votes or the path of a votes file")
    notes: list[str] = []
    if judges is not None:
        votes = _reduced(votes, judges, notes)
    held: frozenset[str] | None = None
    if dataset is not None:
        known = _read(dataset, RubricDataset, "dataset", "a RubricDataset, the path of one, or None")
        votes, held = _joined(votes, known, notes)
    bare = _laid_out(votes, held, notes)
    if cluster is None:
        return bare
    clusters = clusters_of(bare.ids, [bare.votes.metadata[place] for place in bare.order.tolist()], cluster)
    groups = int(clusters.max()) + 1
    if groups < 20:
        few = f"few-clusters: {counted(groups, 'cluster')} only; intervals from fewer than 20 are too narrow."
        bare = replace(bare, warnings=(*bare.warnings, few))
    return replace(bare, clusters=clusters)


def _read(source: Any, kind: type[_Readable], argument: str, expected: str) -> _Readable:
    if kind is Votes and callable(getattr(source, "votes", None)):
        source = source.votes()
    if isinstance(source, kind):
        return source
    if not isinstance(source, (str, os.PathLike)):
        hint = " `Votes.parse` reads a map." if kind is Votes and isinstance(source, Mapping) else ""
        raise InputError(f"`{argument}` is {expected}, not {kind_of(source)}.{hint}")
    found: _Readable = kind.load(Path(source))
    return found


def _reduced(votes: Votes, judges: Collection[str], notes: list[str]) -> Votes:
    if isinstance(judges, str) or not isinstance(judges, Collection):
        raise InputError(f"`judges` is a list of names, not {kind_of(judges)}.")
    if not judges:
        raise InputError("`judges` names no judge; leave it out for all of them.")
    known = [judge.id for judge in votes.judges]
    issues = [
        f"There is no judge {visible(str(name), limit=60)!r} among the votes. {did_you_mean(str(name), known)}"
        for name in dict.fromkeys(judges)
        if name not in known
    ]
    if issues:
        raise InputError([Issue(message) for message in issues])
    fewer, dropped = seated(votes, frozenset(judges))
    if dropped:
        notes.append(
            f"recorded-dropped: what was recorded on {counted(dropped, 'item')} is the whole panel's; it is derived "
            "from the votes of the chosen judges."
        )
    return fewer


def _joined(votes: Votes, dataset: RubricDataset, notes: list[str]) -> tuple[Votes, frozenset[str]]:
    here, there = frozenset(votes.ids), [str(item.id) for item in dataset.items]
    missing = sorted(set(there) - here)
    extra = sorted(here.difference(there))
    if missing:
        notes.append(f"missing-items: {counted(len(missing), 'item')} of the dataset without votes: {_named(missing)}.")
    if extra:
        notes.append(f"extra-items: {counted(len(extra), 'item')} of the votes not in the dataset: {_named(extra)}.")
    joined = with_truth(votes, dataset)
    differing, others = overruled(votes, joined)
    if differing:
        which = f"{counted(differing, 'label')} of the votes on {counted(len(others), 'item')}"
        notes.append(f"other-truth: {which} differ from the dataset: {_named(others)}; the dataset's count.")
    return joined, here.intersection(there)


def _named(names: Iterable[str]) -> str:
    return listing((visible(name, limit=60) for name in names), limit=5)


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """The used items of one block in id order: their rows in it and their places in the panel; and the lost ones."""

    block: int
    inside: Places
    outside: Places
    lost: Places


def _laid_out(votes: Votes, held: frozenset[str] | None, notes: list[str]) -> Panel:
    derived = derive(votes)
    size = len(votes.ids)
    labelled, errored = np.zeros(size, dtype=bool), np.zeros(size, dtype=bool)
    for block, facts in zip(votes.blocks, derived, strict=True):
        labelled[block.items] = block.labelled
        errored[block.items] = block.errored | (facts.final < FAILED_BELOW).all(axis=1)
    shared = np.ones(size, dtype=bool)
    if held is not None:
        shared = np.fromiter((name in held for name in votes.ids), dtype=bool, count=size)
    used = shared & labelled & ~errored
    _refuse_nothing(int(used.sum()), int((shared & labelled).sum()), int(shared.sum()))
    ids = votes.ids
    order = np.array(sorted(np.flatnonzero(used).tolist(), key=ids.__getitem__), dtype=np.intp)
    rank = np.full(size, -1, dtype=np.intp)
    rank[order] = np.arange(len(order))
    lost = shared & labelled & errored
    parts = []
    for number, block in enumerate(votes.blocks):
        outside = rank[block.items]
        inside = np.flatnonzero(outside >= 0)
        inside = inside[np.argsort(outside[inside])]
        parts.append(_Rows(number, inside, outside[inside], np.flatnonzero(lost[block.items])))
    # By the item that comes first, so that the order of the file does not matter.
    parts.sort(key=lambda part: (int(part.outside.min(initial=size)), part.block))
    scores = np.full((len(order), 2 + len(votes.judges)), np.nan)
    for part in parts:
        facts = derived[part.block]
        scores[part.outside, 0] = facts.score[part.inside]
        scores[part.outside, 1] = facts.true_score[part.inside]
        scores[part.outside, 2:] = facts.judge_scores[part.inside]
    _refuse_vast(scores)
    whole = Panel(
        votes=votes,
        derived=derived,
        ids=tuple([ids[place] for place in order.tolist()]),
        order=order,
        place=rank,
        judges=tuple(judge.id for judge in votes.judges),
        columns=_columns(votes, [facts.final for facts in derived], parts),
        predicted=np.ascontiguousarray(scores[:, 0]),
        true=np.ascontiguousarray(scores[:, 1]),
        judge_scores=np.ascontiguousarray(scores[:, 2:]),
        tags=tuple([votes.tags[place] for place in order.tolist()]),
        clusters=None,
        errored=int(lost.sum()),
        mixed=sum(len(part.inside) + len(part.lost) > 0 for part in parts) > 1,
        warnings=(),
    )
    unlabelled = int((shared & ~labelled).sum())
    return replace(whole, warnings=(*notes, *_warnings(whole, parts, unlabelled)))


def _refuse_nothing(used: int, labelled: int, shared: int) -> None:
    if used:
        return
    if not shared:
        raise InputError("The votes and the dataset have no item in common: ids match nowhere.")
    if not labelled:
        raise InputError(f"No item has ground truth ({counted(shared, 'item')} looked at), so nothing can be compared.")
    raise InputError(f"Every labelled item failed to be graded ({counted(labelled, 'item')}); nothing can be compared.")


def _refuse_vast(scores: Floats) -> None:
    largest = float(np.nanmax(np.abs(scores), initial=0.0))
    if largest > VAST:
        raise InputError(
            f"Scores reach {largest:.3g}, and their squares are more than a number can hold: use smaller weights, or "
            "leave `normalize` true."
        )


def _identity(criterion: Criterion) -> tuple[Any, ...]:
    """What makes a criterion of two rubrics the same; values and places belong to the labels."""
    return (
        criterion.name,
        criterion.requirement,
        criterion.kind,
        criterion.labels,
        criterion.values,
        criterion.positions,
        criterion.abstentions,
    )


def _columns(votes: Votes, finals: Sequence[Codes], parts: list[_Rows]) -> tuple[Column, ...]:
    found: dict[tuple[Any, ...], list[tuple[_Rows, int]]] = {}
    cells: dict[int, tuple[Codes, Codes, Codes]] = {}
    for part in parts:
        if len(part.inside) + len(part.lost):
            block = votes.blocks[part.block]
            # Criterion by criterion in memory, in one pass over each array.
            cells[part.block] = (
                np.ascontiguousarray(block.truth[part.inside].T),
                np.ascontiguousarray(finals[part.block][part.inside].T),
                np.ascontiguousarray(block.votes[part.inside].transpose(1, 0, 2)),
            )
            for place, criterion in enumerate(block.rubric.criteria):
                found.setdefault(_identity(criterion), []).append((part, place))
    given = {name for name, *_ in found}
    taken: set[str] = set()
    columns = []
    for index, sources in enumerate(found.values()):
        first, place = sources[0]
        criterion = votes.blocks[first.block].rubric.criteria[place]
        name, count = criterion.name, 1
        while name in taken or (count > 1 and name in given):
            count += 1
            name = f"{criterion.name} #{count}"
        taken.add(name)
        columns.append(_column(votes, cells, sources, (name, index, criterion)))
    return tuple(columns)


def _column(
    votes: Votes,
    cells: Mapping[int, tuple[Codes, Codes, Codes]],
    sources: list[tuple[_Rows, int]],
    what: tuple[str, int, Criterion],
) -> Column:
    truth: list[Codes] = []
    final: list[Codes] = []
    cast: list[Codes] = []
    worst: list[Codes] = []
    lost = 0
    for part, place in sources:
        block = votes.blocks[part.block]
        for side, each in zip((truth, final, cast), cells[part.block], strict=True):
            side.append(each[place])
        worst.append(np.full(len(part.inside), block.rubric.criteria[place].worst, dtype=np.int16))
        lost += int((block.truth[part.lost, place] >= 0).sum())
    where = np.concatenate([part.outside for part, _ in sources])
    order: Any = np.argsort(where, kind="stable") if len(sources) > 1 else slice(None)
    name, index, criterion = what
    return Column(
        name=name,
        index=index,
        criterion=criterion,
        rows=where[order],
        truth=np.concatenate(truth)[order],
        final=np.concatenate(final)[order],
        votes=np.concatenate(cast)[order],
        worst=np.concatenate(worst)[order],
        lost=lost,
        sources=tuple((part.block, place) for part, place in sources),
    )


def _warnings(whole: Panel, parts: list[_Rows], unlabelled: int) -> list[str]:
    notes = []
    if unlabelled:
        notes.append(f"no-truth: {counted(unlabelled, 'item')} without ground truth left out.")
    if whole.errored:
        notes.append(f"errored-items: grading failed on {counted(whole.errored, 'labelled item')}; in coverage only.")
    failed = sum(int(((column.final < FAILED_BELOW) & (column.truth >= 0)).sum()) for column in whole.columns)
    if failed:
        notes.append(f"failed-cells: every call failed on {counted(failed, 'labelled cell')} of other items; left out.")
    ties = differing = 0
    for part in parts:
        block, facts = whole.votes.blocks[part.block], whole.derived[part.block]
        ties += int(block.no_consensus[part.inside].sum())
        recorded, score = block.recorded_final[part.inside], block.recorded_score[part.inside]
        other = ((recorded != -1) & (recorded != facts.derived_final[part.inside])).any(axis=1)
        own = facts.derived_score[part.inside]
        apart = ~np.isnan(score) & ~(np.abs(score - own) <= 1e-9)
        differing += int((other | apart).sum())
    if ties:
        notes.append(f"no-consensus: annotators are tied on {counted(ties, 'cell')}; unlabelled there.")
    if differing:
        notes.append(
            f"recorded-final: on {counted(differing, 'item')} what was recorded differs from what the votes give; "
            "the record is used."
        )
    if whole.mixed:
        notes.append("mixed-rubrics: items have different rubrics; each criterion rests on the items that have it.")
    return notes
