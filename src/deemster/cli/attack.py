"""`deemster attack`: the safety lane, attacks on the target of a suite."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from deemster.cli._command import Verb
from deemster.cli._console import describe_planned_calls, note
from deemster.cli._golden_samples import save_failing
from deemster.cli._run_and_report import NextSteps, RunWriting, run_and_report, writing_options
from deemster.cli._run_flags import RunNumbers, name_option, number_options, override_options
from deemster.cli.model_options import call_options
from deemster.cli.options import Command, Flags, group_flags, take_flags
from deemster.errors import ConfigurationError, plural

if TYPE_CHECKING:
    from deemster.attack.adversarial_dataset import AttackSelection
    from deemster.datasets import Dataset
    from deemster.engine.model_access import ModelCalls
    from deemster.evaluation.resolve_evaluation import SuiteOverrides
    from deemster.evaluation.resolved_evaluation import Evaluation
    from deemster.evaluation.suite import Suite
    from deemster.report import Report
    from deemster.runs.run_storage import StoredOrNot
    from deemster.store import Store

_ATTACKS = (
    click.option("--severity", "severities", multiple=True, metavar="LEVEL", help="Only this severity; repeatable."),
    click.option("--write", metavar="FILE", help="Only write the attacks as a dataset: .yml, .json or .jsonl."),
    click.option("--save-failing", "failing_file", metavar="FILE", help="Add what got through to this dataset."),
)


def _attack_options(command: Command) -> Command:
    return group_flags(command, "selection", _take_selection, _ATTACKS)


def _take_selection(flags: Flags) -> AttackSelection:
    from deemster.attack.adversarial_dataset import AttackSelection

    selection: AttackSelection = take_flags(AttackSelection, flags)
    return selection


@click.command(
    "attack",
    cls=Verb,
    headings={"How": ("--repetitions", "--concurrency", "--timeout")},
    examples=[
        "deemster attack suite.yml",
        "deemster attack suite.yml prompt-injection pii-leak --save-failing hard.yml",
    ],
    see_also=["run", "show", "audit"],
)
@click.argument("suite", type=click.Path())
@click.argument("categories", metavar="[CATEGORY]...", nargs=-1)
@_attack_options
@override_options(name_option)
@number_options
@call_options
@writing_options
def command(
    *,
    suite: str,
    selection: AttackSelection,
    write: str | None,
    failing_file: str | None,
    overrides: SuiteOverrides,
    numbers: RunNumbers,
    limits: ModelCalls,
    writing: RunWriting,
) -> None:
    """Attack a target: does it refuse, leak, call a forbidden tool?

    SUITE names the target and the models; without CATEGORY every category is tried. The attacks are harmless in
    themselves, several seeds each, as they stand and as a mutator writes them; the section `attack` of the suite says
    how. The categories are prompt-injection, jailbreak, tool-abuse, pii-leak (data of other people), ssrf,
    sql-shell-injection, ascii-smuggling, competitor-endorsement, excessive-agency and hallucination-overreliance.
    Checks without a judge look for leaked canaries, forbidden tool calls and private data; where the suite has a judge,
    `refusal-quality` looks at every answer too.

    The run is stored as the suite NAME-adversarial, with a baseline of its own. The gate is the suite's
    `gate.adversarial`: no critical attack may succeed, and there must be no drop of 5 points against the baseline.
    Exit codes: 0 passed, 1 the gate fails, 2 bad input, 3 incomplete, 4 inconclusive.
    """
    from deemster.attack.adversarial_job import build_adversarial_job, lane_dataset
    from deemster.evaluation.suite import load_suite

    if failing_file is not None and writing.storage is None:
        raise ConfigurationError("`--save-failing` reads a stored run, and `--store none` stores none.")

    loaded = load_suite(suite, calls_target=write is None, must_run=False)
    loaded = numbers.apply(loaded).called_with(limits)
    dataset = lane_dataset(loaded, selection)
    if write is not None:
        _write(dataset, write)
        return

    overrides = overrides._replace(redact_warnings=writing.reports.without_text)

    def conclude(store: Store, report: Report) -> None:
        if failing_file is not None:
            save_failing(store, [store.run(report.run.id)], failing_file)

    def resolve(*, storage: StoredOrNot) -> Evaluation:
        evaluation = build_adversarial_job(loaded, dataset, overrides, storage=storage)
        if not writing.quiet:
            for line in _describe(evaluation):
                note(line)
        return evaluation

    call = f"deemster attack {suite} {selection}".rstrip()
    run_and_report(loaded, resolve, writing, NextSteps(call, call), conclude=conclude)


def planned_attack(suite: Suite) -> Iterator[str]:
    """What an attack of a suite would send, and about what its judge would cost; nothing where none is declared.

    Raises:
        InputError: It cannot be attacked as it declares.
    """
    from deemster.attack.adversarial_dataset import AttackSelection
    from deemster.attack.adversarial_job import build_adversarial_job, is_attacked, lane_dataset
    from deemster.evaluation.resolve_evaluation import SuiteOverrides

    if is_attacked(suite):
        dataset = lane_dataset(suite, AttackSelection())
        yield from _describe(build_adversarial_job(suite, dataset, SuiteOverrides(asks_models=False)))


def _describe(evaluation: Evaluation) -> Iterator[str]:
    """How many attacks are sent, which requests to models judge them, and about what these cost."""
    from deemster.engine.run_sync import run_sync
    from deemster.evaluation.dry_run import plan_job_calls

    yield f"An attack calls the target {plural(evaluation.plan.size, 'time')}."
    for line in describe_planned_calls(run_sync(plan_job_calls(evaluation))):
        yield f"  {line}"


def _write(dataset: Dataset, path: str) -> None:
    dataset.save(path)
    note(f"{plural(len(dataset), 'sample')} written to {path}.")
