"""Reads votes with ground truth into columns: one per criterion, items in id order, clusters."""

from __future__ import annotations

import os
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from deemster.agreement._verdict_classes import AbstentionModes, Codes, VerdictClasses, build_classes
from deemster.agreement.trust_verdict import ENOUGH_CLUSTERS
from deemster.datasets import Derived, RubricDataset, Votes, derive, with_ground_truth
from deemster.datasets.join_ground_truth import changed_labels
from deemster.datasets.judge_selection import select_judges
from deemster.errors import InputError, Issue, did_you_mean, list_names, plural, visible
from deemster.formats.json_values import name_kind
from deemster.rubrics import Criterion, Rubric
from deemster.stats.nan_arithmetic import merge_rounded

Indices: TypeAlias = NDArray[np.intp]
Floats: TypeAlias = NDArray[np.float64]
Cluster: TypeAlias = str | Mapping[str, str | float]
_Readable = TypeVar("_Readable", Votes, RubricDataset)

# Codes below this one stand for failed calls; this one stands for a missing verdict.
FAILED_BELOW = -1
# The fourth powers of larger scores, which variances need, overflow.
LARGEST_SCORE = 1e90


@dataclass(frozen=True, slots=True, eq=False)
class CriterionColumn:
    """One criterion over the items that have it.

    Attributes:
        name: Its name, with ``#2`` and so on where different criteria share one.
        index: Its place among the columns.
        criterion: The criterion, as first met.
        classes: The classes that its verdicts fall into.
        rows: Places of its items among the labelled items, ascending.
        truth: Codes of the truth, by row.
        disputed: Where annotators said something and agree on nothing, by row.
        final: Codes of the final verdicts, by row.
        votes: Codes of the judges' votes, ``[rows, judges]``.
        worst_codes: The code of the worst verdict, by row: the sign of a weight may differ between rubrics.
        n_errored: Labelled cells on errored items, which are not among the rows.
        sources: Where it comes from: pairs of a block's number and the number of the criterion in it.
        has_abstention: Whether the author offers an abstention, or someone abstained without being offered it.
        numbers: The numbers of truth, final verdict and each judge on a numeric criterion, ``[rows, 2 + judges]``; NaN
            where there is none that counts. None for any other criterion.
        truth_classes: The class of the truth, by row; -1 where there is none.
        final_classes: The class of the final verdict, by row.
        vote_classes: The class of each vote, ``[rows, judges]``.
    """

    name: str
    index: int
    criterion: Criterion
    classes: VerdictClasses
    rows: Indices
    truth: Codes
    disputed: NDArray[np.bool_]
    final: Codes
    votes: Codes
    worst_codes: Codes
    n_errored: int
    sources: tuple[tuple[int, int], ...]
    has_abstention: bool
    numbers: Floats | None
    truth_classes: Codes
    final_classes: Codes
    vote_classes: Codes


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
    found: _Readable = kind.load(Path(source))
    return found


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
    voted, known = frozenset(votes.ids), [str(item.id) for item in dataset.items]
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


@dataclass(frozen=True, slots=True, eq=False)
class _BlockRows:
    """The rows of one block of votes that count.

    Attributes:
        block: The number of the block.
        rows: Its rows with a truth and a grading, in id order.
        items: The places of these rows among the labelled items.
        errored: Its labelled rows whose grading failed.
    """

    block: int
    rows: Indices
    items: Indices
    errored: Indices


