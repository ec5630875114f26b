"""A run that a report tells of, as comparisons read it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.comparison.run_source import ShownSample, compared_run, hash_digests
from deemster.errors import ReportError
from deemster.judges.metric_catalog import quotes_of_spec
from deemster.records import CAUSES, MetricCard, Sample
from deemster.report import Report
from deemster.report.build_report import report_identities
from deemster.report.failing_samples import executed_samples
from deemster.report.report_entries import ExecutionEntry, ScoreEntry
from deemster.results.mark_table import MarkTable, output_digest
from deemster.results.metric_summary import SCORED, RunMetricSummary
from deemster.results.run_columns import RunColumns

_ROW_HASH = re.compile("[0-9a-f]{64}")


class ReportSource:
    """A run that a report tells of.

    Args:
        report: The report.
    """

    # A report does not hold the metadata of samples.
    cluster: str | None = None
    # Nor does it hold the rules of its gate.
    margin: float | None = None

    def __init__(self, report: Report) -> None:
        self._report = report
        self.quotes = {name: quotes_of_spec(figures.spec) for name, figures in report.metrics.items()}
        self.privacy = report.privacy
        self.stored = None
        self.gate = report.gate

    @property
    def row_hashes(self) -> Iterable[str]:
        """The row hash of every sample, in order; empty where it is left out."""
        return (sample.row_hash or "" for sample in self._report.samples)

    def every_sample(self) -> Iterator[Sample]:
        """Every sample in order, as far as it is kept, for what selects samples."""
        return (Sample(entry.id, entry.input or {}, None, {"tags": list(entry.tags)}) for entry in self._report.samples)

    def columns(self, *, cluster: str | None) -> RunColumns:
        """The run as arrays.

        Raises:
            ReportError: A cluster is asked for, or a sample has no row hash, or one that is none.
        """
        report, totals = self._report, self._report.totals
        if cluster is not None:
            raise ReportError("A report does not hold the metadata of samples. For clusters, compare stored runs.")

        cards = [_report_card(name, report.metrics[name]) for name in report.metric_order]
        table = MarkTable(cards, samples=totals.samples, repetitions=totals.repetitions)

        ids: list[str] = []
        hashes: list[str | None] = []
        for position, sample in enumerate(report.samples):
            ids.append(sample.id)
            hashes.append(sample.row_hash)
            table.tag(position, sample.tags)
            for name in sample.not_applicable:
                table.leave_out(position, report.metric_order.index(name))
        digests = _checked_digests(ids, hashes)

        for index, entry in enumerate(report.executions):
            _note_execution(table, divmod(index, totals.repetitions), entry)
        table.restore_panels(report.panels)

        return RunColumns(
            run=compared_run(report.run, report.dataset, report),
            marks=table,
            digests=digests,
            identities=report_identities(report.metrics, report.run.models),
            clusters=None,
            ids=lambda positions: [ids[position] for position in positions],
        )

    def samples(self, positions: Sequence[int]) -> list[ShownSample]:
        """The samples at some positions."""
        wanted = set(positions)
        # One pass: the report may read its samples from a store.
        every = executed_samples(self._report)
        found = {position: (sample, executions) for position, sample, executions in every if position in wanted}
        return [found[position] for position in positions]


def _checked_digests(ids: Sequence[str], hashes: Sequence[str | None]) -> NDArray[np.uint8]:
    """The row hashes of samples as bytes; refuses what is none, by the id of its sample."""
    if None in hashes:
        raise ReportError(
            "The report was written `--without-text`: it has no hashes by which its samples could be found again."
        )
    for name, row_hash in zip(ids, hashes, strict=True):
        if not _ROW_HASH.fullmatch(str(row_hash)):
            raise ReportError(f"The `row_hash` of the sample `{name}` is no SHA-256 of 64 hexadecimal digits.")
    return hash_digests(map(str, hashes))


def _report_card(name: str, figures: RunMetricSummary) -> MetricCard:
    return MetricCard(
        name=name,
        spec=figures.spec,
        identity=figures.identity,
        family=figures.family,
        quotes=None,
        threshold=figures.threshold,
        higher_is_better=figures.higher_is_better,
        roles=figures.roles,
        where=figures.where,
    )


def _note_execution(table: MarkTable, at: tuple[int, int], entry: ExecutionEntry) -> None:
    """Put an execution of a report into a table."""
    if entry.output is not None:
        table.outputs[at] = output_digest(entry.output, entry.retrieved, entry.trajectory)
        table.output_chars[at] = entry.output_chars
    if entry.usage is not None:
        table.note_usage(at, entry.usage)
    if entry.broken_off is not msgspec.UNSET:
        table.note_broken_off(at, entry.broken_off)

    for column, card in enumerate(table.cards):
        mark = entry.marks.get(card.name)
        if isinstance(mark, ScoreEntry):
            table.scores[*at, column] = mark.score
            table.passed[*at, column] = mark.success
            table.causes[*at, column] = SCORED
        elif mark is not None:
            table.causes[*at, column] = CAUSES.index(mark.unscored.cause) + 1
