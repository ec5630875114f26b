"""Settles marks that are final only once all of a run are there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from deemster.records import Execution, Mark, NotApplicable


def needs_settling(metrics: Sequence[Any]) -> bool:
    """Whether any of the metrics needs all marks of a run before they are final."""
    return any(getattr(metric, "settles", False) for metric in metrics)


def settle_marks(metrics: Sequence[Any], executions: Iterable[Execution]) -> Iterator[Execution]:
    """Settle marks: the executions with their final marks."""
    settled_columns = {
        column: _settle_column(metric, column, executions)
        for column, metric in enumerate(metrics)
        if getattr(metric, "settles", False)
    }

    for row, execution in enumerate(executions):
        marks = list(execution.marks)
        for column, settled in settled_columns.items():
            marks[column] = settled[row]
        yield msgspec.structs.replace(execution, marks=tuple(marks))


def _settle_column(metric: Any, column: int, executions: Iterable[Execution]) -> list[Mark]:
    """One metric's final marks, in the order of the executions."""
    order: list[tuple[int, int]] = []
    marks: list[Mark] = []
    for execution in executions:
        order.append((execution.repetition, execution.position))
        marks.append(execution.marks[column])

    # Repetition by repetition, as the work is planned; marks of samples that the metric does not apply to stay.
    applicable = [row for row, mark in enumerate(marks) if not isinstance(mark, NotApplicable)]
    rows = sorted(applicable, key=order.__getitem__)
    settled_marks = metric.settle([marks[row] for row in rows])

    final = marks[:]
    for row, mark in zip(rows, settled_marks, strict=True):
        # What was paid for a mark does not change when it is settled.
        final[row] = mark if mark.calls else msgspec.structs.replace(mark, calls=marks[row].calls)
    return final