def _lay_out(
    votes: Votes, shared_ids: frozenset[str] | None, modes: AbstentionModes, warnings: list[str]
) -> LabelledVotes:
    derived = derive(votes)
    ids, size = votes.ids, len(votes.ids)
    labelled, errored = np.zeros(size, dtype=bool), np.zeros(size, dtype=bool)
    for block, facts in zip(votes.blocks, derived, strict=True):
        # An item on which annotators differ was labelled too; left out, it would make people look more certain.
        labelled[block.items] = block.labelled | block.no_consensus.any(axis=1)
        errored[block.items] = block.errored | (facts.final.codes < FAILED_BELOW).all(axis=1)
    shared = np.ones(size, dtype=bool)
    if shared_ids is not None:
        shared = np.fromiter((name in shared_ids for name in ids), dtype=bool, count=size)
    used = shared & labelled & ~errored
    _require_items(int(used.sum()), int((shared & labelled).sum()), int(shared.sum()))
    order = sorted(np.flatnonzero(used).tolist(), key=ids.__getitem__)
    item_index = np.full(size, -1, dtype=np.intp)
    item_index[order] = np.arange(len(order))
    parts = _block_rows(votes, item_index, shared & labelled & errored)
    scores = np.full((len(order), 2 + len(votes.judges)), np.nan)
    for part in parts:
        facts = derived[part.block]
        scores[part.items, 0] = facts.score[part.rows]
        scores[part.items, 1] = facts.true_score[part.rows]
        scores[part.items, 2:] = facts.judge_scores[part.rows]
    _limit_scores(scores)
    scores = merge_rounded(scores)
    found = LabelledVotes(
        votes=votes,
        derived=derived,
        ids=tuple([ids[place] for place in order]),
        item_index=item_index,
        judges=tuple(judge.id for judge in votes.judges),
        columns=_columns(votes, derived, parts, modes),
        predicted=np.ascontiguousarray(scores[:, 0]),
        true=np.ascontiguousarray(scores[:, 1]),
        judge_scores=np.ascontiguousarray(scores[:, 2:]),
        tags=tuple([votes.tags[place] for place in order]),
        clusters=None,
        clusters_of_all=None,
        mixed_rubrics=_differ(
            [votes.blocks[part.block].rubric for part in parts if len(part.rows) + len(part.errored)]
        ),
        warnings=(),
    )
    unlabelled = int((shared & ~labelled).sum())
    return replace(found, warnings=(*warnings, *_warnings(found, parts, unlabelled)))


def _require_items(used: int, labelled: int, shared: int) -> None:
    if used:
        return
    if not shared:
        raise InputError("The votes and the dataset have no item in common: ids match nowhere.")
    if not labelled:
        raise InputError(f"No item has ground truth ({plural(shared, 'item')} looked at), so nothing can be compared.")
    raise InputError(f"Every labelled item failed to be graded ({plural(labelled, 'item')}); nothing can be compared.")


def _block_rows(votes: Votes, item_index: Indices, errored: NDArray[np.bool_]) -> list[_BlockRows]:
    parts = []
    for number, block in enumerate(votes.blocks):
        items = item_index[block.items]
        rows = np.flatnonzero(items >= 0)
        rows = rows[np.argsort(items[rows])]
        parts.append(_BlockRows(number, rows, items[rows], np.flatnonzero(errored[block.items])))
    # By the item that comes first, so that the order of the file does not matter.
    parts.sort(key=lambda part: (int(part.items.min(initial=len(item_index))), part.block))
    return parts


def _limit_scores(scores: Floats) -> None:
    largest = float(np.nanmax(np.abs(scores), initial=0.0))
    if largest > LARGEST_SCORE:
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
        criterion.minimum,
        criterion.maximum,
    )


def _columns(
    votes: Votes, derived: Sequence[Derived], parts: list[_BlockRows], modes: AbstentionModes
) -> tuple[CriterionColumn, ...]:
    found: dict[tuple[Any, ...], list[tuple[_BlockRows, int]]] = {}
    cells: dict[int, tuple[NDArray[Any], ...]] = {}
    for part in parts:
        if len(part.rows) + len(part.errored):
            block = votes.blocks[part.block]
            # Transposed once, so that each criterion is contiguous in memory.
            cells[part.block] = (
                np.ascontiguousarray(block.truth.codes[part.rows].T),
                np.ascontiguousarray(derived[part.block].final.codes[part.rows].T),
                np.ascontiguousarray(block.votes.codes[part.rows].transpose(1, 0, 2)),
                np.ascontiguousarray(block.no_consensus[part.rows].T),
            )
            for place, criterion in enumerate(block.rubric.criteria):
                found.setdefault(_identity(criterion), []).append((part, place))
    given = {name for name, *_ in found}
    taken: set[str] = set()
    columns: list[CriterionColumn] = []
    issues = []
    for sources in found.values():
        criterion = votes.blocks[sources[0][0].block].rubric.criteria[sources[0][1]]
        name, count = criterion.name, 1
        while name in taken or (count > 1 and name in given):
            count += 1
            name = f"{criterion.name} #{count}"
        taken.add(name)
        numbers = [_numbers(votes, derived, part, place) for part, place in sources if criterion.kind == "numeric"]
        column = _column(votes, cells, sources, numbers, name=name, index=len(columns), modes=modes)
        if criterion.kind in {"ordinal", "numeric"} and modes.na_mode == "as_category" and column.has_abstention:
            issues.append(
                Issue(
                    f"`na_mode='as_category'` does not fit the {criterion.kind} criterion "
                    f"`{visible(name, limit=60)}`: an abstention has no place on its scale. Use `exclude` or "
                    "`as_unmet`."
                )
            )
        columns.append(column)
    if issues:
        raise InputError(issues)
    return tuple(columns)


