"""A run of a store, as comparisons read it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from deemster.comparison.run_source import ShownSample, card_identities, cluster_value
from deemster.errors import ReportError
from deemster.gate import GateDecision
from deemster.records import MetricCard, Sample
from deemster.report.report_assembly import execution_entry
from deemster.report.report_entries import PrivacyEntry
from deemster.report.report_settings import report_facts
from deemster.report.stored_columns import SampleColumns, read_columns, run_columns
from deemster.report.stored_report import quoted_details, stored_report
from deemster.results.difference_origin import AnchorScores
from deemster.results.mark_table import CriterionColumns, MarkTable
from deemster.results.run_columns import ComparedRun, RunColumns
from deemster.results.run_summary import pass_rates
from deemster.store import RunRow, ScoringRow, Store


class StoredSource:
    """A run of a store.

    Args:
        store: Where it is stored.
        row: The run.
        loaded: Its marks and samples, where they were read already.
        scoring: The scoring whose marks are meant; None for what its report shows.
    """

    def __init__(
        self,
        store: Store,
        row: RunRow,
        *,
        loaded: tuple[MarkTable, SampleColumns] | None = None,
        scoring: ScoringRow | None = None,
    ) -> None:
        self.store, self.row, self._loaded, self._scoring = store, row, loaded, scoring
        self.quotes = quoted_details(store, row.id)
        self.privacy = PrivacyEntry()
        self.stored = store, row.id
        self._facts = report_facts(row)
        self.cluster = self._facts.cluster
        rules = None if self._facts.gate is None else self._facts.gate.baseline
        self.margin = None if rules is None else rules.margin

    @property
    def gate(self) -> GateDecision | None:
        """What its gate decided; None without a gate, or before the end.

        Raises:
            StoreError: It cannot be read.
        """
        if self._facts.gate is None or self.row.status == "running":
            return None
        return stored_report(self.store, self.row.id).gate

    @property
    def row_hashes(self) -> Iterable[str]:
        """The row hash of every sample, in order."""
        return (sample.row_hash for sample in self.store.samples(self.row.id, content=False))

    def every_sample(self) -> Iterator[Sample]:
        """Every sample in order, as far as it is kept, for what selects samples."""
        for sample in self.store.samples(self.row.id):
            labels = {**(sample.metadata or {}), "tags": list(sample.tags)}
            yield Sample(sample.id, sample.input or {}, None, labels)

    def columns(self, *, cluster: str | None) -> RunColumns:
        """The run as arrays.

        Raises:
            StoreError: It cannot be read.
            ReportError: It has no marks.
        """
        store, row = self.store, self.row
        cards = self._cards
        if not row.traits.has_metrics or not cards or not row.samples:
            raise ReportError(f"`{row.id}` has no scores of metrics, so it cannot be compared.")

        clusters = None
        if cluster is not None:
            samples = store.samples(row.id, content=False)
            clusters = [cluster_value(sample.metadata, cluster, sample.id) for sample in samples]

        table, columns = self._loaded or run_columns(store, row, cards, scoring=self._scoring)
        return RunColumns(
            run=_compared_row(row, table),
            marks=table,
            digests=columns.digests,
            identities=stored_identities(row, cards, scoring=self._scoring),
            clusters=clusters,
            ids=columns.ids,
            metadata=lambda: (sample.metadata or {} for sample in store.samples(row.id, content=False)),
            stored_usage=columns.usage,
            anchors=self._facts.anchors or AnchorScores(),
            read_criteria=self._criteria,
        )

    def _criteria(self) -> dict[str, CriterionColumns]:
        """What each metric said of its criteria, which columns do not keep."""
        number = None if self._scoring is None else self._scoring.number
        table, _ = read_columns(self.store, self.row, self._cards, scoring=number)
        return {self._cards[column].name: criteria for column, criteria in table.criteria.items()}

    def samples(self, positions: Sequence[int]) -> list[ShownSample]:
        """The samples at some positions.

        Raises:
            StoreError: They cannot be read.
        """
        names = [card.name for card in self._cards]
        number = None if self._scoring is None else self._scoring.number
        return [
            (sample, [execution_entry(execution, names) for execution in executions])
            for sample, executions in self.store.samples_at(self.row.id, positions, scoring=number)
        ]

    @property
    def _cards(self) -> tuple[MetricCard, ...]:
        return self.store.cards(self.row.id) if self._scoring is None else self._scoring.cards

    def before_last_scoring(self) -> StoredSource:
        """The run as the scoring has it whose marks its last scoring replaced; itself where none were replaced."""
        complete = [scoring for scoring in self.row.scorings if not scoring.number or scoring.status == "complete"]
        *earlier, last = complete
        names = {card.name for card in last.cards}
        replaced = [scoring for scoring in earlier if names & {card.name for card in scoring.cards}]
        return StoredSource(self.store, self.row, scoring=replaced[-1]) if replaced else self


def _compared_row(row: RunRow, marks: MarkTable) -> ComparedRun:
    """A stored run as a comparison names it."""
    rates = pass_rates(marks)
    return ComparedRun(
        id=row.id,
        suite=row.suite,
        label=row.facts.get("label"),
        target=row.facts.get("target"),
        dataset=row.dataset,
        fingerprint=row.fingerprint or None,
        started_at=row.started_at,
        status=row.status,
        samples=row.samples,
        repetitions=row.repetitions,
        macro_f1=rates["macro_f1"],
        pass_rate=rates["pass_rate"],
        part=report_facts(row).part,
    )


def stored_identities(row: RunRow, cards: Sequence[MetricCard], *, scoring: ScoringRow | None = None) -> dict[str, Any]:
    """By a metric's name, everything that must be equal for its marks to be compared.

    Args:
        row: The run.
        cards: Its metrics.
        scoring: The scoring that made the marks; None for what its report shows.
    """
    if scoring is not None:
        return card_identities(cards, scoring.identity if scoring.number else row.identity)
    # The latest scoring that has a metric is the one whose marks are shown.
    identity_by_metric = {
        card.name: scoring.identity for scoring in row.scorings if scoring.number for card in scoring.cards
    }
    identities: dict[str, Any] = {}
    for card in cards:
        identities |= card_identities([card], identity_by_metric.get(card.name, row.identity))
    return identities
