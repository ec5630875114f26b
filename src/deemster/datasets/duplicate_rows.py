"""Finds rows of a dataset whose input and expected output are equal."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np


def equal_rows(digests: bytes | bytearray, ids: Callable[[list[int]], Iterable[str]]) -> list[list[str]]:
    """The ids of rows with one hash, group by group in order.

    Args:
        digests: 32 bytes of row hash for each row.
        ids: Gives the ids of rows by their positions, which rise.
    """
    # Rows whose first eight bytes are equal are few; only those are compared whole.
    heads = np.frombuffer(digests, dtype=np.uint64)[::4]
    ordered = np.sort(heads)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if not twice.size:
        return []

    positions: list[int] = np.flatnonzero(np.isin(heads, twice)).tolist()
    ids_by_digest: dict[bytes, list[str]] = {}
    for position, sample_id in zip(positions, ids(positions), strict=True):
        digest = bytes(digests[position * 32 : position * 32 + 32])
        ids_by_digest.setdefault(digest, []).append(sample_id)
    return [group for group in ids_by_digest.values() if len(group) > 1]
