"""How a command ends that has a report: it is written and printed, and decides the exit code."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from deemster.cli._console import complain, note, print_sections, warn
from deemster.cli.report_options import ReportOptions
from deemster.errors import ExitCode, ReportError, visible

if TYPE_CHECKING:
    from deemster.comparison import Comparison
    from deemster.datasets import SelectedPart
    from deemster.gate import GateDecision
    from deemster.report import Report
    from deemster.report.overview import NamedRun
    from deemster.store import RunRow, Store

# So many checks that did not pass are named where no report is printed.
_MOST_CHECKS = 20
# Causes that a change of code removes.
_CRASHES = frozenset({"target_failed", "metric_failed"})
# Targets that may answer the next time without a change here, by the key of their identity.
_SERVICES = frozenset({"http", "command"})


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
    from deemster.report.failing_samples import describe_passed

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
        reports.note_files()
    if not reports.takes_stdout and not quiet:
        print_report(shown, named, full=reports.full)
    else:
        if report.run.part is not None and report.run.part.is_of_failed:
            note(visible("".join(describe_passed(shown))))
        if report.gate is not None:
            print_verdict(report.gate, report.run.part)
    warn_of_open_checks(report.gate)
    note_what_is_missing(shown, is_printed=not reports.takes_stdout and not quiet)
    return code


def name_run(store: Store, report: Report, name: str, *, store_flag: str) -> NamedRun:
    """How commands find a stored run, and what broke in it since its baseline.

    Args:
        store: Where it is stored.
        report: Its report.
        name: What stands for it in a command.
        store_flag: The `--store` that the command needs.
    """
    from deemster.evaluation.suite import stored_suite
    from deemster.report.overview import NamedRun
    from deemster.report.report_settings import report_facts

    row = store.run(report.run.id)
    baseline = store.baseline(report.run.suite, report.dataset.name)
    compared = report_facts(row).baseline
    evidence = None if compared is None else compared.evidence
    return NamedRun(
        name,
        store_flag,
        has_baseline=baseline is not None and baseline.run != report.run.id,
        broken=() if evidence is None else tuple(sample.position for sample in evidence.first_broken),
        suite_file=_from_here(stored_suite(row).get("file", "")),
    )


def _from_here(file: str) -> str:
    """A file as one would type it: relative where it is below this folder."""
    return file.removeprefix(f"{Path.cwd()}{os.sep}")


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


def note_what_is_missing(report: Report, *, is_printed: bool) -> None:
    """Say why a run is not complete, and what could not be scored; what is allowed, only where no report says it."""
    from deemster.report.unscored_causes import describe_failures

    run, totals = report.run, report.totals
    failure = describe_failures(report.failure_list) if totals.unscored else None
    if run.status != "complete":
        because = "" if failure is None or totals.not_run else f": {failure}"
        note(visible(f"{run.status}: {run.reason}{because}."))
    elif failure is not None and not is_printed:
        note(visible(f"{totals.unscored} of {totals.marks} scores are missing, which is allowed: {failure}."))


def print_verdict(gate: GateDecision, part: SelectedPart | None) -> None:
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


def is_worth_resuming(report: Report, row: RunRow) -> bool:
    """Whether an incomplete run comes further when it is resumed: something was not run, or a service did not answer.

    Code that crashed would crash again, and after a fix the run is another one.

    Args:
        report: The report of the run.
        row: The run, as it is stored.
    """
    from deemster.runs.retried_marks import RETRIED_CAUSES

    retried = RETRIED_CAUSES - _CRASHES
    if not _SERVICES.isdisjoint(row.identity.get("target", ())):
        retried |= {"target_failed"}
    helps = report.totals.not_run > 0 or not _causes(report).isdisjoint(retried)
    return report.run.status == "incomplete" and helps


def steps_after_crashes(report: Report, row: RunRow, *, store_flag: str, run: str) -> Iterator[str]:
    """What to type next where code crashed: what shows it, and what runs it again.

    Args:
        report: The report of the run.
        row: The run, as it is stored.
        store_flag: The `--store` that a command needs.
        run: The command that runs it again.
    """
    crashed = next((failure.id for failure in report.failure_list if failure.cause in _CRASHES), None)
    if crashed is None:
        return
    yield f"What crashed, and where: deemster show latest {shlex.quote(visible(crashed))}{store_flag}"
    if report.totals.not_run == 0 and "python" in row.identity.get("target", ()):
        yield f"After a fix: {run}"


def _causes(report: Report) -> set[str]:
    return {cause for figures in report.metrics.values() for cause in figures.unscored_by_cause}
