"""Builds the report of a run from its executions, while it runs or from a store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from deemster.datasets.where_condition import applies
from deemster.errors import plural
from deemster.formats.streamed_list import Stream
from deemster.gate import Allowance, GateDecision, decide_gate
from deemster.gate.baseline_gate import PinnedBaseline
from deemster.judges.metric_catalog import card_spellings
from deemster.models.budget import BudgetEntry
from deemster.records import Execution, MetricCard, Sample, SampleFacts
from deemster.records.shared_call_cost import PaidExecutions
from deemster.report.broken_rules import BrokenSamples
from deemster.report.corrected_rates import with_corrections
from deemster.report.report_assembly import execution_entries, failure_entries, sample_entries
from deemster.report.report_document import SCHEMA, Report
from deemster.report.report_entries import STORED_FACTS, DatasetEntry, PrivacyEntry, RunEntry
from deemster.report.report_settings import (
    ReportSettings,
    RunFindings,
)
from deemster.report.run_samples import RunExecutions, RunSamples
from deemster.results import RunSummary
from deemster.results.mark_table import MarkTable
from deemster.results.metric_summary import Clusters, RunMetricSummary
from deemster.results.run_summary import summarize_run
from deemster.store import RunFacts, RunRow

BATCH = 512
UNFINISHED = "the run has not ended"
_T = TypeVar("_T")


class RunRecord(NamedTuple):
    """What a report is built from.

    Attributes:
        facts: The run as it began.
        finished_at: When it ended.
        duration_s: How long it took.
        samples: Its samples.
        cards: Its metrics, in the order of the marks.
        executions: Every execution that there is, in the order of the samples, then repetition. The report reads them
            more than once.
        stopped: Why it stopped early, or None.
        ended: Whether it came to an end at all.
        mixed: What changed when it was resumed.
        budget: What it was allowed to spend.
        findings: What else was found out about it.
    """

    facts: RunFacts
    finished_at: str
    duration_s: float
    samples: RunSamples
    cards: Sequence[MetricCard]
    executions: RunExecutions
    stopped: str | None = None
    ended: bool = True
    mixed: Sequence[str] = ()
    budget: BudgetEntry | None = None
    findings: RunFindings = RunFindings()


class FinishedRun(NamedTuple):
    """A run whose marks are counted and summarized.

    Attributes:
        record: What its report is built from.
        settings: How its numbers are made.
        table: Its marks.
        summary: Its numbers.
        entry: How reports name it, and how it ended.
    """

    record: RunRecord
    settings: ReportSettings
    table: MarkTable
    summary: RunSummary
    entry: RunEntry


def finish_run(record: RunRecord, settings: ReportSettings, *, table: MarkTable | None = None) -> FinishedRun:
    """Count and summarize the marks of a run.

    Args:
        record: The run.
        settings: How its numbers are made.
        table: A table of marks that knows the samples' tags, where there is one, with all executions counted or none.

    Raises:
        ConfigurationError: The aggregator does not fit a mark.
        StoreError: The run cannot be read.
    """
    table = count_marks(record, settings, table=table)
    for usage in record.findings.usage:
        table.further_usage.add(usage)

    models = record.facts.identity.get("models") or None
    summary = summarize_run(table, delta=settings.delta, attacks=record.findings.attacks)
    if settings.calibration is not None:
        identities = report_identities(summary.metrics, models)
        summary = with_corrections(summary, table, settings.calibration, identities=identities)
    status, reason = _status(record, summary, settings.allowance)
    entry = RunEntry(
        id=record.facts.id,
        suite=record.facts.suite,
        status=status,
        reason=reason,
        started_at=record.facts.started_at,
        finished_at=record.finished_at,
        duration_s=record.duration_s,
        seed=record.facts.seed,
        varied=settings.varied,
        part=record.samples.part,
        models=models,
        **{name: record.facts.facts.get(name) for name in STORED_FACTS},
    )
    return FinishedRun(record, settings, table, summary, entry)


def build_report(run: FinishedRun, baseline: PinnedBaseline | None) -> Report:
    """The report of a run.

    Args:
        run: The run.
        baseline: The baseline that its gate compares with, and what the comparison found; None where it has none.
    """
    record, summary = run.record, run.summary
    samples = record.samples
    entries = execution_entries(samples, lambda: run.table, record.executions)
    return Report(
        schema_version=SCHEMA,
        tool_version=record.facts.tool_version,
        run=run.entry,
        privacy=PrivacyEntry(),
        dataset=DatasetEntry(
            name=samples.name,
            schema_version=samples.schema_version,
            fingerprint=samples.fingerprint,
            duplicates=tuple(map(tuple, samples.duplicates)),
            cluster=samples.cluster,
        ),
        totals=summary.totals,
        macro_f1=summary.macro_f1,
        macro_f1_interval=summary.macro_f1_interval,
        macro_f1_metrics=summary.macro_f1_metrics,
        pass_rate=summary.pass_rate,
        pass_rate_interval=summary.pass_rate_interval,
        metric_order=summary.metric_order,
        metrics=summary.metrics,
        histograms=summary.histograms,
        cohort_list=summary.cohorts,
        aggregate=summary.aggregate,
        precision=summary.precision,
        samples=sample_entries(
            samples,
            lambda: run.table,
            higher_is_better=[summary.metrics[name].higher_is_better for name in summary.metric_order],
        ),
        executions=entries,
        failure_list=Stream(lambda: failure_entries(entries)) if summary.totals.unscored else (),
        usage=summary.usage,
        cost=summary.cost,
        budget=record.budget,
        gate=_decide(run, baseline),
        adversarial=summary.adversarial,
        panels=summary.panels or None,
    )


def report_identities(metrics: Mapping[str, RunMetricSummary], models: Mapping[str, Any] | None) -> dict[str, Any]:
    """By a metric's name, everything that must be equal for its marks to be compared, as far as a report says it.

    Args:
        metrics: The metrics of a report.
        models: The identities of models, by role.
    """
    return {
        name: metric_identity(figures.identity, figures.threshold, figures.roles, models or {})
        for name, figures in metrics.items()
    }


def metric_identity(
    identity: str, threshold: float | None, roles: Sequence[str], models: Mapping[str, Any]
) -> dict[str, Any]:
    """Everything that must be equal for the marks of a metric to be compared.

    Args:
        identity: The identity of the metric.
        threshold: Its pass mark.
        roles: The roles of the models it asks.
        models: The identities of models, by role.
    """
    known = {role: models[role] for role in roles if role in models}
    return {"definition": identity, "threshold": threshold, **{f"model `{role}`": known[role] for role in known}}


def _decide(run: FinishedRun, baseline: PinnedBaseline | None) -> GateDecision | None:
    """What the gate of a run says; None where it has none."""
    gate, record = run.settings.gate, run.record
    if gate is None:
        return None

    part = record.samples.part
    scorings = len(record.facts.scorings) if isinstance(record.facts, RunRow) else 1
    return decide_gate(
        gate,
        run.summary,
        metrics=card_spellings(record.cards),
        against_baseline=() if baseline is None else baseline.checks(gate, scorings=scorings),
        is_part=part is not None,
        is_of_failed=part is not None and part.is_of_failed,
        name_samples=BrokenSamples(run.table, record.samples, record.findings.attacks).name,
    )


def count_marks(
    record: RunRecord,
    settings: ReportSettings,
    *,
    table: MarkTable | None = None,
    watch: Callable[[Sequence[Execution]], None] | None = None,
) -> MarkTable:
    """A table with the marks of every execution of a run.

    Args:
        record: The run.
        settings: How its numbers are made.
        table: A table of marks that knows the samples' tags, where there is one, with all executions counted or none.
        watch: Shown the executions as they are counted.

    Raises:
        ConfigurationError: The aggregator does not fit a mark.
        StoreError: The run cannot be read.
    """
    table = table or _empty_table(record, settings)
    table.clusters = cluster_numbers(record.samples)
    if not table.counted:
        for batch in batches(PaidExecutions(record.executions)):
            table.add(batch)
            if watch is not None:
                watch(batch)
    return table


def cluster_numbers(samples: RunSamples) -> Clusters:
    """The number of each sample's cluster; None where samples stand alone."""
    if samples.cluster is None:
        return None
    numbers: dict[str, int] = {}
    values = (repr(metadata.get(samples.cluster)) for metadata in samples.metadata())
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], dtype=np.intp)


