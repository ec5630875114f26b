"""Finds out what a file is, and checks it: the work of `deemster validate`."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from deemster.alignment.metrics_result import MetricsResult
from deemster.alignment.number_format import count_criteria
from deemster.datasets import Dataset, RubricDataset, Votes
from deemster.errors import InputError, plural
from deemster.formats import Reading, file_format, read_document
from deemster.formats.read_file import FORMATS
from deemster.report import load_report
from deemster.rubrics import Rubric
from deemster.runs.preflight_check import survey
from deemster.runs.suite import load_suite
from deemster.runs.suite_job import SuiteOverrides, build_suite_job
from deemster.store.run_file_check import check_run_file
from deemster.targets.saved_outputs import SavedOutputs


def check_file(file: str, kind: str | None, *, warn: Callable[[str], None]) -> str:
    """Check a file, and say in half a sentence what it holds.

    Args:
        file: Its path.
        kind: What it is; found from its content where that is None.
        warn: Gets each warning.

    Raises:
        InputError: Something in the file cannot be used; all issues are listed.
    """
    return _CHECKS[kind or _find_kind(file)](file, warn)


def _find_kind(file: str) -> str:
    """What a file is: by its schema_version, else by its keys."""
    written_as = file_format(file, Reading(file, error=InputError), known=FORMATS)
    if written_as == "parquet":
        return "dataset"
    if written_as not in ("yaml", "json"):
        return _find_kind_of_lines(file)
    value = read_document(file, error=InputError).value
    if not isinstance(value, dict):
        # Only a rubric may be a list. The reader of datasets explains what is wrong with a list of samples.
        is_rubric = isinstance(value, list) and value and isinstance(value[0], dict) and _SAMPLE.isdisjoint(value[0])
        return "rubric" if is_rubric else "dataset"
    kind = _kind_by_schema_version(value)
    if kind is None and "samples" not in value:
        kind = next((known for known, key in _KEYS if key in value), None)
    return kind or "dataset"


def _kind_by_schema_version(facts: dict[str, Any]) -> str | None:
    """The kind that a schema_version names."""
    version = str(facts.get("schema_version", ""))
    return next((kind for kind in _CHECKS if f".{kind.replace('-', '_')}." in version), None)


def _find_kind_of_lines(file: str) -> str:
    try:
        with Reading(file, error=InputError).open(file) as lines:
            first, second = lines.readline(_LONGEST), lines.readline(_LONGEST)
    except InputError:
        return "dataset"
    head = first + second
    try:
        header = msgspec.json.decode(first.removeprefix(codecs.BOM_UTF8))
    except (msgspec.DecodeError, UnicodeDecodeError):
        header = None
    if isinstance(header, dict) and (known := _kind_by_schema_version(header)):
        return known
    if isinstance(header, dict) and "judges" in header:
        return "votes"
    if (isinstance(header, dict) and "rubric" in header) or b'"submission"' in head:
        return "rubric-dataset"
    has_input = b"input" in head and b"outputs.v1" not in head
    return "dataset" if has_input or b"output" not in head.replace(b"expected_output", b"") else "outputs"


def _dataset(file: str, warn: Callable[[str], None]) -> str:
    dataset = Dataset.load(file)
    for warning in dataset.warnings:
        warn(warning)
    tags = {tag for sample in dataset for tag in sample.tags}
    again = f"; {plural(len(dataset.duplicates), 'group')} of equal rows" if dataset.duplicates else ""
    counts = f"{plural(len(dataset), 'sample')}, {plural(len(tags), 'tag')}"
    return f"dataset `{dataset.name}`, {counts}{again}; fingerprint {dataset.fingerprint}"


def _outputs(file: str, _: Callable[[str], None]) -> str:
    saved = SavedOutputs.load(file)
    return f"saved outputs of {plural(len(saved), 'sample')}, {plural(saved.repetitions, 'repetition')}"


def _suite(file: str, warn: Callable[[str], None]) -> str:
    job = build_suite_job(load_suite(file, calls_target=False), SuiteOverrides(calls=False))
    plan = job.plan
    for warning in survey(plan, aggregator=job.aggregator, gate=job.gate).warnings:
        warn(warning)
    rules = 0 if job.gate is None else len(job.gate.rules)
    return (
        f"suite `{job.suite}`, {plural(len(plan.dataset), 'sample')} x {plan.repetitions}, "
        f"{plural(len(plan.metrics), 'metric')}, "
        f"{plural(rules, 'gate rule')}"
    )


def _report(file: str, _: Callable[[str], None]) -> str:
    report = load_report(file)
    counts = f"{plural(report.totals.samples, 'sample')}, {plural(report.totals.metrics, 'metric')}"
    return f"report of run {report.run.id}, {counts}"


def _rubric(file: str, _: Callable[[str], None]) -> str:
    rubric = Rubric.load(file)
    return f"rubric{_quote_name(rubric.name)}, {count_criteria(len(rubric.criteria))}"


def _rubric_dataset(file: str, _: Callable[[str], None]) -> str:
    dataset = RubricDataset.load(file)
    labelled = sum(item.ground_truth is not None or bool(item.annotations) for item in dataset.items)
    counts = f"{plural(len(dataset.items), 'item')}, {labelled:,} labelled"
    return f"rubric dataset{_quote_name(dataset.name)}, {counts}; fingerprint {dataset.fingerprint}"


def _votes(file: str, _: Callable[[str], None]) -> str:
    votes = Votes.load(file)
    labelled = sum(int(block.labelled.sum()) for block in votes.blocks)
    counts = f"{plural(len(votes.ids), 'item')}, {plural(len(votes.judges), 'judge')}, {labelled:,} labelled"
    return f"votes{_quote_name(votes.name)}, {counts}"


def _alignment(file: str, _: Callable[[str], None]) -> str:
    result = MetricsResult.from_file(file)
    counts = f"{plural(result.n_items, 'item')}, {count_criteria(result.n_criteria)}"
    return f"result of alignment, {counts}, {plural(result.n_samples, 'pair')}"


def _quote_name(name: str | None) -> str:
    return f" `{name}`" if name else ""


def _run(file: str, _: Callable[[str], None]) -> str:
    runs = check_run_file(Path(file))
    samples = sum(run.samples for run in runs)
    return f"run file, {plural(len(runs), 'run')}, {plural(samples, 'sample')}"


# How much of a line is read to find out what a file is: the header of a long rubric fits.
_LONGEST = 4 * 2**20
_SAMPLE = frozenset({"id", "input", "output"})
_KEYS = (
    ("votes", "judges"),
    ("rubric-dataset", "items"),
    ("rubric", "criteria"),
    ("rubric", "sections"),
    ("rubric", "rubric"),
    ("outputs", "outputs"),
    ("suite", "metrics"),
    ("suite", "target"),
)
_CHECKS: dict[str, Callable[[str, Callable[[str], None]], str]] = {
    "dataset": _dataset,
    "outputs": _outputs,
    "suite": _suite,
    "report": _report,
    "rubric": _rubric,
    "rubric-dataset": _rubric_dataset,
    "votes": _votes,
    "alignment": _alignment,
    "run": _run,
}
