"""Exports runs, or their comparison, as the viewer in static files that open from disk or from any web host."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
import numpy as np

from deemster import __version__
from deemster.comparison.experiment_source import named_experiment
from deemster.comparison.without_text import (
    WITHOUT_TEXT,
    TextRemover,
    comparison_without_text,
    experiment_without_text,
    report_without_text,
)
from deemster.errors import Issue, ReportError
from deemster.formats.atomic_write import folder_aside
from deemster.report.build_report import batches
from deemster.report.report_entries import PrivacyEntry
from deemster.report.stored_report import quoted_details, stored_report
from deemster.store import Store
from deemster.view.comparison_pages import ChangeQuery, OpenedComparison, change_rows
from deemster.view.experiment_pages import (
    ExperimentCache,
    OpenedExperiment,
    experiment_answer,
    experiment_page,
    grid_columns,
    grid_rows,
)
from deemster.view.opened_grading import SEEN
from deemster.view.opened_run import OpenedRun
from deemster.view.run_agreement import agreement_page
from deemster.view.run_cache import RunCache
from deemster.view.run_pages import run_entry, run_page, trend_list
from deemster.view.sample_pages import sample_answers, sample_rows
from deemster.view.sample_query import text_words, worst_ranks
from deemster.view.sample_shapes import ExecutionAnswer, FailureAnswer, ListedSample, Preview, SampleAnswer
from deemster.view.score_plot import score_points
from deemster.view.viewer_api import encode_answer, static_file

MOST_SAMPLES = 20_000
# The samples of one file; the front end knows this number too.
_SAMPLES_A_FILE = 200
# The rows of the grid of an experiment in one file, which the front end knows too: each row holds many outputs.
_ROWS_A_FILE = 50
_MANIFEST = Path("data") / "manifest.js"
_MARK = "window.DEEMSTER_EXPORT"
_PLACE = "<!-- data -->"


class _Exported(NamedTuple):
    """What an export shows.

    Attributes:
        store: Where the runs are.
        runs: The runs that are named, which are compared.
        experiments: The experiments that are named.
    """

    store: Store
    runs: Sequence[OpenedRun]
    experiments: Sequence[OpenedExperiment]

    @property
    def every_run(self) -> list[OpenedRun]:
        """The runs that are named, and those of the experiments."""
        inside = (run for experiment in self.experiments for run in experiment.runs)
        return list(dict.fromkeys([*self.runs, *inside]))

    @property
    def only_experiment(self) -> str | None:
        """The experiment that is all there is to see; None where something else is named too."""
        return self.experiments[0].id if len(self.experiments) == 1 and not self.runs else None


def export_viewer(store: Store, names: Sequence[str], folder: Path, *, without_text: bool = False) -> int:
    """Write runs, and the comparison of several, as a folder of static files. An export that is there is replaced.

    Args:
        store: Where the runs are.
        names: The runs, of which the first one is the baseline of the others, and experiments.
        folder: Where the files go.
        without_text: Whether texts of samples, outputs and judges are left out.

    Returns:
        How many files were written.

    Raises:
        ReportError: The folder holds something else, a run is too large or has a name that no file can have, or the
            files cannot be written.
        StoreError: There is no such run, or the store fails.
    """
    _check_folder(folder)
    shown = _open(store, names)
    for run in shown.every_run:
        _check_run(run)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with folder_aside(folder.parent) as aside:
            count = _write(aside, _files(shown, without_text=without_text))
            aside.chmod(0o755)
            if folder.exists():
                shutil.rmtree(folder)
            aside.replace(folder)
    except OSError as error:
        raise ReportError(Issue(f"The export cannot be written: {error.strerror}.", str(folder))) from None
    return count


def _open(store: Store, names: Sequence[str]) -> _Exported:
    runs = RunCache(store)
    experiments = ExperimentCache(runs)
    opened_runs, opened_experiments = [], []
    for name in dict.fromkeys(names):
        experiment = named_experiment(store, name)
        if experiment is None:
            opened_runs.append(runs.open(name))
        else:
            opened_experiments.append(experiments.open(experiment))
    return _Exported(store, opened_runs, opened_experiments)


def _check_folder(folder: Path) -> None:
    if not folder.exists():
        return
    manifest = folder / _MANIFEST
    is_export = folder.is_dir() and manifest.is_file() and manifest.read_text(encoding="utf-8").startswith(_MARK)
    if not is_export and not (folder.is_dir() and not any(folder.iterdir())):
        message = "This is no export of the viewer, so it is not replaced. Name another folder."
        raise ReportError(Issue(message, str(folder)))


def _check_run(run: OpenedRun) -> None:
    if run.row.samples > MOST_SAMPLES:
        count = f"{run.row.samples:,}"
        raise ReportError(f"An export holds at most {MOST_SAMPLES:,} samples; the run `{run.row.id}` has {count}.")
    if "/" in run.row.id or run.row.id in (".", ".."):
        raise ReportError(f"No file can be named after the run `{run.row.id}`.")


def _write(folder: Path, files: Iterable[tuple[str, bytes]]) -> int:
    count = 0
    for name, body in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
        count += 1
    return count


def _files(shown: _Exported, *, without_text: bool) -> Iterator[tuple[str, bytes]]:
    page = static_file("index.html").decode()
    yield "index.html", page.replace(_PLACE, '<script defer src="data/manifest.js"></script>').encode()
    yield "app.js", static_file("app.js")
    yield "app.css", static_file("app.css")
    privacy = WITHOUT_TEXT if without_text else PrivacyEntry()
    about = {
        "version": __version__,
        "runs": [run.row.id for run in shown.every_run],
        "experiment": shown.only_experiment,
        "privacy": privacy,
    }
    yield str(_MANIFEST), f"{_MARK} = {_literal(about)};\n".encode()
    for key, value in _answers(shown, without_text=without_text):
        path = "/".join(quote(part, safe=",") for part in key)
        yield (
            f"data/{path}.js",
            f"deemsterData({_literal('/'.join(key))}, JSON.parse({_literal(_text(value))}));\n".encode(),
        )


def _text(value: Any) -> str:
    return encode_answer(value).decode()


def _literal(value: Any) -> str:
    """A value as a script may hold it."""
    return _text(value).replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").replace("</", "<\\/")


def _answers(shown: _Exported, *, without_text: bool) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every answer of the export with its key, which is its path in the API."""
    store = shown.store
    runs = shown.every_run
    privacy = WITHOUT_TEXT if without_text else PrivacyEntry()
    baselines = {baseline.run for baseline in store.baselines()}
    yield (
        ("session",),
        {"version": __version__, "mode": "export", "author": None, "reads_only": True, "privacy": privacy},
    )
    entries = [_without_absent(run_entry(store, run.row, baselines), shown) for run in runs]
    yield ("runs",), {"total": len(runs), "runs": [_without_names(entry, hidden=without_text) for entry in entries]}
    yield ("trends",), _trends(store, {run.row.id for run in runs}, hidden=without_text)
    for run in runs:
        for key, value in _run_answers(run, without_text=without_text):
            yield ("runs", run.row.id, *key), value if key else _without_absent(value, shown)
    for experiment in shown.experiments:
        key = ("experiments", experiment.id)
        yield from (
            ((*key, *rest), value) for rest, value in _experiment_answers(experiment, without_text=without_text)
        )
    if len(shown.runs) > 1:
        names = ",".join(run.row.id for run in shown.runs)
        head, rows = _comparison(OpenedComparison(shown.runs), without_text=without_text)
        yield ("compare", names), head
        yield ("compare", names, "samples"), {"total": len(rows), "matched": len(rows), "offset": 0, "rows": rows}