def _column(
    votes: Votes,
    cells: Mapping[int, tuple[NDArray[Any], ...]],
    sources: list[tuple[_BlockRows, int]],
    numbers: Sequence[Floats],
    *,
    name: str,
    index: int,
    modes: AbstentionModes,
) -> CriterionColumn:
    """Join the rows of all blocks that have a criterion."""
    items = np.concatenate([part.items for part, _ in sources])
    order = np.argsort(items, kind="stable") if len(sources) > 1 else slice(None)

    def join(parts: Iterable[NDArray[Any]]) -> NDArray[Any]:
        return np.concatenate([*parts])[order]

    truth, final, cast, disputed = (
        join(cells[part.block][side][place] for part, place in sources) for side in range(4)
    )
    criteria = [votes.blocks[part.block].rubric.criteria[place] for part, place in sources]
    sizes = [len(part.rows) for part, _ in sources]
    worst = join(np.full(size, each.worst, dtype=np.int16) for size, each in zip(sizes, criteria, strict=True))
    joined = join(numbers) if numbers else None
    if joined is not None and modes.na_mode == "as_unmet":
        ends = [np.full(size, each.worst_number, dtype=np.float64) for size, each in zip(sizes, criteria, strict=True)]
        abstains = np.column_stack([truth, final, cast]) == criteria[0].abstention
        joined = np.where(abstains, join(ends)[:, None], joined)

    mode = modes.for_kind(criteria[0].kind)
    kind, has_abstention = criteria[0].kind, _has_abstention(criteria[0], truth, final, cast)
    if mode == "as_category" and (kind in {"ordinal", "numeric"} or (kind == "nominal" and not has_abstention)):
        # Without any abstention there is nothing to count as a category; on a scale with one, the caller refuses.
        mode = "exclude"
    classes = build_classes(criteria[0], mode)
    return CriterionColumn(
        name=name,
        index=index,
        criterion=criteria[0],
        has_abstention=has_abstention,
        classes=classes,
        rows=items[order],
        truth=truth,
        disputed=disputed,
        final=final,
        votes=cast,
        worst_codes=worst,
        n_errored=sum(
            int((votes.blocks[part.block].truth.codes[part.errored, place] >= 0).sum()) for part, place in sources
        ),
        sources=tuple((part.block, place) for part, place in sources),
        numbers=joined,
        truth_classes=classes.from_codes(truth, worst),
        final_classes=classes.from_codes(final, worst),
        vote_classes=classes.from_codes(cast, worst),
    )


def _numbers(votes: Votes, derived: Sequence[Derived], part: _BlockRows, place: int) -> Floats:
    """The numbers of truth, final verdict and votes of one block, rows by sides."""
    block = votes.blocks[part.block]
    sides = block.truth, derived[part.block].final, block.votes
    return np.column_stack([labels.numbers[place][part.rows] for labels in sides])


def _differ(rubrics: Sequence[Rubric]) -> bool:
    """Whether these are several rubrics, and not one under several names."""
    return any(rubric != rubrics[0] for rubric in rubrics[1:])


def _has_abstention(criterion: Criterion, *codes: Codes) -> bool:
    """Whether the author offers an abstention, or someone abstained without being offered it."""
    if criterion.na_option_index is not None:
        return True
    abstentions = list(criterion.abstentions)
    return any(bool(np.isin(cells, abstentions).any()) for cells in codes)


