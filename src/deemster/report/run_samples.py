"""The samples and executions of a run, as a report needs them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from deemster.datasets import SelectedPart
from deemster.records import Execution, Sample, SampleFacts


class RunSamples(Protocol):
    """The samples of a run: a dataset, or what is kept of one."""

    part: SelectedPart | None

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Sample]: ...

    def facts(self, *, content: bool = True) -> Iterator[SampleFacts]:
        """Every sample as the run keeps it, in order, with expected output and input where they are wanted."""
        ...

    def facts_at(self, position: int) -> SampleFacts:
        """One sample as the run keeps it, with expected output and input."""
        ...

    def metadata(self) -> Iterator[Mapping[str, Any]]:
        """The metadata of every sample, in order."""
        ...

    @property
    def name(self) -> str:
        """What the dataset is called."""
        ...

    @property
    def schema_version(self) -> str:
        """The format it was written in."""
        ...

    @property
    def cluster(self) -> str | None:
        """The metadata key whose equal values belong together; None where samples stand alone."""
        ...

    @property
    def fingerprint(self) -> str | None:
        """The dataset's fingerprint, where it has one."""
        ...

    @property
    def duplicates(self) -> Sequence[Sequence[str]]:
        """Ids of samples that are equal, group by group."""
        ...

    @property
    def row_hashes(self) -> Iterable[str]:
        """The row hash of every sample, in order."""
        ...


class RunExecutions(Protocol):
    """The executions of a run: all of them in the order of the samples, then repetition, any number of times."""

    def __iter__(self) -> Iterator[Execution]: ...

    def at(self, position: int) -> Sequence[Execution]:
        """The executions of one sample, with every model call paid for by the first mark of the run that uses it."""
        ...
