"""The roles that user code can play."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

from deemster.records.mark import Mark
from deemster.records.output import Output
from deemster.records.sample import Sample


class Problem(NamedTuple):
    """What a metric finds wrong with a sample before anything runs.

    Attributes:
        message: What is wrong and what was expected.
        malformed: True stops the run; False is a warning, and the mark will be unscored.
    """

    message: str
    malformed: bool = True


@runtime_checkable
class Metric(Protocol):
    """Scores an output without a judge.

    A metric may also have ``score_many(samples, outputs)``, which equals ``score`` pair by pair; ``check(sample)``, which
    returns problems before anything runs; ``version``, part of its identity; and ``quotes``, the names of details that
    may repeat text of a sample or output.
    """

    @property
    def name(self) -> str:
        """How reports call it."""
        ...

    def score(self, sample: Sample, output: Output) -> Mark:
        """Mark one output."""
        ...
