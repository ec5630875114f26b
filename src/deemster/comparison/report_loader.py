"""Reads a report or a comparison back from its JSON file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from deemster.comparison.compared_sample import ComparedSample
from deemster.comparison.comparison import SCHEMA as COMPARISON_SCHEMA
from deemster.comparison.comparison import Comparison
from deemster.comparison.judge_change import JudgeChange
from deemster.comparison.without_text import LEVELS, is_known_privacy
from deemster.errors import Issue, ReportError, list_names
from deemster.formats import read_value
from deemster.formats.json_values import name_kind
from deemster.report.report_document import SCHEMA, Report
from deemster.report.report_entries import (
    ExecutionEntry,
    FailureEntry,
    MarkEntry,
    ScoreEntry,
    UnscoredEntry,
)
from deemster.results import SampleEntry

# Older versions do not write these.
_LATER = frozenset({"panels", "macro_f1_metrics"})


def load_report(path: str | Path) -> Report:
    """Read a report that was written as JSON.

    Raises:
        ReportError: The file cannot be read or is no report.
    """
    return _parse_report(_read_document(path, {SCHEMA: "report"}), str(path))


def load_report_or_comparison(path: str | Path) -> Report | Comparison:
    """Read a report or a comparison that was written as JSON, whichever the file holds.

    Raises:
        ReportError: The file cannot be read or is neither.
    """
    value = _read_document(path, {SCHEMA: "report", COMPARISON_SCHEMA: "comparison"})
    parse = _parse_report if value["schema_version"] == SCHEMA else _parse_comparison
    return parse(value, str(path))


def _parse_report(value: dict[str, Any], where: str) -> Report:
    if missing := [name for name in Report.__struct_encode_fields__ if name not in value and name not in _LATER]:
        raise ReportError(Issue(f"The report is not whole; missing: {list_names(missing)}.", where))
    try:
        lists: dict[str, Any] = {
            "samples": msgspec.convert(value["samples"], list[SampleEntry]),
            "executions": [convert_execution(entry) for entry in value["executions"]],
            "failures": msgspec.convert(value["failures"], list[FailureEntry]),
        }
        report = msgspec.convert({**value, **{name: [] for name in lists}}, Report)
        lists["failure_list"] = lists.pop("failures")
    except KeyError as error:
        raise ReportError(Issue(f"The report does not have the shape of `{SCHEMA}`: no {error}.", where)) from None
    except (msgspec.ValidationError, TypeError, AttributeError, ValueError) as error:
        raise ReportError(Issue(f"The report does not have the shape of `{SCHEMA}`: {error}.", where)) from None
    loaded = msgspec.structs.replace(report, **lists)
    _refuse_gaps(loaded, where)
    return loaded


def convert_execution(value: dict[str, Any]) -> ExecutionEntry:
    """An entry of a report from plain data.

    Raises:
        ValidationError: It does not have the shape of an entry.
    """
    marks = {name: _mark(mark) for name, mark in value["marks"].items()}
    entry = msgspec.convert({**value, "marks": {}}, ExecutionEntry)
    return msgspec.structs.replace(entry, marks=marks)


def _mark(value: dict[str, Any]) -> MarkEntry:
    return msgspec.convert(value, UnscoredEntry) if "unscored" in value else msgspec.convert(value, ScoreEntry)


def _refuse_gaps(report: Report, where: str) -> None:
    """Refuse a report whose parts do not belong together, so that no renderer trips over it."""
    names = set(report.metric_order)
    complete = names == set(report.metrics) == set(report.histograms)
    complete = complete and all(set(cohort.metrics) == names for cohort in report.cohort_list)
    complete = complete and all(len(bars) == 10 for bars in report.histograms.values())
    without = (frozenset(entry.not_applicable) for entry in report.samples for _ in range(max(0, entry.repetitions)))
    complete = complete and all(
        names - left_out == set(entry.marks) for entry, left_out in zip(report.executions, without, strict=False)
    )
    # Counted first: a number of repetitions may be anything.
    counts = [entry.repetitions for entry in report.samples]
    complete = complete and min(counts, default=0) >= 0 and sum(counts) == len(report.executions)
    complete = complete and report.totals.executions == len(report.executions)
    order = ((entry.id, place) for entry in report.samples for place in range(entry.repetitions))
    complete = complete and all(
        pair == (entry.id, entry.repetition) for pair, entry in zip(order, report.executions, strict=False)
    )
    bare = report.aggregate is None
    # A sample that some metric does not apply to may have no aggregate, nor need a cohort of such samples.
    complete = complete and all(
        (cohort.aggregate is None) is bare
        or (not bare and any(each.n_not_applicable for each in cohort.metrics.values()))
        for cohort in report.cohort_list
    )
    complete = complete and all(
        (entry.aggregate is None) is bare or (not bare and entry.not_applicable) for entry in report.samples
    )
    if not is_known_privacy(report.privacy):
        message = (
            f"`privacy` names a level ({list_names(LEVELS)}) and what it removed; this report names something else."
        )
        raise ReportError(Issue(message, where))
    if not complete:
        raise ReportError(Issue("The report's metrics, cohorts, samples and executions do not fit each other.", where))


def load_comparison(path: str | Path) -> Comparison:
    """Read a comparison that was written as JSON.

    Raises:
        ReportError: The file cannot be read or is no comparison.
    """
    return _parse_comparison(_read_document(path, {COMPARISON_SCHEMA: "comparison"}), str(path))


def _parse_comparison(value: dict[str, Any], where: str) -> Comparison:
    value = _without_earlier_parts(value)
    change = value.get("judge_change")
    if missing := [
        name for name in Comparison.__struct_encode_fields__ if name not in {*value, *Comparison.optional_fields}
    ]:
        raise ReportError(Issue(f"The comparison is not whole; missing: {list_names(missing)}.", where))
    try:
        examples = tuple(_convert_sample(entry) for entry in value["examples"])
        judge_change = None if change is None else _convert_judge_change(change)
        bare = {**_with_named_tests(value), "examples": (), "judge_change": None}
        comparison = msgspec.convert(bare, Comparison)
    except (KeyError, TypeError, AttributeError, msgspec.ValidationError) as error:
        message = f"The comparison does not have the shape of `{COMPARISON_SCHEMA}`: {error}."
        raise ReportError(Issue(message, where)) from None
    if not is_known_privacy(comparison.privacy):
        message = f"`privacy` names a level ({list_names(LEVELS)}) and what it removed; this file names something else."
        raise ReportError(Issue(message, where))
    return msgspec.structs.replace(comparison, examples=examples, judge_change=judge_change)


def _convert_judge_change(value: dict[str, Any]) -> JudgeChange:
    """A change of judge, whose flips hold marks."""
    bare = {name: {**metric, "flips": ()} for name, metric in value["metrics"].items()}
    change = msgspec.convert({**value, "metrics": bare}, JudgeChange)
    metrics = {
        name: msgspec.structs.replace(metric, flips=tuple(map(_convert_sample, value["metrics"][name]["flips"])))
        for name, metric in change.metrics.items()
    }
    return msgspec.structs.replace(change, metrics=metrics)


def _with_named_tests(value: dict[str, Any]) -> dict[str, Any]:
    """The numbers of a comparison, whose p-values an earlier version took from the sign-flip test, under its name."""

    def renamed(part: Any) -> Any:
        if not isinstance(part, dict):
            return [renamed(one) for one in part] if isinstance(part, list) else part
        if "detectable" not in part or "sign_flip_p" in part:
            return {name: renamed(one) for name, one in part.items()}
        return {**part, "sign_flip_p": part.get("p_value"), "p_value": None}

    numbers = ("macro_f1", "pass_rate", "metrics", "cohorts")
    return {**value, **{name: renamed(value[name]) for name in numbers}}


def _without_earlier_parts(value: dict[str, Any]) -> dict[str, Any]:
    """A comparison without what an earlier version knew of its samples that were run again, and of anchors apart."""
    metrics = value.get("metrics")
    for name, drift in (value.get("anchors") or {}).items():
        if metrics and not metrics[name]["drift"]:
            metrics[name]["drift"] = drift
    return {name: part for name, part in value.items() if name not in ("confirmation", "anchors")}


def _convert_sample(value: dict[str, Any]) -> ComparedSample:
    sides = {
        side: None if value[side] is None else convert_execution(value[side]) for side in ("baseline", "candidate")
    }
    bare = msgspec.convert({**value, "baseline": None, "candidate": None}, ComparedSample)
    return msgspec.structs.replace(bare, **sides)


def _read_document(path: str | Path, schemas: Mapping[str, str]) -> dict[str, Any]:
    """The plain data of a file that names one of the schemas; they are given with what such a file is."""
    value, where = read_value(path, error=ReportError), str(path)
    kind = " or a ".join(schemas.values())
    if not isinstance(value, dict):
        raise ReportError(Issue(f"A {kind} is a map, not {name_kind(value)}.", where))
    version = value.get("schema_version")
    if not isinstance(version, str) or version not in schemas:
        found = f"not {version!r:.80}" if "schema_version" in value else "and this file has none"
        known = "` or `".join(schemas)
        raise ReportError(Issue(f"A {kind} has the schema_version `{known}`, {found}.", where))
    return value
