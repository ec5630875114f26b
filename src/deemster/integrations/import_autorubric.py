"""Imports the experiment folders of autorubric: the score of an item is a metric, and so is each criterion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deemster.errors import InputError, visible
from deemster.integrations.run_builder import RunBuilder, as_map, as_text, parse_time, read_mark
from deemster.integrations.source_file import SourceFile
from deemster.records import Mark, Output, Unscored
from deemster.runs.external_run import ExternalRun

_SCORE = "rubric"
_VERDICTS = {"MET": True, "UNMET": False}


def is_autorubric(source: SourceFile) -> bool:
    """Whether a folder is an experiment of autorubric."""
    if not source.is_folder or next(source.files("items.jsonl"), None) is None:
        return False
    manifest = next(source.files("manifest.json"), None)
    try:
        return manifest is not None and "experiment_name" in as_map(manifest.value)
    except InputError:
        return False


def read_autorubric(source: SourceFile) -> list[ExternalRun]:
    """The run in a folder of autorubric. The folder has no submissions, so the outputs are empty.

    Raises:
        InputError: Something in it cannot be kept.
    """
    manifest = as_map(next(source.files("manifest.json")).value)
    rows = sorted(next(source.files("items.jsonl")).rows, key=lambda row: str(row.get("item_idx")).zfill(12))
    name = as_text(manifest.get("dataset_name")) or as_text(manifest.get("experiment_name")) or source.path.name
    builder = RunBuilder("autorubric", name)
    builder.leave_out("the submissions, which autorubric does not keep in the folder: the outputs are empty")
    for row in rows:
        _add_item(builder, row, str(manifest.get("dataset_hash")))
    if manifest.get("status") != "completed":
        builder.leave_out(f"the experiment ended with the status `{visible(str(manifest.get('status')), limit=40)}`")
    return [
        builder.build(
            target=as_text(manifest.get("experiment_name")),
            started=parse_time(manifest.get("started_at")),
            duration_s=manifest.get("total_duration_seconds"),
        )
    ]


def _add_item(builder: RunBuilder, row: Mapping[str, Any], dataset: str) -> None:
    report, number = as_map(row.get("report")), row.get("item_idx")
    failed = as_text(row.get("error")) or as_text(report.get("error"))
    sample = builder.add_sample(f"item-{number}", {"item": number, "dataset_hash": dataset})
    marks: dict[str, Mark] = {}
    overall = builder.add_metric(_SCORE)
    marks[overall] = (
        read_mark(report.get("score")) if failed is None else Unscored("metric_failed", visible(failed, limit=500))
    )
    listed = report.get("criterion_reports")
    for place, entry in enumerate(map(as_map, listed if isinstance(listed, list) else ()), 1):
        # The report of an ensemble has the criterion inside, and what its judges agreed on.
        criterion = as_map(entry.get("criterion")) or entry
        called = as_text(criterion.get("name")) or f"criterion-{place}"
        marks[builder.add_metric(called)] = _verdict_mark(builder, called, entry)
        if votes := entry.get("votes") or entry.get("multi_choice_votes"):
            builder.leave_out("a vote of one judge", len(votes) if isinstance(votes, list) else 1)
    builder.add_execution(sample, Output(""), marks)


def _verdict_mark(builder: RunBuilder, called: str, entry: Mapping[str, Any]) -> Mark:
    reason = entry.get("final_reason") or entry.get("reason")
    if (error := as_text(entry.get("error"))) is not None:
        return Unscored("model_failed", visible(error, limit=500))
    verdict = entry.get("final_verdict") or entry.get("verdict")
    if verdict in _VERDICTS:
        return read_mark(_VERDICTS[str(verdict)], reason=reason)
    choice = as_map(entry.get("final_multi_choice_verdict") or entry.get("multi_choice_verdict"))
    if choice:
        return read_mark(choice.get("value"), reason=reason)
    builder.leave_out(f"`{visible(str(verdict), limit=40)}` of `{visible(called, limit=80)}`: the mark is unscored")
    return Unscored("unreadable", f"The judge answered {visible(str(verdict), limit=40)}.")
