"""`deemster run`."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click

from deemster.cli.console import note, progress_shown, show_report, warn
from deemster.cli.main import complain, leave
from deemster.cli.rehearsal import show_rehearsal
from deemster.cli.rendering import Rendering, rendering_options
from deemster.cli.suites import Overrides, job_of_suite
from deemster.errors import ConfigurationError, ExitCode, ReportError, visible
from deemster.evaluation import DELTA, finished, run
from deemster.report import LEVELS, Report
from deemster.report.sections import decimals, verdict
from deemster.run.stopping import Stop
from deemster.run.suite import load_suite
from deemster.summary import Decision, read_allowance

CACHE = ".deemster/answers.jsonl"


@click.command("run", short_help="Run a suite, print the report, apply the gate.")
@click.argument("suite", type=click.Path())
@click.option("--outputs", metavar="FILE", help="Grade saved outputs; call no target.")
@click.option("--repetitions", type=int, metavar="R", help="Run each sample so many times.")
@click.option(
    "--delta", type=float, default=DELTA, show_default=True, help="The difference `precision` is judged against."
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="SPEC",
    help="Use this metric, with its default options, in place of the suite's; repeatable.",
)
@click.option(
    "--threshold", "thresholds", multiple=True, metavar="NAME=T", help="Set a metric's pass mark; repeatable."
)
@click.option("--concurrency", type=int, metavar="N", help="How many calls of the target may be under way at once.")
@rendering_options
@click.option("--max-unscored", metavar="COUNT|SHARE%", help="Unscored marks allowed; default 0.")
@click.option("--budget-usd", type=float, metavar="USD", help="Stop before the models cost more.")
@click.option("--budget-tokens", type=int, metavar="N", help="Stop before the models use more tokens.")
@click.option(
    "--cache",
    metavar="FILE",
    default=CACHE,
    show_default=True,
    help="Where the models' answers are kept and looked up first.",
)
@click.option("--no-cache", is_flag=True, help="Ask the models anew, and keep nothing.")
@click.option(
    "--offline", is_flag=True, help="Ask nothing over the network: recordings, cache and embedded models only."
)
@click.option("--dry-run", is_flag=True, help="Count what the models would be asked and what that costs; ask nothing.")
@click.option("--strict", is_flag=True, help="Absent metadata or expected output is an error before the run.")
@click.option("--quiet", is_flag=True, help="Show no progress and no report on the terminal.")
def command(
    *,
    suite: str,
    outputs: str | None,
    repetitions: int | None,
    delta: float,
    metrics: tuple[str, ...],
    thresholds: tuple[str, ...],
    concurrency: int | None,
    rendering: Rendering,
    max_unscored: str | None,
    budget_usd: float | None,
    budget_tokens: int | None,
    cache: str,
    no_cache: bool,
    offline: bool,
    dry_run: bool,
    strict: bool,
    quiet: bool,
) -> None:
    """Run a suite, print the report, apply the gate.

    Exit codes: 0 all rules pass (or none is declared), 1 a gate rule fails, 2 bad input, 3 incomplete, 4 inconclusive.
    """
    overrides = Overrides(
        outputs=outputs,
        repetitions=repetitions,
        delta=delta,
        metrics=metrics,
        thresholds=_thresholds(thresholds),
        concurrency=concurrency,
        strict=strict,
        allowance=read_allowance(max_unscored) if max_unscored is not None else None,
        discreet=rendering.level != LEVELS[0],
        cache=None if no_cache else Path(cache),
        budget_usd=budget_usd,
        budget_tokens=budget_tokens,
        offline=offline,
        calls=not (dry_run or offline),
    )
    rendering.check()
    job = job_of_suite(load_suite(suite, calls_target=outputs is None and not dry_run), overrides)
    if dry_run:
        show_rehearsal(job)
        return
    stop = Stop()
    with _interruptible(stop), progress_shown(quiet=quiet) as progress:
        report = finished(run(job, stop=stop, warn=warn, progress=progress))
    code = _delivered(report, rendering.view(report, job.plan.metrics), rendering, quiet=quiet)
    if stop.requested:
        leave(code)
    sys.exit(code)


def _delivered(report: Report, view: Report, rendering: Rendering, *, quiet: bool) -> ExitCode:
    """Write and show a report as it was asked for; how the run ends."""
    code = exit_code(report)
    try:
        rendering.write(view)
    except ReportError as error:
        complain(str(error))
        code = ExitCode.INCOMPLETE
    if not rendering.takes_stdout and not quiet:
        show_report(view)
    elif report.gate is not None:
        _conclude(report.gate)
    _warn_of_inconclusive(report.gate)
    if report.run.status == "incomplete":
        note(f"incomplete: {report.run.reason}.")
    return code


def exit_code(report: Report) -> ExitCode:
    """How the run ends: incomplete before failed before inconclusive, since a decision over missing marks is none."""
    if report.run.status == "incomplete":
        return ExitCode.INCOMPLETE
    return report.gate.exit_code if report.gate is not None else ExitCode.PASSED


def _conclude(gate: Decision) -> None:
    """Say the verdict where no report was shown."""
    note(verdict(gate))
    for check in gate.checks:
        if check.status in ("fail", "inconclusive"):
            numbers = f"{decimals(check.observed)}, required {check.required:.4g}"
            note("  " + visible(f"{check.status}: {check.name}: {numbers}: {check.because}"))


def _warn_of_inconclusive(gate: Decision | None) -> None:
    """Warn of what counts as passed only because the gate knows two ways."""
    if gate is None or gate.mode == "three-way":
        return
    for check in gate.checks:
        if check.status == "inconclusive":
            warn(visible(f"the gate counts {check.name} as passed, though it is inconclusive: {check.because}"))


def _thresholds(given: tuple[str, ...]) -> dict[str, float]:
    parsed = {}
    for text in given:
        name, sign, value = text.rpartition("=")
        try:
            parsed[name] = float(value)
        except ValueError:
            sign = ""
        if not sign or not name:
            raise ConfigurationError(f"`--threshold` is NAME=T, such as rouge-l=0.7, not `{text}`.")
    return parsed


@contextmanager
def _interruptible(stop: Stop) -> Iterator[None]:
    """Let the first signal ask the run to stop; the second one leaves at once."""

    def ask(number: int, _: FrameType | None) -> None:
        known = signal.Signals(number)
        note(f"{known.name}: finishing what is under way; once more to leave at once")
        signal.signal(known, before[known])
        stop.request(f"interrupted by {known.name}")

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
