"""Marks outputs with metrics that ask models, many scripts at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

from deemster.engine.kept_prompts import KeptPrompts
from deemster.engine.play_scripts import AskModels, ask_anew, ask_in_repetition, play_batch_script, play_script
from deemster.engine.run_plan import Plan
from deemster.engine.score_batch import mark_rows
from deemster.engine.stop_request import Stop
from deemster.engine.work_items import Answer, AnsweredBatch, WorkItem
from deemster.engine.worker_pool import WorkerPool, worker_pool
from deemster.metrics.score_outputs import failed_marks, with_threshold
from deemster.models.worker_threads import WorkerThreads
from deemster.records import Execution, Mark, Output, Reply, Request, Sample

LIVE = 1024
FLUSH_S = 0.02
# By the column of a metric: the task that marks a batch, and which of its marks belongs to the output.
Shared: TypeAlias = Mapping[int, tuple["asyncio.Task[list[Mark]]", int]]


class JudgePool:
    """Plays the scripts of a run; an execution is finished when its last mark is there.

    Args:
        plan: The run.
        hand_on: Takes finished executions.
        ask: Answers one round of requests.
        stop: Asks the run to stop.
        threads: Where metrics that ask no model are applied.
        may_batch: Whether a scorer that can mark a batch with one script may do so; all may unless given.
        prompts: Keeps what judges were asked; None where that is not kept.
    """

    def __init__(
        self,
        plan: Plan,
        hand_on: Callable[[Sequence[Execution]], Awaitable[None]],
        *,
        ask: AskModels,
        stop: Stop,
        threads: WorkerThreads,
        may_batch: Callable[[Any], bool] | None = None,
        prompts: KeptPrompts | None = None,
    ) -> None:
        self.plan = plan
        self.hand_on = hand_on
        self.stop = stop
        self.threads = threads
        self._prompts = prompts

        self.scorers = {column: metric for column, metric in enumerate(plan.metrics) if hasattr(metric, "script")}
        self.batched = {
            column: scorer
            for column, scorer in self.scorers.items()
            if hasattr(scorer, "script_many") and (may_batch is None or may_batch(scorer))
        }
        self.plain = [metric for column, metric in enumerate(plan.metrics) if column not in self.scorers]
        self.pass_marks = [plan.thresholds.get(metric.name) for metric in plan.metrics]
        first = plan.first_repetition
        self.asks = [ask_in_repetition(ask, first + repetition) for repetition in range(plan.repetitions)]

        self.finished: list[Execution] = []
        self.arrived = asyncio.Event()
        self.is_over = False

    @property
    def _most_live(self) -> int:
        """How many outputs are marked at once: fewer where each takes many requests."""
        requests = sum(getattr(scorer, "requests_at_once", 1) for scorer in self.scorers.values())
        return max(1, LIVE // max(requests, 1))

    async def mark(self, answered: asyncio.Queue[AnsweredBatch | None]) -> None:
        """Mark batches as they come, until None comes."""
        async with worker_pool(self.stop, limit=self._most_live) as pool:
            flushing = pool.serve(self._flush_regularly(pool))
            while (batch := await answered.get()) is not None:
                if not self.stop.requested:
                    await self._start_batch(batch, pool)

            await pool.join()
            self.is_over = True
            self.arrived.set()
            await flushing

    async def _start_batch(self, batch: AnsweredBatch, pool: WorkerPool) -> None:
        # A stop cancels it like a script: a metric that never returns must not block the end of the run.
        marking = pool.start(self.threads.call(mark_rows, self.plan, batch, self.plain))
        await asyncio.wait([marking])
        if marking.cancelled():
            return

        marks_of_rows = marking.result()
        shared = self._start_batch_scripts(batch, pool)
        for row, (work, answer, plain) in enumerate(zip(batch.works, batch.answers, marks_of_rows, strict=True)):
            # What is reserved stays taken until the execution is handed on, so that a slow sink slows the run down.
            await pool.reserve()
            if self.stop.requested:
                pool.release()
                return
            if isinstance(answer, Output):
                pool.start(self._finish(work, answer, plain, shared.get(row, {})), reserved=True)
            else:
                failed = failed_marks(answer, len(self.plan.metrics))
                self._add_finished(work, answer, plain, {column: failed[column] for column in self.scorers})

    def _start_batch_scripts(self, batch: AnsweredBatch, pool: WorkerPool) -> Mapping[int, Shared]:
        """Start the scripts that mark a whole batch, one for each scorer and repetition; their tasks, by work item."""
        shared: dict[int, dict[int, tuple[asyncio.Task[list[Mark]], int]]] = {}
        for column, scorer in self.batched.items():
            rows_by_repetition: dict[int, list[int]] = {}
            for row, (work, answer) in enumerate(zip(batch.works, batch.answers, strict=True)):
                if isinstance(answer, Output) and work.is_missing(column):
                    rows_by_repetition.setdefault(work.repetition, []).append(row)

            for repetition, rows in rows_by_repetition.items():
                samples: list[Sample] = [batch.works[row].sample for row in rows]
                outputs: list[Any] = [batch.answers[row] for row in rows]
                task = pool.start(play_batch_script(scorer, samples, outputs, ask=self.asks[repetition]))
                for index, row in enumerate(rows):
                    shared.setdefault(row, {})[column] = (task, index)
        return shared

    async def _finish(self, work: WorkItem, output: Output, plain: tuple[Mark, ...], shared: Shared) -> None:
        """Wait for the marks of one execution, each from a script of its own or from one for the whole batch."""
        alone = [column for column in self.scorers if column not in shared and work.is_missing(column)]
        judged: dict[int, Mark] = {}
        if len(alone) == 1:
            judged[alone[0]] = await self._play(alone[0], work, output)
        elif alone:
            scripts = (self._play(column, work, output) for column in alone)
            judged.update(zip(alone, await asyncio.gather(*scripts), strict=True))

        for column, (task, index) in shared.items():
            judged[column] = (await asyncio.shield(task))[index]
        self._add_finished(work, output, plain, judged)

    async def _play(self, column: int, work: WorkItem, output: Output) -> Mark:
        """The mark of one metric, from a script of its own."""
        ask = self.asks[work.repetition]
        if work.earlier is not None:
            ask = ask_anew(ask, work.earlier[column])
        if self._prompts is None:
            return await play_script(self.scorers[column], work.sample, output, ask=ask)

        heard: list[tuple[Request, Reply]] = []
        listening = self._prompts.listen(ask, heard)
        mark = await play_script(self.scorers[column], work.sample, output, ask=listening)

        key = (work.position, work.repetition, column)
        shown = with_threshold(mark, self.pass_marks[column])
        self._prompts.keep(key, shown, heard, replaces=work.earlier is not None)
        return mark

    def _add_finished(
        self, work: WorkItem, answer: Answer, plain: tuple[Mark, ...], judged: Mapping[int, Mark]
    ) -> None:
        """Join the marks of metrics that ask no model and those of judges, in the order of the plan's metrics."""
        plain_marks = iter(plain)
        known: Any = work.marks
        marks: list[Mark] = []
        for column in range(len(self.plan.metrics)):
            if column not in self.scorers:
                marks.append(next(plain_marks))
            elif work.is_missing(column):
                marks.append(with_threshold(judged[column], self.pass_marks[column]))
            else:
                marks.append(known[column])

        self.finished.append(work.finish(answer, tuple(marks)))
        self.arrived.set()

    async def _flush_regularly(self, pool: WorkerPool) -> None:
        while not (self.is_over and not self.finished):
            await self.arrived.wait()
            if not self.is_over:
                # What finishes at about the same time is handed on together.
                await asyncio.sleep(FLUSH_S)
            self.arrived.clear()
            finished, self.finished = self.finished, []
            if finished:
                await self.hand_on(finished)
                pool.release(len(finished))
