"""Counts what a run has used while it goes on: a part of its executions each time it is asked."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from deemster.records import Execution, Output
from deemster.results.usage_and_cost import UsageAccount, sum_accounts, total_cost
from deemster.store import RunRow, Store


class LiveUsage:
    """The usage of a run in progress, counted once for each execution.

    Args:
        store: Where the run is stored.
        row: The run.
    """

    # So many executions are read for one answer, so that every answer comes soon.
    most = 20_000

    def __init__(self, store: Store, row: RunRow) -> None:
        self._store, self._run = store, row.id
        self._account = UsageAccount()
        self._counted = np.zeros((row.samples, row.repetitions), dtype=np.bool_)
        self._at = 0
        self._lock = threading.Lock()

    def read(self) -> dict[str, Any]:
        """Count more executions; what those that are counted used, and how many these are.

        Raises:
            StoreError: The store fails.
        """
        with self._lock:
            rows = self._store.executions(self._run, since=self._at, on_damage=lambda _: None)
            last = None
            for last in itertools.islice(rows, self.most):
                self._count(last)
            # Executions come in any order. Once the last one is read, the first that was missing is looked for again.
            if last is None or next(rows, None) is None:
                self._at = int(np.argmin(np.append(self._counted.all(axis=1), False)))
            else:
                self._at = last.position
            return self._totals()

    def _count(self, execution: Execution) -> None:
        key = execution.position, execution.repetition
        if self._counted[key]:
            return
        self._counted[key] = True
        answer = execution.answer
        if isinstance(answer, Output) and answer.usage is not None:
            self._account.add(answer.usage, model=answer.model)
        for mark in execution.marks:
            usage = getattr(mark, "usage", None)
            if usage is not None:
                self._account.add(usage)

    def _totals(self) -> dict[str, Any]:
        total, cost = sum_accounts([self._account]), total_cost([self._account])
        amount = None if cost is None else {"total_usd": float(cost.total_usd), "complete": cost.complete}
        return usage_entry(int(self._counted.sum()), msgspec.structs.asdict(total), amount)


def usage_entry(executions: int, total: Mapping[str, Any], cost: Mapping[str, Any] | None) -> dict[str, Any]:
    """The calls, tokens and cost of a run, as a page shows them.

    Args:
        executions: How many executions are counted.
        total: What they used, as a report has it.
        cost: What they cost, as a report has it.
    """
    tokens = [total[name] for name in ("prompt_tokens", "completion_tokens") if total[name] is not None]
    return {
        "executions": executions,
        "calls": total["calls"],
        "cached_calls": total["cached_calls"],
        "tokens": sum(tokens) if tokens else total["total_tokens"],
        "cost_usd": None if cost is None else cost["total_usd"],
        "is_whole_cost": cost is None or cost["complete"],
    }
