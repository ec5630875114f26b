"""What a comparison needs of a run, as arrays: its marks, what its outputs were, and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.datasets import SelectedPart
from deemster.results.mark_table import MarkTable


class ComparedRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run as a comparison names it.

    Attributes:
        id: Its id.
        suite: The suite's name.
        label: What the user calls it.
        target: What it ran.
        dataset: The dataset's name.
        fingerprint: The dataset's fingerprint.
        started_at: When it began.
        status: How it ended.
        samples: How many samples it has.
        repetitions: How often each was run.
        macro_f1: Its macro-F1 over all its samples and metrics.
        pass_rate: The share of its executions in which every metric passed.
        part: The part of the dataset that it ran; None for the whole.
    """

    id: str
    suite: str | None = None
    label: str | None = None
    target: str | None = None
    dataset: str
    fingerprint: str | None
    started_at: str
    status: str
    samples: int
    repetitions: int
    macro_f1: float | None
    pass_rate: float | None
    part: SelectedPart | None = None


class RunColumns(NamedTuple):
    """A run, as arrays in the order of its dataset.

    Attributes:
        run: The run.
        marks: Its marks.
        digests: The row hash of each sample, 32 bytes a row.
        identities: By a metric's name, everything that must be equal for its marks to be compared, as plain JSON.
        clusters: The cluster of each sample, where samples are not independent; None where each stands alone.
        ids: Gives the ids of the samples at some positions.
    """

    run: ComparedRun
    marks: MarkTable
    digests: NDArray[np.uint8]
    identities: dict[str, Any]
    clusters: Sequence[Any] | None
    ids: Callable[[Sequence[int]], list[str]]


class JoinedSamples(NamedTuple):
    """Which samples of two runs belong together, as positions in each.

    Attributes:
        before: The samples of the baseline that are in both, in the order of the candidate's dataset.
        after: The same samples in the candidate.
        removed: Samples that only the baseline has.
        added: Samples that only the candidate has.
    """

    before: NDArray[np.int64]
    after: NDArray[np.int64]
    removed: NDArray[np.int64]
    added: NDArray[np.int64]


def join_samples(baseline: RunColumns, candidate: RunColumns) -> JoinedSamples:
    """Find the samples that two runs share: those with the same input and expected output.

    Samples of one dataset that are equal are joined in the order of their ids.
    """
    before, after = _sample_keys(baseline), _sample_keys(candidate)
    order = np.argsort(before, kind="stable")
    if not len(order):
        none = np.empty(0, np.int64)
        return JoinedSamples(none, none, none, np.arange(len(after)))
    places = np.minimum(np.searchsorted(before[order], after), len(order) - 1)
    partners = order[places]
    # The keys are a part of the hash: the whole of it decides.
    same = before[partners] == after
    for first, second in zip(_words(baseline).T, _words(candidate).T, strict=True):
        same &= first[partners] == second
    matched = np.flatnonzero(same)
    partners = partners[matched]
    removed = np.ones(len(before), dtype=np.bool_)
    removed[partners] = False
    return JoinedSamples(partners, matched, np.flatnonzero(removed), np.flatnonzero(~same))


def _words(run: RunColumns) -> NDArray[np.uint64]:
    """The row hash of each sample as four numbers."""
    return np.ascontiguousarray(run.digests).view(np.uint64)


def _sample_keys(run: RunColumns) -> NDArray[np.uint64]:
    """A number for each sample that the same sample of another run has too: its hash and its place among equal ones."""
    heads = np.ascontiguousarray(_words(run)[:, 0])
    order = np.argsort(heads, kind="stable")
    ranked = heads[order]
    repeated = np.flatnonzero(ranked[1:] == ranked[:-1])
    if not len(repeated):
        return heads
    keys = heads.copy()
    positions = np.unique(np.concatenate([order[repeated], order[repeated + 1]]))
    names = dict(zip(positions.tolist(), run.ids(positions.tolist()), strict=True))
    seen: dict[bytes, int] = {}
    for position in sorted(names, key=lambda place: (names[place], place)):
        digest = run.digests[position].tobytes()
        count = seen[digest] = seen.get(digest, -1) + 1
        # An odd step of about 2⁶⁴/φ: equal hashes get keys far from each other.
        keys[position] = (int(keys[position]) + count * 0x9E3779B97F4A7C15) % 2**64
    return keys
