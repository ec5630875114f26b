"""The part of a run that asks models: many scripts at once, each execution finished when its last mark is there."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from deemster.records import Execution, Mark, Output, Sample
from deemster.run.batch import Batch, Work, execution_of
from deemster.run.marking import failed_marks, marks_of, with_threshold
from deemster.run.plan import Plan
from deemster.run.playing import Ask, played, played_together, repeated
from deemster.run.stopping import DRAIN_S, Stop

LIVE = 1024
FLUSH_S = 0.1


class Judging:
    """Plays the scripts of a run.

    Args:
        plan: The run.
        sink: Takes finished executions.
        ask: Answers one round of requests.
        stop: Asks the run to stop.
    """

    def __init__(self, plan: Plan, sink: Callable[[Sequence[Execution]], None], *, ask: Ask, stop: Stop) -> None:
        self.plan, self.sink, self.stop = plan, sink, stop
        self.plain = [metric for metric in plan.metrics if metric not in plan.scorers]
        self.finished: list[Execution] = []
        self.live: set[asyncio.Task[Any]] = set()
        self.room = asyncio.Semaphore(LIVE)
        self.asks = [repeated(ask, repetition) for repetition in range(plan.repetitions)]

    async def judge(self, answered: asyncio.Queue[Batch | None]) -> None:
        """Mark batches as they come, until None comes."""
        async with asyncio.TaskGroup() as tasks:
            keepers = [tasks.create_task(self._flush_regularly()), tasks.create_task(self._let_go())]
            while (batch := await answered.get()) is not None:
                if not self.stop.requested:
                    await self._begin(batch, tasks)
            while self.live:
                await asyncio.wait(self.live)
            for keeper in keepers:
                keeper.cancel()
        self._flush()

    async def _begin(self, batch: Batch, tasks: asyncio.TaskGroup) -> None:
        samples = [work.sample for work in batch.works]
        rows = await asyncio.to_thread(marks_of, self.plain, samples, batch.answers, thresholds=self.plan.thresholds)
        together = self._together(batch, tasks)
        places: Counter[int] = Counter()
        for work, answer, row in zip(batch.works, batch.answers, rows, strict=True):
            if not isinstance(answer, Output):
                self.finished.append(execution_of(work, answer, failed_marks(answer, len(self.plan.metrics))))
                continue
            await self.room.acquire()
            if self.stop.requested:
                self.room.release()
                return
            place = places[work.repetition]
            places[work.repetition] += 1
            shared = {name: (columns[work.repetition], place) for name, columns in together.items()}
            self._start(tasks, self._finish(work, answer, row, shared))

    def _together(self, batch: Batch, tasks: asyncio.TaskGroup) -> dict[str, dict[int, asyncio.Task[list[Mark]]]]:
        """The scripts that mark a whole batch, under way: by scorer, one for each repetition."""
        scorers = [scorer for scorer in self.plan.scorers if hasattr(scorer, "script_many")]
        pairs: dict[int, tuple[list[Sample], list[Output]]] = {}
        for work, answer in zip(batch.works, batch.answers, strict=True) if scorers else ():
            if isinstance(answer, Output):
                samples, outputs = pairs.setdefault(work.repetition, ([], []))
                samples.append(work.sample)
                outputs.append(answer)
        return {
            scorer.name: {
                repetition: self._start(
                    tasks, played_together(scorer, *each, ask=self.asks[repetition]), holds_room=False
                )
                for repetition, each in pairs.items()
            }
            for scorer in scorers
        }

    def _start(self, tasks: asyncio.TaskGroup, work: Any, *, holds_room: bool = True) -> asyncio.Task[Any]:
        task = tasks.create_task(work)
        self.live.add(task)
        task.add_done_callback(self.live.discard)
        if holds_room:
            task.add_done_callback(lambda _: self.room.release())
        return task

    async def _finish(
        self,
        work: Work,
        output: Output,
        row: tuple[Mark, ...],
        shared: Mapping[str, tuple[asyncio.Task[list[Mark]], int]],
    ) -> None:
        """Wait for the marks of one execution, each from a script of its own or from one for the whole batch."""
        alone = [scorer for scorer in self.plan.scorers if scorer.name not in shared]
        found: dict[str, Mark] = {}
        ask = self.asks[work.repetition]
        if len(alone) == 1:
            found[alone[0].name] = await played(alone[0], work.sample, output, ask=ask)
        elif alone:
            marks = await asyncio.gather(*(played(each, work.sample, output, ask=ask) for each in alone))
            found.update(zip((each.name for each in alone), marks, strict=True))
        for name, (task, place) in shared.items():
            found[name] = (await asyncio.shield(task))[place]
        plain = iter(row)
        scorers = {scorer.name for scorer in self.plan.scorers}
        marks_in_order = tuple(
            with_threshold(found[metric.name], self.plan.thresholds.get(metric.name))
            if metric.name in scorers
            else next(plain)
            for metric in self.plan.metrics
        )
        self.finished.append(execution_of(work, output, marks_in_order))

    async def _flush_regularly(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_S)
            self._flush()

    async def _let_go(self) -> None:
        """Once asked to stop, give what is under way a little time and then let go of it."""
        await self.stop.wait()
        await asyncio.sleep(DRAIN_S)
        for task in tuple(self.live):
            task.cancel()

    def _flush(self) -> None:
        if self.finished:
            finished, self.finished = self.finished, []
            self.sink(finished)
