"""The backlog of a resumed evaluation: what is missing, and what is tried again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import msgspec

from deemster.engine.backend import RemainingWork
from deemster.engine.work_items import WorkItem
from deemster.records import Execution, Mark, MetricScore, NotApplicable, Output, Sample, TargetFailure, Unscored
from deemster.records.marks import failed_votes
from deemster.records.shared_call_cost import Spending, SpendingSum

# Causes that a second attempt may remove.
RETRIED_CAUSES = frozenset({"model_failed", "rate_limited", "not_run", "unreadable", "no_quorum", "metric_failed"})
# The states of an execution; 0 is that of one which the store does not have.
_DONE = 1
_AGAIN = 2
# An open read keeps SQLite from truncating its log: after so many works that need nothing stored, the read is closed.
_PATIENCE = 2000
_REPLACEMENT = "\ufffd"
_LONE_SURROGATE = "\ud800"

Read: TypeAlias = Callable[..., Iterator[Execution]]


class ResumeBacklog:
    """Separates the executions of a run that are done from those that are missing or to be tried again.

    Args:
        read: Reads the stored executions in order, with the marks as they were made; with `since`, from a position on.
            It is called again for what is tried again, while finished executions are added.
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
        read: Read,
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
        self._states = bytearray(samples * repetitions)
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
            if _has_failed(execution):
                self.again += 1
            else:
                self.answered += 1
            return

        self._states[index] = _DONE
        self.done += 1
        self.unscored += len([mark for mark in execution.marks if isinstance(mark, Unscored)])
        if self._note is not None:
            self._note(execution)

    def _index(self, position: int, repetition: int) -> int:
        return position * self._repetitions + repetition

    def _is_retried(self, execution: Execution) -> bool:
        if isinstance(execution.answer, TargetFailure):
            return self._retry_target
        return execution.answer is None or bool([mark for mark in execution.marks if is_retried(mark)])

    def __len__(self) -> int:
        """How much is left to do."""
        return self._samples * self._repetitions - self.done

    def remaining(self, samples: Iterable[Sample]) -> RemainingWork:
        """What is left to do of the run.

        Args:
            samples: All samples of the run, in order.
        """
        return RemainingWork(self.works(samples), self.done, self.unscored, self.spent)

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

    def works(self, samples: Iterable[Sample]) -> Iterator[WorkItem]:
        """The work that is left.

        Args:
            samples: All samples of the run, in order.
        """
        stored = _StoredExecutions(self._read)
        works_since_read = 0
        for position, sample in enumerate(samples):
            for repetition in range(self._repetitions):
                state = self._states[self._index(position, repetition)]
                if state == _DONE:
                    continue

                execution = None
                if state == _AGAIN:
                    works_since_read = 0
                    execution = stored.at(position, repetition)
                else:
                    works_since_read += 1
                    if works_since_read == _PATIENCE:
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

    def __init__(self, read: Read) -> None:
        self._read = read
        self._rest: Iterator[Execution] | None = None
        self._next: Execution | None = None

    def at(self, position: int, repetition: int) -> Execution | None:
        """The execution of a sample in a repetition; None where there is none any more."""
        if self._rest is None:
            self._rest = self._read(since=position)
            self._next = next(self._rest, None)

        wanted = (position, repetition)
        while self._next is not None and (self._next.position, self._next.repetition) < wanted:
            self._next = next(self._rest, None)

        execution = self._next
        if execution is None or (execution.position, execution.repetition) != wanted:
            return None
        return execution

    def pause(self) -> None:
        """Close the read until the next execution is asked for."""
        self._rest = None
        self._next = None


def is_retried(mark: Mark) -> bool:
    """Whether a mark is made again when its run is resumed.

    A panel may have given a score without the vote of a judge that failed, or in earlier versions was not asked.
    """
    if isinstance(mark, Unscored):
        return mark.cause in RETRIED_CAUSES
    if isinstance(mark, NotApplicable):
        return False
    return any(vote["cause"] in RETRIED_CAUSES for vote in failed_votes(mark.details))


def _has_failed(execution: Execution) -> bool:
    return isinstance(execution.answer, TargetFailure) or any(map(_is_failure, execution.marks))


def _is_failure(mark: Mark) -> bool:
    if isinstance(mark, MetricScore):
        return any(vote["cause"] != "not_run" for vote in failed_votes(mark.details))
    return is_retried(mark) and isinstance(mark, Unscored) and mark.cause != "not_run"


def restore_invalid_text(output: Output, *, valid: bool) -> Output:
    """An output as metrics must see it: the store replaces invalid Unicode, and metrics must still find it invalid.

    Args:
        output: The stored output.
        valid: Whether its text was valid Unicode.
    """
    if valid:
        return output
    return msgspec.structs.replace(output, text=output.text.replace(_REPLACEMENT, _LONE_SURROGATE))


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
