"""Imports the samples of lm-evaluation-harness (`samples_*.jsonl` of `--log_samples`): each task is a run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from deemster.errors import InputError
from deemster.evaluation.external_run import ExternalRun
from deemster.integrations.run_builder import RunBuilder, as_map, as_text, parse_time, read_mark
from deemster.integrations.source_file import SourceFile
from deemster.records import Mark, Output

_FILE = re.compile(r"samples_(?P<task>.+)_(?P<at>[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9.:-]+)")
_ROW_KEYS = frozenset(
    {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash"}
    | {"prompt_hash", "target_hash", "schema_version"}
)


def is_lm_eval(source: SourceFile) -> bool:
    """Whether a file holds samples of lm-evaluation-harness, or a folder holds such files."""
    if source.is_folder:
        return next(source.files("samples_*.jsonl"), None) is not None
    rows = source.rows
    return bool(rows) and {"doc_id", "doc", "resps", "filtered_resps"} <= rows[0].keys()


def read_lm_eval(source: SourceFile) -> list[ExternalRun]:
    """The runs of samples of lm-evaluation-harness. The file of results beside them tells model and version.

    Raises:
        InputError: Something in them cannot be kept.
    """
    if source.is_folder:
        return [run for file in source.files("samples_*.jsonl") for run in read_lm_eval(file)]
    named = _FILE.fullmatch(source.path.stem)
    results = {} if named is None else _results(source, named["at"])
    version, task = results.get("lm_eval_version"), source.path.stem if named is None else named["task"]
    higher = as_map(as_map(results.get("higher_is_better")).get(task))
    shots = as_map(results.get("n-shot")).get(task)
    task_version = as_map(results.get("versions")).get(task)
    known = {"task": task, "version": task_version, "shots": shots}
    options = ", ".join(f"{key}={value}" for key, value in known.items() if value is not None)
    builder = RunBuilder(f"lm-evaluation-harness {version}" if version else "lm-evaluation-harness", task)
    rows = _Rows(builder, higher, options)
    for row in source.rows:
        rows.add(row)
    rows.finish()
    config = as_map(results.get("config"))
    return [builder.build(target=_model(config), started=parse_time(results.get("date")))]


def _model(config: Mapping[str, Any]) -> str | None:
    arguments = config.get("model_args")
    words = arguments if isinstance(arguments, str) else ", ".join(f"{k}={v}" for k, v in as_map(arguments).items())
    named = as_text(config.get("model"))
    return None if named is None else f"{named}: {words}" if words else named


def _results(source: SourceFile, at: str) -> dict[str, Any]:
    beside = source.path.parent / f"results_{at}.json"
    if not beside.is_file() or beside.is_symlink():
        return {}
    try:
        return as_map(SourceFile(beside).value)
    except InputError:
        return {}


class _Rows:
    """The rows of one task: one for each document and filter."""

    def __init__(self, builder: RunBuilder, higher: Mapping[str, Any], options: str) -> None:
        self._builder, self._higher, self._options = builder, higher, options
        self._found: dict[str, tuple[Output, dict[str, Mark]]] = {}
        self._ids: dict[str, str] = {}

    def add(self, row: Mapping[str, Any]) -> None:
        """Add the marks of one document by one filter."""
        key = str(row.get("doc_id"))
        names = row["metrics"] if isinstance(row.get("metrics"), list) else _numbers(row)
        self._builder.leave_out_keys(row, _ROW_KEYS | set(map(str, names)), of="a row")
        if key not in self._ids:
            self._ids[key] = self._builder.add_sample(
                key, as_map(row.get("doc")) or {"doc": row.get("doc")}, expected_output=row.get("target")
            )
            self._found[key] = self._output(row), {}
        chosen = row.get("filter")
        for name in map(str, names):
            called = name if chosen in (None, "none") else f"{name},{chosen}"
            value = row.get(name)
            if isinstance(value, (list, dict)):
                self._builder.leave_out(f"the metric `{called}`: it has no number for a single sample")
                continue
            is_upwards = self._higher.get(name) is not False
            metric = self._builder.add_metric(called, options=self._options, higher_is_better=is_upwards)
            self._found[key][1][metric] = read_mark(value, higher_is_better=is_upwards)

    def finish(self) -> None:
        """Add what was collected."""
        for key, (output, marks) in self._found.items():
            self._builder.add_execution(self._ids[key], output, marks)

    def _output(self, row: Mapping[str, Any]) -> Output:
        said = row.get("filtered_resps")
        first = said[0] if isinstance(said, list) and said else said
        if isinstance(first, str):
            return Output(first)
        choices, arguments = said if isinstance(said, list) else [], as_map(row.get("arguments"))
        likely = [_likelihood(choice) for choice in choices]
        if not likely or None in likely:
            return Output("" if first is None else str(first))
        self._builder.leave_out("the log-likelihoods of a document: the output is the likeliest continuation")
        best = max(range(len(likely)), key=lambda place: likely[place] or 0.0)
        asked = as_map(arguments.get(f"gen_args_{best}")).get("arg_1")
        return Output(asked.strip() if isinstance(asked, str) and len(likely) > 1 else str(likely[best]))


def _numbers(row: Mapping[str, Any]) -> Sequence[str]:
    """The metrics of a row of an older version, which does not list them: every other number."""
    return [key for key, value in row.items() if key not in _ROW_KEYS and isinstance(value, (int, float))]


def _likelihood(choice: Any) -> float | None:
    try:
        return float(choice[0])
    except (TypeError, ValueError, IndexError, KeyError):
        return None
