"""`deemster compare`: compares two runs sample by sample, and ranks more than two."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from deemster.cli._command import Verb
from deemster.cli._console import note, print_sections, warn
from deemster.cli._interruption import run_interruptible
from deemster.cli._report_ending import warn_of_open_checks
from deemster.cli.options import NumberRange, only_option, read_settings, set_option, take_only
from deemster.cli.report_options import ReportOptions, comparison_options
from deemster.cli.store_options import find_store, store_option
from deemster.errors import ConfigurationError, ExitCode, list_names

# Formats that a ranking of more runs does not have.
_FOR_TWO_RUNS = ("junit", "junit-samples", "pr-comment")

if TYPE_CHECKING:
    from deemster.comparison.compare_columns import ComparisonSettings
    from deemster.comparison.comparison import Comparison
    from deemster.comparison.run_source import RunSource
    from deemster.datasets.only_expression import Only
    from deemster.gate import GateRules
    from deemster.gate.confirmation import Confirmation


@click.command(
    "compare",
    cls=Verb,
    examples=[
        "deemster compare before latest",
        "deemster compare baseline latest --margin 0.05 --to pr-comment.md",
        "deemster compare short long polite steps",
    ],
    see_also=["run", "baseline", "show", "view"],
)
@click.argument("baseline", type=click.Path())
@click.argument("candidates", metavar="CANDIDATE...", type=click.Path(), nargs=-1, required=True)
@click.option(
    "--margin",
    type=NumberRange(0, 1, max_open=True),
    metavar="M",
    help="Decide: the largest acceptable drop.",
)
@click.option("--gate", metavar="SUITE", help="Decide by the `gate.baseline` rules of this suite.")
@set_option("cluster=KEY (samples with the same metadata KEY are one unit), confidence=0.9 or seed=7")
@click.option(
    "--confirm",
    type=click.IntRange(min=1),
    metavar="N",
    help="Run newly failing samples up to N times more.",
)
@click.option(
    "--labels",
    metavar="FILE|viewer",
    multiple=True,
    help="People's labels of each run, in their order, or `viewer`: correct the difference.",
)
@click.option(
    "--require",
    type=click.Choice(["linked", "interchangeable"]),
    metavar="ANSWER",
    help="Decide: the new judge is linked or interchangeable.",
)
@only_option
@click.option("--full", is_flag=True, help="Print effects, tests and more samples too.")
@comparison_options
@store_option
def command(
    *,
    baseline: str,
    candidates: tuple[str, ...],
    margin: float | None,
    gate: str | None,
    overrides: tuple[str, ...],
    confirm: int | None,
    labels: tuple[str, ...],
    require: str | None,
    only: tuple[str, ...],
    full: bool,
    reports: ReportOptions,
    store: str,
) -> None:
    """Compare two runs: is the second worse, where, and why?

    BASELINE and CANDIDATE are named as `deemster help runs` says; a run that was scored again, named twice, is compared
    with what it was before. Samples with the same input and expected output are compared with each other. More
    CANDIDATEs are ranked, best first. Of another judge of the same outputs the first line says what the old numbers are
    worth: interchangeable, linked by another threshold, or not comparable.

    The exit code is 0, but with --margin, --gate or --require: 0 passed, 1 failed, 4 inconclusive.
    """
    from deemster.comparison.compare_columns import ComparisonSettings
    from deemster.comparison.compare_runs import compare_sources
    from deemster.comparison.find_runs import RunSources
    from deemster.comparison.run_source import quotes_of_either
    from deemster.evaluation.gate_baseline import comparison_settings

    settings = read_settings(ComparisonSettings, overrides, margin=margin)
    if len(candidates) > 1:
        for_two_runs = {
            "--margin": margin is not None,
            "--gate": gate is not None,
            "--confirm": confirm is not None,
            "--labels": bool(labels),
            "--require": require is not None,
            "--only": bool(only),
            "--full": full,
        }
        _refuse_flags([flag for flag, is_given in for_two_runs.items() if is_given])
        _rank((baseline, *candidates), settings, reports, store)
        return

    only_samples = _read_only(only, labels) if only else None
    rules = _find_rules(settings, gate)
    if rules is not None and rules.baseline is not None:
        settings = comparison_settings(rules.baseline, seed=settings.seed)

    with RunSources(store) as sources:
        before, after = sources.find_pair(baseline, candidates[0])
        comparison = compare_sources(before, after, settings=settings, only=only_samples)

        confirmation = _confirm(comparison, after, confirm)
        if labels:
            comparison = _correct(comparison, (before, after), labels, settings)
        if rules is not None:
            comparison = _decide(comparison, rules, confirmation)

        published = reports.shown_comparison(comparison, quotes_of_either(before, after))
        reports = _with_junit_of(after, reports)

    code = ExitCode.PASSED if require is None else _judge_exit_code(comparison, require)
    reports.write_each(published.write)
    reports.note_files()
    if not reports.takes_stdout:
        steps = _next_steps(published, baseline, candidates[0], store)
        _print(published, confirmation, steps, full=full)
    if code:
        note(f"What `--require {require}` asks for is not shown: exit code {code.value}.")
    if comparison.gate is not None:
        warn_of_open_checks(comparison.gate)
        code = comparison.gate.exit_code or code
    raise click.exceptions.Exit(code)


def _judge_exit_code(comparison: Comparison, require: str) -> ExitCode:
    """Whether a new judge is to the old one what it must be.

    Raises:
        ConfigurationError: They scored no output that is the same, or the judge is.
    """
    if comparison.judge_change is None:
        raise ConfigurationError(
            "`--require` is for two judges that scored the same outputs: `deemster run SUITE --outputs RUN`."
        )
    answer = comparison.judge_change.answer
    if answer == "not-enough-data":
        return ExitCode.INCONCLUSIVE
    return ExitCode.PASSED if answer in ("interchangeable", require) else ExitCode.GATE_FAILED


def _refuse_flags(for_two_runs: Sequence[str]) -> None:
    """Refuse flags of a comparison where runs are ranked.

    Raises:
        ConfigurationError: There is one.
    """
    if for_two_runs:
        raise ConfigurationError(f"Leave out what is for two runs: {list_names(for_two_runs)}.")


def _print(comparison: Comparison, confirmation: Confirmation | None, steps: Iterator[str], *, full: bool) -> None:
    """Print a comparison, on one screen unless all of it is asked for."""
    from deemster.comparison.comparison_overview import comparison_overview
    from deemster.gate.confirmation import confirmation_sections

    confirmation_part = confirmation_sections(confirmation)
    if full:
        print_sections([*comparison.sections(), *confirmation_part])
    else:
        print_sections(comparison_overview(comparison, steps=list(steps), further=confirmation_part))


def _next_steps(comparison: Comparison, baseline: str, candidate: str, store: str) -> Iterator[str]:
    """The commands that show more of what a comparison shows first."""
    flag = "" if store == find_store() else f" --store {store}"
    if comparison.judge_change is not None and comparison.judge_change.answer == "interchangeable":
        yield f"deemster baseline {shlex.quote(candidate)}{flag}"
    worst = next((example.id for example in comparison.examples if example.status == "newly_failing"), None)
    if worst is not None:
        yield f"deemster show {shlex.quote(candidate)} {shlex.quote(worst)}{flag}"
    yield f"deemster compare {shlex.quote(baseline)} {shlex.quote(candidate)} --full{flag}"


def _read_only(expressions: Sequence[str], labels: Sequence[str]) -> Only:
    """Which samples are compared.

    Raises:
        ConfigurationError: What is said is not known, or speaks of something that no comparison has.
    """
    only = take_only({"only": expressions})
    if only.failed or only.answered:
        raise ConfigurationError("`--only failed` and `--only answered` choose what is run, not what is compared.")
    if labels:
        raise ConfigurationError("`--labels` corrects the difference of whole runs: leave out `--only`.")
    return only


def _with_junit_of(source: RunSource, reports: ReportOptions) -> ReportOptions:
    """The reports, with what fails in JUnit by the suite of a stored run."""
    from deemster.evaluation.suite import stored_junit

    if source.stored is None:
        return reports
    store, run = source.stored
    return reports.with_junit(stored_junit(store.run(run)))


def _rank(names: Sequence[str], settings: ComparisonSettings, reports: ReportOptions, store: str) -> None:
    """Rank more than two runs."""
    from deemster.comparison.compare_runs import rank_sources
    from deemster.comparison.find_runs import RunSources
    from deemster.comparison.ranking_report import in_paragraphs
    from deemster.comparison.without_text import ranking_without_text

    for destination in reports.destinations:
        if destination.format in _FOR_TWO_RUNS:
            raise ConfigurationError(f"`--to {destination.format}:FILE` is for two runs.")

    with RunSources(store) as sources:
        ranking = rank_sources([sources.find(name) for name in names], settings=settings)
    published = ranking_without_text(ranking) if reports.without_text else ranking

    reports.write_each(published.write)
    if not reports.takes_stdout:
        print_sections(in_paragraphs(published.sections()))


def _decide(comparison: Comparison, rules: GateRules, confirmation: Confirmation | None) -> Comparison:
    """The comparison, with what the rules decide about it."""
    import msgspec

    from deemster.comparison.comparison_gate import decide_comparison
    from deemster.evaluation.confirm_run import decide_confirmed

    decision = decide_confirmed(decide_comparison(rules, comparison), rules, comparison, confirmation)
    return msgspec.structs.replace(comparison, gate=decision)


def _correct(
    comparison: Comparison,
    runs: tuple[RunSource, RunSource],
    files: tuple[str, ...],
    settings: ComparisonSettings,
) -> Comparison:
    """The comparison, with what labels say of both runs, or of both judges."""
    from deemster.comparison.compare_labels import use_labels

    return use_labels(comparison, runs, files, settings=settings, warn=warn)


def _confirm(comparison: Comparison, candidate: RunSource, times: int | None) -> Confirmation | None:
    """Which newly failing samples of the candidate really fail, after they were run again so often, or before."""
    from deemster.comparison.stored_source import StoredSource
    from deemster.evaluation.confirm_run import confirm_comparison, stored_confirmation

    if times is None:
        return stored_confirmation(comparison, candidate)
    if not isinstance(candidate, StoredSource):
        raise ConfigurationError("`--confirm` calls the target again, which a stored run knows and a report does not.")
    return run_interruptible(
        lambda watchers: confirm_comparison(
            comparison, candidate, times, stop=watchers.stop, progress=watchers.progress
        )
    )


def _find_rules(settings: ComparisonSettings, gate: str | None) -> GateRules | None:
    """The rules that a comparison is held to, by a suite, a margin or both; None where none are given.

    A margin and a cluster that are given stand in place of those of the suite.

    Raises:
        ConfigurationError: The suite cannot be read, or its gate has no rules about a baseline.
    """
    from deemster.evaluation.suite import load_suite
    from deemster.gate import GateRules, read_gate
    from deemster.gate.read_gate import BaselineRules

    margin = settings.margin
    cluster = settings.cluster
    if gate is None:
        if margin is None:
            return None
        baseline = BaselineRules(margin=margin, confidence=settings.confidence, cluster=cluster)
        return GateRules(decision="three-way", baseline=baseline)

    suite = load_suite(gate, calls_target=False, must_run=False)
    rules = read_gate(suite.gate, document=suite.document)
    if rules.baseline is None:
        raise ConfigurationError(f"The gate of `{gate}` has no section `baseline`, so a comparison has no rules.")

    baseline = rules.baseline
    if margin is not None:
        baseline = baseline._replace(margin=margin)
    if cluster is not None:
        baseline = baseline._replace(cluster=cluster)
    return rules._replace(baseline=baseline)
