"""Gives saved outputs as the answers of a run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import islice

from deemster.engine.run_plan import Plan
from deemster.engine.stop_request import Stop
from deemster.engine.turnstile import NO_TURNS, Turns
from deemster.engine.work_items import Answer, AnsweredBatch, WorkItem
from deemster.models.worker_threads import WorkerThreads
from deemster.targets.saved_outputs import SavedOutputs


class OutputReplay:
    """Answers every piece of work from outputs that were saved, which can be read again after a kill.

    Args:
        plan: The run.
        saved: The outputs.
        stop: Asks the run to stop.
        threads: Where they are read.
        turns: When the work of a sample may begin. Where no judge is asked, nothing waits for a turn.
    """

    def __init__(
        self, plan: Plan, saved: SavedOutputs, *, stop: Stop, threads: WorkerThreads, turns: Turns = NO_TURNS
    ) -> None:
        self._turns = turns if plan.scorers else NO_TURNS
        self._saved = saved
        self._is_one_for_all = plan.varied == "scoring"
        self._stop = stop
        self._threads = threads

    async def answer_all(self, works: Iterator[WorkItem], answered: asyncio.Queue[AnsweredBatch | None]) -> None:
        """Hand on every piece of work with its answer, in batches; then None."""
        while not self._stop.requested and (batch := list(islice(works, self._turns.batch))):
            if not await self._turns.wait(batch[0]):
                break
            await answered.put(await self._threads.call(self._answered, batch))
        await answered.put(None)

    def _answered(self, works: Sequence[WorkItem]) -> AnsweredBatch:
        rows_by_repetition: dict[int, list[int]] = {}
        for row, work in enumerate(works):
            if work.answer is None:
                rows_by_repetition.setdefault(work.repetition, []).append(row)

        answers: list[Answer | None] = [work.answer for work in works]
        for repetition, rows in rows_by_repetition.items():
            ids = [works[row].sample.id for row in rows]
            saved_answers = self._saved.answers(ids, 0 if self._is_one_for_all else repetition)
            for row, answer in zip(rows, saved_answers, strict=True):
                answers[row] = answer

        return AnsweredBatch(works, [answer for answer in answers if answer is not None])