def _empty_table(record: RunRecord, settings: ReportSettings) -> MarkTable:
    table = MarkTable(
        record.cards,
        samples=len(record.samples),
        repetitions=record.facts.repetitions,
        aggregator=settings.aggregator,
    )
    for sample in record.samples.facts(content=has_conditions(record.cards)):
        note_sample(table, sample.position, sample)
    return table


def has_conditions(cards: Sequence[MetricCard]) -> bool:
    """Whether a metric says which samples it applies to, so that these are read with their content."""
    return any(card.where is not None for card in cards)


def note_sample(table: MarkTable, position: int, sample: SampleFacts) -> None:
    """Note the tags of a sample, and the metrics that do not apply to it.

    Args:
        table: A table of marks.
        position: The place of the sample in it.
        sample: The sample.
    """
    table.tag(position, sample.tags)
    for place, card in enumerate(table.cards):
        if card.where is not None and not applies(card.where, to_sample(sample)):
            table.leave_out(position, place)


def batches(entries: Iterable[_T], size: int = BATCH) -> Iterator[list[_T]]:
    """Entries in lists of at most so many.

    >>> list(batches("abc", 2))
    [['a', 'b'], ['c']]
    """
    left = iter(entries)
    while batch := list(islice(left, size)):
        yield batch


