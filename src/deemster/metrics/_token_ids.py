"""Two long texts as characters, one for each word, made by arrays without an object for each word."""

from __future__ import annotations

import os
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deemster.metrics._text_normalization import spaced_words

# Characters of both texts together: fewer are told apart sooner one by one, and more might have more distinct words
# than there are characters.
LONG = range(8_000, 2_000_000)

_Codes: TypeAlias = NDArray[np.uint64]
_BLANK = ord(" ")
_HALF = np.uint64(32)
# Odd numbers: multiplying by one loses nothing, and spreads every bit over those above it. Nobody knows them before, so
# that nobody can write words that are taken for others.
_FACTORS = tuple(np.frombuffer(os.urandom(24), np.uint64) | np.uint64(1))
_LOW_BYTES = np.array([(1 << 8 * count) - 1 for count in range(9)], dtype=np.uint64)
_SLOT_BITS = 14
_SLOT_SHIFT = np.uint64(64 - _SLOT_BITS)


class Coded(NamedTuple):
    """The words of two texts that may have a common one; equal words are equal characters.

    Attributes:
        first: The characters of the first text.
        second: The characters of the second.
        sizes: How many words each text has, those that are left out too.
    """

    first: str
    second: str
    sizes: tuple[int, int]


def coded(first: str, second: str) -> Coded:
    """The words of two texts as characters, without most of those that only one of them has.

    >>> one, other, sizes = coded("The cat, the dog.", "Dog: the CAT")
    >>> [[one.index(character) for character in side] for side in (one, other)], sizes
    ([[0, 1, 0, 3], [3, 0, 1]], (4, 3))
    """
    left = spaced_words(first)
    # A blank before and after every word; the zeros let sixteen bytes be read from the start of the last one.
    raw = b" %b %b %b" % (left, spaced_words(second), bytes(15))
    blanks = np.flatnonzero(np.frombuffer(raw, np.uint8) == _BLANK)
    starts = blanks[:-1] + 1
    sizes = blanks[1:] - starts
    is_word = sizes > 0
    codes = _codes(raw, starts, sizes)[is_word]
    m = int(np.count_nonzero(is_word[: starts.searchsorted(len(left) + 2)]))
    kept = _in_both(codes, m)
    text = _characters(codes[kept])
    half = int(np.count_nonzero(kept[:m]))
    return Coded(text[:half], text[half:], (m, len(codes) - m))


def _codes(raw: bytes, starts: NDArray[np.intp], sizes: NDArray[np.intp]) -> _Codes:
    """A number for each word.

    Different words of up to eight bytes have different numbers. A longer one may share its number with another word, by
    a chance next to none, as with the hashes by which rapidfuzz compares tokens that are no characters.
    """
    eights = np.ndarray((len(raw) - 7,), "<u8", raw, strides=(1,))
    codes: _Codes = eights[starts] & _LOW_BYTES.take(sizes, mode="clip")
    codes *= _FACTORS[0]
    codes ^= codes >> _HALF
    longer = np.flatnonzero(sizes > 8)
    starts, sizes = starts[longer], sizes[longer]
    # Mixed once more before the rest comes in: what differs in the last bytes of both halves must not cancel out.
    mixed = codes[longer] * _FACTORS[1]
    mixed ^= mixed >> _HALF
    mixed ^= eights[starts + 8] & _LOW_BYTES.take(sizes - 8, mode="clip")
    mixed *= _FACTORS[2]
    mixed ^= mixed >> _HALF
    for place in np.flatnonzero(sizes > 16).tolist():
        start, size = int(starts[place]), int(sizes[place])
        mixed[place] = np.int64(hash(raw[start : start + size])).view(np.uint64)
    codes[longer] = mixed
    return codes


def _in_both(codes: _Codes, m: int) -> NDArray[np.bool_]:
    """Which words fall into a slot of a small table that also has one of the other side; m of them are the first's."""
    slots = (codes * _FACTORS[1] >> _SLOT_SHIFT).astype(np.intp)
    sides = np.zeros(1 << _SLOT_BITS, dtype=np.uint8)
    sides[slots[:m]] = 1
    sides[slots[m:]] |= 2
    return sides[slots] == 3  # type: ignore[no-any-return]


def _characters(codes: _Codes) -> str:
    """A character for each number, the same for the same."""
    order = codes.argsort()
    ranked = codes[order]
    ranks = np.zeros(len(codes), dtype=np.uint32)
    np.cumsum(ranked[1:] != ranked[:-1], out=ranks[1:])
    characters = np.empty(len(codes), dtype="<u4")
    characters[order] = ranks
    return characters.tobytes().decode("utf-32-le", "surrogatepass")
