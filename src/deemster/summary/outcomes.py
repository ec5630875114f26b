"""What an aggregator makes of every execution of a run, as columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from deemster.errors import ConfigurationError, Fault
from deemster.records import Execution
from deemster.summary.aggregators import Aggregator, aggregator_name, result_of


class Outcomes:
    """The aggregates of a run, as arrays of samples x repetitions.

    An execution that never came has failed with a score of 0, like one whose marks are all errors.

    Args:
        aggregator: Makes one result of the marks of an execution.
        names: The metrics, in the order of the marks.
        samples: How many samples the dataset has.
        repetitions: How often each is run.
    """

    def __init__(self, aggregator: Aggregator, names: Sequence[str], *, samples: int, repetitions: int) -> None:
        self.aggregator = aggregator
        self.name = aggregator_name(aggregator)
        self.names = tuple(names)
        self.successes: NDArray[np.bool_] = np.zeros((samples, repetitions), dtype=np.bool_)
        self.scores: NDArray[np.float64] = np.zeros((samples, repetitions))

    def add(self, executions: Sequence[Execution]) -> None:
        """Aggregate executions. The order in which they come changes nothing.

        Raises:
            ConfigurationError: The aggregator does not fit a mark, or its score is outside [0, 1].
        """
        found = [self._outcome(execution) for execution in executions]
        at = [execution.position for execution in executions], [execution.repetition for execution in executions]
        self.successes[at] = [success for success, _ in found]
        self.scores[at] = [score for _, score in found]

    def _outcome(self, execution: Execution) -> tuple[bool, float]:
        results = dict(zip(self.names, map(result_of, execution.marks), strict=True))
        try:
            found = self.aggregator.aggregate(results)
        except ConfigurationError as error:
            raise ConfigurationError(fault._replace(sample=execution.id) for fault in error.faults) from None
        if not 0.0 <= found.aggregate_score <= 1.0:
            message = f"The aggregator {self.name} gives the score {found.aggregate_score!r}; it lies between 0 and 1."
            raise ConfigurationError(Fault(message, sample=execution.id))
        return found.aggregate_success, found.aggregate_score
