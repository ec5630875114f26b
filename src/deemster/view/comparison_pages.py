"""What the viewer says of several runs: the comparison, the samples that changed, and one sample in all of them."""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.comparison.compare_runs import compare_sources, rank_sources
from deemster.comparison.run_source import quotes_of_either
from deemster.comparison.stored_source import StoredSource
from deemster.errors import InputError, did_you_mean
from deemster.results.sample_changes import STATUSES, ChangedSamples, ChangeTable
from deemster.view.opened_run import OpenedRun
from deemster.view.run_cache import RunCache
from deemster.view.sample_pages import add_prompts, execution_facts, sample_at, sample_facts, sample_rows
from deemster.view.sample_query import SampleQuery, find_samples, neighbours
from deemster.view.sample_shapes import ListedSample
from deemster.view.score_plot import draw_points

_KEPT = 2
# A sample whose status did not change passes in both runs or fails in both.
SHOWN_STATUSES = (*(status for status in STATUSES if status != "stable"), "fails_in_both", "passes_in_both")
_SORTS = ("change", "id", "position", "difference")


class ChangeQuery(NamedTuple):
    """Which samples of a comparison are wanted, in which order.

    Attributes:
        statuses: What became of them; every one unless given.
        metric: Only samples whose score of this metric changed; `difference` is then that of this metric.
        text: Words that occur in them, in either run.
        fields: Where the text is looked for.
        sort: `change` for the order of the report, `id`, `position`, or `difference`.
        descending: Whether the order is turned around.
    """

    statuses: tuple[str, ...] = ()
    metric: str | None = None
    text: str = ""
    fields: tuple[str, ...] = ()
    sort: str = "change"
    descending: bool = False


