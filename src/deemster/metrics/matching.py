"""Vectors of texts: asking for them in blocks, reading what came, and finding each text's nearest on the other side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from deemster.metrics.contract import Fault
from deemster.records import Embed, Reply, Silence, Vectors

PAIRS, TEXTS = 512, 16_384
Doubles: TypeAlias = npt.NDArray[np.float64]
Rows: TypeAlias = npt.NDArray[np.float32]


class Pair(NamedTuple):
    """Two sides that are compared by the vectors of their texts.

    Attributes:
        expected: The distinct texts of the expected side.
        actual: The distinct texts of the output's side.
        weights: How often each text counts on its side; None for once.
    """

    expected: Sequence[str]
    actual: Sequence[str]
    weights: tuple[Sequence[int], Sequence[int]] | None = None


class Placed(NamedTuple):
    """A pair, and where the vectors of its texts are in its block.

    Attributes:
        number: Which of the batch it is.
        pair: The pair.
        expected: A row for each text of the expected side.
        actual: A row for each text of the output's side.
    """

    number: int
    pair: Pair
    expected: list[int]
    actual: list[int]


class Block:
    """Pairs whose texts are embedded together, each distinct text once.

    Attributes:
        placed: The pairs.
    """

    def __init__(self) -> None:
        self.placed: list[Placed] = []
        self._places = _Places()

    def add(self, number: int, pair: Pair) -> None:
        """Take in one pair more."""
        place = self._places.__getitem__
        self.placed.append(Placed(number, pair, list(map(place, pair.expected)), list(map(place, pair.actual))))

    @property
    def is_full(self) -> bool:
        """Whether it holds as much as one request should."""
        return len(self.placed) >= PAIRS or len(self._places) >= TEXTS

    @property
    def embed(self) -> Embed:
        """The request for all its vectors."""
        return Embed(texts=tuple(self._places))


class _Places(dict[str, int]):
    """Gives each text a row when it is first asked for."""

    def __missing__(self, text: str) -> int:
        place = self[text] = len(self)
        return place


class Directions(NamedTuple):
    """Vectors of length 1.

    Attributes:
        values: One row a text.
        lost: The rows that have no direction: zero, or not finite.
    """

    values: Doubles
    lost: frozenset[int]


def blocks(pairs: Iterable[tuple[int, Pair]]) -> Iterator[Block]:
    """Numbered pairs in blocks of what one request should hold."""
    block = Block()
    for number, pair in pairs:
        block.add(number, pair)
        if block.is_full:
            yield block
            block = Block()
    if block.placed:
        yield block


def directions(reply: Reply, *, count: int) -> Directions:
    """The directions of the vectors a model gave.

    Each row depends on its own vector alone, to the bit, so that marks do not depend on what shares their block.

    Args:
        reply: What came back.
        count: How many vectors there should be.

    Raises:
        Fault: Nothing came, or not one vector a text, all of one dimension.

    >>> directions(Vectors(values=[[3.0, 4.0], [0.0, 0.0]]), count=2)
    Directions(values=array([[0.6, 0.8],
           [0. , 0. ]]), lost=frozenset({1}))
    """
    if isinstance(reply, Silence):
        raise Fault(reply.cause, reply.message)
    wrong = Fault("unreadable", "The model's vectors are not lists of numbers of one length above 0.")
    try:
        given = np.asarray(reply.values if isinstance(reply, Vectors) else None)
    except ValueError:
        raise wrong from None
    if given.ndim != 2 or given.shape[1] == 0 or given.dtype.kind not in "fiu":
        raise wrong
    if len(given) != count:
        raise Fault("unreadable", f"The model gave {len(given)} vectors for {count} texts.")
    values = given.astype(np.float64, order="C")
    # Scaled first, or the square of a large part is infinite and that of a small one 0.
    largest = np.abs(values).max(axis=1, initial=0.0)
    lost = ~(np.isfinite(largest) & (largest > 0))
    values[lost] = 0.0
    largest[lost] = 1.0
    values /= largest[:, None]
    length = np.sqrt((values * values).sum(axis=1))
    length[lost] = 1.0
    values /= length[:, None]
    return Directions(values, frozenset(np.flatnonzero(lost).tolist()))


def cosines(placed: Sequence[Placed], values: Doubles) -> list[float]:
    """The cosine of each pair whose sides are one text each.

    Args:
        placed: The pairs.
        values: Vectors of length 1, by row.
    """
    left = values[[each.expected[0] for each in placed]]
    right = values[[each.actual[0] for each in placed]]
    found: list[float] = (left * right).sum(axis=1).clip(-1.0, 1.0).tolist()
    return found


class Nearest(NamedTuple):
    """How near the texts of a pair come to the other side: the best cosine of each, within [0, 1].

    Attributes:
        expected: Of each expected text among the output's.
        actual: Of each text of the output among the expected.
    """

    expected: Doubles
    actual: Doubles


def nearest(placed: Sequence[Placed], values: Doubles) -> list[Nearest]:
    """The best cosines of each pair, by one matrix product a pair.

    A text that stands on both sides has a cosine of exactly 1. The product is in single precision, which is all that
    models give, and of the same shape whatever shares the block and whichever side is which, so that the result is the
    same to the bit.

    Args:
        placed: The pairs.
        values: Vectors of length 1, by row.
    """
    single = values.astype(np.float32)
    best: list[Rows] = []
    shared: list[bool] = []
    for each in placed:
        first, second = each.expected, each.actual
        is_turned = (len(first), each.pair.expected) > (len(second), each.pair.actual)
        if is_turned:
            first, second = second, first
        cosine = single.take(first, axis=0) @ single.take(second, axis=0).T
        sides = (cosine.max(axis=1), cosine.max(axis=0))
        best += sides[::-1] if is_turned else sides
        shared += map(set(each.actual).__contains__, each.expected)
        shared += map(set(each.expected).__contains__, each.actual)
    joined = np.concatenate(best).astype(np.float64).clip(0.0, 1.0)
    joined[shared] = 1.0
    ends = np.cumsum([len(side) for side in best])[:-1]
    parts = iter(np.split(joined, ends))
    return [Nearest(expected, actual) for expected, actual in zip(parts, parts, strict=True)]


def partners(each: Placed, values: Doubles) -> list[str]:
    """For each expected text of a pair the one of the output that is nearest, itself where it is there.

    Args:
        each: The pair.
        values: Vectors of length 1, by row.
    """
    single = values.astype(np.float32)
    cosine = single.take(each.expected, axis=0) @ single.take(each.actual, axis=0).T
    here = set(each.actual)
    texts = each.pair
    return [
        text if row in here else texts.actual[place]
        for text, row, place in zip(texts.expected, each.expected, cosine.argmax(axis=1).tolist(), strict=True)
    ]
