"""A run as tests: each sample and each gate check passes, fails or is skipped, with the text that says why."""

from __future__ import annotations

import io
import os
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

import pytest
from rich.console import Console

from deemster.comparison import load_report
from deemster.engine.run_sync import run_sync
from deemster.evaluation.resolved_evaluation import Evaluation
from deemster.evaluation.run_evaluation import run_evaluation
from deemster.gate import GateCheck
from deemster.report.failing_samples import describe_sample, describe_unscored, is_failed
from deemster.report.gate_sections import format_against_bound, gate_verdict
from deemster.report.report_entries import ExecutionEntry, MarkEntry, ScoreEntry
from deemster.results import SampleEntry
from deemster.runs.run_storage import RunStorage
from deemster.store import open_store
from deemster.text.terminal_layout import print_sections
from deemster.text.text_sections import TextSection

# The check of a run beside those of its gate: whether everything was marked.
COMPLETE = "complete"
_WIDTH = 100


class Outcome(NamedTuple):
    """What became of one test, and why where it did not pass."""

    status: Literal["passed", "failed", "skipped"]
    why: str = ""


def run_to_file(job: Evaluation, config: pytest.Config, *, file: Path) -> list[str]:
    """Run a job, store the run, and write its report to a file; returns the warnings.

    Args:
        job: What to run.
        config: The settings of pytest, with the store.
        file: Where the report is written.

    Raises:
        DeemsterError: The run cannot go on.
    """
    warnings: list[str] = []
    named = config.getoption("--deemster-store") or os.environ.get("DEEMSTER_STORE")
    with open_store(named or config.rootpath / ".deemster" / "runs.db") as store:
        report = run_sync(run_evaluation(job, warn=warnings.append, storage=RunStorage(store)))
        report.save(file)
    return warnings


class JudgedRun:
    """The report of a run, whose samples and checks become tests.

    Args:
        file: The report.
        strict: Whether what is inconclusive fails; otherwise it is skipped.
    """

    def __init__(self, file: Path, *, strict: bool) -> None:
        self._report, self._open = load_report(file), "failed" if strict else "skipped"
        executions = iter(self._report.executions)
        self._samples = {
            sample.id: (sample, list(islice(executions, sample.repetitions))) for sample in self._report.samples
        }

    @property
    def checks(self) -> list[str]:
        """The names of all checks."""
        gate = self._report.gate
        return [COMPLETE, *(check.name for check in (() if gate is None else gate.checks))]

    def describe(self) -> str:
        """One line about the run: its verdict, and the command that shows it."""
        report = self._report
        said = f"the run is {report.run.status}" if report.gate is None else gate_verdict(report.gate, report.run.part)
        return f"{said.rstrip('.')}. `deemster show {report.run.id}`"

    def sample(self, name: str) -> Outcome:
        """The outcome of a sample: failed where the target failed or a score is too low, open where there is none.

        Args:
            name: Its id.
        """
        if name not in self._samples:
            return Outcome("skipped", "the run was stopped before this sample")
        sample, executions = self._samples[name]
        marks = [mark for execution in executions for mark in execution.marks.values()]
        failed = [mark for mark in marks if is_failed(mark)]
        if not marks:
            return Outcome("skipped", "no metric applies to this sample")
        if not failed:
            return Outcome("passed")
        if self._open == "failed" or any(map(_is_decided, failed)):
            return Outcome("failed", self._describe(sample, executions))
        first = next(mark for mark in failed if not isinstance(mark, ScoreEntry))
        return Outcome("skipped", f"unscored: {''.join(describe_unscored(first.unscored))}")

    def check(self, name: str) -> Outcome:
        """The outcome of a check, or of all against a baseline.

        Args:
            name: The check; `baseline` stands for all of these.
        """
        report = self._report
        if name == COMPLETE:
            is_whole = report.run.status != "incomplete"
            return Outcome("passed") if is_whole else Outcome("failed", f"The run is incomplete: {report.run.reason}.")
        gate = report.gate
        found = [] if gate is None else [c for c in gate.checks if c.name == name or c.name.startswith(f"{name}.")]
        for status in ("fail", "inconclusive"):
            of_status = [check for check in found if check.status == status]
            if of_status:
                why = "\n".join(map(_describe_check, of_status))
                return Outcome("failed", why) if status == "fail" else self._undecided(why)
        if all(check.status == "skipped" for check in found):
            return Outcome("skipped", "; ".join(check.because for check in found) or "the run has no such check")
        return Outcome("passed")

    def _undecided(self, why: str) -> Outcome:
        return Outcome("failed", why) if self._open == "failed" else Outcome("skipped", why)

    def _describe(self, sample: SampleEntry, executions: list[ExecutionEntry]) -> str:
        """What was asked, expected and said, and why it does not pass."""
        failed = [one for one in executions if any(map(is_failed, one.marks.values()))]
        detail = describe_sample(self._report, sample, failed)
        with io.StringIO() as text:
            console = Console(file=text, width=_WIDTH, highlight=False, color_system=None)
            print_sections([TextSection(detail.title, details=[detail._replace(title=())])], console)
            return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def _is_decided(mark: MarkEntry) -> bool:
    """Whether a mark that does not pass says so of what is under test: a low score, or no answer."""
    return isinstance(mark, ScoreEntry) or mark.unscored.cause == "target_failed"


def _describe_check(check: GateCheck) -> str:
    return f"{check.status}: {check.name}: {format_against_bound(check)}: {check.because}"
