"""What became of every sample between two runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.formats.streamed_list import Stream
from deemster.results.metric_summary import OUTSIDE, SCORED
from deemster.results.run_columns import JoinedSamples, RunColumns
from deemster.results.sample_summary import DECIMALS
from deemster.stats import fisher_exact

Status: TypeAlias = Literal[
    "newly_failing",
    "newly_passing",
    "regressed",
    "improved",
    "unscored_now",
    "scored_now",
    "added",
    "removed",
    "stable",
]
STATUSES: tuple[Status, ...] = get_args(Status)
_CODES = {status: code for code, status in enumerate(STATUSES)}
# Reports round scores to nine decimals: numbers that differ by less are equal.
_ROUNDING = 2e-9
# How many samples are made into records at once, and how many are given a status at once.
_BLOCK, _CODED = 512, 1 << 16
# A sample has changed for certain where chance would part its own pass counts so far once in twenty times.
_CONFIDENT = 0.05


class SampleSide(msgspec.Struct, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True):
    """One sample in one run.

    Attributes:
        id: Its id there.
        position: Its place in the dataset there, from 0.
        repetitions: How often it was run.
        passed: Repetitions in which every compared metric passed.
        scores: The mean score of each metric; None where it has none.
        failed: The metrics that did not pass in at least half of the repetitions.
    """

    id: str
    position: int
    repetitions: int
    passed: int
    scores: dict[str, float | None]
    failed: tuple[str, ...]


class SampleChange(msgspec.Struct, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True):
    """What became of one sample.

    Attributes:
        status: How it changed.
        row_hash: The hash of its input and expected output; None where it is left out.
        baseline: How it was; None for an added one.
        candidate: How it is; None for a removed one.
        p_value: Fisher's exact test of its own pass counts; None without repetitions.
        confident: Whether its own repetitions show that it changed; None without repetitions.
    """

    status: Status
    row_hash: str | None
    baseline: SampleSide | None
    candidate: SampleSide | None
    p_value: float | None = None
    confident: bool | None = None


class _SidePasses(NamedTuple):
    """The samples of one run that are looked at: by sample and repetition whether all passed; by metric the rest."""

    passed: NDArray[np.bool_]
    whole: NDArray[np.bool_]
    quality: NDArray[np.float64]


class ChangeTable:
    """The status of every sample of two runs.

    Args:
        baseline: The run before.
        candidate: The run now.
        joined: Which samples belong together.
        names: The metrics that are compared.
    """

    def __init__(
        self, baseline: RunColumns, candidate: RunColumns, joined: JoinedSamples, names: Sequence[str]
    ) -> None:
        self._joined, self._names = joined, tuple(names)
        count = len(joined.after)
        self.codes, self._gain = np.full(count, _CODES["stable"], dtype=np.uint8), np.empty(count)
        for start in range(0, count, _CODED):
            block = slice(start, start + _CODED)
            before = _side(baseline, joined.before[block], self._names)
            after = _side(candidate, joined.after[block], self._names)
            self._gain[block], self.codes[block] = _codes(before, after)
        self._places = np.flatnonzero(self.codes != _CODES["stable"])
        # Only samples that changed are shown with their hash.
        self._hashes = candidate.digests[joined.after[self._places]]
        self._added, self._removed = candidate.digests[joined.added], baseline.digests[joined.removed]
        self._runs = baseline.without_digests(), candidate.without_digests()

    @property
    def counts(self) -> dict[str, int]:
        """How many samples have each status."""
        found = np.bincount(self.codes, minlength=len(STATUSES)).tolist()
        sides = {"added": len(self._joined.added), "removed": len(self._joined.removed)}
        return {status: sides.get(status, found[code]) for status, code in _CODES.items()}

    def statuses(self) -> NDArray[np.uint8]:
        """The status of every sample, as its place in `STATUSES`: of those in both runs, then added, then removed."""
        added = np.full(len(self._joined.added), _CODES["added"], dtype=np.uint8)
        removed = np.full(len(self._joined.removed), _CODES["removed"], dtype=np.uint8)
        return np.concatenate([self.codes, added, removed])

    def positions(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The places of every sample in the baseline and in the candidate, in the order of `statuses`; -1 for none."""
        joined = self._joined
        none = np.full(len(joined.added), -1), np.full(len(joined.removed), -1)
        return (
            np.concatenate([joined.before, none[0], joined.removed]),
            np.concatenate([joined.after, joined.added, none[1]]),
        )

    def gains(self) -> NDArray[np.float64]:
        """How much every sample gained, in the order of `statuses`: below 0 for a loss, NaN in one run alone."""
        alone = np.full(len(self._joined.added) + len(self._joined.removed), np.nan)
        return np.concatenate([self._gain, alone])

    def first(self, status: Status, most: int) -> Iterator[SampleChange]:
        """The samples of a status that lost most; only of those that both runs have.

        Args:
            status: The status.
            most: At most so many.
        """
        places = np.flatnonzero(self.codes == _CODES[status])
        yield from self._changed(places[np.argsort(self._gain[places], kind="stable")][:most])

    def changes(self) -> Iterator[SampleChange]:
        """Every sample that did not stay as it was: by status, the worst first."""
        baseline, candidate = self._runs
        places = self._places
        for block in _in_blocks(places[np.lexsort((self._gain[places], self.codes[places]))]):
            yield from self._changed(block)
        names = self._names
        added = (side for block in _in_blocks(self._joined.added) for side in sample_sides(candidate, block, names))
        for row_hash, side in zip(self._added, added, strict=True):
            yield _change("added", row_hash, None, side)
        removed = (side for block in _in_blocks(self._joined.removed) for side in sample_sides(baseline, block, names))
        for row_hash, side in zip(self._removed, removed, strict=True):
            yield _change("removed", row_hash, side, None)

    def _changed(self, places: NDArray[np.int64]) -> Iterator[SampleChange]:
        baseline, candidate = self._runs
        before = sample_sides(baseline, self._joined.before[places], self._names)
        after = sample_sides(candidate, self._joined.after[places], self._names)
        p_values: list[float] | list[None] = [None] * len(places)
        if baseline.marks.repetitions > 1 or candidate.marks.repetitions > 1:
            counts = [[side.passed for side in sides] for sides in (before, after)]
            trials = baseline.marks.repetitions, candidate.marks.repetitions
            p_values = fisher_exact(counts[0], trials[0], counts[1], trials[1]).tolist()
        hashes, codes = self._hashes[np.searchsorted(self._places, places)], self.codes[places].tolist()
        for code, row_hash, old, new, p_value in zip(codes, hashes, before, after, p_values, strict=True):
            yield _change(STATUSES[code], row_hash, old, new, p_value)


