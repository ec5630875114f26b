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
    `latest`, `baseline`, or a file: a report that `deemster run --to FILE.json` wrote, or a run file. SAMPLE is the id
    of a sample; it is shown whole, with every score and its reason, the steps of an agent, and the traceback of a
    target that raised.

    --only lists samples of RUN, worst first, with their scores. --failed prints Markdown that needs nothing else to be
    understood: the worst first, by likely cause, with what changed since the baseline. It takes a comparison that
    `deemster compare --to FILE.json` wrote, too.
    """
    _check(run, sample, since or until or suite, reports, failed=failed, against=against, prompts=prompts)
    if only and (run is None or sample is not None or failed or reports.destinations):
        raise ConfigurationError("`--only` lists samples of one run: `deemster show RUN --only tag:x`.")
    if run is None:
        with open_run_store(store) as opened:
            from deemster.cli._run_list import show_runs

            show_runs(opened, suite=suite, since=since, until=until, reports=reports)
    elif failed:
        _show_failed(run, against, reports, store)
    elif sample is not None:
        _refuse_files(reports)
        _show_sample(run, sample, reports, store, prompts=prompts)
    elif only:
        _list_samples(run, take_only({"only": only}), reports, store)
    else:
        _show_report(run, reports, store)


def _check(
    run: str | None,
    sample: str | None,
    listed: str | None,
    reports: ReportOptions,
    *,
    failed: bool,
    against: str | None,
    prompts: bool,
) -> None:
    """Refuse flags that do not go together."""
    if run is not None and listed is not None:
        raise ConfigurationError("`--since`, `--until` and `--suite` choose from the list of runs: leave out RUN.")
    if failed and any(destination.format != "brief" for destination in reports.destinations):
        raise ConfigurationError("What failed is written to `--to brief.md`, or `--to brief:FILE`.")
    if failed and (run is None or sample is not None):
        raise ConfigurationError("`--failed` is for one run: `deemster show RUN --failed`.")
    if against is not None and not failed:
        raise ConfigurationError("`--against` is for `--failed`.")
    if prompts and sample is None:
        raise ConfigurationError("`--prompts` is for one sample: `deemster show RUN SAMPLE --prompts`.")


def _refuse_files(reports: ReportOptions) -> None:
    """Refuse `--to` for what is only printed."""
    if reports.destinations:
        raise ConfigurationError("`--to` writes the report of a run; one sample is printed: `... > FILE` keeps it.")


def _show_report(run: str, reports: ReportOptions, store: str) -> None:
    """Print the report of a run, or write it."""
    from deemster.cli._run_list import describe_status
    from deemster.comparison import load_report
    from deemster.evaluation.suite import stored_junit
    from deemster.report.overview import NamedRun
    from deemster.report.stored_report import quoted_details, stored_report

    if is_report_file(run):
        _render(reports.shown(load_report(run)), reports, NamedRun(run, is_stored=False))
        return

    with open_run(store, run) as (opened, name):
        row = opened.run(name)
        try:
            report = stored_report(opened, row.id, warn=warn)
        except ReportError as error:
            if reports.destinations:
                raise
            _show_facts(opened, row, why=str(error))
            return
        shown = reports.shown(report, quoted_details(opened, row.id))
        flag = "" if store == find_store() else f" --store {store}"
        named = name_run(opened, report, run, store_flag=flag)
        _render(shown, reports.with_junit(stored_junit(row)), named)
        if not reports.destinations and is_worth_resuming(report, row):
            note(visible(describe_status(row, opened.owner(row.id))))


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
    from deemster.report.kept_details import kept_details
    from deemster.report.sample_report import NOTHING_KEPT, find_sample, sample_sections
    from deemster.report.stored_report import quoted_details
    from deemster.report.stored_sample import stored_sample

    if prompts and reports.without_text:
        raise ConfigurationError("Prompts quote inputs and outputs: `--prompts` does not go with `--without-text`.")
    if is_report_file(run):
        if prompts:
            raise ConfigurationError("A report file holds no prompts: name a stored run.")
        from deemster.comparison import load_report

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
    from deemster.comparison.failure_brief import comparison_brief, report_brief
    from deemster.comparison.find_runs import RunSources
    from deemster.comparison.report_loader import load_report_or_comparison
    from deemster.report import Report
    from deemster.report.stored_report import quoted_details, stored_report

    with RunSources(store) as sources:
        stored = None if is_report_file(run) else sources.enter_context(open_run(store, run))
        loaded = load_report_or_comparison(run) if stored is None else stored_report(*stored, warn=warn)
        if isinstance(loaded, Report):
            opened = None if stored is None else stored[0]
            quotes = None if opened is None else quoted_details(opened, loaded.run.id)
            comparison = _compare(loaded, against, reports, sources, opened)
            text = report_brief(reports.shown(loaded, quotes), comparison, max_chars=BRIEF_CHARS)
        elif against is not None:
            raise ConfigurationError("A comparison tells already what changed: leave out `--against`.")
        else:
            text = comparison_brief(reports.shown_comparison(loaded, lambda _: None), max_chars=BRIEF_CHARS)
    write_texts(reports, {"brief": lambda: text})
    if not reports.destinations:
        write_out(text)


def _compare(
    report: Report, against: str | None, reports: ReportOptions, sources: RunSources, store: Store | None
) -> Comparison | None:
    """The comparison of a run with the one that is named, else with its suite's baseline; None where there is none."""
    from deemster.comparison.compare_runs import compare_sources
    from deemster.comparison.run_source import quotes_of_either
    from deemster.comparison.stored_source import StoredSource

    run = sources.find(report) if store is None else StoredSource(store, store.run(report.run.id))
    named = against is not None
    if against is None and store is not None:
        baseline = store.baseline(report.run.suite, report.dataset.name)
        against = None if baseline is None or baseline.run == report.run.id else baseline.run
    if against is None:
        return None
    before = sources.find(against)
    try:
        comparison = compare_sources(before, run)
    except ReportError as error:
        if named:
            raise
        warn(visible(f"what failed is not compared with the baseline: {error}"))
        return None
    return reports.shown_comparison(comparison, quotes_of_either(before, run))
