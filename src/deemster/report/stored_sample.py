"""One sample of a stored run, without reading the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from deemster.datasets import SelectedPart
from deemster.errors import InputError, did_you_mean
from deemster.records import Execution, Sample, SampleFacts
from deemster.report.build_report import build_report, finish_run, to_sample
from deemster.report.report_document import Report
from deemster.report.report_settings import RECORDING_SETTINGS
from deemster.report.stored_report import stored_run_record
from deemster.store import Store

# An unknown id is compared with so many, to find a similar one.
_MOST_IDS = 10_000


class StoredSample(NamedTuple):
    """One sample of a stored run.

    Attributes:
        report: The report of this sample alone: what the run measured, but no gate and no baseline.
        position: Its place in the run.
    """

    report: Report
    position: int


def stored_sample(store: Store, run: str, sample_id: str) -> StoredSample:
    """Read one sample of a stored run.

    Args:
        store: Where the run is stored.
        run: Its id, a unique beginning of it, or `latest`.
        sample_id: The sample's id.

    Raises:
        InputError: The run has no such sample.
        StoreError: There is no such run, or it cannot be read.
        ReportError: There is nothing to report on.
    """
    row = store.run(run)
    record = stored_run_record(store, row)
    position = store.position_of(row.id, sample_id)
    if position is None:
        ids = [sample.id for sample in islice(store.samples(row.id, content=False), _MOST_IDS)]
        raise InputError(f"The run has no sample {sample_id!r:.200}. {did_you_mean(sample_id, ids)}")

    alone = record._replace(
        samples=_OneSample(record.samples.facts_at(position), schema_version=record.samples.schema_version),
        executions=_ItsExecutions(record.executions.at(position)),
    )
    return StoredSample(build_report(finish_run(alone, RECORDING_SETTINGS), None), position)


class _ItsExecutions:
    """The executions of one sample, as those of a run that has no other.

    Args:
        executions: The executions.
    """

    def __init__(self, executions: Sequence[Execution]) -> None:
        self._executions = [msgspec.structs.replace(execution, position=0) for execution in executions]

    def __iter__(self) -> Iterator[Execution]:
        return iter(self._executions)

    def at(self, position: int) -> list[Execution]:  # noqa: ARG002 - there is one sample
        """The executions of the sample."""
        return self._executions


class _OneSample:
    """A dataset of one sample of a run.

    Args:
        sample: The sample.
        schema_version: That of the run's dataset.
    """

    part: SelectedPart | None = None
    cluster: str | None = None
    fingerprint = None
    duplicates: tuple[Sequence[str], ...] = ()

    def __init__(self, sample: SampleFacts, *, schema_version: str) -> None:
        self._sample = SampleFacts(0, sample.id, sample.row_hash, sample.labels, sample.content)
        self.name = sample.id
        self.schema_version = schema_version

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[Sample]:
        yield to_sample(self._sample)

    def facts(self, *, content: bool = True) -> Iterator[SampleFacts]:  # noqa: ARG002 - a dataset has it
        """The sample."""
        yield self._sample

    def facts_at(self, position: int) -> SampleFacts:  # noqa: ARG002 - there is one
        """The sample."""
        return self._sample

    def metadata(self) -> Iterator[Mapping[str, Any]]:
        """The metadata of the sample."""
        yield self._sample.metadata or {}

    @property
    def row_hashes(self) -> Iterator[str]:
        """The row hash of the sample."""
        yield self._sample.row_hash
