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

Votes: TypeAlias = Mapping[Hashable, Mapping[Hashable, Any]] | Sequence[Sequence[Any]] | NDArray[Any]
Places: TypeAlias = NDArray[np.int64]


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


class _Ballots(NamedTuple):
    """Every vote as three numbers, ordered by item."""

    items: Places
    judges: Places
    labels: Places
    starts: Places
    names: tuple[Hashable, ...]
    jurors: tuple[Hashable, ...]
    classes: tuple[Hashable, ...]


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
    ballots = _ballots(votes, classes)
    if not ballots.items.size:
        return DawidSkene(n=0, items=(), classes=ballots.classes)
    truth = _shares(ballots)
    likelihood, made, converged = -math.inf, 0, False
    while made < rounds and not converged:
        made += 1
        priors, errors = _rates(ballots, truth)
        truth, gained = _posterior(ballots, priors, errors)
        converged = gained - likelihood < tolerance
        likelihood = gained
    priors, errors = _rates(ballots, truth)
    best = truth.argmax(axis=1)
    return DawidSkene(
        n=len(ballots.names),
        items=ballots.names,
        classes=ballots.classes,
        labels=tuple(ballots.classes[place] for place in best.tolist()),
        posterior=tuple(map(tuple, truth.tolist())),
        priors=tuple(priors.tolist()),
        confusion={name: _rows(errors[place]) for place, name in enumerate(ballots.jurors)},
        accuracy={name: _accuracy(priors, errors[place]) for place, name in enumerate(ballots.jurors)},
        log_likelihood=likelihood,
        rounds=made,
        converged=converged,
    )


def _shares(ballots: _Ballots) -> Floats:
    items, kinds = len(ballots.names), len(ballots.classes)
    cells = np.bincount(ballots.items * kinds + ballots.labels, minlength=items * kinds)
    counts = cells.reshape(items, kinds).astype(np.float64)
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def _rates(ballots: _Ballots, truth: Floats) -> tuple[Floats, Floats]:
    """Priors [classes] and error rates [judges, true class, vote]; a row that nothing is known of is all 0."""
    jurors, kinds = len(ballots.jurors), len(ballots.classes)
    cells = ballots.judges * kinds + ballots.labels
    errors = np.empty((jurors, kinds, kinds))
    for kind in range(kinds):
        weights = truth[:, kind][ballots.items]
        errors[:, kind, :] = np.bincount(cells, weights=weights, minlength=jurors * kinds).reshape(jurors, kinds)
    sums = errors.sum(axis=2, keepdims=True)
    np.divide(errors, sums, out=errors, where=sums > 0)
    return np.asarray(truth.mean(axis=0)), errors


def _posterior(ballots: _Ballots, priors: Floats, errors: Floats) -> tuple[Floats, float]:
    # Impossible votes keep probability 0: a floor would bring back classes that a judge never met.
    with np.errstate(divide="ignore"):
        logs, weights = np.log(errors).transpose(0, 2, 1), np.log(priors)
    joint = np.add.reduceat(logs[ballots.judges, ballots.labels], ballots.starts, axis=0) + weights
    top = joint.max(axis=1, keepdims=True)
    parts = np.exp(joint - top)
    sums = parts.sum(axis=1, keepdims=True)
    return np.asarray(parts / sums), math.fsum((np.log(sums) + top).ravel())


def _rows(errors: Floats) -> tuple[tuple[float, ...] | None, ...]:
    return tuple(tuple(row) if any(row) else None for row in errors.tolist())


def _accuracy(priors: Floats, errors: Floats) -> float | None:
    seen = errors.sum(axis=1) > 0
    weight = float(priors[seen].sum())
    return float((priors * np.diagonal(errors))[seen].sum()) / weight if weight > 0 else None


def _ballots(votes: Votes, classes: Sequence[Hashable] | None) -> _Ballots:
    cells = [(item, judge, unbox(label)) for item, judge, label in _cells(votes) if not is_missing(label)]
    items = {item: place for place, item in enumerate(dict.fromkeys(item for item, _, _ in cells))}
    jurors = {judge: place for place, judge in enumerate(dict.fromkeys(judge for _, judge, _ in cells))}
    found = dict.fromkeys(label for _, _, label in cells)
    kinds = tuple(_in_order(found)) if classes is None else tuple(dict.fromkeys(classes))
    places = {label: place for place, label in enumerate(kinds)}
    unknown = [label for label in found if label not in places]
    if unknown:
        raise ValueError(f"The label {unknown[0]!r} is none of the classes {', '.join(map(repr, kinds))}.")
    rows = np.array([(items[item], jurors[judge], places[label]) for item, judge, label in cells], dtype=np.int64)
    rows = rows.reshape(-1, 3)
    starts = np.flatnonzero(np.diff(rows[:, 0], prepend=-1))
    return _Ballots(rows[:, 0], rows[:, 1], rows[:, 2], starts, tuple(items), tuple(jurors), kinds)


def _cells(votes: Votes) -> Iterator[tuple[Hashable, Hashable, Any]]:
    if isinstance(votes, Mapping):
        for item, row in votes.items():
            for judge, given in row.items():
                yield from ((item, judge, label) for label in _repeats(given))
        return
    rows = votes.tolist() if isinstance(votes, np.ndarray) else votes
    width = None
    for place, cells in enumerate(rows):
        if isinstance(cells, str) or not hasattr(cells, "__len__"):
            raise ValueError("Votes are a row for each item with a cell for each judge; a word or a number is no row.")
        width = len(cells) if width is None else width
        if len(cells) != width:
            raise ValueError(f"Every item has one cell for each judge; item {place} has {len(cells)} and not {width}.")
        for judge, given in enumerate(cells):
            yield from ((place, judge, label) for label in _repeats(given))


def _repeats(given: Any) -> Iterable[Any]:
    return given.tolist() if isinstance(given, np.ndarray) else given if isinstance(given, list | tuple) else (given,)


def _in_order(labels: Iterable[Any]) -> list[Any]:
    """Sorted where the labels can be compared, else as written."""
    found = list(labels)
    kinds = {type(label) for label in found}
    comparable = kinds <= {str} or kinds <= {int, float, bool}
    return sorted(found) if comparable else sorted(found, key=repr)
