"""How a command ends that has a report: it is written and printed, and decides the exit code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from deemster.cli._console import note, print_sections, warn
from deemster.cli.main import complain
from deemster.cli.report_options import ReportOptions
from deemster.errors import ExitCode, ReportError, plural, visible

if TYPE_CHECKING:
    from deemster.comparison import Comparison
    from deemster.datasets import SelectedPart
    from deemster.gate import GateDecision
    from deemster.report import Report
    from deemster.report.overview import NamedRun

# So many checks that did not pass are named where no report is printed.
_MOST_CHECKS = 20


def write_and_print(
    report: Report,
    reports: ReportOptions,
    *,
    quotes: Mapping[str, frozenset[str] | None],
    quiet: bool,
    named: NamedRun | None,
    comparison: Comparison | None = None,
) -> ExitCode:
    """Write and print a report; returns the exit code.

    Args:
        report: The report.
        reports: Where it is written, and what it leaves out.
        quotes: By a metric's name, the details that may repeat text.
        quiet: Whether it is not printed on the terminal.
        named: How commands find the run; None where it is not stored.
        comparison: Its comparison with the baseline, where there is one.
    """
    code = exit_code(report)
    shown = reports.shown(report, quotes)
    compared = None if comparison is None else reports.shown_comparison(comparison, quotes.get)
    try:
        reports.write(shown, comparison=compared)
    except ReportError as error:
        complain(str(error))
        if named is not None:
            again = f"deemster show {report.run.id}{named.store_flag}"
            note(f"The run is stored. To write its report again: {again}")
        code = ExitCode.INCOMPLETE
    if not quiet:
        reports.note_texts()
    if not reports.takes_stdout and not quiet:
        print_report(shown, named, full=reports.full)
    else:
        if report.totals.unscored:
            _print_failures(shown)
        if report.gate is not None:
            _print_verdict(report.gate, report.run.part)
    warn_of_open_checks(report.gate)
    if report.run.status != "complete":
        note(visible(f"{report.run.status}: {report.run.reason}."))
    return code


def print_report(report: Report, named: NamedRun | None, *, full: bool) -> None:
    """Print a report.

    Args:
        report: The report.
        named: How commands find the run; None where it is not stored.
        full: Whether it is printed whole, and not one screen of it.
    """
    from deemster.report.overview import overview_sections
    from deemster.report.report_sections import report_sections

    print_sections(report_sections(report) if full else overview_sections(report, named))


def exit_code(report: Report) -> ExitCode:
    """The exit code of a run: incomplete before failed before inconclusive, for marks that miss may change the rest."""
    if report.run.status == "incomplete":
        return ExitCode.INCOMPLETE
    return report.gate.exit_code if report.gate is not None else ExitCode.PASSED


def _print_failures(report: Report) -> None:
    """Print what could not be scored where no report was printed: the most frequent cause."""
    from deemster.report.failure_groups import group_failures

    groups = group_failures(report.failure_list)
    if groups:
        group, others = groups[0], len(groups) - 1
        more = f", and {plural(others, 'other cause')}" if others else ""
        what = "the target" if group.metric is None else group.metric
        said = f"{group.cause}: {group.message}" if group.message else group.cause
        note(visible(f"{plural(group.times, 'time')}: {what}: {said}{more}"))


def _print_verdict(gate: GateDecision, part: SelectedPart | None) -> None:
    """Print the verdict of the gate where no report was printed."""
    from deemster.report.gate_sections import format_against_bound, gate_verdict

    note(gate_verdict(gate, part))
    found = [check for status in ("fail", "inconclusive") for check in gate.checks if check.status == status]
    for check in found[:_MOST_CHECKS]:
        note("  " + visible(f"{check.status}: {check.name}: {format_against_bound(check)}: {check.because}"))
    if len(found) > _MOST_CHECKS:
        note(f"  ... and {len(found) - _MOST_CHECKS:,} more; `deemster show RUN` shows all.")


def warn_of_open_checks(gate: GateDecision | None) -> None:
    """Warn of inconclusive checks that a two-way gate counts as passed, of a missing baseline, of a drifted judge."""
    for check in () if gate is None else gate.checks:
        if check.status == "inconclusive" and gate is not None and gate.mode == "two-way":
            warn(visible(f"the gate counts {check.name} as passed, though it is inconclusive: {check.because}"))
        is_drift = check.name == "baseline.judge_drift" and check.observed is not None
        if check.status == "skipped" and (is_drift or check.name == "baseline"):
            warn(visible(f"the gate skips {check.name}: {check.because}"))


def is_worth_resuming(report: Report) -> bool:
    """Whether an incomplete run may come further when it is resumed."""
    from deemster.runs.resume_backlog import RETRIED_CAUSES

    causes = {cause for figures in report.metrics.values() for cause in figures.unscored_by_cause}
    helps = report.totals.not_run > 0 or not causes.isdisjoint({*RETRIED_CAUSES, "target_failed"})
    return report.run.status == "incomplete" and helps
