"""The executions of a stored run, as its report shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from deemster.records import Execution
from deemster.records.shared_call_cost import CallPayments
from deemster.store import Store


class StoredExecutions:
    """The executions of a stored run: all of them in order, or those of one sample.

    Args:
        store: Where the run is stored.
        run: Its id.
        read: Reads all of them; as a report shows them, unless given.
    """

    def __init__(self, store: Store, run: str, *, read: Callable[[], Iterator[Execution]] | None = None) -> None:
        self._store, self._run, self._read = store, run, read

    def __iter__(self) -> Iterator[Execution]:
        return self._store.executions(self._run) if self._read is None else self._read()

    def at(self, position: int) -> list[Execution]:
        """The executions of one sample, with every model call paid for by the first mark of the run that uses it.

        Raises:
            StoreError: There is no such run or sample, something is damaged, or the database refuses.
        """
        _, executions = next(self._store.samples_at(self._run, [position]))
        calls = _call_ids(executions)
        if not calls:
            return executions
        payments = CallPayments(self._paid_before(calls, position))
        return [
            msgspec.structs.replace(execution, marks=tuple(map(payments.settle, execution.marks)))
            for execution in executions
        ]

    def _paid_before(self, calls: set[int], position: int) -> set[int]:
        """The model calls on which an earlier sample stands too, which pays for them."""
        paid: set[int] = set()
        for _, executions in self._store.samples_with_calls(self._run, calls, before=position):
            paid |= calls & _call_ids(executions)
            if paid == calls:
                break
        return paid


def _call_ids(executions: Sequence[Execution]) -> set[int]:
    return {call.id for execution in executions for mark in execution.marks for call in mark.calls if call.id}