def _warnings(labelled: LabelledVotes, parts: list[_BlockRows], unlabelled: int) -> list[str]:
    found = []
    if unlabelled:
        found.append(f"no-truth: {plural(unlabelled, 'item')} without ground truth left out.")
    if errored := sum(len(part.errored) for part in parts):
        found.append(
            f"errored-items: grading failed on {plural(errored, 'labelled item')}; they count only as not covered."
        )
    failed = sum(int(((column.final < FAILED_BELOW) & (column.truth >= 0)).sum()) for column in labelled.columns)
    if failed:
        found.append(f"failed-cells: every call failed on {plural(failed, 'labelled cell')} of other items; left out.")
    ties = differing = 0
    for part in parts:
        block, facts = labelled.votes.blocks[part.block], labelled.derived[part.block]
        ties += int(block.no_consensus[part.rows].sum())
        recorded, score = block.recorded_final.codes[part.rows], block.recorded_score[part.rows]
        other_verdict = ((recorded != -1) & (recorded != facts.derived_final.codes[part.rows])).any(axis=1)
        for place, numbers in block.recorded_final.numbers.items():
            apart = np.abs(numbers[part.rows] - facts.derived_final.numbers[place][part.rows])
            other_verdict |= apart > 1e-9
        other_score = ~np.isnan(score) & ~(np.abs(score - facts.derived_score[part.rows]) <= 1e-9)
        differing += int((other_verdict | other_score).sum())
    if ties:
        found.append(f"no-consensus: annotators are tied on {plural(ties, 'cell')}; they count only as not covered.")
    if differing:
        found.append(
            f"recorded-final: on {plural(differing, 'item')} what was recorded differs from what the votes give; "
            "the record is used."
        )
    if listed := [column.name for column in labelled.columns if column.criterion.is_in_listed_order]:
        names = list_names((visible(name, limit=60) for name in listed), limit=10)
        found.append(
            f"listed-order: the values of {names} neither rise nor fall from option to option, so the options are "
            "taken in the order in which they are listed. `order` gives another one, lowest first."
        )
    if labelled.mixed_rubrics:
        found.append("mixed-rubrics: items have different rubrics; each criterion rests on the items that have it.")
    return found


def with_clusters(labelled: LabelledVotes, cluster: Cluster) -> LabelledVotes:
    """Number the cluster of each item, in order of first appearance.

    Raises:
        InputError: No item has such a key, or some items have no cluster; all of these are listed.
    """
    if not isinstance(cluster, (str, Mapping)):
        message = f"`cluster` is a metadata key or a map from item ids to clusters, not {name_kind(cluster)}."
        raise InputError(message)
    votes = labelled.votes
    sources = np.argsort(labelled.item_index, kind="stable")[-len(labelled.ids) :].tolist()
    if isinstance(cluster, str):
        require_key(cluster, [votes.metadata[source] for source in sources], "to cluster by")
        keys = [own.get(cluster) for own in votes.metadata]
    else:
        keys = [cluster.get(name) for name in votes.ids]
    issues = []
    for source in sources:
        key = keys[source]
        if key is None or key != key:  # noqa: PLR0124 - NaN is no cluster, and differs from itself
            issues.append(Issue(_missing_cluster(cluster, votes.metadata[source]), sample=votes.ids[source]))
        elif not isinstance(key, Hashable):
            message = f"A cluster is a word or a number, not {name_kind(key)}."
            issues.append(Issue(message, sample=votes.ids[source]))
    if issues:
        raise InputError(issues)

    # A dict takes 1 and True for one key; they are two clusters. An item without a cluster, which nobody labelled,
    # stands alone.
    typed = [(None, place) if key is None else (isinstance(key, bool), key) for place, key in enumerate(keys)]
    numbers: dict[Any, int] = {}
    order = [*sources, *range(len(keys))]
    codes = np.array([numbers.setdefault(typed[place], len(numbers)) for place in order], dtype=np.intp)
    clusters, of_all = np.split(codes, [len(sources)])
    warnings = labelled.warnings
    if clusters.max() + 1 < ENOUGH_CLUSTERS:
        few = plural(int(clusters.max()) + 1, "cluster")
        warnings = (
            *warnings,
            f"few-clusters: {few} only; intervals from fewer than {ENOUGH_CLUSTERS} may be too narrow.",
        )
    return replace(labelled, clusters=clusters, clusters_of_all=of_all, warnings=warnings)


def require_key(key: str, metadata: Sequence[Mapping[str, Any]], purpose: str) -> None:
    """Refuse a metadata key that no item has.

    Raises:
        InputError: There is none.
    """
    known = {name: None for own in metadata for name in own}
    if key not in known:
        hint = did_you_mean(key, known) if known else "The items have no metadata."
        raise InputError(f"No item's metadata has `{visible(key, limit=60)}` {purpose}. {hint}")


def _missing_cluster(cluster: Cluster, own: Mapping[str, Any]) -> str:
    if not isinstance(cluster, str):
        return "The item has no cluster in the mapping given."
    hint = did_you_mean(cluster, own) if own else "It has no metadata."
    return f"The item's metadata has no `{visible(cluster, limit=60)}` to cluster by. {hint}"
