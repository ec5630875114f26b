"""The backlog of a resumed evaluation: what is missing, and what is tried again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from deemster.engine.backend import RemainingWork
from deemster.engine.work_items import WorkItem
from deemster.records import Execution, Output, Sample, TargetFailure, Unscored
from deemster.records.shared_call_cost import Spending, SpendingSum
from deemster.runs.retried_marks import has_failed, is_retried, restore_invalid_text

# The states of an execution.
_MISSING = 0
_DONE = 1
_AGAIN = 2
# An open read keeps SQLite from truncating its log: after so much work that needs nothing stored, the read is closed.
_MOST_WORK_WITHOUT_READ = 2000


class ReadExecutions(Protocol):
    """Reads the stored executions in order, from a position on, with the marks as they were made."""

    def __call__(self, *, since: int = 0) -> Iterator[Execution]:
        """The executions."""
        ...


class ResumeBacklog:
    """Separates the executions of a run that are done from those that are missing or to be tried again.

    All stored executions are read when it is made.

    Args:
        read: Reads the stored executions. It is called again for what is tried again, while finished ones are added.
        samples: How many samples there are.
        repetitions: How often each is run.
        retry_target: Whether a target that failed is called again.
        note: Gets every execution that is done.

    Attributes:
        done: How many executions are done.
        answered: How many are answered, and were never marked to the end.
        again: How many are tried again.
        unscored: How many marks of those that are done are no score.
        spent: What the models used for the marks that are kept, those to be tried again included.
    """

    def __init__(
        self,
        read: ReadExecutions,
        *,
        samples: int,
        repetitions: int,
        retry_target: bool,
        note: Callable[[Execution], None] | None = None,
    ) -> None:
        self.done = 0
        self.answered = 0
        self.again = 0
        self.unscored = 0
        self._read = read
        self._samples = samples
        self._repetitions = repetitions
        self._retry_target = retry_target
        self._note = note
        self._states = bytearray([_MISSING]) * (samples * repetitions)
        self.spent = self._survey()

    def _survey(self) -> Spending:
        spending = SpendingSum()
        for execution in self._read():
            self._count(execution)
            spending.add(execution)
        return spending.total()

    def _count(self, execution: Execution) -> None:
        index = self._index(execution.position, execution.repetition)
        if self._is_retried(execution):
            self._states[index] = _AGAIN
            if has_failed(execution):
                self.again += 1
            else:
                self.answered += 1
            return

        self._states[index] = _DONE
        self.done += 1
        self.unscored += sum(isinstance(mark, Unscored) for mark in execution.marks)
        if self._note is not None:
            self._note(execution)

    def _index(self, position: int, repetition: int) -> int:
        return position * self._repetitions + repetition

    def _is_retried(self, execution: Execution) -> bool:
        if isinstance(execution.answer, TargetFailure):
            return self._retry_target
        return execution.answer is None or any(map(is_retried, execution.marks))

    def __len__(self) -> int:
        """How much is left to do."""
        return self._samples * self._repetitions - self.done

    def remaining(self, samples: Iterable[Sample]) -> RemainingWork:
        """What is left to do of the run.

        Args:
            samples: All samples of the run, in order.
        """
        return RemainingWork(self.work_items(samples), self.done, self.unscored, self.spent)

    def describe(self, run_id: str) -> str:
        """A sentence about a resumed run, for a person.

        Args:
            run_id: The run.
        """
        if not len(self):
            return f"Nothing is left to do of the run {run_id}; this is its report."
        answered = f", {self.answered:,} answered and not yet scored" if self.answered else ""
        again = f", trying {self.again:,} again" if self.again else ""
        return f"Resuming the run {run_id}: {self.done:,} of {self.done + len(self):,} done{answered}{again}."

    def work_items(self, samples: Iterable[Sample]) -> Iterator[WorkItem]:
        """The work that is left.

        Args:
            samples: All samples of the run, in order.
        """
        stored = _StoredExecutions(self._read)
        work_since_read = 0
        for position, sample in enumerate(samples):
            for repetition in range(self._repetitions):
                state = self._states[self._index(position, repetition)]
                if state == _DONE:
                    continue

                execution = None
                if state == _AGAIN:
                    work_since_read = 0
                    execution = stored.at(position, repetition)
                else:
                    work_since_read += 1
                    if work_since_read == _MOST_WORK_WITHOUT_READ:
                        stored.pause()

                if execution is None:
                    yield WorkItem(position, sample, repetition)
                else:
                    yield _retry_work(execution, sample)


class _StoredExecutions:
    """Finds stored executions, asked for in order; it reads nothing before the first one.

    Args:
        read: Reads the stored executions from a position on.
    """

    def __init__(self, read: ReadExecutions) -> None:
        self._read = read
        self._rest: Iterator[Execution] | None = None
        self._next: Execution | None = None

    def at(self, position: int, repetition: int) -> Execution | None:
        """The execution of a sample in a repetition; None where there is none any more."""
        if self._rest is None:
            self._rest = self._read(since=position)
            self._next = next(self._rest, None)

        key = (position, repetition)
        while self._next is not None and (self._next.position, self._next.repetition) < key:
            self._next = next(self._rest, None)

        execution = self._next
        if execution is None or (execution.position, execution.repetition) != key:
            return None
        return execution

    def pause(self) -> None:
        """Close the read until the next execution is asked for."""
        self._rest = None
        self._next = None


def _retry_work(execution: Execution, sample: Sample) -> WorkItem:
    """The work that tries an execution again: its failed marks, or all of it where its output was cut."""
    position = execution.position
    repetition = execution.repetition
    answer = execution.answer
    if not isinstance(answer, Output) or execution.cut is not None:
        return WorkItem(position, sample, repetition, earlier=execution.marks)

    output = restore_invalid_text(answer, valid=execution.valid)
    kept_marks = tuple(None if is_retried(mark) else mark for mark in execution.marks)
    return WorkItem(position, sample, repetition, output, kept_marks, execution.marks)
