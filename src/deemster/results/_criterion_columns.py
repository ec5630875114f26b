"""The criteria of a rubric metric over a run, as arrays."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deemster.records import Execution, MetricScore
from deemster.results.metric_summary import CriterionSummary, mean_interval, sample_means

# The detail of a mark that reports on its criteria, by name.
DETAIL = "criteria"
_ABSENT, _FAILED, _ABSTAINED, _FIRST = 0, 1, 2, 3


class CriterionColumns:
    """The criteria of one metric over a run, filled in whatever order marks arrive.

    Args:
        names: The criteria, in the order of the rubric.
        samples: How many samples the dataset has.
        repetitions: How often each is run.
    """

    def __init__(self, names: Sequence[str], *, samples: int, repetitions: int) -> None:
        self._places = {name: place for place, name in enumerate(names)}
        # Few values occur, so each is stored as a code of two bytes, or four if there are too many for two.
        self._codes: NDArray[np.unsignedinteger] = np.zeros((samples, repetitions, len(names)), dtype=np.uint16)
        self._most = np.iinfo(np.uint16).max
        self._values: dict[float, int] = {}
        self._agreements: list[Counter[float]] = [Counter() for _ in names]

    def add(self, executions: Sequence[Execution], column: int) -> None:
        """Count the marks of one column of executions.

        Args:
            executions: What was run.
            column: The place of the metric among their marks.
        """
        for execution in executions:
            mark = execution.marks[column]
            details = mark.details.get(DETAIL) if isinstance(mark, MetricScore) else None
            if isinstance(details, Mapping):
                for name, entry in details.items():
                    place = self._places.get(name)
                    if place is not None and isinstance(entry, Mapping):
                        # The code comes first: one that needs four bytes makes a new array.
                        code = self._code(entry)
                        self._codes[execution.position, execution.repetition, place] = code
                        agreement = entry.get("agreement")
                        if isinstance(agreement, (int, float)):
                            self._agreements[place][float(agreement)] += 1

    def _code(self, entry: Mapping[str, Any]) -> int:
        value = entry.get("value")
        if not isinstance(value, (int, float)):
            return _FAILED if entry.get("failed") else _ABSTAINED
        code = self._values.setdefault(float(value), len(self._values) + _FIRST)
        if code > self._most:
            self._codes, self._most = self._codes.astype(np.uint32), np.iinfo(np.uint32).max
        return code

    def summarize(self) -> dict[str, CriterionSummary]:
        """The summary of each criterion, in the order of the rubric."""
        known = np.array([0.0] * _FIRST + list(self._values))
        found = {}
        for name, place in self._places.items():
            codes = self._codes[:, :, place]
            judged = codes >= _FIRST
            count = int(np.count_nonzero(judged))
            values = known[codes]
            agreements = self._agreements[place]
            found[name] = CriterionSummary(
                n=int(np.count_nonzero(codes != _ABSENT)),
                n_judged=count,
                n_abstained=int(np.count_nonzero(codes == _ABSTAINED)),
                n_failed=int(np.count_nonzero(codes == _FAILED)),
                mean=math.fsum(values[judged].tolist()) / count if count else None,
                mean_interval=mean_interval(sample_means(values, judged)),
                mean_agreement=_mean(agreements),
            )
        return found


def _mean(counts: Counter[float]) -> float | None:
    """The mean of counted numbers, added in ascending order, so that the order of arrival changes no digit."""
    total = counts.total()
    return math.fsum(value * counts[value] for value in sorted(counts)) / total if total else None
