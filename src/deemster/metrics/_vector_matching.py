"""Asks for vectors of texts in blocks, and finds the nearest text of the other side by cosine."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from deemster.metrics.builtin_metric import UnscoredError
from deemster.records import Embed, NoAnswer, Reply, Vectors

PAIRS, TEXTS = 512, 16_384
# OpenBLAS uses one thread up to this many multiplications.
TILE = 1 << 18
# How many vectors are scaled to length 1 at a time, so that they stay in the processor's cache.
_ROWS = 128
# Models give single precision: further decimals of a cosine are noise, which must not decide about a threshold.
DECIMALS = 6
# The squares of components in this range, and their sum, neither overflow nor vanish.
_SAFE = (1e-100, 1e100)
Doubles: TypeAlias = npt.NDArray[np.float64]
Rows: TypeAlias = npt.NDArray[np.float32]


class TextPair(NamedTuple):
    """Two sides that are compared by the vectors of their texts.

    Attributes:
        expected: The distinct texts of the expected side.
        actual: The distinct texts of the output's side.
        weights: How often each text counts on its side; None for once.
    """

    expected: Sequence[str]
    actual: Sequence[str]
    weights: tuple[Sequence[int], Sequence[int]] | None = None


class IndexedPair(NamedTuple):
    """A pair, and where the vectors of its texts are in its block.

    Attributes:
        number: Which of the batch it is.
        pair: The pair.
        expected: A row for each text of the expected side.
        actual: A row for each text of the output's side.
    """

    number: int
    pair: TextPair
    expected: list[int]
    actual: list[int]


class EmbeddingBlock:
    """Pairs whose texts are embedded together, each distinct text once.

    Attributes:
        placed: The pairs.
    """

    def __init__(self) -> None:
        self.placed: list[IndexedPair] = []
        self._places = _Places()

    def add(self, number: int, pair: TextPair) -> None:
        """Take in one pair more."""
        place = self._places.__getitem__
        self.placed.append(IndexedPair(number, pair, list(map(place, pair.expected)), list(map(place, pair.actual))))

    @property
    def is_full(self) -> bool:
        """Whether it holds as much as one request should."""
        return len(self.placed) >= PAIRS or self.size >= TEXTS

    @property
    def size(self) -> int:
        """How many texts it has."""
        return len(self._places)

    def embed(self) -> Embed:
        """The request for all its vectors."""
        return Embed(texts=tuple(self._places))


class _Places(dict[str, int]):
    """Gives each text a row when it is first asked for."""

    def __missing__(self, text: str) -> int:
        place = self[text] = len(self)
        return place


class UnitVectors(NamedTuple):
    """Vectors of length 1.

    Attributes:
        values: One row a text.
        lost: The rows that have no direction: zero, or not finite.
    """

    values: Doubles
    lost: frozenset[int]


def embedding_blocks(pairs: Iterable[tuple[int, TextPair]]) -> Iterator[EmbeddingBlock]:
    """Numbered pairs in blocks of what one request should hold."""
    block = EmbeddingBlock()
    for number, pair in pairs:
        block.add(number, pair)
        if block.is_full:
            yield block
            block = EmbeddingBlock()
    if block.placed:
        yield block


def unit_vectors(reply: Reply, *, count: int) -> UnitVectors:
    """The directions of the vectors a model gave.

    Each row depends on its own vector alone, to the bit, so that marks do not depend on what shares their block.

    Args:
        reply: What came back.
        count: How many vectors there should be.

    Raises:
        UnscoredError: Nothing came, or not one vector a text, all of one dimension.

    >>> unit_vectors(Vectors(values=[[3.0, 4.0], [0.0, 0.0]]), count=2)
    UnitVectors(values=array([[0.6, 0.8],
           [0. , 0. ]]), lost=frozenset({1}))
    """
    if isinstance(reply, NoAnswer):
        raise UnscoredError(reply.cause, reply.message)
    wrong = UnscoredError("unreadable", "The model's vectors are not lists of numbers of one length above 0.")
    try:
        given = np.asarray(reply.values if isinstance(reply, Vectors) else None)
    except ValueError:
        raise wrong from None
    if given.ndim != 2 or given.shape[1] == 0 or given.dtype.kind not in "fiu":
        raise wrong
    if len(given) != count:
        raise UnscoredError("unreadable", f"The model gave {len(given)} vectors for {count} texts.")
    values = np.empty(given.shape)
    lost = np.empty(len(given), dtype=bool)
    for start in range(0, len(given), _ROWS):
        rows = slice(start, start + _ROWS)
        lost[rows] = _scale_to_unit(given[rows], values[rows])
    return UnitVectors(values, frozenset(np.flatnonzero(lost).tolist()))


def _scale_to_unit(given: npt.NDArray[Any], values: Doubles) -> npt.NDArray[np.bool_]:
    """Write vectors, scaled to length 1, into rows; returns which of them have no direction."""
    values[...] = given
    largest = np.maximum(values.max(axis=1), -values.min(axis=1))
    lost: npt.NDArray[np.bool_] = ~(np.isfinite(largest) & (largest > 0))
    values[lost] = 0.0
    extreme = ~lost & ((largest < _SAFE[0]) | (largest > _SAFE[1]))
    if extreme.any():
        values[extreme] /= largest[extreme, None]
    # Not einsum: its order of additions depends on the processor.
    length = np.sqrt(np.square(values).sum(axis=1))
    length[lost] = 1.0
    values /= length[:, None]
    return lost


def cosines(placed: Sequence[IndexedPair], values: Doubles) -> list[float]:
    """The cosine of each pair whose sides are one text each, rounded to `DECIMALS`; of a text with itself exactly 1.

    Args:
        placed: The pairs.
        values: Vectors of length 1, by row.
    """
    left = values[[each.expected[0] for each in placed]]
    right = values[[each.actual[0] for each in placed]]
    found: list[float] = (left * right).sum(axis=1).clip(-1.0, 1.0).round(DECIMALS).tolist()
    # Rounding must not keep equal texts below a threshold of 1.
    return [1.0 if each.expected == each.actual else cosine for each, cosine in zip(placed, found, strict=True)]


class NearestCosines(NamedTuple):
    """How near the texts of a pair come to the other side.

    Attributes:
        recall: The mean over expected texts of the best cosine on the output's side, within [0, 1].
        precision: The mean over the output's texts of the best cosine on the expected side.
        best: The best cosine of each expected text.
        distinct: How many texts both sides have together.
    """

    recall: float
    precision: float
    best: Doubles
    distinct: int


def nearest_texts(placed: Sequence[IndexedPair], values: Doubles) -> list[NearestCosines]:
    """The best cosines of each pair, by blocked matrix products.

    A text that stands on both sides has a cosine of exactly 1. Products are in single precision, which is all that
    models give, and of the same shape whatever shares the block and whichever side is which, so that the result is the
    same to the bit. The best cosines are rounded to `DECIMALS` in double precision.

    Args:
        placed: The pairs.
        values: Vectors of length 1, by row.
    """
    single = values.astype(np.float32)
    sides = [side for each in placed for side in (each.expected, each.actual)]
    sizes = [len(side) for side in sides]
    starts = [0, *accumulate(sizes)]
    rows = np.fromiter(chain.from_iterable(sides), np.intp, starts[-1])
    best: list[Rows] = []
    for each, start, middle, end in zip(placed, starts[::2], starts[1::2], starts[2::2], strict=False):
        expected, actual = rows[start:middle], rows[middle:end]
        is_turned = (len(expected), each.pair.expected) > (len(actual), each.pair.actual)
        first, second = (actual, expected) if is_turned else (expected, actual)
        cosine = _products(single.take(first, axis=0), single.take(second, axis=0))
        maxima = (np.maximum.reduce(cosine, axis=1), np.maximum.reduce(cosine, axis=0))
        best += maxima[::-1] if is_turned else maxima
    joined = np.concatenate(best).astype(np.float64).clip(0.0, 1.0).round(DECIMALS)
    shared = _shared(rows, sizes, count=len(values))
    joined[shared] = 1.0
    means = _means(placed, joined, starts)
    twice = np.add.reduceat(shared, starts[:-1:2], dtype=np.intp).tolist()
    return [
        NearestCosines(
            recall=means[side],
            precision=means[side + 1],
            best=joined[starts[side] : starts[side + 1]],
            distinct=starts[side + 2] - starts[side] - common // 2,
        )
        for side, common in zip(range(0, len(sides), 2), twice, strict=True)
    ]


def _shared(rows: npt.NDArray[np.intp], sizes: Sequence[int], *, count: int) -> npt.NDArray[np.bool_]:
    """Which rows of each side the other side of its pair has too, where the sides of a pair follow each other."""
    side = np.repeat(np.arange(len(sizes)), sizes)
    is_there = np.zeros((len(sizes), count), dtype=bool)
    is_there[side, rows] = True
    return is_there[side ^ 1, rows]  # type: ignore[no-any-return]


def _means(placed: Sequence[IndexedPair], joined: Doubles, starts: list[int]) -> list[float]:
    """The rounded mean of each side of each pair, where all sides stand in one array one after the other."""
    counts = [count for each in placed for side in each.pair.weights or () for count in side]
    if not counts:
        sums = np.add.reduceat(joined, starts[:-1])
        return (sums / np.diff(starts)).round(DECIMALS).tolist()  # type: ignore[no-any-return]
    weights = np.array(counts, dtype=np.float64)
    sums = np.add.reduceat(joined * weights, starts[:-1])
    return (sums / np.add.reduceat(weights, starts[:-1])).round(DECIMALS).tolist()  # type: ignore[no-any-return]


def _products(left: Rows, right: Rows) -> Rows:
    """Every row of one side times every row of the other, in tiles that the BLAS does not share among threads.

    Waiting for each other takes threads far longer than products of this size do, on a busy machine fifty times.
    """
    m, n, depth = len(left), len(right), left.shape[1]
    if m * n * depth <= TILE:
        return left @ right.T
    side = math.isqrt(TILE // depth)
    # The inner loops of OpenBLAS work on sixteen numbers at a time.
    side = side // 16 * 16 or side or 1
    found = np.empty((m, n), np.float32)
    columns = right.T
    for row in range(0, m, side):
        rows = left[row : row + side]
        for column in range(0, n, side):
            tile = found[row : row + side, column : column + side]
            np.matmul(rows, columns[:, column : column + side], out=tile)
    return found


def nearest_partners(each: IndexedPair, values: Doubles) -> list[str]:
    """For each expected text of a pair the one of the output that is nearest, itself where it is there.

    Args:
        each: The pair.
        values: Vectors of length 1, by row.
    """
    left, right = (values.take(rows, axis=0).astype(np.float32) for rows in (each.expected, each.actual))
    cosine = _products(left, right)
    here = set(each.actual)
    texts = each.pair
    return [
        text if row in here else texts.actual[place]
        for text, row, place in zip(texts.expected, each.expected, cosine.argmax(axis=1).tolist(), strict=True)
    ]
