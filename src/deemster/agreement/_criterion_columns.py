"""Lays votes out by criterion: one column for each, over the items that have it, whatever block they are in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deemster.agreement._verdict_classes import AbstentionModes, Codes, VerdictClasses, build_classes
from deemster.datasets import Derived, Votes
from deemster.errors import InputError, Issue, visible
from deemster.rubrics import Criterion
from deemster.rubrics.verdicts import MISSING

Indices: TypeAlias = NDArray[np.intp]
Floats: TypeAlias = NDArray[np.float64]

# Kinds of criteria on whose scale an abstention has no place.
_SCALES = frozenset({"ordinal", "numeric"})


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


def is_failed(codes: Codes) -> NDArray[np.bool_]:
    """Where the call failed that should have given a verdict; a verdict may also just be missing."""
    return codes < MISSING


@dataclass(frozen=True, slots=True, eq=False)
class BlockRows:
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


class _Source(NamedTuple):
    """A criterion in one block of votes, over the rows that count.

    Attributes:
        part: The rows.
        place: The number of the criterion in the block.
        criterion: The criterion.
        truth: Codes of the truth, by row.
        final: Codes of the final verdicts, by row.
        votes: Codes of the judges' votes, ``[rows, judges]``.
        disputed: Where annotators said something and agree on nothing, by row.
        numbers: The numbers of truth, final verdict and each judge, ``[rows, 2 + judges]``, where it is numeric.
        n_errored: Labelled cells on errored items.
    """

    part: BlockRows
    place: int
    criterion: Criterion
    truth: Codes
    final: Codes
    votes: Codes
    disputed: NDArray[np.bool_]
    numbers: Floats | None
    n_errored: int

    def filled(self, value: float | None, dtype: type[np.generic]) -> NDArray[Any]:
        """A value for each row."""
        return np.full(len(self.part.rows), value, dtype=dtype)


def build_columns(
    votes: Votes, derived: Sequence[Derived], parts: Sequence[BlockRows], modes: AbstentionModes
) -> tuple[CriterionColumn, ...]:
    """Build the columns, in the order in which criteria first appear.

    Args:
        votes: The votes, truth included.
        derived: Their verdicts, block by block.
        parts: The rows of each block that count.
        modes: What an abstention counts as.

    Raises:
        InputError: An abstention shall be a class of a criterion whose classes are a scale.
    """
    sources_by_criterion: dict[tuple[Any, ...], list[_Source]] = {}
    for part in parts:
        if len(part.rows) + len(part.errored):
            for source in _sources(votes, derived[part.block], part):
                sources_by_criterion.setdefault(_identity(source.criterion), []).append(source)

    groups = list(sources_by_criterion.values())
    names = _unique_names([sources[0].criterion.name for sources in groups])
    columns = tuple(
        _column(sources, name=name, index=index, modes=modes)
        for index, (sources, name) in enumerate(zip(groups, names, strict=True))
    )

    issues = [
        Issue(
            f"`na_mode='as_category'` does not fit the {column.criterion.kind} criterion "
            f"`{visible(column.name, limit=60)}`: an abstention has no place on its scale. Use `exclude` or "
            "`as_unmet`."
        )
        for column in columns
        if column.criterion.kind in _SCALES and modes.na_mode == "as_category" and column.has_abstention
    ]
    if issues:
        raise InputError(issues)
    return columns


def _sources(votes: Votes, derived: Derived, part: BlockRows) -> Iterator[_Source]:
    """The criteria of one block."""
    block = votes.blocks[part.block]
    # Transposed once, so that each criterion is contiguous in memory.
    truth = np.ascontiguousarray(block.truth.codes[part.rows].T)
    final = np.ascontiguousarray(derived.final.codes[part.rows].T)
    cast = np.ascontiguousarray(block.votes.codes[part.rows].transpose(1, 0, 2))
    disputed = np.ascontiguousarray(block.no_consensus[part.rows].T)

    for place, criterion in enumerate(block.rubric.criteria):
        numbers = None
        if criterion.kind == "numeric":
            sides = (block.truth, derived.final, block.votes)
            numbers = np.column_stack([labels.numbers[place][part.rows] for labels in sides])
        yield _Source(
            part=part,
            place=place,
            criterion=criterion,
            truth=truth[place],
            final=final[place],
            votes=cast[place],
            disputed=disputed[place],
            numbers=numbers,
            n_errored=int((block.truth.codes[part.errored, place] >= 0).sum()),
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


def _unique_names(names: Sequence[str]) -> list[str]:
    """The names, with ``#2`` and so on where different criteria share one.

    >>> _unique_names(["tone", "facts", "tone"])
    ['tone', 'facts', 'tone #2']
    """
    unique: dict[str, None] = {}
    for name in names:
        candidate = name
        count = 1
        while candidate in unique or (count > 1 and candidate in names):
            count += 1
            candidate = f"{name} #{count}"
        unique[candidate] = None
    return list(unique)


def _column(sources: Sequence[_Source], *, name: str, index: int, modes: AbstentionModes) -> CriterionColumn:
    """Join the rows of all blocks that have a criterion."""
    criterion = sources[0].criterion
    items = np.concatenate([source.part.items for source in sources])
    order = np.argsort(items, kind="stable") if len(sources) > 1 else slice(None)

    def join(parts: Iterable[NDArray[Any]]) -> NDArray[Any]:
        return np.concatenate([*parts])[order]

    truth = join(source.truth for source in sources)
    final = join(source.final for source in sources)
    votes = join(source.votes for source in sources)
    worst = join(source.filled(source.criterion.worst, np.int16) for source in sources)

    numbers = None
    if criterion.kind == "numeric":
        numbers = join(source.numbers for source in sources if source.numbers is not None)
        if modes.na_mode == "as_unmet":
            worst_numbers = join(source.filled(source.criterion.worst_number, np.float64) for source in sources)
            abstains = np.column_stack([truth, final, votes]) == criterion.abstention
            numbers = np.where(abstains, worst_numbers[:, None], numbers)

    has_abstention = _has_abstention(criterion, truth, final, votes)
    mode = modes.for_kind(criterion.kind)
    is_choice = criterion.kind == "nominal" and not has_abstention
    if mode == "as_category" and (criterion.kind in _SCALES or is_choice):
        # Without any abstention there is nothing to count as a category; on a scale with one, the caller refuses.
        mode = "exclude"
    classes = build_classes(criterion, mode)

    return CriterionColumn(
        name=name,
        index=index,
        criterion=criterion,
        has_abstention=has_abstention,
        classes=classes,
        rows=items[order],
        truth=truth,
        disputed=join(source.disputed for source in sources),
        final=final,
        votes=votes,
        worst_codes=worst,
        n_errored=sum(source.n_errored for source in sources),
        sources=tuple((source.part.block, source.place) for source in sources),
        numbers=numbers,
        truth_classes=classes.from_codes(truth, worst),
        final_classes=classes.from_codes(final, worst),
        vote_classes=classes.from_codes(votes, worst),
    )


def _has_abstention(criterion: Criterion, *codes: Codes) -> bool:
    """Whether the author offers an abstention, or someone abstained without being offered it."""
    if criterion.na_option_index is not None:
        return True
    abstentions = list(criterion.abstentions)
    return any(bool(np.isin(cells, abstentions).any()) for cells in codes)
