"""Finds the files to check, finds out what each of them is, and checks it: the work of `deemster check`."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from deemster.agreement.calibration_result import load_calibration
from deemster.agreement.metrics_result import MetricsResult
from deemster.comparison import load_comparison, load_report
from deemster.datasets import Dataset, RubricDataset, Votes
from deemster.datasets.calibration_cases import load_calibration_cases
from deemster.engine.model_access import ModelCalls, complete_model_access
from deemster.errors import ConfigurationError, InputError, Issue, list_names, plural
from deemster.evaluation.judge_anchors import anchor_evaluations
from deemster.evaluation.resolve_evaluation import SuiteOverrides
from deemster.evaluation.resolved_evaluation import Evaluation
from deemster.evaluation.run_experiment import check_variants, suite_evaluations
from deemster.evaluation.suite import Suite, load_suite
from deemster.evaluation.suite_parts import suite_metrics, suite_models
from deemster.formats import Reading, file_format, read_document
from deemster.formats.read_file import EXTENSIONS, FORMATS
from deemster.formats.read_parquet import ParquetFile
from deemster.formats.read_table import TABLES, read_table_lines
from deemster.gate import read_gate
from deemster.rubrics import Rubric
from deemster.store.run_file_check import check_run_file
from deemster.targets.saved_outputs import SavedOutputs
from deemster.text.number_format import count_criteria


class CheckedFile(NamedTuple):
    """A file in which nothing is wrong.

    Attributes:
        description: What it holds, in half a sentence.
        suite: The suite that it is; None for another file.
        evaluations: What the suite runs, by name: one without a name, or several side by side.
    """

    description: str
    suite: Suite | None = None
    evaluations: Mapping[str, Evaluation] = {}


def check_file(file: str, kind: str | None, *, limits: ModelCalls, warn: Callable[[str], None]) -> CheckedFile:
    """Check a file, and say in half a sentence what it holds.

    Args:
        file: Its path.
        kind: What it is; found from its content where that is None.
        limits: Cache and network, with which a suite would run.
        warn: Gets each warning.

    Raises:
        InputError: Something in the file cannot be used; all issues are listed.
    """
    kind = kind or find_kind(file)
    return _check_suite(file, limits, warn) if kind == "suite" else CheckedFile(_CHECKS[kind](file, warn))


class FoundFiles(NamedTuple):
    """The files to check.

    Attributes:
        files: Each file once, in the order of the paths; the files of a directory by name.
        unknown: How many files of directories are passed over, because they do not say that they are for this package.
    """

    files: list[str]
    unknown: int


def find_files(paths: Sequence[str], kind: str | None) -> FoundFiles:
    """The files that are named, and those of every directory that is named.

    A directory may hold files of other tools. Those that name a schema of this package are taken, and suites, which
    have a `dataset` and `metrics`. Hidden directories and virtual environments are passed over.

    Args:
        paths: Files and directories.
        kind: What they are. With it, every file in a known format is taken.

    Raises:
        ConfigurationError: A directory holds no file to check.
    """
    found: dict[str, None] = {}
    unknown = 0
    for path in paths:
        if not os.path.isdir(path):  # noqa: PTH112 - a path that no file can have is refused by its reader
            found[path] = None
            continue
        candidates = list(_candidates(path))
        known = [file for file in candidates if kind is not None or _names_its_kind(file)]
        if not known:
            message = "No file in this directory says that it is a dataset, a suite or another file to check."
            raise ConfigurationError(Issue(message, path))
        found |= dict.fromkeys(known)
        unknown += len(candidates) - len(known)
    return FoundFiles(list(found), unknown)


def _candidates(folder: str) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        is_other = "pyvenv.cfg" in names
        folders[:] = [] if is_other else sorted(name for name in folders if name[0] != "." and name != "node_modules")
        for name in () if is_other else sorted(names):
            path = Path(place, name)
            if path.suffix.lower() in EXTENSIONS and path.is_file():
                yield str(path)


def _names_its_kind(file: str) -> bool:
    """Whether a file of a directory says that it is for this package; one that cannot be parsed says so in its text."""
    try:
        if file_format(file, Reading(file, error=InputError), known=FORMATS) in ("yaml", "json"):
            value = read_document(file, error=InputError).value
        else:
            with Path(file).open("rb") as lines:
                value = msgspec.json.decode(lines.readline(_LONGEST).removeprefix(codecs.BOM_UTF8))
    except (InputError, msgspec.DecodeError, UnicodeDecodeError, OSError):
        return _is_marked(file)
    if not isinstance(value, dict):
        return False
    if "dataset" in value and ("metrics" in value or "group" in value):
        return True
    is_ours = str(value.get("schema_version", "")).startswith(("deemster.", "eval-harness."))
    return is_ours and _kind_by_schema_version(value) is not None


def _is_marked(file: str) -> bool:
    try:
        with Path(file).open("rb") as content:
            return _MARK.search(content.read(_LONGEST)) is not None
    except OSError:
        return False


def find_kind(file: str) -> str:
    """What a file is: by its schema_version, else by its keys."""
    written_as = file_format(file, Reading(file, error=InputError), known=FORMATS)
    if written_as in (*TABLES, "parquet"):
        return _find_kind_of_table(file, written_as)
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
    return next((kind for kind in ("suite", *_CHECKS) if f".{kind.replace('-', '_')}." in version), None)


def _find_kind_of_table(file: str, written_as: str) -> str:
    """Outputs have the columns `id` and `output`; a dataset has an input."""
    reading = Reading(file, error=InputError)
    try:
        if written_as == "parquet":
            header = ParquetFile(file, reading).names()
        else:
            _, header = next(read_table_lines(reading.content(file), written_as, reading))
    except InputError:
        return "dataset"
    names = {name.strip() for name in header}
    return "outputs" if "output" in names and not any(name.startswith("input") for name in names) else "dataset"


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


def _check_suite(file: str, limits: ModelCalls, warn: Callable[[str], None]) -> CheckedFile:
    suite = load_suite(file, calls_target=False, must_run=False)
    if _FOR_A_RUN.isdisjoint(suite.document.value):
        return CheckedFile(_suite_of_marks(suite), suite)
    if _OF_A_RUN.isdisjoint(suite.document.value):
        rules = len(read_gate(suite.gate, document=suite.document).rules)
        description = f"suite `{suite.name}` for `import --gate`, {plural(rules, 'gate rule')}, no dataset"
        return CheckedFile(description, suite)
    loaded = load_suite(file, calls_target=False).called_with(limits)
    evaluations = suite_evaluations(loaded, SuiteOverrides(asks_models=False))
    # The gate may hold for some of them only.
    gates = {name: evaluation.gate for name, evaluation in evaluations.items()}
    gated = [name for name, gate in gates.items() if gate is not None and (gate.rules or gate.baseline)]
    first = next(iter(gated or evaluations))
    job = evaluations[first]
    plan = job.plan
    anchor_evaluations(job)
    looks = check_variants(evaluations)
    for warning in dict.fromkeys(warning for look in looks.values() for warning in look.warnings):
        warn(warning)
    checked = looks[first]
    rules, samples = 0 if job.gate is None else len(job.gate.rules), plural(len(plan.dataset), "sample")
    # Others apply to every sample with an expected output, or to all.
    selective = [
        metric.name
        for metric, where in zip(plan.metrics, plan.where, strict=True)
        if where is not None or set(getattr(metric, "needs", ())) - {"expected_output"}
    ]
    applied = (f"; {name} applies to {checked.applicable[name]:,} of {samples}" for name in selective)
    compared = "" if job.gate is None or job.gate.baseline is None else " and a baseline"
    is_decidable = (rules or compared) and not checked.gate_warnings
    decidable = ", which these samples can decide" if is_decidable else ""
    description = (
        f"suite `{job.suite}`, {samples} x {plan.repetitions}, "
        f"{plural(len(plan.metrics), 'metric')}, "
        f"{plural(rules, 'gate rule')}{compared}{decidable}{''.join(applied)}"
    )
    if len(evaluations) > 1:
        description += f"; side by side: {list_names(evaluations)}"
    return CheckedFile(description, suite, evaluations)


def _suite_of_marks(suite: Suite) -> str:
    """Check a suite that has only metrics and models, with which a run is scored once more."""
    metrics = suite_metrics(suite)
    complete_model_access(suite_models(suite, calls=False), [metric for metric in metrics if hasattr(metric, "script")])
    return f"suite `{suite.name}`, {plural(len(metrics), 'metric')}, no dataset"


def _report(file: str, _: Callable[[str], None]) -> str:
    report = load_report(file)
    counts = f"{plural(report.totals.samples, 'sample')}, {plural(report.totals.metrics, 'metric')}"
    return f"report of run {report.run.id}, {counts}"


def _comparison(file: str, _: Callable[[str], None]) -> str:
    comparison = load_comparison(file)
    counts = f"{plural(comparison.samples.paired, 'sample')} in both, {plural(len(comparison.metrics), 'metric')}"
    return f"comparison of runs {comparison.baseline.id} and {comparison.candidate.id}, {counts}"


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
    return f"result of agreement, {counts}, {plural(result.n_samples, 'pair')}"


def _calibration_cases(file: str, _: Callable[[str], None]) -> str:
    cases = load_calibration_cases(file)
    labelled = len({label.id for label in cases.labels})
    return f"calibration cases `{cases.dataset.name}`, {plural(len(cases.dataset), 'case')}, {labelled:,} labelled"


def _calibration(file: str, _: Callable[[str], None]) -> str:
    found = load_calibration(file)
    return f"calibration on {found.source}, {plural(len(found.metrics), 'metric')}"


def _quote_name(name: str | None) -> str:
    return f" `{name}`" if name else ""


def _run(file: str, _: Callable[[str], None]) -> str:
    runs = check_run_file(Path(file))
    samples = sum(run.samples for run in runs)
    return f"run file, {plural(len(runs), 'run')}, {plural(samples, 'sample')}"


# How much of a line is read to find out what a file is: the header of a long rubric fits.
_LONGEST = 4 * 2**20
_MARK = re.compile(rb"schema_version\W+(?:deemster|eval-harness)\.")
_SAMPLE = frozenset({"id", "input", "output"})
_KEYS = (
    ("votes", "judges"),
    ("rubric-dataset", "items"),
    ("rubric", "criteria"),
    ("rubric", "sections"),
    ("rubric", "rubric"),
    ("outputs", "outputs"),
    ("calibration", "cases"),
    ("suite", "metrics"),
    ("suite", "target"),
    ("suite", "gate"),
    ("suite", "models"),
)
# What a suite has that is run.
_FOR_A_RUN = frozenset({"dataset", "target", "gate"})
_OF_A_RUN = frozenset({"dataset", "target", "metrics", "group"})
_CHECKS: dict[str, Callable[[str, Callable[[str], None]], str]] = {
    "dataset": _dataset,
    "outputs": _outputs,
    "report": _report,
    "comparison": _comparison,
    "rubric": _rubric,
    "rubric-dataset": _rubric_dataset,
    "votes": _votes,
    "alignment": _alignment,
    "calibration": _calibration_cases,
    "calibration-report": _calibration,
    "run": _run,
}