class ChangedSamples(Stream[SampleChange]):
    """Every sample that did not stay as it was; it may be read any number of times.

    Args:
        table: The status of every sample.
    """

    def __init__(self, table: ChangeTable) -> None:
        super().__init__(table.changes)
        self.table, self.first = table, table.first


def _in_blocks(places: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    for start in range(0, len(places), _BLOCK):
        yield places[start : start + _BLOCK]


def _change(
    status: Status,
    row_hash: NDArray[np.uint8],
    before: SampleSide | None,
    after: SampleSide | None,
    p_value: float | None = None,
) -> SampleChange:
    return SampleChange(
        status=status,
        row_hash=row_hash.tobytes().hex(),
        baseline=before,
        candidate=after,
        p_value=p_value,
        confident=None if p_value is None else p_value < _CONFIDENT,
    )


def _codes(before: _SidePasses, after: _SidePasses) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """How much each sample gained, and the code of its status."""
    was, now = before.passed.mean(axis=1), after.passed.mean(axis=1)
    gain = now - was
    gain = np.where(gain == 0, after.quality - before.quality, gain)
    codes = np.full(len(was), _CODES["stable"], dtype=np.uint8)
    codes[gain > _ROUNDING] = _CODES["improved"]
    codes[gain < -_ROUNDING] = _CODES["regressed"]
    codes[before.whole & ~after.whole] = _CODES["unscored_now"]
    codes[~before.whole & after.whole] = _CODES["scored_now"]
    # A sample without a score does not pass. So the lists hold as many samples as the table of passes counts.
    codes[(was < 0.5) & (now >= 0.5)] = _CODES["newly_passing"]
    codes[(was >= 0.5) & (now < 0.5)] = _CODES["newly_failing"]
    return gain, codes


def _side(run: RunColumns, positions: NDArray[np.int64], names: Sequence[str]) -> _SidePasses:
    shape = len(positions), run.marks.repetitions
    passed, whole = np.ones(shape, dtype=np.bool_), np.ones(shape[0], dtype=np.bool_)
    total, counts = np.zeros(shape[0]), np.zeros(shape[0])
    for place, card in enumerate(run.marks.cards):
        if card.name in names:
            causes = run.marks.causes[positions, :, place]
            scored, outside = causes == SCORED, causes == OUTSIDE
            scores = run.marks.scores[positions, :, place]
            total += np.where(scored, scores if card.higher_is_better else 1 - scores, 0.0).sum(axis=1)
            counts += scored.sum(axis=1)
            passed &= run.marks.passed[positions, :, place] | outside
            whole &= (scored | outside).all(axis=1)
    return _SidePasses(passed, whole, total / np.maximum(counts, 1))


def sample_sides(run: RunColumns, positions: NDArray[np.int64], names: Sequence[str]) -> list[SampleSide]:
    """How some samples did in a run.

    Args:
        run: The run.
        positions: The places of the samples.
        names: The metrics that are compared.
    """
    places = {card.name: place for place, card in enumerate(run.marks.cards) if card.name in names}
    columns = [places[name] for name in names]
    repetitions = run.marks.repetitions
    causes = run.marks.causes[positions][:, :, columns]
    scored = causes == SCORED
    # A metric that does not apply does not fail.
    passed = run.marks.passed[positions][:, :, columns] | (causes == OUTSIDE)
    counts = scored.sum(axis=1)
    sums = np.where(scored, run.marks.scores[positions][:, :, columns], 0.0).sum(axis=1)
    means = np.round(sums / np.maximum(counts, 1), DECIMALS).tolist()
    failed = (passed.sum(axis=1) * 2 < repetitions).tolist()
    known, whole = (counts > 0).tolist(), passed.all(axis=2).sum(axis=1).tolist()
    return [
        SampleSide(
            id=name,
            position=position,
            repetitions=repetitions,
            passed=whole[place],
            scores={metric: means[place][at] if known[place][at] else None for at, metric in enumerate(names)},
            failed=tuple(metric for at, metric in enumerate(names) if failed[place][at]),
        )
        for place, (position, name) in enumerate(zip(positions.tolist(), run.ids(positions.tolist()), strict=True))
    ]


def newly_failing(changes: Iterable[SampleChange]) -> Iterator[SampleChange]:
    """The samples that newly fail; they come first among the changes."""
    for change in changes:
        if change.status != "newly_failing":
            return
        yield change
