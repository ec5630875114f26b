"""Dawid and Skene's model: true labels and judges' error rates from votes alone."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.stats._label_codes import is_missing, unbox
from deemster.stats.nan_arithmetic import Floats

Votes: TypeAlias = Mapping[Hashable, Mapping[Hashable, Any]] | Sequence[Sequence[Hashable]] | NDArray[Any]
Indices: TypeAlias = NDArray[np.int64]


class DawidSkene(msgspec.Struct, frozen=True, kw_only=True):
    """What the votes of several judges say about the truth and about the judges.

    Attributes:
        n: How many items have a vote.
        items: Their names or places, in order.
        classes: The labels, in order.
        labels: The most probable label of each item.
        posterior: For each item the probability of each class.
        priors: How frequent each class is.
        confusion: For each judge the probability of each vote (column) given the true class (row); None for a class
            that no item it voted on can have.
        accuracy: For each judge the chance that its vote is right; a class without row counts nothing.
        log_likelihood: The log-likelihood of the votes.
        rounds: How many rounds of estimation were made.
        converged: Whether the last one gained less than the tolerance.
    """

    n: int
    items: tuple[Hashable, ...]
    classes: tuple[Hashable, ...]
    labels: tuple[Hashable, ...] = ()
    posterior: tuple[tuple[float, ...], ...] = ()
    priors: tuple[float, ...] = ()
    confusion: dict[Hashable, tuple[tuple[float, ...] | None, ...]] = {}
    accuracy: dict[Hashable, float | None] = {}
    log_likelihood: float | None = None
    rounds: int = 0
    converged: bool = True


class _VoteTable(NamedTuple):
    """Every vote as three numbers, ordered by item.

    Attributes:
        item_of: The item of each vote, as its index in `items`.
        judge_of: The judge of each vote, as its index in `judges`.
        label_of: The label of each vote, as its index in `classes`.
        starts: The first vote of each item.
        items: The names of the items.
        judges: The names of the judges.
        classes: The labels that there are.
    """

    item_of: Indices
    judge_of: Indices
    label_of: Indices
    starts: Indices
    items: tuple[Hashable, ...]
    judges: tuple[Hashable, ...]
    classes: tuple[Hashable, ...]


class _ErrorRates(NamedTuple):
    """What the probable truth says of the classes and the judges.

    Attributes:
        priors: How frequent each class is.
        confusion: The probability of each vote by judge, true class and vote; a row that nothing is known of is all 0.
    """

    priors: Floats
    confusion: Floats


def dawid_skene(
    votes: Votes, *, classes: Sequence[Hashable] | None = None, rounds: int = 500, tolerance: float = 1e-8
) -> DawidSkene:
    """Posterior labels of items and error rates of judges, from votes alone, by expectation maximisation.

    From T_ik = the share of item i's votes for class k: prior_k ∝ Σ_i T_ik and π^j_kl ∝ Σ_i T_ik·n^j_il, then T_ik ∝
    prior_k·Π_jl (π^j_kl)^n, until the log-likelihood gains less than ``tolerance``. Judges that always agree keep their
    votes as labels, with accuracy 1. Equal posteriors give the earlier class. Undefined (all is empty) without
    a vote. The model holds that judges err independently given the truth; judges that share errors look better than
    they are.

    Reference: A. P. Dawid, A. M. Skene, Maximum likelihood estimation of observer error-rates using the EM algorithm,
    Applied Statistics 28 (1979).

    Args:
        votes: ``{item: {judge: label}}``, or one row for each item with one label for each judge. A list in place of a
            label holds repeated votes. None is a missing vote.
        classes: All labels there are, in order; those that occur, sorted, where None.
        rounds: The most rounds to make.
        tolerance: The gain that is too small for another round.

    Raises:
        ValueError: There are no rows, they differ in length, or a label is none of ``classes``.

    >>> result = dawid_skene([["a", "a", "b"], ["b", "b", "b"], ["a", "a", "a"], ["b", "b", "a"]])
    >>> result.labels, result.accuracy
    (('a', 'b', 'a', 'b'), {0: 1.0, 1: 1.0, 2: 0.5})
    """
    table = _read_votes(votes, classes)
    if not table.item_of.size:
        return DawidSkene(n=0, items=(), classes=table.classes)

    truth = _vote_shares(table)
    log_likelihood = -math.inf
    rounds_made = 0
    converged = False
    while rounds_made < rounds and not converged:
        rounds_made += 1
        truth, new_log_likelihood = _posterior(table, _error_rates(table, truth))
        converged = new_log_likelihood - log_likelihood < tolerance
        log_likelihood = new_log_likelihood

    rates = _error_rates(table, truth)
    confusion_of = dict(zip(table.judges, rates.confusion, strict=True))
    return DawidSkene(
        n=len(table.items),
        items=table.items,
        classes=table.classes,
        labels=tuple(table.classes[index] for index in truth.argmax(axis=1).tolist()),
        posterior=tuple(map(tuple, truth.tolist())),
        priors=tuple(rates.priors.tolist()),
        confusion={judge: _known_rows(confusion) for judge, confusion in confusion_of.items()},
        accuracy={judge: _accuracy(rates.priors, confusion) for judge, confusion in confusion_of.items()},
        log_likelihood=log_likelihood,
        rounds=rounds_made,
        converged=converged,
    )


def _vote_shares(table: _VoteTable) -> Floats:
    """The share of each class [items, classes] in the votes on an item: what the truth is taken for at first."""
    n_items = len(table.items)
    n_classes = len(table.classes)
    cells = np.bincount(table.item_of * n_classes + table.label_of, minlength=n_items * n_classes)
    counts = cells.reshape(n_items, n_classes).astype(np.float64)
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def _error_rates(table: _VoteTable, truth: Floats) -> _ErrorRates:
    """Maximisation: how frequent classes are and how judges vote, if the truth is as probable as this."""
    n_judges = len(table.judges)
    n_classes = len(table.classes)
    cells = table.judge_of * n_classes + table.label_of

    confusion = np.empty((n_judges, n_classes, n_classes))
    for true_class in range(n_classes):
        weights = truth[:, true_class][table.item_of]
        votes = np.bincount(cells, weights=weights, minlength=n_judges * n_classes)
        confusion[:, true_class, :] = votes.reshape(n_judges, n_classes)

    sums = confusion.sum(axis=2, keepdims=True)
    np.divide(confusion, sums, out=confusion, where=sums > 0)
    return _ErrorRates(np.asarray(truth.mean(axis=0)), confusion)


def _posterior(table: _VoteTable, rates: _ErrorRates) -> tuple[Floats, float]:
    """Expectation: the probability of each class [items, classes] given the votes, and their log-likelihood."""
    # Impossible votes keep probability 0: a floor would bring back classes that a judge never met.
    with np.errstate(divide="ignore"):
        log_confusion = np.log(rates.confusion).transpose(0, 2, 1)
        log_priors = np.log(rates.priors)
    log_votes = log_confusion[table.judge_of, table.label_of]
    log_joint = np.add.reduceat(log_votes, table.starts, axis=0) + log_priors

    # Divided by the greatest of each item, so that the exponentials do not all vanish.
    greatest = log_joint.max(axis=1, keepdims=True)
    joint = np.exp(log_joint - greatest)
    sums = joint.sum(axis=1, keepdims=True)
    return np.asarray(joint / sums), math.fsum((np.log(sums) + greatest).ravel())


def _known_rows(confusion: Floats) -> tuple[tuple[float, ...] | None, ...]:
    return tuple(tuple(row) if any(row) else None for row in confusion.tolist())


def _accuracy(priors: Floats, confusion: Floats) -> float | None:
    is_known = confusion.sum(axis=1) > 0
    weight = float(priors[is_known].sum())
    return float((priors * np.diagonal(confusion))[is_known].sum()) / weight if weight > 0 else None


def _read_votes(votes: Votes, classes: Sequence[Hashable] | None) -> _VoteTable:
    cast = [(item, judge, unbox(label)) for item, judge, label in _iterate_votes(votes) if not is_missing(label)]
    occurring = dict.fromkeys(label for _, _, label in cast)

    items = _indices(item for item, _, _ in cast)
    judges = _indices(judge for _, judge, _ in cast)
    labels = _indices(_in_order(occurring) if classes is None else classes)
    unknown = [label for label in occurring if label not in labels]
    if unknown:
        raise ValueError(f"The label {unknown[0]!r} is none of the classes {', '.join(map(repr, labels))}.")

    item_of = np.array([items[item] for item, _, _ in cast], dtype=np.int64)
    return _VoteTable(
        item_of=item_of,
        judge_of=np.array([judges[judge] for _, judge, _ in cast], dtype=np.int64),
        label_of=np.array([labels[label] for _, _, label in cast], dtype=np.int64),
        starts=np.flatnonzero(np.diff(item_of, prepend=-1)),
        items=tuple(items),
        judges=tuple(judges),
        classes=tuple(labels),
    )


def _indices(values: Iterable[Any]) -> dict[Any, int]:
    """Each value once, in the order of appearance, with its index."""
    return {value: index for index, value in enumerate(dict.fromkeys(values))}


def _iterate_votes(votes: Votes) -> Iterator[tuple[Hashable, Hashable, Any]]:
    """The item, judge and label of every vote, missing ones included, item by item."""
    if isinstance(votes, Mapping):
        for item, labels in votes.items():
            for judge, label in labels.items():
                yield from ((item, judge, repeat) for repeat in _repeats(label))
        return

    rows = votes.tolist() if isinstance(votes, np.ndarray) else votes
    width = None
    for item, row in enumerate(rows):
        if isinstance(row, str) or not hasattr(row, "__len__"):
            raise ValueError("Votes are a row for each item with a cell for each judge; a word or a number is no row.")
        width = len(row) if width is None else width
        if len(row) != width:
            raise ValueError(f"Every item has one cell for each judge; item {item} has {len(row)} and not {width}.")
        for judge, label in enumerate(row):
            yield from ((item, judge, repeat) for repeat in _repeats(label))


def _repeats(label: Any) -> Iterable[Any]:
    """The labels of a cell that may hold repeated votes."""
    return label if isinstance(label, (list, tuple, np.ndarray)) else (label,)


def _in_order(labels: Iterable[Any]) -> list[Any]:
    """Sorted where the labels can be compared, else by how they are written."""
    types = {type(label) for label in labels}
    comparable = types <= {str} or types <= {int, float, bool}
    return sorted(labels) if comparable else sorted(labels, key=repr)
