"""Marks that are final only once all of a run are there, such as those of a panel whose weights are learned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from deemster.records import Execution, Mark


def needs_settling(metrics: Sequence[Any]) -> bool:
    """Whether any of the metrics needs all marks of a run before they are final."""
    return any(getattr(metric, "settles", False) for metric in metrics)


def settle_marks(metrics: Sequence[Any], executions: Iterable[Execution | None]) -> Iterator[Execution]:
    """Executions with their final marks.

    Args:
        metrics: The run's metrics, in the order of the marks.
        executions: The run's executions with the marks as they were made; gone through twice.
    """
    late = [(place, metric) for place, metric in enumerate(metrics) if getattr(metric, "settles", False)]
    final = {place: _final(metric, place, executions) for place, metric in late}
    for number, execution in enumerate(execution for execution in executions if execution is not None):
        marks = list(execution.marks)
        for place, column in final.items():
            marks[place] = column[number]
        yield msgspec.structs.replace(execution, marks=tuple(marks))


def _final(metric: Any, place: int, executions: Iterable[Execution | None]) -> list[Mark]:
    """One metric's final marks, in the order of the executions."""
    keys: list[tuple[int, int]] = []
    marks: list[Mark] = []
    for execution in executions:
        if execution is not None:
            keys.append((execution.repetition, execution.position))
            marks.append(execution.marks[place])
    # Repetition by repetition, as the work is planned.
    order = sorted(range(len(keys)), key=keys.__getitem__)
    found = marks[:]
    for number, mark in zip(order, metric.settle([marks[number] for number in order]), strict=True):
        # What was paid for a mark does not change when it is settled.
        found[number] = mark if mark.calls else msgspec.structs.replace(mark, calls=marks[number].calls)
    return found
