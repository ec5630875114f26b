"""`deemster show`: the stored runs, the report of one, what failed in it, or one of its samples."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from deemster.cli._command import Verb
from deemster.cli._console import note, print_sections, warn, write_out
from deemster.cli._report_ending import is_worth_resuming, name_run, print_report
from deemster.cli.moments import Moment
from deemster.cli.options import only_option, take_only
from deemster.cli.report_options import BRIEF_CHARS, ReportOptions, report_options, write_texts
from deemster.cli.store_options import find_store, is_report_file, open_run, open_run_store, store_option
from deemster.errors import ConfigurationError, ReportError, visible

# So many samples are listed; `--full` lists all.
_MOST_LISTED = 50

if TYPE_CHECKING:
    from deemster.comparison import Comparison
    from deemster.comparison.find_runs import RunSources
    from deemster.comparison.run_source import RunSource
    from deemster.comparison.stored_source import StoredSource
    from deemster.datasets.only_expression import Only
    from deemster.report import Report
    from deemster.report.overview import NamedRun
    from deemster.store import RunRow, Store


@click.command(
    "show",
    cls=Verb,
    headings={
        "The list of runs": ("--since", "--until", "--suite"),
        "One run": ("--failed", "--against", "--only", "--prompts"),
    },
    examples=[
        "deemster show --suite shop --since 7d",
        "deemster show latest --to report.html",
        "deemster show latest --only tag:policy --only failed",
        "deemster show latest refund-time",
    ],
    see_also=["run", "compare", "view"],
)
@click.argument("run", type=click.Path(), required=False)
@click.argument("sample", required=False)
@click.option("--since", type=Moment(), metavar="WHEN", help="Only runs started then or later: 2026-01-31, or 7d.")
@click.option("--until", type=Moment(end=True), metavar="WHEN", help="Only runs started before; a day means its end.")
@click.option("--suite", metavar="NAME", help="Only runs of this suite, or recordings of this dataset.")
@click.option("--failed", is_flag=True, help="What did not pass, by likely cause, also for assistants.")
@click.option("--against", metavar="RUN", help="With --failed: compared with this run, not the baseline.")
@only_option
@click.option("--prompts", is_flag=True, help="With SAMPLE: what judges were asked and replied, if kept.")
@report_options
@store_option
def command(
    *,
    run: str | None,
    sample: str | None,
    since: str | None,
    until: str | None,
    suite: str | None,
    failed: bool,
    against: str | None,
    only: tuple[str, ...],
    prompts: bool,
    reports: ReportOptions,
    store: str,
) -> None:
    """List the runs; show a report, what failed in it, or one sample.

    Without RUN the runs are listed, newest first. RUN is the id of a stored run, the beginning of one, a name,
    `latest`, `baseline`, or a file: a report that `deemster run --to FILE.json` wrote, or a run file. Of a suite with
    variants, `latest` says which of them is best, and `latest/NAME` is the report of one. SAMPLE is the id
    of a sample; it is shown whole, with every score and its reason, the steps of an agent, and the traceback of a
    target that raised.

    --only lists samples of RUN, worst first, with their scores. --failed prints Markdown that needs nothing else to be
    understood: the worst first, by likely cause, with what changed since the baseline. It takes a comparison that
    `deemster compare --to FILE.json` wrote, too.
    """
    list_filter = since or until or suite
    _check(run, sample, list_filter, reports, failed=failed, against=against, only=only, prompts=prompts)

    if run is None:
        with open_run_store(store) as opened:
            from deemster.cli._run_list import show_runs

            show_runs(opened, suite=suite, since=since, until=until, reports=reports)
    elif failed:
        _show_failed(run, against, reports, store)
    elif sample is not None:
        _show_sample(run, sample, reports, store, prompts=prompts)
    elif only:
        _list_samples(run, take_only({"only": only}), reports, store)
    else:
        _show_report(run, reports, store)


def _check(
    run: str | None,
    sample: str | None,
    list_filter: str | None,
    reports: ReportOptions,
    *,
    failed: bool,
    against: str | None,
    only: tuple[str, ...],
    prompts: bool,
) -> None:
    """Refuse flags that do not go together.

    Raises:
        ConfigurationError: Some do not.
    """
    formats = {destination.format for destination in reports.destinations}
    refusals = {
        "`--since`, `--until` and `--suite` choose from the list of runs: leave out RUN.": run and list_filter,
        "What failed is written to `--to brief.md`, or `--to brief:FILE`.": failed and formats - {"brief"},
        "`--failed` is for one run: `deemster show RUN --failed`.": failed and (run is None or sample is not None),
        "`--against` is for `--failed`.": against is not None and not failed,
        "`--prompts` is for one sample: `deemster show RUN SAMPLE --prompts`.": prompts and sample is None,
        "`--only` lists samples of one run: `deemster show RUN --only tag:x`.": only
        and (run is None or sample is not None or failed or formats),
        "`--to` writes the report of a run; one sample is printed: `... > FILE` keeps it.": sample is not None
        and formats,
        "Prompts quote inputs and outputs: `--prompts` does not go with `--without-text`.": prompts
        and reports.without_text,
    }
    for message, is_refused in refusals.items():
        if is_refused:
            raise ConfigurationError(message)


def _show_report(run: str, reports: ReportOptions, store: str) -> None:
    """Print the report of a run, or write it."""
    from deemster.cli._run_list import describe_status
    from deemster.comparison import load_report
    from deemster.comparison.experiment_source import named_experiment
    from deemster.evaluation.suite import stored_junit
    from deemster.report.overview import NamedRun
    from deemster.report.stored_report import quoted_details, stored_report

    if is_report_file(run):
        _render(reports.shown(load_report(run)), reports, NamedRun(run, is_stored=False))
        return

    with open_run(store, run) as (opened, name):
        flag = "" if store == find_store() else f" --store {store}"
        experiment = named_experiment(opened, name)
        if experiment is not None:
            _show_experiment(opened, experiment, run, reports, store_flag=flag)
            return

        row = opened.run(name)
        try:
            report = stored_report(opened, row.id, warn=warn)
        except ReportError as error:
            if reports.destinations:
                raise
            _show_facts(opened, row, why=str(error))
            return

        shown = reports.shown(report, quoted_details(opened, row.id))
        named = name_run(opened, report, run, store_flag=flag)
        _render(shown, reports.with_junit(stored_junit(row)), named)
        if not reports.destinations and is_worth_resuming(report, row):
            note(visible(describe_status(row, opened.owner(row.id))))


def _show_experiment(store: Store, experiment: str, name: str, reports: ReportOptions, *, store_flag: str) -> None:
    """Print what the variants of an experiment show, or write it."""
    from deemster.comparison.experiment_report import experiment_overview
    from deemster.comparison.experiment_source import stored_experiment
    from deemster.comparison.without_text import experiment_without_text

    answer = stored_experiment(store, experiment)
    shown = experiment_without_text(answer) if reports.without_text else answer
    reports.write_each(shown.write)
    reports.note_files()
    if not reports.destinations:
        print_sections(experiment_overview(shown, name, store_flag=store_flag))


def _render(report: Report, reports: ReportOptions, named: NamedRun) -> None:
    reports.write(report)
    reports.note_files()
    if not reports.destinations:
        print_report(report, named, full=reports.full)


def _show_facts(store: Store, row: RunRow, *, why: str) -> None:
    """Print what is stored of a run that has no report, and why it has none."""
    from deemster.cli._run_list import describe_run

    write_out(describe_run(row, store.owner(row.id)))
    note(visible(why))


def _list_samples(run: str, only: Only, reports: ReportOptions, store: str) -> None:
    """Print some samples of a run as a list."""
    from deemster.comparison import load_report
    from deemster.comparison.report_source import ReportSource
    from deemster.comparison.stored_source import StoredSource
    from deemster.report.stored_report import stored_report

    if is_report_file(run):
        report = load_report(run)
        _print_list(run, report, ReportSource(report), only, full=reports.full)
        return

    with open_run(store, run) as (opened, name):
        row = opened.run(name)
        _print_list(run, stored_report(opened, row.id, warn=warn), StoredSource(opened, row), only, full=reports.full)


def _print_list(run: str, report: Report, source: RunSource, only: Only, *, full: bool) -> None:
    from deemster.report.sample_list import find_samples, list_section

    samples = find_samples(report, source.every_sample(), only)
    print_sections([list_section(report, samples, only, most=None if full else _MOST_LISTED)])
    if samples:
        note(f"Next: deemster show {shlex.quote(run)} {shlex.quote(visible(samples[0].id))}")


def _show_sample(run: str, sample: str, reports: ReportOptions, store: str, *, prompts: bool) -> None:
    """Print one sample of a run."""
    from deemster.comparison import load_report
    from deemster.report.kept_details import kept_details
    from deemster.report.sample_report import NOTHING_KEPT, find_sample, sample_sections
    from deemster.report.stored_report import quoted_details
    from deemster.report.stored_sample import stored_sample

    if is_report_file(run):
        if prompts:
            raise ConfigurationError("A report file holds no prompts: name a stored run.")
        report = reports.shown(load_report(run))
        print_sections(list(sample_sections(report, find_sample(report, sample))))
        return

    with open_run(store, run) as (opened, name):
        stored, position = stored_sample(opened, name, sample)
        report = reports.shown(stored, quoted_details(opened, stored.run.id))
        kept = NOTHING_KEPT
        if not reports.without_text:
            kept = kept_details(opened, report.run.id, position, prompts=prompts)
        print_sections(list(sample_sections(report, find_sample(report, sample), kept)))


def _show_failed(run: str, against: str | None, reports: ReportOptions, store: str) -> None:
    """Print what failed in a run or in a comparison, and why."""
    from deemster.comparison.find_runs import RunSources

    with RunSources(store) as sources:
        if is_report_file(run):
            text = _brief_of_file(run, against, reports, sources)
        else:
            opened, name = sources.enter_context(open_run(store, run))
            text = _brief_of_stored(opened, name, against, reports, sources)

    write_texts(reports, {"brief": lambda: text})
    if not reports.destinations:
        write_out(text)


def _brief_of_file(file: str, against: str | None, reports: ReportOptions, sources: RunSources) -> str:
    """What failed in a report, or in a comparison, that a file holds."""
    from deemster.comparison.failure_brief import comparison_brief, report_brief
    from deemster.comparison.report_loader import load_report_or_comparison
    from deemster.report import Report

    loaded = load_report_or_comparison(file)
    if isinstance(loaded, Report):
        source = sources.find(loaded)
        comparison = None if against is None else _compare(sources.find(against), source, reports)
        return report_brief(reports.shown(loaded), comparison, max_chars=BRIEF_CHARS)

    if against is not None:
        raise ConfigurationError("A comparison tells already what changed: leave out `--against`.")
    return comparison_brief(reports.shown_comparison(loaded, lambda _: None), max_chars=BRIEF_CHARS)


def _brief_of_stored(store: Store, name: str, against: str | None, reports: ReportOptions, sources: RunSources) -> str:
    """What failed in a stored run, compared with the run that is named, else with its baseline."""
    from deemster.comparison.failure_brief import report_brief
    from deemster.comparison.stored_source import StoredSource
    from deemster.report.stored_report import stored_report

    report = stored_report(store, name, warn=warn)
    source = StoredSource(store, store.run(report.run.id))
    if against is None:
        comparison = _compare_with_baseline(report, source, reports, sources)
    else:
        comparison = _compare(sources.find(against), source, reports)

    return report_brief(reports.shown(report, source.quotes), comparison, max_chars=BRIEF_CHARS)


def _compare_with_baseline(
    report: Report, source: StoredSource, reports: ReportOptions, sources: RunSources
) -> Comparison | None:
    """A run compared with its suite's baseline; None where there is none, or where they cannot be compared."""
    baseline = source.store.baseline(report.run.suite, report.dataset.name)
    if baseline is None or baseline.run == report.run.id:
        return None

    before = sources.find(baseline.run)
    try:
        return _compare(before, source, reports)
    except ReportError as error:
        warn(visible(f"what failed is not compared with the baseline: {error}"))
        return None


def _compare(before: RunSource, after: RunSource, reports: ReportOptions) -> Comparison:
    from deemster.comparison.compare_runs import compare_sources
    from deemster.comparison.run_source import quotes_of_either

    return reports.shown_comparison(compare_sources(before, after), quotes_of_either(before, after))