def _status(
    record: RunRecord, summary: RunSummary, allowance: Allowance
) -> tuple[Literal["complete", "incomplete", "mixed"], str | None]:
    """How a run ended, and why it is not complete."""
    missing = _incomplete_reason(summary, record.stopped, allowance)
    if missing is None and not record.ended:
        missing = UNFINISHED
    mixed = f"resumed with changes: {'; '.join(record.mixed)}" if record.mixed else None
    if missing is not None:
        return "incomplete", missing if mixed is None else f"{missing}; {mixed}"
    return ("complete", None) if mixed is None else ("mixed", mixed)


def _incomplete_reason(summary: RunSummary, stopped: str | None, allowance: Allowance) -> str | None:
    """Why a run is incomplete: marks that were not run, or more unscored ones than are allowed."""
    totals = summary.totals
    if totals.not_run:
        why = "" if stopped is None else f" ({stopped.rstrip('.')})"
        return f"{totals.not_run} of {totals.marks} scores were not computed{why}"
    if not totals.unscored or not allowance.exceeded(totals.unscored, totals.marks, samples=summary.samples_unscored):
        return None

    unscored = _describe_unscored(summary)
    if not allowance.bound:
        return unscored
    missing = "" if allowance.samples else f", which leaves {totals.unscored} of {totals.marks} scores missing"
    return f"{unscored}{missing}, above the {allowance} allowed"


def _describe_unscored(summary: RunSummary) -> str:
    """How many samples crashed, and how many more have a mark that could not be made."""
    of_all = f"of {plural(summary.totals.samples, 'sample')}"
    crashed = summary.samples_crashed
    others = summary.samples_unscored - crashed
    if not crashed:
        return f"{others} {of_all} could not be scored"
    return f"{crashed} {of_all} crashed{f', and {others} more could not be scored' if others else ''}"


def to_sample(stored: SampleFacts) -> Sample:
    """A stored sample as metrics see it."""
    metadata = {"tags": list(stored.tags)} if stored.metadata is None else stored.metadata
    return Sample(stored.id, stored.input or {}, stored.expected_output, metadata)
