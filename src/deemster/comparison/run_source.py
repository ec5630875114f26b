"""Where the facts of a compared run come from, and a run at hand as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.comparison.compare_columns import ComparisonSettings
from deemster.errors import ReportError
from deemster.formats.json_values import json_bytes
from deemster.gate import GateDecision
from deemster.records import MetricCard, Sample, SampleFacts
from deemster.report import Report, RunEntry, RunSamples
from deemster.report.build_report import metric_identity
from deemster.report.report_entries import DatasetEntry, ExecutionEntry, PrivacyEntry
from deemster.results import RunSummary, SampleEntry
from deemster.results.difference_origin import AnchorScores
from deemster.results.mark_table import MarkTable
from deemster.results.run_columns import ComparedRun, RunColumns
from deemster.store import Store

# A sample with its executions.
ShownSample: TypeAlias = tuple[SampleEntry | SampleFacts, Sequence[ExecutionEntry]]


class RunSource(Protocol):
    """Where the facts of a compared run come from: a store, or a report.

    Attributes:
        cluster: The metadata key whose equal values belong together in the run, where that can be looked at.
        margin: The drop that its gate would accept; None where that is not known.
    """

    cluster: str | None
    margin: float | None

    def columns(self, *, cluster: str | None) -> RunColumns:
        """The run as arrays; `cluster` is the metadata key whose equal values make one unit."""

    def samples(self, positions: Sequence[int]) -> list[ShownSample]:
        """The samples at some positions."""

    def every_sample(self) -> Iterator[Sample]:
        """Every sample in order, as far as it is kept, for what selects samples."""

    @property
    def gate(self) -> GateDecision | None:
        """What its gate decided; None without a gate, or before the end."""

    @property
    def quotes(self) -> dict[str, frozenset[str] | None]:
        """By a metric's name, the details that may repeat text of a sample or output; None where all may."""

    @property
    def privacy(self) -> PrivacyEntry:
        """What was left out already."""

    @property
    def row_hashes(self) -> Iterable[str]:
        """The row hash of every sample, in order; empty where it is left out."""

    @property
    def stored(self) -> tuple[Store, str] | None:
        """The store of the run, and its id there; None for a report."""


def quotes_of_either(*sources: RunSource) -> Callable[[str], frozenset[str] | None]:
    """Says by a metric's name which of its details may repeat text, in any of the runs."""
    quotes_by_run = [source.quotes for source in sources]

    def quotes(name: str) -> frozenset[str] | None:
        details = [run_quotes[name] for run_quotes in quotes_by_run if name in run_quotes]
        return None if not details or None in details else frozenset().union(*filter(None, details))

    return quotes


def with_declared_cluster(settings: ComparisonSettings, sources: Sequence[RunSource]) -> ComparisonSettings:
    """Settings that look at the clusters which the runs declare alike, where they name none themselves."""
    declared = {source.cluster for source in sources}
    if settings.cluster is not None or len(declared) > 1:
        return settings
    return msgspec.structs.replace(settings, cluster=declared.pop())


def card_identities(cards: Sequence[MetricCard], identity: Mapping[str, Any]) -> dict[str, Any]:
    """By a metric's name, everything that must be equal for its marks to be compared.

    Args:
        cards: Metrics of a run.
        identity: The identity of the run, or of the scoring that made the marks.
    """
    metrics, models = identity.get("metrics", {}), identity.get("models") or {}
    identities = {}
    for card in cards:
        identities[card.name] = metric_identity(card.identity, card.threshold, card.roles, models)
        metric = metrics.get(card.name, {})
        if "source" in metric:
            identities[card.name] |= {"source": metric["source"]}
    return identities


def build_columns(
    run: ComparedRun,
    marks: MarkTable,
    samples: RunSamples,
    *,
    identities: dict[str, Any],
    cluster: str | None = None,
    anchors: AnchorScores | None = None,
) -> RunColumns:
    """A run whose samples and marks are at hand, as arrays.

    Args:
        run: How a comparison names it.
        marks: Its marks.
        samples: Its samples.
        identities: By a metric's name, everything that must be equal for its marks to be compared.
        cluster: The metadata key whose equal values make one unit; None where each sample is one.
        anchors: How its anchors were judged; None where it has none.

    Raises:
        ReportError: A sample has no such key in its metadata.
    """
    clusters = None
    if cluster is not None:
        clusters = [cluster_value(sample.metadata, cluster, sample.id) for sample in samples]

    ids = [sample.id for sample in samples]
    return RunColumns(
        run=run,
        marks=marks,
        digests=hash_digests(samples.row_hashes),
        identities=identities,
        clusters=clusters,
        ids=lambda positions: [ids[position] for position in positions],
        metadata=samples.metadata,
        anchors=anchors or AnchorScores(),
    )


def hash_digests(row_hashes: Iterable[str]) -> NDArray[np.uint8]:
    """Row hashes as bytes, one row for each sample."""
    return np.frombuffer(bytes.fromhex("".join(row_hashes)), dtype=np.uint8).reshape(-1, 32)


def cluster_value(metadata: Mapping[str, Any] | None, key: str, name: str) -> Any:
    """The value that all samples of a cluster share.

    Args:
        metadata: The metadata of a sample.
        key: The key by which samples are clustered.
        name: The sample's id.

    Raises:
        ReportError: The sample has no such key.
    """
    if metadata is None or key not in metadata:
        raise ReportError(f"The sample `{name}` has no `metadata.{key}`, by which samples are to be clustered.")
    return json_bytes(metadata[key])


def compared_run(run: RunEntry, dataset: DatasetEntry | RunSamples, numbers: RunSummary | Report) -> ComparedRun:
    """A run as a comparison names it.

    Args:
        run: How its report names it.
        dataset: Its dataset.
        numbers: What it came to.
    """
    return ComparedRun(
        id=run.id,
        suite=run.suite,
        label=run.label,
        target=run.target,
        dataset=dataset.name,
        fingerprint=dataset.fingerprint,
        started_at=run.started_at,
        status=run.status,
        samples=numbers.totals.samples,
        repetitions=numbers.totals.repetitions,
        macro_f1=numbers.macro_f1,
        pass_rate=numbers.pass_rate,
        part=run.part,
    )
