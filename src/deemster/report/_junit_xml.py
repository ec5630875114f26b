"""Renders a report as JUnit XML: a test case for each mark, and a suite for the gate's checks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

from deemster.report._escaping import escape_line
from deemster.report.report_entries import MarkEntry, ScoreEntry
from deemster.results import GateCheck

if TYPE_CHECKING:
    from deemster.report.report_document import Report

_OUTSIDE_XML = re.compile("[\ufffe\uffff]")


def junit_pieces(report: Report) -> Iterator[bytes]:
    """The document in pieces, so that a report of any length can be written."""
    totals = report.totals
    failed = totals.scored - sum(figures.n_passed for figures in report.metrics.values())
    errors = totals.unscored + totals.not_run
    checks = report.gate.checks if report.gate is not None else ()
    yield b'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="deemster">\n'
    name = _attribute(report.run.suite or report.dataset.name)
    yield f'  <testsuite name={name} tests="{totals.marks}" failures="{failed}" errors="{errors}">\n'.encode()
    for execution in report.executions:
        for metric in report.metric_order:
            repeated = f" #{execution.repetition}" if totals.repetitions > 1 else ""
            yield _case(metric, execution.id + repeated, *_outcome(execution.marks[metric]))
    yield b"  </testsuite>\n"
    if checks:
        statuses = [check.status for check in checks]
        yield (
            f'  <testsuite name="gate" tests="{len(checks)}" failures="{statuses.count("fail")}" '
            f'skipped="{statuses.count("skipped") + statuses.count("inconclusive")}">\n'
        ).encode()
        for check in checks:
            yield _case("gate", check.name, *_check_outcome(check))
        yield b"  </testsuite>\n"
    yield b"</testsuites>\n"


def _outcome(mark: MarkEntry) -> tuple[str, str]:
    if not isinstance(mark, ScoreEntry):
        return "error", f"{mark.unscored.cause}: {mark.unscored.message or ''}"
    if mark.success:
        return "", ""
    return "failure", f"score {mark.score:.4f} against the threshold {mark.threshold:.4g}"


def _check_outcome(check: GateCheck) -> tuple[str, str]:
    return {"pass": "", "fail": "failure"}.get(check.status, "skipped"), check.because


def _case(group: str, name: str, outcome: str, message: str) -> bytes:
    opening = f"    <testcase classname={_attribute(group)} name={_attribute(name)}"
    if not outcome:
        return f"{opening}/>\n".encode()
    return f"{opening}><{outcome} message={_attribute(message)}/></testcase>\n".encode()


def _attribute(text: str) -> str:
    return quoteattr(_OUTSIDE_XML.sub("\ufffd", escape_line(text)))
