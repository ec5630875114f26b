"""Holds the executions of a run that is not stored: in memory, then in a temporary file."""

from __future__ import annotations

import tempfile
import threading
import weakref
from array import array
from collections.abc import Iterator, Sequence
from itertools import takewhile

from deemster.records import Execution
from deemster.records.shared_call_cost import PaidExecutions
from deemster.store._row_encoding import decode_execution, encode_execution

_IN_MEMORY = 8 * 1024 * 1024


class Spool:
    """Executions by sample and repetition, whatever order they come in.

    Args:
        samples: How many samples the dataset has.
        repetitions: How often each is run.
    """

    def __init__(self, *, samples: int, repetitions: int) -> None:
        self._repetitions = repetitions
        self._offsets = array("q", [-1]) * (samples * repetitions)
        self._lengths = array("q", [0]) * (samples * repetitions)
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - lives as long as the report
        self._end = 0
        # Reading is seek and read, which two threads must not interleave.
        self._lock = threading.Lock()
        weakref.finalize(self, self._file.close)

    def add(self, executions: Sequence[Execution]) -> None:
        """Keep executions.

        Raises:
            OSError: The temporary file cannot be written.
        """
        rows = [encode_execution(execution) for execution in executions]
        with self._lock:
            self._file.seek(0, 2)
            self._file.write(b"".join(rows))
            for execution, row in zip(executions, rows, strict=True):
                place = execution.position * self._repetitions + execution.repetition
                self._offsets[place] = self._end
                self._lengths[place] = len(row)
                self._end += len(row)

    def row(self, place: int) -> bytes:
        """An execution as JSON.

        Args:
            place: Its place in the order of the dataset, then repetition.

        Raises:
            LookupError: There is none.
        """
        if not self.has(place):
            raise LookupError(place)
        with self._lock:
            self._file.seek(self._offsets[place])
            return self._file.read(self._lengths[place])

    def __len__(self) -> int:
        return len(self._offsets)

    def has(self, place: int) -> bool:
        """Whether there is an execution at a place in the order of the dataset, then repetition."""
        return self._offsets[place] >= 0

    def at(self, position: int) -> list[Execution]:
        """The executions of one sample, with every model call paid for by the first mark of the run that uses it."""
        first = position * self._repetitions
        places = filter(self.has, range(first, first + self._repetitions))
        executions = [decode_execution(self.row(place)) for place in places]
        if not any(mark.calls for execution in executions for mark in execution.marks):
            return executions

        up_to = takewhile(lambda execution: execution.position <= position, PaidExecutions(self))
        return [execution for execution in up_to if execution.position == position]

    def __iter__(self) -> Iterator[Execution]:
        """Every execution that is there, in the order of the dataset, then repetition."""
        for place, offset in enumerate(self._offsets):
            if offset >= 0:
                yield decode_execution(self.row(place))
