"""From what a run left behind to its report: one pass over the executions, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Literal, NamedTuple, TypeVar

import msgspec

from deemster.records import Execution, MetricCard
from deemster.records.shared_call_cost import PaidExecutions
from deemster.report import BudgetEntry, Report, RunEntry, RunSamples, assemble_report
from deemster.results import Allowance, MarkTable, Totals, decide_gate, summarize_run
from deemster.runs._run_settings import ReportSettings, card_spellings

BATCH = 512
UNFINISHED = "the run has not ended"
_T = TypeVar("_T")


class RunRecord(NamedTuple):
    """What a run left behind.

    Attributes:
        id: The run's id.
        suite: The suite's name.
        started_at: When it started.
        finished_at: When it ended.
        duration_s: How long it took.
        seed: What its draws started from.
        tool_version: The version that ran it.
        samples: Its samples.
        repetitions: How often each was to be run.
        cards: Its metrics, in the order of the marks.
        executions: Every execution in the order of the samples, then repetition; None where there is none. It is gone
            through more than once.
        stopped: Why it stopped early, or None.
        ended: Whether it came to an end at all.
        mixed: What was changed while it was under way.
        budget: What it was allowed to spend.
    """

    id: str
    suite: str | None
    started_at: str
    finished_at: str
    duration_s: float
    seed: int
    tool_version: str
    samples: RunSamples
    repetitions: int
    cards: Sequence[MetricCard]
    executions: Iterable[Execution | None]
    stopped: str | None = None
    ended: bool = True
    mixed: Sequence[str] = ()
    budget: BudgetEntry | None = None


def build_report(
    remains: RunRecord,
    terms: ReportSettings,
    *,
    tally: MarkTable | None = None,
    watch: Callable[[Sequence[Execution]], None] | None = None,
) -> Report:
    """The report of a run.

    Args:
        remains: What the run left behind.
        terms: The terms on which numbers are made of it.
        tally: A tally that knows the samples' tags, where there is one already, with all executions counted or none.
        watch: Shown the executions as they are counted.

    Raises:
        ConfigurationError: The aggregator does not fit a mark.
        StoreError: What is kept of the run cannot be read.
    """
    tally = tally or _tagged(remains, terms)
    executions = PaidExecutions(remains.executions)
    if not tally.counted:
        for batch in batches(_counted(remains, terms, watched=watch is not None)):
            tally.add(batch)
            if watch is not None:
                watch(batch)
    summary = summarize_run(tally, delta=terms.delta)
    status, reason = _status(remains, summary.totals, terms.allowance)
    note = RunEntry(
        id=remains.id,
        suite=remains.suite,
        status=status,
        reason=reason,
        started_at=remains.started_at,
        finished_at=remains.finished_at,
        duration_s=remains.duration_s,
        seed=remains.seed,
        varied=terms.varied,
    )
    report = assemble_report(
        run=note,
        dataset=remains.samples,
        tally=tally,
        summary=summary,
        executions=executions,
        gate=None if terms.gate is None else decide_gate(terms.gate, summary, metrics=card_spellings(remains.cards)),
        tool_version=remains.tool_version,
    )
    return report if remains.budget is None else msgspec.structs.replace(report, budget=remains.budget)


def _counted(remains: RunRecord, terms: ReportSettings, *, watched: bool) -> Iterator[Execution]:
    """The executions that are there, with what is counted of them."""
    executions = remains.executions
    lean: Callable[[], Iterator[Execution]] | None = getattr(executions, "lean", None)
    # Aggregators, rubrics and whoever watches look at the details of marks too.
    needs_details = watched or terms.aggregator is not None or any(card.parts for card in remains.cards)
    if lean is not None and not needs_details:
        executions = lean()
    return (execution for execution in PaidExecutions(executions) if execution is not None)


def _tagged(remains: RunRecord, terms: ReportSettings) -> MarkTable:
    samples, repetitions = len(remains.samples), remains.repetitions
    tally = MarkTable(remains.cards, samples=samples, repetitions=repetitions, aggregator=terms.aggregator)
    # What is kept in a store is read without its content.
    read = getattr(remains.samples, "tags", None)
    every = (sample.tags for sample in remains.samples) if read is None else read()
    for position, tags in enumerate(every):
        tally.tag(position, tags)
    return tally


def batches(entries: Iterable[_T], size: int = BATCH) -> Iterator[list[_T]]:
    """Entries in lists of at most so many.

    >>> list(batches("abc", 2))
    [['a', 'b'], ['c']]
    """
    left = iter(entries)
    while batch := list(islice(left, size)):
        yield batch


def _status(
    remains: RunRecord, totals: Totals, allowance: Allowance
) -> tuple[Literal["complete", "incomplete", "mixed"], str | None]:
    """How a run ended, and why not well."""
    missing = _missing(totals, remains.stopped, allowance)
    if missing is None and not remains.ended:
        missing = UNFINISHED
    mixed = f"resumed with changes: {'; '.join(remains.mixed)}" if remains.mixed else None
    if missing is not None:
        return "incomplete", missing if mixed is None else f"{missing}; {mixed}"
    return ("complete", None) if mixed is None else ("mixed", mixed)


def _missing(totals: Totals, reason: str | None, allowance: Allowance) -> str | None:
    """Why a run is incomplete: marks that were not run, or more unscored ones than are allowed."""
    if totals.not_run:
        why = "" if reason is None else f" ({reason.rstrip('.')})"
        return f"{totals.not_run} of {totals.marks} marks were not run{why}"
    if allowance.exceeded(totals.unscored, totals.marks):
        return f"{totals.unscored} of {totals.marks} marks are unscored, above the allowance of {allowance}"
    return None
