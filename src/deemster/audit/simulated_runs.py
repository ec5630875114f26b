"""Simulates runs from stored executions: runs without a change, and runs in which a share of the samples broke."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deemster.errors import ConfigurationError
from deemster.gate.read_gate import EVERY
from deemster.results.mark_table import MarkTable
from deemster.results.metric_summary import OUTSIDE, SCORED
from deemster.results.run_columns import RunColumns, join_samples
from deemster.results.run_summary import cohort_label

_Bools: TypeAlias = NDArray[np.bool_]
_Floats: TypeAlias = NDArray[np.float64]
_Places: TypeAlias = NDArray[np.int64]


class SimulatedRun(NamedTuple):
    """Where the executions of a simulated run come from, by sample and repetition.

    Attributes:
        samples: The sample that the execution is taken from.
        executions: Which of its executions it is.
        broken: For each sample, whether all its outputs are ones that no metric passes.
    """

    samples: _Places
    executions: _Places
    broken: _Bools


class ExecutionPool:
    """Executions of the same samples by the same target, from which runs without a change are drawn.

    Two runs that are drawn together share no execution of a sample where there are enough, so that they differ as much
    as two real runs do. Marks of all metrics of an execution stay together.

    With stated noise, only the first execution of each sample counts: a drawn run has it with some chance, and else
    that of another sample with the same tags and metrics. The chance is such that two runs differ as stated.

    Args:
        runs: The runs, the first of which says which samples there are; the others have all of them.

    Attributes:
        reference: The first run.
        passed: By sample and execution, whether every metric that applies passed.
        note: What a reader must know of the draws; None where there is nothing to know.
    """

    def __init__(self, runs: Sequence[RunColumns]) -> None:
        self.reference = runs[0]
        marks = [run.marks for run in runs]
        places = [join_samples(run, runs[0]).before for run in runs]
        names = [card.name for card in runs[0].marks.cards]
        columns = [[[card.name for card in table.cards].index(name) for name in names] for table in marks]
        rows = list(zip(marks, places, columns, strict=True))
        self._scores = np.concatenate([table.scores[at][:, :, own] for table, at, own in rows], axis=1)
        self._causes = np.concatenate([table.causes[at][:, :, own] for table, at, own in rows], axis=1)
        self._marks = np.concatenate([table.passed[at][:, :, own] for table, at, own in rows], axis=1)
        self._outputs = np.concatenate([table.outputs[at] for table, at, _ in rows], axis=1)
        self._applies = (self._causes != OUTSIDE).any(axis=1)
        self.passed = np.asarray((self._marks | ~self._applies[:, None, :]).all(axis=2))
        self._own_share: float | None = None
        self._others: list[_Places] = []
        self.note: str | None = None
        if 2 <= self.executions < 2 * self.repetitions:
            self.note = (
                f"There are {self.executions} executions of each sample for two runs of {self.repetitions}: executions "
                "are drawn more than once, which makes runs a little too much alike."
            )

    @property
    def samples(self) -> int:
        """How many samples there are."""
        return len(self.passed)

    @property
    def executions(self) -> int:
        """How many executions each sample has."""
        return int(self.passed.shape[1])

    @property
    def repetitions(self) -> int:
        """How many executions of each sample a run has."""
        return self.reference.marks.repetitions

    @property
    def flip_rate(self) -> float | None:
        """How often two executions of a sample differ in whether all metrics pass; None for single executions."""
        if self._own_share is not None:
            chances = np.array([self.passed[one, 0].mean() for one in self._others])
            sizes = np.array([len(one) for one in self._others])
            return float((2 * chances * (1 - chances) * sizes).sum() / sizes.sum() * (1 - self._own_share**2))
        return self.flip_rate_of(np.arange(self.samples))

    def flip_rate_of(self, places: _Places) -> float | None:
        """How often two executions of some samples differ in whether all metrics pass; None for single executions.

        Args:
            places: The samples.
        """
        k = self.executions
        if k < 2:
            return None
        passes = self.passed[places].sum(axis=1)
        return float(np.mean(2 * passes * (k - passes) / (k * (k - 1))))

    def with_noise(self, *, flip_rate: float | None = None, sd: float | None = None) -> ExecutionPool:
        """The same samples with stated noise.

        Args:
            flip_rate: The share of samples whose executions differ in whether all metrics pass.
            sd: Instead, the standard deviation of the difference of two scores of a sample, over all metrics.

        Raises:
            ConfigurationError: Samples with these pass-rates or scores cannot differ so much without a change.
        """
        stated = ExecutionPool([self.reference])
        stated._others = stated._alike()
        most = _spread(stated.passed[:, :1].astype(np.float64), stated._others)
        wanted, told = flip_rate, "`flip_rate`"
        if flip_rate is None:
            most = _spread(np.where(stated._causes[:, 0] == SCORED, stated._scores[:, 0], np.nan), stated._others)
            wanted, told = (sd or 0.0) ** 2, "`sd`"
        if wanted is None or wanted > most:
            limit = most if flip_rate is not None else math.sqrt(most)
            message = f"{told} is at most {limit:.4f} for these samples: more would change what passes."
            raise ConfigurationError(message)
        stated._own_share = math.sqrt(1 - wanted / most) if most else 1.0
        stated.note = None
        return stated

    def _alike(self) -> list[_Places]:
        """Samples with the same tags and the same metrics."""
        table = self.reference.marks
        tags = [np.zeros(table.samples, dtype=np.bool_) for _ in table.cohorts]
        for mask, (_, places) in zip(tags, table.cohorts, strict=True):
            mask[places] = True
        kinds = np.column_stack([self._applies, *tags])
        _, codes = np.unique(kinds, axis=0, return_inverse=True)
        codes = codes.ravel()
        return [np.flatnonzero(codes == code) for code in range(int(codes.max()) + 1)]

    def draw_pair(self, rng: np.random.Generator) -> tuple[SimulatedRun, SimulatedRun]:
        """Draw two runs without a change between them.

        Args:
            rng: What draws.
        """
        n, r, k = self.samples, self.repetitions, self.executions
        own = np.broadcast_to(np.arange(n)[:, None], (n, r))
        whole = np.zeros(n, dtype=np.bool_)
        if self._own_share is not None:
            first = np.zeros((n, r), dtype=np.int64)
            return (
                SimulatedRun(self._with_others(rng, own, self._own_share), first, whole),
                SimulatedRun(self._with_others(rng, own, self._own_share), first, whole),
            )
        if k >= 2 * r:
            order = np.argsort(rng.random((n, k)), axis=1)
            return SimulatedRun(own, order[:, :r], whole), SimulatedRun(own, order[:, r : 2 * r], whole)
        drawn = rng.integers(0, k, (n, 2 * r))
        return SimulatedRun(own, drawn[:, :r], whole), SimulatedRun(own, drawn[:, r:], whole)

    def _with_others(self, rng: np.random.Generator, own: _Places, share: float) -> _Places:
        found = own.copy()
        for places in self._others:
            found[places] = places[rng.integers(0, len(places), found[places].shape)]
        return np.where(rng.random(own.shape) < share, own, found)

    def break_samples(
        self, rng: np.random.Generator, run: SimulatedRun, *, drop: float, scope: _Places | None = None
    ) -> SimulatedRun:
        """Break a share of the samples of a run, so that the pass-rate of some samples falls by a drop on average.

        Args:
            rng: What draws.
            run: The run.
            drop: How far their pass-rate falls.
            scope: The samples; all where not given.

        Raises:
            ConfigurationError: Fewer of them pass than the drop.
        """
        places = np.arange(self.samples) if scope is None else scope
        rate = float(self.passed[places].mean())
        if drop > rate:
            raise ConfigurationError(f"A pass-rate of {rate:.4f} cannot fall by {drop:.4f}.")
        broken = run.broken.copy()
        broken[places[rng.random(len(places)) < drop / rate]] = True
        return run._replace(broken=broken)

    def template(self, cohorts: Collection[str]) -> MarkTable:
        """A table without marks, whose samples are tagged with some cohorts only.

        Args:
            cohorts: The labels of the cohorts, `*` for each.
        """
        own = self.reference.marks
        table = MarkTable(own.cards, samples=self.samples, repetitions=self.repetitions)
        for tag, positions in own.cohorts:
            if EVERY in cohorts or cohort_label(tag) in cohorts:
                table.tag_many(positions, tag)
        return table

    def columns(self, run: SimulatedRun, template: MarkTable) -> RunColumns:
        """A simulated run as columns.

        Args:
            run: The run.
            template: The table that its marks are put into.
        """
        table = template.empty_copy()
        source = run.samples, run.executions
        table.scores, table.causes = self._scores[source], self._causes[source]
        table.passed, table.outputs = self._marks[source], self._outputs[source]
        broken = np.flatnonzero(run.broken)
        if len(broken):
            upwards = np.array([card.higher_is_better for card in table.cards])
            outside = table.causes[broken] == OUTSIDE
            table.passed[broken] = False
            table.scores[broken] = np.where(outside, 0.0, np.where(upwards, 0.0, 1.0))
            table.causes[broken] = np.where(outside, OUTSIDE, SCORED)
            # What a broken sample says is said by no other execution.
            table.outputs[broken] = -1 - np.arange(len(broken) * self.repetitions).reshape(len(broken), -1)
        table.counted = table.samples * table.repetitions
        return self.reference._replace(marks=table, stored_usage=lambda: None)


def _spread(values: _Floats, groups: Sequence[_Places]) -> float:
    """Twice the variance of numbers inside groups, averaged over all that are known."""
    total, count = 0.0, 0
    for places in groups:
        here = values[places]
        known = ~np.isnan(here)
        for column in range(here.shape[1]):
            if known[:, column].any():
                own = here[known[:, column], column]
                total, count = total + 2 * float(own.var()) * len(own), count + len(own)
    return total / count if count else 0.0