class OpenedComparison:
    """Two runs or more that pages are made from. The first is the baseline; samples are those of the first two.

    Args:
        runs: The runs.

    Raises:
        ReportError: The runs share no sample, or have no marks.
        StoreError: The store fails.
    """

    def __init__(self, runs: Sequence[OpenedRun]) -> None:
        self.runs = tuple(runs)
        sources = [StoredSource(run.store, run.row, loaded=(run.table, run.samples)) for run in runs]
        report = compare_sources(*sources[:2])
        self.report, self.quotes = report, quotes_of_either(*sources[:2])
        self.head: dict[str, Any] = {"kind": "comparison", **msgspec.json.decode(report.head())}
        if len(sources) > 2:
            ranking = rank_sources(sources)
            self.head = {"kind": "ranking", **msgspec.json.decode(b"".join(ranking.pieces()))}
            self.head["verdict"] = ranking.verdict
        else:
            self.head["verdict"] = report.verdict
        # A comparison that is computed has its samples in a table.
        self.table: ChangeTable = cast("ChangedSamples", report.changes).table
        self.positions = self.table.positions()
        self.statuses = self._read_statuses()
        self.head["statuses"] = self.counts

    def _read_statuses(self) -> NDArray[np.uint8]:
        """The status of every sample, as its place in `SHOWN_STATUSES`."""
        statuses = self.table.statuses()
        before, after = self.runs[:2]
        compared = [place for place, name in enumerate(after.names) if name in before.names]
        counts = after.pass_counts(compared)[self.positions[1]]

        stable = statuses == STATUSES.index("stable")
        fails = (counts >= 0) & (2 * counts < after.table.repetitions)
        statuses[stable] = SHOWN_STATUSES.index("passes_in_both")
        statuses[stable & fails] = SHOWN_STATUSES.index("fails_in_both")
        return statuses

    @property
    def counts(self) -> dict[str, int]:
        """How many samples have each status."""
        counts = np.bincount(self.statuses, minlength=len(SHOWN_STATUSES)).tolist()
        return dict(zip(SHOWN_STATUSES, counts, strict=True))

    @property
    def names(self) -> list[str]:
        """The metrics of all runs, each once."""
        return list(dict.fromkeys(name for run in self.runs for name in run.names))

    def hashes(self, places: NDArray[np.int64]) -> list[str]:
        """The row hashes of some samples."""
        before, after = (positions[places].tolist() for positions in self.positions)
        first, second = (run.samples.digests for run in self.runs[:2])
        return [
            (second[new] if new >= 0 else first[old]).tobytes().hex() for old, new in zip(before, after, strict=True)
        ]

    def scores(self, metric: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The mean scores of a metric in both runs; NaN where there is none.

        Raises:
            InputError: One of the runs has no such metric.
        """
        found = []
        for run, positions in zip(self.runs, self.positions, strict=False):
            if metric not in run.names:
                raise InputError(f"Not both runs have a metric {metric!r:.100}. {did_you_mean(metric, self.names)}")
            values = run.mean_scores(run.names.index(metric))
            found.append(np.where(positions >= 0, values[np.maximum(positions, 0)], np.nan))
        return found[0], found[1]

    def find(self, query: ChangeQuery) -> NDArray[np.int64]:
        """The samples that a query asks for, as places in `statuses`, in its order.

        Raises:
            InputError: The query names what the comparison does not have.
            StoreError: The store fails.
        """
        fits = np.ones(len(self.statuses), dtype=np.bool_)
        if query.statuses:
            if unknown := [status for status in query.statuses if status not in SHOWN_STATUSES]:
                raise InputError(f"No status is called {unknown[0]!r:.40}. {did_you_mean(unknown[0], SHOWN_STATUSES)}")
            fits &= np.isin(self.statuses, [SHOWN_STATUSES.index(status) for status in query.statuses])
        difference = self.table.gains()
        if query.metric is not None:
            before, after = self.scores(query.metric)
            difference = after - before
            fits &= np.abs(difference) > 1e-9
        if query.text:
            fits &= self._fits(SampleQuery(text=query.text, fields=query.fields))
        return self._sorted(np.flatnonzero(fits), query, difference)

    def _fits(self, query: SampleQuery) -> NDArray[np.bool_]:
        """Whether each sample fits in one of the two runs."""
        found = np.zeros(len(self.statuses), dtype=np.bool_)
        for run, positions in zip(self.runs, self.positions, strict=False):
            inside = np.zeros(run.table.samples, dtype=np.bool_)
            inside[find_samples(run, query)] = True
            found |= (positions >= 0) & inside[np.maximum(positions, 0)]
        return found

    def _sorted(
        self, places: NDArray[np.int64], query: ChangeQuery, difference: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        before, after = (positions[places] for positions in self.positions)
        newest = np.where(after >= 0, after, before)
        if query.sort == "id":
            names = self._ids(places)
            order = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)
        elif query.sort == "position":
            order = np.argsort(newest, kind="stable")
        elif query.sort == "difference":
            keys = difference[places]
            # NaN sorts to the end in both orders.
            return places[np.argsort(-keys if query.descending else keys, kind="stable")]
        elif query.sort == "change":
            order = np.lexsort((newest, difference[places], self.statuses[places]))
        else:
            raise InputError(f"Samples cannot be sorted by {query.sort!r:.40}. {did_you_mean(query.sort, _SORTS)}")
        return places[order[::-1] if query.descending else order]

    def _ids(self, places: NDArray[np.int64]) -> list[str]:
        before, after = (positions[places] for positions in self.positions)
        first, second = (run.samples for run in self.runs[:2])
        names = np.empty(len(places), dtype=object)
        names[after >= 0] = second.ids(after[after >= 0].tolist())
        names[after < 0] = first.ids(before[after < 0].tolist())
        found: list[str] = names.tolist()
        return found

    def place_of(self, row_hash: str) -> int:
        """The place of a sample in `statuses`.

        Raises:
            InputError: Neither run has such a sample.
        """
        try:
            digest = np.frombuffer(bytes.fromhex(row_hash), dtype=np.uint8)
        except ValueError:
            digest = np.empty(0, dtype=np.uint8)
        for run, positions in zip(self.runs, self.positions, strict=False):
            if len(digest) == run.samples.digests.shape[1]:
                equal = np.flatnonzero((run.samples.digests == digest).all(axis=1))
                if len(equal):
                    return int(np.flatnonzero(positions == equal[0])[0])
        raise InputError("The runs have no such sample.")

    def sides(self, places: NDArray[np.int64]) -> list[list[int | None]]:
        """The places of some samples in every run; None where a run does not have one."""
        before, after = (positions[places].tolist() for positions in self.positions)
        found: list[list[int | None]] = [
            [old if old >= 0 else None, new if new >= 0 else None] for old, new in zip(before, after, strict=True)
        ]
        for run in self.runs[2:]:
            for sides, row_hash in zip(found, self.hashes(places), strict=True):
                near = next(side for side in sides if side is not None)
                sides.append(run.store.find_sample(run.row.id, row_hash, near=near))
        return found


class ComparisonCache:
    """Keeps the comparisons that were opened last.

    Args:
        runs: Opens runs.
    """

    def __init__(self, runs: RunCache) -> None:
        self._runs, self._lock = runs, threading.Lock()
        self._compare = functools.lru_cache(_KEPT)(OpenedComparison)

    def open(self, names: Sequence[str]) -> OpenedComparison:
        """The comparison of some runs.

        Args:
            names: The runs; the first is the baseline.

        Raises:
            InputError: There are fewer than two runs, or more than eight.
            ReportError: The runs share no sample, or have no marks.
            StoreError: There is no such run, or the store fails.
        """
        if not 2 <= len(names) <= 8:
            raise InputError("A comparison is of two to eight runs: `runs=A,B`.")
        runs = tuple(self._runs.open(name) for name in names)
        with self._lock:
            return self._compare(runs)


def change_page(comparison: OpenedComparison, query: ChangeQuery, *, offset: int, limit: int) -> dict[str, Any]:
    """A page of the samples of a comparison.

    Args:
        comparison: The runs.
        query: Which samples, in which order.
        offset: How many are passed over.
        limit: How many are shown at most.

    Raises:
        InputError: The query names what the comparison does not have.
        StoreError: The store fails.
    """
    found = comparison.find(query)
    return {
        "total": len(comparison.statuses),
        "matched": len(found),
        "offset": offset,
        "statuses": comparison.counts,
        "rows": change_rows(comparison, found[offset : offset + limit]),
    }


def change_rows(comparison: OpenedComparison, places: NDArray[np.int64]) -> list[dict[str, Any]]:
    """Some samples of a comparison as lines of a table: what each run made of them.

    Args:
        comparison: The runs.
        places: Their places in `statuses`.

    Raises:
        StoreError: The store fails.
    """
    sides = comparison.sides(places)
    rows: list[list[ListedSample | None]] = []
    for at, run in enumerate(comparison.runs):
        wanted = [side[at] for side in sides]
        positions = np.array([position for position in wanted if position is not None], dtype=np.int64)
        shown = iter(sample_rows(run, positions))
        rows.append([None if position is None else next(shown) for position in wanted])
    entries = zip(places.tolist(), comparison.hashes(places), sides, zip(*rows, strict=True), strict=True)
    return [_change_row(comparison, *entry) for entry in entries]


def _change_row(
    comparison: OpenedComparison,
    place: int,
    row_hash: str,
    positions: Sequence[int | None],
    lines: Sequence[ListedSample | None],
) -> dict[str, Any]:
    newest = next(line for line in (lines[1], lines[0], *lines[2:]) if line is not None)
    return {
        "row_hash": row_hash,
        "id": newest.id,
        "tags": newest.tags,
        "status": SHOWN_STATUSES[comparison.statuses[place]],
        "positions": positions,
        "passed": [None if line is None else line.passed for line in lines],
        "scores": {name: [_score(line, name) for line in lines] for name in comparison.names},
        "preview": {
            "input": newest.preview.input,
            "expected": newest.preview.expected,
            "outputs": [None if line is None else line.preview.output for line in lines],
        },
    }


def _score(line: ListedSample | None, metric: str) -> float | None:
    cell = None if line is None else line.scores.get(metric)
    return None if cell is None else cell.score


def change_points(comparison: OpenedComparison, metric: str, *, seed: int = 0) -> dict[str, Any]:
    """The scores of a metric before and now: of every sample of both runs, or of 2,000 drawn at random.

    Args:
        comparison: The runs.
        metric: The metric.
        seed: The seed of the draw.

    Raises:
        InputError: Not both runs have the metric.
        StoreError: The store fails.
    """
    before, after = comparison.scores(metric)
    known = np.flatnonzero(~np.isnan(before) & ~np.isnan(after))
    drawn = draw_points(known, seed=seed)
    points = zip(before[drawn].tolist(), after[drawn].tolist(), comparison.hashes(drawn), strict=True)
    return {"metric": metric, "total": len(known), "seed": seed, "points": list(points)}


def compared_sample(comparison: OpenedComparison, row_hash: str, query: ChangeQuery) -> dict[str, Any]:
    """One sample in every run of a comparison, whole.

    Args:
        comparison: The runs.
        row_hash: The hash of its input and expected output.
        query: The samples among which its neighbours are.

    Raises:
        InputError: No run has such a sample.
        StoreError: The store fails.
    """
    found = comparison.find(query)
    place = comparison.place_of(row_hash)
    positions = comparison.sides(np.array([place]))[0]
    sides: list[dict[str, Any] | None] = []
    facts: dict[str, Any] = {}
    for run, position in zip(comparison.runs, positions, strict=True):
        if position is None:
            sides.append(None)
            continue
        sample, executions = sample_at(run, position)
        facts = facts or sample_facts(sample)
        shown = [execution_facts(run, execution) for execution in executions]
        sides.append(
            {
                "run": {"id": run.row.id, "label": run.row.facts.get("label"), "target": run.row.facts.get("target")},
                "position": position,
                "metric_order": run.names,
                "executions": shown,
                "prompts_remark": add_prompts(run, position, shown).remark or None,
            }
        )
    near = neighbours(found, place)
    for name in ("previous", "next"):
        beside = near[name]
        near[name] = None if beside is None else comparison.hashes(np.array([beside]))[0]
    del facts["position"]
    return {
        **facts,
        "status": SHOWN_STATUSES[comparison.statuses[place]],
        "sides": sides,
        **near,
    }
