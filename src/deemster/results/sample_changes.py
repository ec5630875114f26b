"""What became of every sample between two runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
_BLOCK = 512
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
        row_hash: The hash of its input and expected output; None where a privacy level leaves it out.
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
        self._runs, self._joined, self._names = (baseline, candidate), joined, tuple(names)
        before = _side(baseline, joined.before, self._names)
        after = _side(candidate, joined.after, self._names)
        was, now = before.passed.mean(axis=1), after.passed.mean(axis=1)
        self._drop = now - was
        self._drop = np.where(self._drop == 0, after.quality - before.quality, self._drop)
        codes = np.full(len(was), _CODES["stable"], dtype=np.uint8)
        codes[self._drop > _ROUNDING] = _CODES["improved"]
        codes[self._drop < -_ROUNDING] = _CODES["regressed"]
        codes[(was < 0.5) & (now >= 0.5)] = _CODES["newly_passing"]
        codes[(was >= 0.5) & (now < 0.5)] = _CODES["newly_failing"]
        codes[before.whole & ~after.whole] = _CODES["unscored_now"]
        codes[~before.whole & after.whole] = _CODES["scored_now"]
        self.codes = codes

    @property
    def counts(self) -> dict[str, int]:
        """How many samples have each status."""
        found = np.bincount(self.codes, minlength=len(STATUSES)).tolist()
        sides = {"added": len(self._joined.added), "removed": len(self._joined.removed)}
        return {status: sides.get(status, found[code]) for status, code in _CODES.items()}

    def first(self, status: Status, most: int) -> Iterator[SampleChange]:
        """The samples of a status that lost most; only of those that both runs have.

        Args:
            status: The status.
            most: At most so many.
        """
        places = np.flatnonzero(self.codes == _CODES[status])
        yield from self._changed(places[np.argsort(self._drop[places], kind="stable")][:most])

    def changes(self) -> Iterator[SampleChange]:
        """Every sample that did not stay as it was: by status, the worst first."""
        baseline, candidate = self._runs
        order = np.lexsort((np.arange(len(self.codes)), self._drop, self.codes))
        order = order[self.codes[order] != _CODES["stable"]]
        for block in _in_blocks(order):
            yield from self._changed(block)
        for block in _in_blocks(self._joined.added):
            for side in _sides(candidate, block, self._names):
                yield _change("added", candidate, None, side)
        for block in _in_blocks(self._joined.removed):
            for side in _sides(baseline, block, self._names):
                yield _change("removed", baseline, side, None)

    def _changed(self, places: NDArray[np.int64]) -> Iterator[SampleChange]:
        baseline, candidate = self._runs
        before = _sides(baseline, self._joined.before[places], self._names)
        after = _sides(candidate, self._joined.after[places], self._names)
        p_values: list[float] | list[None] = [None] * len(places)
        if baseline.marks.repetitions > 1 or candidate.marks.repetitions > 1:
            counts = [[side.passed for side in sides] for sides in (before, after)]
            trials = baseline.marks.repetitions, candidate.marks.repetitions
            p_values = fisher_exact(counts[0], trials[0], counts[1], trials[1]).tolist()
        for code, old, new, p_value in zip(self.codes[places].tolist(), before, after, p_values, strict=True):
            yield _change(STATUSES[code], candidate, old, new, p_value)


class ChangedSamples(Stream[SampleChange]):
    """Every sample that did not stay as it was; it may be read any number of times.

    Args:
        table: The status of every sample.
    """

    def __init__(self, table: ChangeTable) -> None:
        super().__init__(table.changes)
        self.first = table.first


def _in_blocks(places: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    for start in range(0, len(places), _BLOCK):
        yield places[start : start + _BLOCK]


def _change(
    status: Status, run: RunColumns, before: SampleSide | None, after: SampleSide | None, p_value: float | None = None
) -> SampleChange:
    """The change of a sample; `run` is one that has it, the candidate where both do."""
    position = after.position if after is not None else before.position if before is not None else 0
    return SampleChange(
        status=status,
        row_hash=run.digests[position].tobytes().hex(),
        baseline=before,
        candidate=after,
        p_value=p_value,
        confident=None if p_value is None else p_value < _CONFIDENT,
    )


def _side(run: RunColumns, positions: NDArray[np.int64], names: Sequence[str]) -> _SidePasses:
    shape = len(positions), run.marks.repetitions
    passed, whole = np.ones(shape, dtype=np.bool_), np.ones(shape[0], dtype=np.bool_)
    total, counts = np.zeros(shape[0]), np.zeros(shape[0])
    # Metric by metric, since the scores of a million samples take much room.
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


def _sides(run: RunColumns, positions: NDArray[np.int64], names: Sequence[str]) -> list[SampleSide]:
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
