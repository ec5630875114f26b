"""`deemster check`: looks at files, models and costs before anything runs, and lists every issue."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import click

from deemster.cli._command import Verb
from deemster.cli._console import complain, describe_planned_calls, note, print_planned_calls, warn, write_out
from deemster.cli.model_options import cache_options
from deemster.errors import DeemsterError, ExitCode, plural, visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deemster.engine.model_access import ModelCalls
    from deemster.evaluation.check_models import RoleCheck
    from deemster.evaluation.resolved_evaluation import Evaluation
    from deemster.evaluation.suite import Suite

KINDS = (
    "dataset",
    "suite",
    "outputs",
    "report",
    "comparison",
    "rubric",
    "rubric-dataset",
    "votes",
    "alignment",
    "calibration",
    "calibration-report",
)
_HEAD = ("role", "model", "works", "latency", "tokens", "price")


@click.command(
    "check",
    cls=Verb,
    examples=["deemster check suite.yml", "deemster check . --offline", "deemster check golden.csv answers.yml"],
    see_also=["run", "audit", "plan"],
)
@click.argument("files", nargs=-1, type=click.Path(), metavar="[FILE_OR_DIRECTORY]...")
@click.option(
    "--as",
    "kind",
    type=click.Choice(KINDS),
    metavar="KIND",
    help=f"What the files are, where they do not say so themselves: {', '.join(KINDS)}.",
)
@cache_options
def command(*, files: tuple[str, ...], kind: str | None, limits: ModelCalls) -> None:
    """Find mistakes in files, try the models, say what a run costs.

    A file may be a dataset, a suite, outputs, a report, a rubric, votes or another file of deemster. Of a directory,
    and of the directories in it, every suite is checked, and every file whose `schema_version` is one of deemster's.
    Without an argument it is this directory. All issues are listed.

    A suite is checked with everything it names: on how many samples each metric applies, whether the gate can be
    decided by them, how many requests a run sends to models, and about what they cost. Its target is not called. Each
    model gets one small request, which costs a little where a model costs anything: does it answer, and in which form?
    With --offline no model is asked.

    Exit codes: 0 all is well, 2 something is wrong.
    """
    from deemster.evaluation.check_file import find_files

    found = find_files(files or (".",), kind)
    failing, code = 0, ExitCode.PASSED
    for file in found.files:
        try:
            is_sound = _check(file, kind, limits)
        except DeemsterError as error:
            is_sound, code = False, max(code, error.exit_code)
            complain(str(error))
        failing += not is_sound
    if len(found.files) > 1:
        passed_over = f", {plural(found.unknown, 'file')} of other kinds passed over" if found.unknown else ""
        note(f"{plural(len(found.files), 'file')} checked, {failing} with issues{passed_over}")
    if failing:
        raise click.exceptions.Exit(max(code, ExitCode.BAD_INPUT))


def _check(file: str, kind: str | None, limits: ModelCalls) -> bool:
    """Check one file and say what it holds; False where a model that it names cannot be used.

    Raises:
        DeemsterError: Something in the file cannot be used.
    """
    from deemster.evaluation.check_file import check_file

    # A target is not called here, so that one at an address elsewhere is no fault of an offline look.
    checked = check_file(file, kind, limits=limits._replace(offline=False), warn=warn)
    click.echo(visible(f"{file}: {checked.description}"))
    _print_calls(checked.evaluations)
    if checked.evaluations and checked.suite is not None:
        from deemster.cli.attack import planned_attack

        for line in planned_attack(checked.suite.called_with(limits._replace(offline=False))):
            click.echo(line)
    return checked.suite is None or limits.offline or _try_models(checked.suite, checked.evaluations)


def _print_calls(evaluations: Mapping[str, Evaluation]) -> None:
    """Print what models would be asked and about what that costs, by variant and in all; what few samples can show."""
    from deemster.comparison.experiment_report import FEW_SAMPLES, describe_resolution
    from deemster.engine.run_sync import run_sync
    from deemster.evaluation.dry_run import DryRun, plan_job_calls

    planned = {
        name: run_sync(plan_job_calls(evaluation)) for name, evaluation in evaluations.items() if evaluation.plan.asking
    }
    if len(evaluations) > 1:
        samples = min(len(evaluation.plan.dataset) for evaluation in evaluations.values())
        if samples < FEW_SAMPLES:
            warn(describe_resolution(samples, len(evaluations)))
        for name, calls in planned.items():
            for line in describe_planned_calls(calls):
                click.echo(visible(f"{name}: {line}"))
    if planned:
        print_planned_calls(DryRun.of_all(list(planned.values())))


def _try_models(suite: Suite, evaluations: Mapping[str, Evaluation]) -> bool:
    """Send each model of a suite one small request, and explain what is wrong where that fails."""
    from deemster.engine.run_sync import run_sync
    from deemster.evaluation.check_models import check_models
    from deemster.models.clock import clock_from_environment
    from deemster.text.terminal_layout import list_text
    from deemster.text.text_sections import TextTable

    answering = {role for evaluation in evaluations.values() for role in getattr(evaluation.plan.target, "roles", ())}
    checks = run_sync(check_models(suite, clock=clock_from_environment(), answering=answering))
    if checks:
        write_out(list_text(TextTable(_HEAD, [_row(check) for check in checks])))
    for check in checks:
        if check.reasons:
            note(f"{check.role}: The model reasons before it answers. That is paid for too, and not estimated above.")
    failing = [check for check in checks if check.issue is not None]
    for check in failing:
        note("")
        note("\n".join(_explain(check)))
    return not failing


def _row(check: RoleCheck) -> tuple[str, ...]:
    model = visible(check.model or "-", limit=60)
    if check.issue is not None:
        return check.role, model, "cannot be used", "-", "-", "-"
    usage = check.usage
    latency = "-" if usage is None or usage.latency_ms is None else f"{usage.latency_ms:.0f} ms"
    counts = [] if usage is None else [usage.prompt_tokens, usage.completion_tokens]
    tokens = " + ".join(f"{count:,}" for count in counts if count is not None)
    return check.role, model, check.works, latency, tokens or "-", _format_price(check)


def _explain(check: RoleCheck) -> list[str]:
    first, *rest = (visible(line) for line in (check.issue or "").split("\n"))
    return [f"{check.role}: {first}", *(f"  {line}" for line in [*rest, *filter(None, [check.advice])])]


def _format_price(check: RoleCheck) -> str:
    """What the request cost, in US dollars.

    >>> from deemster.records import Usage
    >>> from deemster.evaluation.check_models import RoleCheck
    >>> _format_price(RoleCheck("judge", usage=Usage(cost_usd=Decimal("0.0000125")))), _format_price(RoleCheck("judge"))
    ('$0.000012', 'unknown')
    """
    if check.is_free:
        return "free"
    cost = None if check.usage is None else check.usage.cost_usd
    return "unknown" if cost is None else f"${cost.quantize(Decimal('0.000001'))}"
