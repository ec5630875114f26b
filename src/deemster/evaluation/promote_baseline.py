"""Promotes a run to the baseline of its suite, and refuses runs that others must not be measured by."""

from __future__ import annotations

from collections.abc import Iterator

from deemster.comparison.stored_source import stored_identities
from deemster.errors import Issue, StoreError, plural
from deemster.gate import GateCheck
from deemster.report import Report
from deemster.report.report_settings import report_facts
from deemster.report.stored_report import stored_report
from deemster.store import BaselineFacts, BaselineRow, RunRow, Store


def promote_baseline(store: Store, run: str, *, now: str) -> RunRow:
    """Make a run the baseline of its suite.

    Args:
        store: Where it is stored.
        run: Its id, a unique beginning of it, its label, or `latest`.
        now: The time, in RFC 3339.

    Returns:
        The run.

    Raises:
        StoreError: There is no such run, or others must not be measured by it: it failed its gate, was stopped, is
            incomplete, took a part of its dataset, or belongs to another dataset than the baseline it would replace.
        ReportError: It has no marks.
    """
    row = store.run(run, kind="run")
    report = stored_report(store, row.id)
    current = store.baseline(row.suite, row.dataset)
    if reasons := list(_refusals(store, row, report, current)):
        message = f"The run `{row.id}` cannot become the baseline: {reasons[0]}"
        raise StoreError(
            [Issue(message, store.where), *(Issue(reason[0].upper() + reason[1:]) for reason in reasons[1:])]
        )
    facts = BaselineFacts(
        promoted_at=now,
        fingerprint=row.fingerprint,
        metrics=stored_identities(row, store.cards(row.id)),
        summary={
            "macro_f1": report.macro_f1,
            "pass_rate": report.pass_rate,
            "samples": report.totals.samples,
            "repetitions": report.totals.repetitions,
            "metrics": {name: report.metrics[name].pass_rate for name in report.metric_order},
        },
    )
    store.promote(row.id, facts)
    return row


def _refusals(store: Store, row: RunRow, report: Report, current: BaselineRow | None) -> Iterator[str]:
    """Why a run must not become the baseline."""
    if row.kind != "run":
        yield f"it is a {row.kind}."
        return
    if report.budget is not None and report.budget.halted:
        yield f"a budget stopped it: {report.budget.reason}"
    elif report.run.status != "complete":
        yield f"it is {report.run.status}: {report.run.reason}."
    if (part := report_facts(row).part) is not None:
        yield f"it ran a part of its dataset, {part.samples:,} of {plural(part.of, 'sample')}."
    failed = [check for check in _gate_checks(row, report, current) if check.status == "fail"]
    if failed:
        yield f"it failed its gate: {failed[0].name}: {failed[0].because}."
    if current is not None and current.run != row.id and (why := _dataset_change(store, row, current)):
        yield f"{why} `deemster baseline --clear` forgets the baseline `{current.run}`."


def _gate_checks(row: RunRow, report: Report, current: BaselineRow | None) -> Iterator[GateCheck]:
    """The checks that count: not those against a baseline that was missing, or is no longer the baseline."""
    pinned = report_facts(row).baseline
    is_past = pinned is not None and pinned.name == "baseline" and (current is None or current.run != pinned.run)
    for check in () if report.gate is None else report.gate.checks:
        if not (is_past and check.name.partition(".")[0] == "baseline"):
            yield check


def _dataset_change(store: Store, row: RunRow, current: BaselineRow) -> str | None:
    """How the dataset of a run is another one than that of the baseline; None where it has all its samples."""
    if current.dataset != row.dataset:
        return f"its dataset is `{row.dataset}`, and that of the baseline is `{current.dataset}`."
    if current.facts.fingerprint == row.fingerprint:
        return None
    own = {sample.row_hash for sample in store.samples(row.id, content=False)}
    lost = sum(sample.row_hash not in own for sample in store.samples(current.run, content=False))
    if not lost:
        return None
    return f"its dataset lacks {plural(lost, 'sample')} of the baseline, which are gone or edited."