def _without_absent(entry: Mapping[str, Any], shown: _Exported) -> dict[str, Any]:
    """A run that does not name an experiment which the export does not show."""
    is_shown = any(experiment.id == entry["experiment"] for experiment in shown.experiments)
    return {**entry, "experiment": entry["experiment"] if is_shown else None}


def _without_names(entry: Mapping[str, Any], *, hidden: bool) -> dict[str, Any]:
    """A run without what its author called it and what it ran."""
    names = dict.fromkeys(name for name in ("label", "target", "fingerprint", "reason") if name in entry)
    return {**entry, **(names if hidden else {})}


def _trends(store: Store, wanted: set[str], *, hidden: bool) -> dict[str, Any]:
    suites = []
    for suite in trend_list(store)["suites"]:
        runs = [_without_names(run, hidden=hidden) for run in suite["runs"] if run["id"] in wanted]
        if runs:
            suites.append({**suite, "runs": runs})
    return {"suites": suites}


def _run_answers(run: OpenedRun, *, without_text: bool) -> Iterator[tuple[tuple[str, ...], Any]]:
    quotes = quoted_details(run.store, run.row.id)
    remover = TextRemover(quotes.get) if without_text else None
    yield (), _page(run, quotes, without_text=without_text)
    columns: dict[str, Any] = {}
    texts: dict[str, list[str]] = {
        name: [] for name in ("input", "output", "expected", "passages", "messages", "reasons")
    }
    for chunk, positions in enumerate(batches(range(run.row.samples), _SAMPLES_A_FILE)):
        stored = list(run.samples_at(positions))
        answers = sample_answers(run, stored, remover=remover)
        samples = [_exported_sample(answer, without_text=without_text) for answer in answers]
        yield ("samples", str(chunk)), {"chunk": chunk, "samples": samples}
        rows = sample_rows(run, np.array(positions, dtype=np.int64))
        _add_columns(columns, run, rows)
        # Beside the columns: a page shows a few of them, and the columns are read before the first row is shown.
        yield (
            ("previews", str(chunk)),
            [Preview(None, None, None) if without_text else row.preview for row in rows],
        )
        for answer in samples:
            for name, text in _sample_texts(answer).items():
                texts[name].append(text.lower())
    columns["worst"] = worst_ranks(run).tolist()
    yield ("columns",), {"total": run.row.samples, "metrics": run.names, "rows": columns}
    yield ("texts",), texts
    for name in run.names:
        yield ("score-length", name), score_points(run, name)
    why = {"available": False, "because": "Labels of people are left out of this export."}
    yield ("agreement",), why if without_text else agreement_page(run)


