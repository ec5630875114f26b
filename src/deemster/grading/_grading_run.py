"""The run of a grading: an evaluation of submissions by the rubric metric, and what it comes to."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any, overload

import msgspec
import numpy as np

from deemster.engine.backend import InThisProcess, RemainingWork, RunWork
from deemster.engine.model_access import ModelAccess
from deemster.engine.progress import Progress, ProgressCounter
from deemster.engine.run_plan import Plan, collect_secrets
from deemster.engine.stop_request import Stop
from deemster.evaluation.resolved_evaluation import Evaluation
from deemster.grading._submissions import Submissions
from deemster.judges.grading_case import make_case
from deemster.judges.item_grading import ItemGrading, vote_payments
from deemster.models.clock import Clock
from deemster.records import Execution, FrozenDict
from deemster.records.shared_call_cost import NOTHING_SPENT, Spending, paid_amount
from deemster.report.grading_result import Grading
from deemster.report.stored_grading import GradedItem, graded_item, view_grading
from deemster.runs.run_lifecycle import StoredRun
from deemster.store import Spool
from deemster.store.graded_items import grading_mark
from deemster.targets.saved_outputs import SavedOutputs


class _VoteCounter(ProgressCounter):
    """Counts graded items; what is unscored are votes of judges."""

    def add(self, executions: Sequence[Execution]) -> None:
        """Count items as they are graded."""
        for execution in executions:
            self.done += 1
            if self.progress is not None:
                self.unscored += sum(vote.failure is not None for vote in GradedItems.graded(execution).votes)
                self.tell()


class GradingRun:
    """Grades submissions.

    Args:
        submissions: What is graded, and how.
        stop: Asks the grading to stop.
        progress: Gets the progress.
        run: Where graded items are stored; None where they are not.

    Attributes:
        stop: Asks the grading to stop.
        spent: What the models used before the grading was resumed.
        done: The places of the items that were graded before.
        again: Items graded before of which some votes failed; these are asked for again.
    """

    def __init__(
        self,
        submissions: Submissions,
        *,
        stop: Stop,
        progress: Callable[[Progress], None] | None,
        run: StoredRun | None = None,
    ) -> None:
        self._submissions, self._run, self.stop = submissions, run, stop
        self._dataset, self._grader = submissions.dataset, submissions.grader
        self._counter = _VoteCounter(len(self._dataset), progress)
        self._items = GradedItems(len(self._dataset))
        self.spent = NOTHING_SPENT
        self.done: set[int] = set()
        self.again = 0

    def restore(self, tell: Callable[[str], None]) -> None:
        """Read the items that were graded before from the store.

        Args:
            tell: Gets a sentence about each damage; what is damaged is graded again.

        Raises:
            StoreError: The store fails.
        """
        payments, tokens, usd = vote_payments(), 0, Decimal(0)
        for position, entry in self._stored(tell):
            paid = paid_amount(vote.usage for vote in entry.item.settle(payments).votes)
            tokens, usd = tokens + paid[0], usd + paid[1]
            self._items.put(position, entry.item)
            if not self._submissions.note_earlier(position, entry):
                self.done.add(position)
        self.spent = Spending(payments.paid, tokens, usd)
        self.again = len(self._submissions.earlier)
        self._counter.done = len(self.done)

    def _stored(self, tell: Callable[[str], None]) -> Iterator[tuple[int, GradedItem]]:
        """The items that were graded before and have not changed."""
        if self._run is None or self._run.is_new:
            return
        store = self._run.store
        for execution in store.executions(self._run.id, on_damage=tell):
            position = execution.position
            try:
                entry = graded_item(execution)
            except msgspec.ValidationError:
                tell(f"{store.where}: What is stored at position {position} is no graded item.")
                continue
            if position < len(self._dataset) and entry.fingerprint == self._submissions.fingerprint(position):
                yield position, entry

    async def execute(self, access: ModelAccess, *, clock: Clock, warn: Callable[[str], None]) -> Grading:
        """Grade everything that is left; what is not reached keeps its earlier grading, or votes that are `not_run`.

        Args:
            access: How models may be asked.
            clock: The time.
            warn: Gets each warning.

        Raises:
            StoreError: The store fails.
        """
        dataset: Any = self._dataset
        metric: Any = self._submissions
        # Every submission is there already, so what stands for the target is never asked.
        no_target = SavedOutputs({"no target": ""})
        plan = Plan(dataset, no_target, (metric,), secrets=collect_secrets(no_target, access))
        evaluation = Evaluation(plan, seed=self._grader.seed, access=access)

        left = [position for position in range(len(self._dataset)) if position not in self.done]
        calls = None if self._run is None else self._run.calls
        remaining = RemainingWork(works=self._submissions.works(left), spent=self.spent, calls=calls)
        sinks = [self._items.add] if self._run is None else [self._run.add, self._items.add]
        work = RunWork(evaluation, remaining, sinks, self._counter, clock, self.stop, warn)

        await InThisProcess().execute(work)

        self._put_unasked()
        return self._view()

    def _put_unasked(self) -> None:
        """Give votes that are `not_run` to the items that no judge was asked about, now or before."""
        for position in range(len(self._dataset)):
            if not self._items.has(position):
                why = self.stop.reason or "The grading was stopped."
                self._items.put(position, self._grader.grade_unasked(make_case(self._dataset, position), why))

    def _view(self) -> Grading:
        grading = view_grading(self._items, self._items.settled(), self._dataset, self._grader.settings)
        # A stop request, a spent budget, or an open circuit.
        halted = self.stop.reason or self._counter.open_circuit
        return msgspec.structs.replace(
            grading,
            halted=halted if any(judge.not_run for judge in grading.judges) else None,
            run=None if self._run is None else self._run.id,
            mixed=() if self._run is None else self._run.mixed,
        )


class _Details(msgspec.Struct, gc=False):
    """What is read of the details of a mark."""

    item: ItemGrading


class _GradedMark(msgspec.Struct, gc=False):
    """What is read of a mark."""

    details: _Details


class _GradedRow(msgspec.Struct, gc=False):
    """What is read of an execution."""

    id: str
    marks: tuple[_GradedMark]


_DECODER = msgspec.json.Decoder(_GradedRow)


class GradedItems(Sequence[ItemGrading]):
    """Graded items, as the executions of their run hold them.

    Args:
        count: How many there are.
    """

    def __init__(self, count: int) -> None:
        self._spool = Spool(samples=count, repetitions=1)
        self._calls = array("q")

    def add(self, executions: Sequence[Execution]) -> None:
        """Keep executions as they finish."""
        self._spool.add(executions)
        for execution in executions:
            self._calls.extend(self.graded(execution).call_ids)

    def put(self, position: int, item: ItemGrading) -> None:
        """Keep an item, in place of an earlier one."""
        mark = grading_mark(item.score, item.unscored, FrozenDict({"item": item}))
        self.add([Execution(position, "", 0, None, (mark,))])

    def settled(self) -> Iterator[ItemGrading]:
        """The items, where each shared call is charged to the first vote in order: the cost depends on no timing."""
        shared = self._shared_calls()
        payments = vote_payments(shared=shared)
        for position in range(len(self)):
            item = self.read_with_calls(position)
            settled = item.settle(payments) if shared else item
            if settled is not item:
                self.put(position, settled)
            yield settled

    def _shared_calls(self) -> frozenset[int]:
        calls = np.frombuffer(self._calls, dtype=np.int64)
        # In its place: a copy for every vote there is would be the largest thing in memory.
        calls.sort()
        return frozenset(calls[1:][calls[1:] == calls[:-1]].tolist())

    def has(self, position: int) -> bool:
        """Whether an item is graded."""
        return self._spool.has(position)

    @staticmethod
    def graded(execution: Execution) -> ItemGrading:
        """The grading of an item that was just graded, from its execution."""
        (mark,) = execution.marks
        item: ItemGrading = getattr(mark, "details", {})["item"]
        return item

    def __len__(self) -> int:
        return len(self._spool)

    def __iter__(self) -> Iterator[ItemGrading]:
        return map(self._read, range(len(self)))

    @overload
    def __getitem__(self, index: int) -> ItemGrading: ...

    @overload
    def __getitem__(self, index: slice) -> list[ItemGrading]: ...

    def __getitem__(self, index: int | slice) -> ItemGrading | list[ItemGrading]:
        found = range(len(self))[index]
        return self._read(found) if isinstance(found, int) else list(map(self._read, found))

    def read_with_calls(self, position: int) -> ItemGrading:
        """An item with the calls behind its votes."""
        return _DECODER.decode(self._spool.row(position)).marks[0].details.item

    def _read(self, position: int) -> ItemGrading:
        return self.read_with_calls(position).without_calls()
