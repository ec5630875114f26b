"""`deemster import`: takes in runs of another store and what other tools made, as runs that everything works on."""

from __future__ import annotations

from pathlib import Path

import click

from deemster.cli._command import Verb
from deemster.cli._console import note, warn, write_out
from deemster.cli.report_options import refuse_stdout
from deemster.cli.store_options import open_run_store, store_option
from deemster.errors import ConfigurationError, ExitCode, Issue, plural, visible

KINDS = ("promptfoo", "inspect", "deepeval", "lm-eval", "ragas", "otlp", "trec", "autorubric")


@click.command(
    "import",
    cls=Verb,
    examples=["deemster import run.jsonl", "deemster import results.json --gate suite.yml"],
    see_also=["show", "compare", "export"],
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@click.option("--as", "kind", type=click.Choice(KINDS), help="The tool that made the files; found by their content.")
@click.option(
    "--to",
    callback=refuse_stdout,
    metavar="FOLDER",
    help="Where the suite of a promptfooconfig.yaml is written, with its files.",
)
@click.option("--gate", metavar="SUITE", help="Hold the runs to the gate of this suite, and count them as its runs.")
@click.option("--name", "label", metavar="TEXT", help="What to call the runs; every command takes it for RUN.")
@store_option
def command(
    *, files: tuple[str, ...], kind: str | None, to: str | None, gate: str | None, label: str | None, store: str
) -> None:
    """Take in runs of promptfoo, Inspect, other tools and stores.

    A run file that another deemster wrote is taken in as a whole, or not at all. Of other tools, each run in a FILE
    becomes a stored run with its samples, outputs, marks and usage. Reports, comparisons, gates,
    alignment and the viewer work on it. What no record holds is listed. Nothing in a file is run, and no model is
    asked. A run that is stored already is left as it is. A `promptfooconfig.yaml` has no run: it becomes a suite in the
    folder of `--to`, with its dataset, its prompts and, for providers that are code, `targets.py`.

    Exit codes with --gate: 0 passed, 1 failed, 3 incomplete, 4 inconclusive.
    """
    from deemster.cli._report_ending import exit_code, warn_of_open_checks
    from deemster.evaluation.external_run import load_gate, store_external_run
    from deemster.integrations.import_run import read_runs
    from deemster.report.stored_report import stored_report
    from deemster.store.open_runs import is_run_file

    run_files = [file for file in files if is_run_file(file)]
    if run_files and any(flag is not None for flag in (kind, to, gate, label)):
        raise ConfigurationError(Issue("A run file is taken in as it is: leave out the flags.", run_files[0]))
    for file in run_files:
        _take_in_runs(file, store)
    files = tuple(file for file in files if file not in run_files and not _write_suite(file, kind, to))
    if not files:
        return
    held_to = None if gate is None else load_gate(gate)
    found = read_runs(*files, kind=kind)
    code = ExitCode.PASSED
    with open_run_store(store, create=True) as opened:
        for run in found:
            stored = store_external_run(opened, run, held_to=held_to, label=label)
            counts = f"{plural(len(run.dataset), 'sample')}, {plural(len(run.cards), 'metric')}"
            said = "was here already" if stored.is_known else f"taken in, {counts}"
            of = "" if run.target is None else f" ({run.target})"
            write_out(visible(f"{stored.id}: {said}{of}") + "\n")
            _list_left_out(run.left_out)
            if held_to is not None and run.cards:
                report = stored_report(opened, stored.id, warn=warn)
                decision = "no rule" if report.gate is None else report.gate.decision
                write_out(f"gate: {decision}\n")
                warn_of_open_checks(report.gate)
                code = max(code, exit_code(report))
    raise click.exceptions.Exit(code)


def _take_in_runs(file: str, store: str) -> None:
    """Take in the runs of a run file."""
    from deemster.evaluation.take_in_runs import take_in
    from deemster.store.run_file_check import check_run_file

    # A file that is refused leaves no new store behind.
    if not Path(store).exists():
        check_run_file(Path(file))
    with open_run_store(store, create=True) as opened:
        for run in take_in(opened, Path(file)):
            outcome = "was here already" if run.is_known else f"taken in, {plural(run.samples, 'sample')}"
            write_out(f"{visible(run.id)}: {outcome}\n")


def _write_suite(file: str, kind: str | None, to: str | None) -> bool:
    """Write the dataset and the suite of a file that is a config; False where it is none."""
    from deemster.integrations.import_promptfoo_config import SUITE, is_promptfoo_config, read_promptfoo_config
    from deemster.integrations.source_file import SourceFile

    source = SourceFile(file)
    if kind not in (None, "promptfoo") or not is_promptfoo_config(source):
        return False
    if to is None:
        raise click.UsageError(f"`{visible(file)}` is a config: say where its dataset and suite go, `--to FOLDER`.")
    found = read_promptfoo_config(source)
    for path in found.write(to):
        write_out(visible(f"wrote {path}") + "\n")
    _list_left_out(found.left_out)
    for remark in found.remarks:
        note(remark)
    write_out(visible(f"Next: deemster check {Path(to, SUITE)}") + "\n")
    return True


def _list_left_out(sentences: tuple[str, ...]) -> None:
    for sentence in sentences:
        note(visible(f"not taken in: {sentence}", limit=300))