def _page(run: OpenedRun, quotes: Mapping[str, frozenset[str] | None], *, without_text: bool) -> dict[str, Any]:
    page = run_page(run)
    if without_text and run.row.traits.has_metrics and run.cards and run.row.samples:
        report = report_without_text(stored_report(run.store, run.row.id), quotes=quotes.get)
        page |= {name: value for name, value in msgspec.json.decode(report.head()).items() if name in page}
    page |= {"metadata_keys": [], "compare_with": None}
    return _without_names(page, hidden=without_text)


def _exported_sample(answer: SampleAnswer, *, without_text: bool) -> dict[str, Any]:
    """A sample without metadata, prompts and tracebacks, which no export holds, and without text if so wanted."""
    changes: dict[str, Any] = {"metadata": None, "prompts_remark": None, "other_runs": []}
    if without_text:
        changes |= {"row_hash": None, "expected_output": None, "input": None}
    if answer.grading is not None:
        changes["grading"] = _exported_grading(answer.grading, without_text=without_text)
        shown = () if without_text else (*SEEN, "submission")
        changes["input"] = {name: value for name, value in answer.input.items() if name in shown}
    executions = [_exported_execution(execution, without_text=without_text) for execution in answer.executions]
    return {**msgspec.structs.asdict(answer), "executions": executions, **changes}


def _exported_execution(execution: ExecutionAnswer, *, without_text: bool) -> ExecutionAnswer:
    failure = execution.failure
    if failure is not None:
        failure = FailureAnswer(None if without_text else failure.message, None)
    model = None if without_text else execution.model
    return msgspec.structs.replace(execution, prompts={}, failure=failure, model=model)


