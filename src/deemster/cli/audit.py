"""`deemster audit`: whether the evaluation itself is any good: its judges, metrics, gate and dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from deemster.cli._command import VerbGroup
from deemster.cli._interruption import run_interruptible
from deemster.cli.model_options import call_options
from deemster.cli.options import Command, Flags, NumberRange, group_flags, quiet_option, read_settings, settings_option
from deemster.cli.report_options import RESULT_FORMATS, ReportOptions, result_options, write_result
from deemster.cli.store_options import is_run_name, store_option
from deemster.errors import ExitCode

if TYPE_CHECKING:
    from deemster.audit.planted_outputs import AuditedOutputs
    from deemster.engine.model_access import ModelCalls

_SHARE = NumberRange(0, 1)


@click.group(
    "audit",
    cls=VerbGroup,
    examples=[
        "deemster audit judge --suite suite.yml",
        "deemster audit metrics suite.yml",
        "deemster audit gate suite.yml",
    ],
    see_also=["agreement", "plan"],
)
def command() -> None:
    """Audit the evaluation itself: judges, metrics, gate, dataset."""


def audit_options(audit: Command) -> Command:
    """Add the flags of an audit that marks outputs; it receives ``outputs``, ``limits``, ``reports`` and ``quiet``."""
    options = (
        click.option(
            "--outputs",
            metavar="FILE|RUN",
            help="Begin with saved outputs, or those of a run, not with the expected ones.",
        ),
        store_option,
    )
    audit = group_flags(quiet_option(audit), "outputs", _take_outputs, options)
    return call_options(result_options(*RESULT_FORMATS)(audit))


def _take_outputs(flags: Flags) -> AuditedOutputs:
    from deemster.audit.planted_outputs import AuditedOutputs

    outputs = flags.pop("outputs")
    store = flags.pop("store")
    if outputs is not None and is_run_name(outputs):
        return AuditedOutputs(run=outputs, store=store)
    return AuditedOutputs(file=outputs, store=store)


@command.command(
    "judge",
    short_help="Ask a judge about pairs that differ in one thing: what is it biased by?",
    examples=["deemster audit judge --suite suite.yml --outputs latest"],
    see_also=["agreement"],
)
@click.argument("role", default="judge")
@click.option("--suite", metavar="FILE", default="suite.yml", show_default=True, help="The suite that names the judge.")
@click.option("--metric", "metrics", metavar="NAME", multiple=True, help="Use this metric alone; repeatable.")
@click.option("--probe", "probes", metavar="NAME", multiple=True, help="Use this probe alone; repeatable.")
@settings_option("audit/audit_judge.py", "BiasSettings")
@click.option("--fail-on-flag", is_flag=True, help="Exit with 1 where a bias is flagged.")
@audit_options
def audit_judge_command(
    *,
    role: str,
    suite: str,
    outputs: AuditedOutputs,
    metrics: tuple[str, ...],
    limits: ModelCalls,
    reports: ReportOptions,
    quiet: bool,
    fail_on_flag: bool,
    probes: tuple[str, ...],
    overrides: tuple[str, ...],
) -> None:
    """Ask a judge about pairs that differ in one thing: what is it biased by?

    ROLE is a role of the suite's `models`; `judge` unless given. Every metric that asks it is audited. Pairs are made
    from the expected outputs, or from the outputs that --outputs names, and from wrong answers. They differ in
    length without content, formatting, a confident tone, a claim of authority, the judge's own name, praise for the
    question, an irrelevant detail, the language of the introduction, or a changed number, which a right judge must
    notice. A pairwise judge is asked in both orders.

    The report has the share of pairs whose verdict flips, what each thing moves in the pass-rate, and a flag where a
    bias is no chance. Exit codes: 0 done, 1 a flag with --fail-on-flag, 2 bad input, 3 incomplete.
    """
    from deemster.audit.audit_judge import BiasSettings, audit_judge
    from deemster.audit.planted_outputs import load_audit

    settings = read_settings(BiasSettings, overrides, probes=probes)
    basis = load_audit(suite, outputs, metrics=metrics, limits=limits)
    audit = run_interruptible(
        lambda watchers: audit_judge(
            basis.job, role, basis.outputs, source=basis.source, settings=settings, watchers=watchers
        ),
        quiet=quiet,
    )
    write_result(audit, reports, quiet=quiet)
    if audit.stopped is not None or audit.is_empty:
        raise click.exceptions.Exit(ExitCode.INCOMPLETE)
    if fail_on_flag and audit.flags:
        raise click.exceptions.Exit(ExitCode.GATE_FAILED)


@command.command(
    "metrics",
    short_help="Plant defects in good outputs: which do the metrics and the gate notice?",
    examples=["deemster audit metrics suite.yml --outputs latest"],
    see_also=["check", "metrics"],
)
@click.argument("suite")
@click.option("--metric", "metrics", metavar="NAME", multiple=True, help="Use this metric alone; repeatable.")
@click.option("--defect", "defects", metavar="NAME", multiple=True, help="Plant this defect alone; repeatable.")
@settings_option("audit/audit_metrics.py", "DefectSettings")
@click.option("--min-killed", type=_SHARE, metavar="SHARE", help="Exit with 1 where fewer defects are noticed.")
@audit_options
def audit_metrics_command(
    *,
    suite: str,
    outputs: AuditedOutputs,
    metrics: tuple[str, ...],
    limits: ModelCalls,
    reports: ReportOptions,
    quiet: bool,
    min_killed: float | None,
    defects: tuple[str, ...],
    overrides: tuple[str, ...],
) -> None:
    """Plant defects in good outputs: which do the metrics and the gate notice?

    SUITE may be a dataset, too: then --metric names the metrics, each by its spec.

    The good outputs are the expected outputs of the samples, unless --outputs names others. Each kind of
    defect is planted once in each output that can have it: a name or number changed, a negation, a citation dropped or
    moved, a passage not used, half of the text missing, the answer to another sample, a refusal, another language, an
    unsupported sentence, broken JSON, a tool not called.

    The report has the share of defects that each metric notices, by cohort too, what the gate lets through, and the
    good outputs that do not pass their own metrics. Exit codes: 0 done, 1 fewer noticed than --min-killed, 2 bad input,
    3 incomplete.
    """
    from deemster.audit.audit_metrics import DefectSettings, audit_metrics
    from deemster.audit.planted_outputs import load_audit
    from deemster.records.marks import reaches

    settings = read_settings(DefectSettings, overrides, defects=defects)
    basis = load_audit(suite, outputs, metrics=metrics, limits=limits)
    audit = run_interruptible(
        lambda watchers: audit_metrics(
            basis.job, basis.outputs, source=basis.source, settings=settings, watchers=watchers
        ),
        quiet=quiet,
    )
    write_result(audit, reports, quiet=quiet)
    if audit.stopped is not None or not audit.score.n:
        raise click.exceptions.Exit(ExitCode.INCOMPLETE)
    if min_killed is not None and (audit.score.rate is None or not reaches(audit.score.rate, min_killed)):
        raise click.exceptions.Exit(ExitCode.GATE_FAILED)


_runs_option = click.option(
    "--run", "runs", metavar="RUN", multiple=True, help="Look at this stored run; repeatable. Otherwise at the newest."
)


@command.command(
    "gate",
    short_help="Tell how often the gate errs: false alarms and missed drops.",
    examples=["deemster audit gate suite.yml"],
    see_also=["plan", "baseline"],
)
@click.argument("suite")
@_runs_option
@settings_option("audit/gate_error_rates.py", "TrialSettings")
@result_options(*RESULT_FORMATS)
@store_option
@quiet_option
def audit_gate_command(
    *,
    suite: str,
    runs: tuple[str, ...],
    overrides: tuple[str, ...],
    store: str,
    reports: ReportOptions,
    quiet: bool,
) -> None:
    """Tell how often the gate errs: false alarms, missed drops, the margin it certifies.

    Pairs of runs without a change are drawn from the executions of stored runs: those of the newest runs of the suite
    by one target, or those that --run names. The rules of the suite's gate then decide about them. For power, some
    samples of the second run break, so that the pass-rate falls by 1 to 20 points, overall or in one cohort.

    Without stored repetitions, state the noise: `--set flip_rate=0.1` or `sd=0.2`; without any stored run,
    `pass_rate=0.8` too.
    Exit codes: 0 done, 2 bad input.
    """
    from deemster.audit import TrialSettings
    from deemster.audit import gate as audit_gate

    settings = read_settings(TrialSettings, overrides)
    write_result(audit_gate(suite, runs=runs, settings=settings, store=store), reports, quiet=quiet)


@command.command(
    "dataset",
    short_help="Find copies, contradictions, leaks and flaky samples.",
    examples=["deemster audit dataset golden.yml", "deemster audit dataset latest --to audit.md"],
    see_also=["check", "plan"],
)
@click.argument("dataset_or_run", type=click.Path())
@_runs_option
@settings_option("audit/audit_dataset.py", "HealthSettings")
@result_options(*RESULT_FORMATS)
@store_option
@quiet_option
def audit_dataset_command(
    *,
    dataset_or_run: str,
    runs: tuple[str, ...],
    overrides: tuple[str, ...],
    store: str,
    reports: ReportOptions,
    quiet: bool,
) -> None:
    """Find copies, contradictions, leaks and flaky samples.

    DATASET_OR_RUN is a dataset file, a suite that names one, or a stored run: its id, the beginning of one, a name,
    `latest`, or a run file. Near copies are found by the embedding model of the installation. Stored runs of the
    dataset tell which samples always or never pass, which are flaky, and which pass where the others fail. Nothing is
    changed: the audit only proposes.

    Exit codes: 0 done, 2 bad input.
    """
    from deemster.audit import HealthSettings
    from deemster.audit import dataset as audit_dataset

    settings = read_settings(HealthSettings, overrides)
    write_result(audit_dataset(dataset_or_run, runs=runs, settings=settings, store=store), reports, quiet=quiet)
