"""What a comparison needs of a run, as arrays: its marks, what its outputs were, and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.datasets import SelectedPart
from deemster.results.difference_origin import AnchorScores
from deemster.results.mark_table import CriterionColumns, MarkTable

# How a reason begins why a metric that both runs have cannot be compared.
IDENTITY_CHANGE = "its "
# Samples are joined so many at once: arrays of a million take much room.
_BLOCK = 1 << 16


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
        metadata: Gives the metadata of the samples; None where that is not known.
        stored_usage: Gives what the target used for each output, where the marks do not hold it.
        anchors: How its anchors were judged.
        read_criteria: Gives, by metric, what it said of each criterion; None where that is not known.
    """

    run: ComparedRun
    marks: MarkTable
    digests: NDArray[np.uint8]
    identities: dict[str, Any]
    clusters: Sequence[Any] | None
    ids: Callable[[Sequence[int]], list[str]]
    metadata: Callable[[], Iterable[Mapping[str, Any]]] | None = None
    stored_usage: Callable[[], NDArray[np.float64] | None] | None = None
    anchors: AnchorScores = AnchorScores()
    read_criteria: Callable[[], Mapping[str, CriterionColumns]] | None = None

    def usage(self) -> NDArray[np.float64] | None:
        """What the target used for each output, as `MarkTable` has it."""
        return self.marks.usage if self.stored_usage is None else self.stored_usage()

    def without_digests(self) -> RunColumns:
        """The same without hashes of samples, which are of no use once they are joined, and take much room."""
        return self._replace(digests=self.digests[:0].copy())


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

    def within(self, wanted: NDArray[np.int64]) -> JoinedSamples:
        """Only what belongs to wanted samples of the candidate; what the baseline alone has is left out."""
        kept = np.isin(self.after, wanted)
        return JoinedSamples(self.before[kept], self.after[kept], self.removed[:0], np.intersect1d(self.added, wanted))


def join_samples(baseline: RunColumns, candidate: RunColumns) -> JoinedSamples:
    """Find the samples that two runs share: those with the same input and expected output.

    Samples of one dataset that are equal are joined in the order of their ids.
    """
    partners = _find_partners(baseline, candidate)
    added, after = np.flatnonzero(partners < 0), np.flatnonzero(partners >= 0)
    before = partners[after]
    removed = np.ones(len(baseline.digests), dtype=np.bool_)
    removed[before] = False
    # Two runs of one dataset share one array.
    before = after if np.array_equal(before, after) else before
    return JoinedSamples(before, after, np.flatnonzero(removed), added)


def _find_partners(baseline: RunColumns, candidate: RunColumns) -> NDArray[np.int64]:
    """For each sample of the candidate, the position of the same sample in the baseline; -1 where it has none."""
    keys, wanted = _sample_keys(baseline), _sample_keys(candidate)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    partners = np.full(len(wanted), -1)
    for start in range(0, len(wanted) if len(order) else 0, _BLOCK):
        block = slice(start, start + _BLOCK)
        places = np.minimum(np.searchsorted(keys, wanted[block]), len(order) - 1)
        found = order[places]
        # The keys are a part of the hash: the whole of it decides.
        same = (_words(baseline)[found] == _words(candidate)[block]).all(axis=1) & (keys[places] == wanted[block])
        partners[block] = np.where(same, found, -1)
    return partners


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


def _without_shared(mapping: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """What a mapping holds and the other does not hold alike."""
    return {key: value for key, value in mapping.items() if key not in other or other[key] != value}


def describe_identity_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """How the identity of a metric changed, half a sentence for each part; nothing where it is the same metric."""
    found = []
    for key in {**now, **before}:
        # A report file does not know the code of a metric.
        is_unknown = key == "source" and (key not in before or key not in now)
        if not is_unknown and now.get(key) != before.get(key):
            old, new = before.get(key, "not there"), now.get(key, "not there")
            if isinstance(old, Mapping) and isinstance(new, Mapping):
                old, new = _without_shared(old, new), _without_shared(new, old)
            found.append(f"{IDENTITY_CHANGE}{key} was {old}, and is {new}")
    return found
