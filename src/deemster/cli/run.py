"""`deemster run`: runs a suite, stores the run, prints the report, applies the gate."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from deemster.cli._command import Verb
from deemster.cli._run_and_report import NextSteps, RunWriting, run_and_report, writing_options
from deemster.cli._run_flags import (
    RUN_OVERRIDES,
    PartOptions,
    RunNumbers,
    number_options,
    override_options,
    part_options,
    threshold_option,
)
from deemster.cli._stored_outputs import is_stored, outputs_to_judge, score_stored_outputs
from deemster.cli.model_options import call_options

if TYPE_CHECKING:
    from deemster.engine.model_access import ModelCalls
    from deemster.evaluation.resolve_evaluation import SuiteOverrides

_SUITE = "suite.yml"
# The headings of flags that choose samples, and of those that say how they are run.
RUN_HEADINGS = {
    "Which samples": ("--sample", "--limit", "--seed"),
    "How": (
        *("--variant", "--outputs", "--metric", "--threshold"),
        *("--repetitions", "--concurrency", "--timeout", "--confirm"),
    ),
}


@click.command(
    "run",
    cls=Verb,
    headings=RUN_HEADINGS,
    examples=[
        "deemster run suite.yml --only failed --to report.html --to junit.xml",
        "deemster run --outputs latest --metric 'length-within(max=80, unit=words)'",
    ],
    see_also=["check", "show", "compare", "view", "help exit-codes"],
)
@click.argument("suite", type=click.Path(), required=False)
@part_options
@override_options(*RUN_OVERRIDES)
@threshold_option
@number_options
@call_options
@writing_options
@click.option(
    "--confirm",
    type=click.IntRange(min=1),
    metavar="N",
    help="Run newly failing samples up to N times more.",
)
@click.option(
    "--variant", "variants", multiple=True, metavar="NAME", help="Only this variant, or those of a glob; repeatable."
)
@click.pass_context
def command(
    context: click.Context,
    /,
    *,
    suite: str | None,
    overrides: SuiteOverrides,
    thresholds: Mapping[str, float],
    numbers: RunNumbers,
    limits: ModelCalls,
    part: PartOptions,
    writing: RunWriting,
    confirm: int | None,
    variants: tuple[str, ...],
) -> None:
    """Run a suite, store the run, print the report, apply the gate."""
    from deemster.evaluation.resolve_evaluation import resolve_evaluation
    from deemster.evaluation.suite import load_suite

    if overrides.outputs is not None and is_stored(str(overrides.outputs)):
        name = str(overrides.outputs)
        outputs = outputs_to_judge(name, suite, writing.storage)
        if outputs is None:
            score_stored_outputs(context, name, suite=suite, metrics=overrides.metrics, limits=limits, writing=writing)
        overrides = overrides._replace(outputs=outputs)

    file = suite or _SUITE
    loaded = numbers.apply(load_suite(file, calls_target=overrides.outputs is None)).called_with(limits)
    writing.reports.spare(file, loaded.dataset, overrides.outputs)
    loaded = loaded.with_settings(thresholds=thresholds, only_answered=part.only.answered, confirm=confirm or 0)
    overrides = overrides._replace(redact_warnings=writing.reports.without_text)
    steps = NextSteps(f"deemster run {file}", f"deemster run {file} --only failed")
    if loaded.variants is not None or variants:
        from deemster.cli._run_variants import WantedVariants, run_variants

        run_variants(loaded, WantedVariants(variants, overrides, part, numbers.apply), writing, steps)

    overrides = overrides._replace(select=part.find(loaded, writing.storage).select)
    resolve = functools.partial(resolve_evaluation, loaded, overrides)
    run_and_report(loaded, resolve, writing, steps)