def _exported_grading(item: Any, *, without_text: bool) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(item)
    if without_text:
        for criterion in plain.get("criteria", ()):
            for vote in criterion.get("votes", ()):
                for name in ("reason", "thinking", "failure"):
                    vote.pop(name, None)
    return plain


def _add_columns(columns: dict[str, Any], run: OpenedRun, rows: Sequence[ListedSample]) -> None:
    """Add lines of the table to columns."""
    for row in rows:
        for name in ("id", "tags", "metadata", "repetitions", "passed", "unstable", "latency_ms", "output_chars"):
            columns.setdefault(name, []).append(getattr(row, name))
        for metric in run.names:
            cell = row.scores[metric]
            for name in ("score", "passed", "cause", "stdev"):
                columns.setdefault("scores", {}).setdefault(metric, {}).setdefault(name, []).append(
                    getattr(cell, name, None)
                )


def _sample_texts(answer: Mapping[str, Any]) -> dict[str, str]:
    """What can be searched for in a sample, by field."""
    executions = answer["executions"]
    plain = [msgspec.to_builtins(execution.marks, enc_hook=dict) for execution in executions]
    marks = [mark for each in plain for mark in each.values()]
    failures = [execution.failure.message for execution in executions if execution.failure]
    unscored = [mark["unscored"]["message"] for mark in marks if "unscored" in mark]
    trajectories = [msgspec.to_builtins(execution.trajectory, enc_hook=dict) for execution in executions]
    return {
        "input": text_words(answer["input"]),
        "expected": text_words(answer["expected_output"]),
        "output": text_words([execution.output for execution in executions]),
        "passages": text_words([execution.retrieved for execution in executions]),
        "messages": text_words([trajectories, failures, unscored]),
        "reasons": text_words([mark["details"] for mark in marks if "details" in mark]),
    }


def _experiment_answers(experiment: OpenedExperiment, *, without_text: bool) -> Iterator[tuple[tuple[str, ...], Any]]:
    page = experiment_page(experiment)
    answer = experiment.answer
    if without_text:
        answer = experiment_without_text(answer)
        page["columns"] = [
            {**column, "target": None, "run": _without_names(column["run"], hidden=True)} for column in page["columns"]
        ]
    yield (), page
    yield ("answer",), experiment_answer(answer)
    yield ("columns",), grid_columns(experiment)
    every_column = range(len(experiment.runs))
    for chunk, samples in enumerate(batches(range(experiment.whole.row.samples), _ROWS_A_FILE)):
        rows = grid_rows(experiment, np.array(samples, dtype=np.int64), every_column)
        yield ("rows", str(chunk)), [_row_without_text(row) for row in rows] if without_text else rows


def _row_without_text(row: Mapping[str, Any]) -> dict[str, Any]:
    cells = [cell and msgspec.structs.replace(cell, output=None) for cell in row["cells"]]
    return {**row, "input": None, "expected": None, "cells": cells}


def _comparison(comparison: OpenedComparison, *, without_text: bool) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A comparison and its samples."""
    head = dict(comparison.head)
    if without_text:
        if head["kind"] != "comparison":
            raise ReportError("Of more than two runs there is no export `--without-text`. Name two.")
        head |= msgspec.json.decode(comparison_without_text(comparison.report, quotes=comparison.quotes).head())
        head["statuses"] = comparison.counts
    rows: list[dict[str, Any]] = []
    for places in batches(comparison.find(ChangeQuery()).tolist(), _SAMPLES_A_FILE):
        for row in change_rows(comparison, np.array(places, dtype=np.int64)):
            if without_text:
                preview = {**dict.fromkeys(row["preview"]), "outputs": [None] * len(row["preview"]["outputs"])}
                # A row without a hash needs a name for its page.
                rows.append({**row, "row_hash": f"sample-{len(rows)}", "preview": preview})
            else:
                rows.append(row)
    return head, rows
