"""Renders a report as JUnit XML: a suite for the gate's checks, and one for marks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

from deemster.gate import GateCheck
from deemster.report.failing_samples import describe_unscored, detail_notes
from deemster.report.panel_lines import panel_lines
from deemster.report.report_entries import MarkEntry, ScoreEntry
from deemster.text.escaping import escape_line

if TYPE_CHECKING:
    from deemster.report.report_document import Report

_NOTES = 3
_BESIDE_THE_GATE = (
    b"    <system-out>Samples that did not pass are skipped here: the gate decides. With `junit: samples` in the suite "
    b"they are failures.</system-out>\n"
)
_LONGEST = 600
_OUTSIDE_XML = re.compile("[\ufffe\uffff]")


def junit_pieces(report: Report, *, samples_fail: bool = False) -> Iterator[bytes]:
    """The document in pieces, so that a report of any length can be written.

    The gate decides: its failed checks, and a run that is not complete, are failures. Marks that do not pass are
    skipped test cases of a second suite.

    Args:
        report: The report.
        samples_fail: Whether marks that do not pass are failures too.
    """
    totals = report.totals
    checks = report.gate.checks if report.gate is not None else ()
    statuses = [check.status for check in checks]
    incomplete = report.run.status == "incomplete"
    yield b'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="deemster">\n'
    panels = ["".join(line) for line in panel_lines(report)]
    undecided = len(panels) + statuses.count("skipped") + statuses.count("inconclusive")
    part = "" if report.run.part is None else f" of a part: {report.run.part.describe()}"
    yield (
        f'  <testsuite name={_attribute(f"gate{part}")} tests="{len(checks) + len(panels) + 1}" '
        f'failures="{statuses.count("fail")}" errors="{int(incomplete)}" skipped="{undecided}">\n'
    ).encode()
    yield junit_case("run", "complete", "error" if incomplete else "", report.run.reason or "The run is incomplete.")
    for check in checks:
        yield junit_case("gate", check.name, *check_outcome(check))
    for panel in panels:
        yield junit_case("panels", panel, "skipped", panel)
    yield b"  </testsuite>\n"
    failed = totals.scored - sum(figures.n_passed for figures in report.metrics.values())
    errors, outside = totals.unscored + totals.not_run, totals.not_applicable
    skipped = f'skipped="{outside if samples_fail else failed + errors + outside}"'
    counts = f'failures="{failed}" errors="{errors}"{f" {skipped}" if outside else ""}' if samples_fail else skipped
    name = _attribute(report.run.suite or report.dataset.name)
    yield f'  <testsuite name={name} tests="{totals.marks + outside}" {counts}>\n'.encode()
    for execution in report.executions:
        for metric in report.metric_order:
            repeated = f" #{execution.repetition}" if totals.repetitions > 1 else ""
            outcome, message = _outcome(execution.marks.get(metric))
            if outcome not in ("", "skipped") and not samples_fail:
                outcome, message = "skipped", f"did not pass: {message}"
            yield junit_case(metric, execution.id + repeated, outcome, message)
    if (failed or errors) and not samples_fail:
        yield _BESIDE_THE_GATE
    yield b"  </testsuite>\n"
    yield b"</testsuites>\n"


def _outcome(mark: MarkEntry | None) -> tuple[str, str]:
    if mark is None:
        return "skipped", "not applicable"
    if not isinstance(mark, ScoreEntry):
        return "error", "".join(describe_unscored(mark.unscored))
    if mark.success:
        return "", ""
    notes = "; ".join(f"{label}: {text}" for label, text in islice(detail_notes(mark.details), _NOTES))
    return "failure", f"score {mark.score:.4f} against the threshold {mark.threshold:.4g}{'. ' if notes else ''}{notes}"


def check_outcome(check: GateCheck) -> tuple[str, str]:
    """How the test case of a check ended, and why."""
    return {"pass": "", "fail": "failure"}.get(check.status, "skipped"), check.because


def junit_case(group: str, name: str, outcome: str, message: str) -> bytes:
    """One test case: `failure`, `error` or `skipped` with a message; blank where it passed."""
    opening = f"    <testcase classname={_attribute(group)} name={_attribute(name)}"
    if not outcome:
        return f"{opening}/>\n".encode()
    return f"{opening}><{outcome} message={_attribute(message)}/></testcase>\n".encode()


def _attribute(text: str) -> str:
    return quoteattr(_OUTSIDE_XML.sub("\ufffd", escape_line(text, limit=_LONGEST)))
