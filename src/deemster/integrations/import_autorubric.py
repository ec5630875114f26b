"""Imports the experiment folders of autorubric: the score of an item is a metric, and so is each criterion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deemster.errors import InputError, visible
from deemster.evaluation.external_run import ExternalRun
from deemster.formats.json_values import is_number
from deemster.integrations.run_builder import RunBuilder, as_map, as_maps, as_text, parse_time, read_mark, shorten
from deemster.integrations.source_file import SourceFile
from deemster.records import Mark, Output, Unscored
from deemster.records.model_requests import JUDGE

_SCORE = "rubric"
_VERDICTS = {"MET": True, "UNMET": False}
# The cause of a failed call, by the category that its message begins with.
_CAUSES = {"parse": "unreadable", "infrastructure": "model_failed"}


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
    builder.leave_out("the submissions and labels, which autorubric does not keep in the folder: the outputs are empty")
    overall = builder.add_metric(_SCORE)
    criteria: dict[str, dict[str, Any]] = {}
    for row in rows:
        _add_item(builder, row, str(manifest.get("dataset_hash")), criteria)
    if criteria:
        builder.add_rubric(overall, criteria.values())
    if manifest.get("status") != "completed":
        builder.leave_out(f"the experiment ended with the status `{visible(str(manifest.get('status')), limit=40)}`")
    return [
        builder.build(
            target=as_text(manifest.get("experiment_name")),
            started=parse_time(manifest.get("started_at")),
            duration_s=manifest.get("total_duration_seconds"),
        )
    ]


def _add_item(builder: RunBuilder, row: Mapping[str, Any], dataset: str, criteria: dict[str, dict[str, Any]]) -> None:
    """Add an item; what its criteria are is added to `criteria`."""
    report, number = as_map(row.get("report")), row.get("item_idx")
    failed = as_text(row.get("error")) or as_text(report.get("error"))
    # As a rubric dataset calls its items, so that the labels there are found.
    called = f"item-{number + 1:04d}" if isinstance(number, int) else f"item-{number}"
    sample = builder.add_sample(called, {"item": number, "dataset_hash": dataset})
    marks: dict[str, Mark] = {}
    found: dict[str, Any] = {}
    votes: list[dict[str, Any]] = []
    for place, entry in enumerate(as_maps(report.get("criterion_reports")), 1):
        # The report of an ensemble has the criterion inside, and what its judges agreed on.
        criterion = as_map(entry.get("criterion")) or entry
        called = builder.add_metric(as_text(criterion.get("name")) or f"criterion-{place}")
        defined = _definition(called, criterion)
        if criteria.setdefault(called, defined) != defined:
            builder.leave_out(f"another criterion `{called}` of some item: people label the first one")
        marks[called] = _verdict_mark(builder, called, entry)
        found[called] = _criterion_detail(entry)
        votes += _votes(called, entry)
    if failed is None:
        details = {"criteria": found, "votes": votes, "raw_score": report.get("raw_score")}
        marks[_SCORE] = read_mark(report.get("score"), details=builder.plain(details))
    else:
        marks[_SCORE] = Unscored("metric_failed", visible(failed, limit=500))
    if votes and isinstance(marks[_SCORE], Unscored):
        builder.leave_out("a vote of one judge on an item without a score", len(votes))
    builder.add_execution(sample, Output(""), marks)


def _definition(called: str, criterion: Mapping[str, Any]) -> dict[str, Any]:
    """A criterion as a rubric file has it."""
    found = {"name": called, "weight": criterion.get("weight"), "requirement": criterion.get("requirement")}
    options = criterion.get("options")
    return {**found, "options": options, "scale_type": criterion.get("scale_type")} if options else found


def _verdict(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The verdict on a criterion and what it is worth, of one judge or of all; without a verdict where it failed."""
    choice = as_map(entry.get("final_multi_choice_verdict") or entry.get("multi_choice_verdict"))
    if "selected_label" in entry:
        choice = dict(entry)
    label = choice.get("selected_label") or entry.get("final_verdict") or entry.get("verdict")
    if choice:
        worth: Any = choice.get("value")
        # A report takes no value outside of [0, 1], and a file may hold any.
        value = float(worth) if not choice.get("na") and is_number(worth) and 0 <= worth <= 1 else None
    else:
        value = float(_VERDICTS[str(label)]) if label in _VERDICTS else None
    failed = as_text(entry.get("error")) is not None or label is None
    return {"verdict": None if failed else label, "value": None if failed else value, "failed": failed}


def _criterion_detail(entry: Mapping[str, Any]) -> dict[str, Any]:
    said = _verdict(entry)
    abstained = said["value"] is None and not said["failed"]
    return {**said, "agreement": entry.get("agreement"), "abstained": abstained}


def _votes(called: str, entry: dict[str, Any]) -> list[dict[str, Any]]:
    """The votes on a criterion, as the metric `rubric` keeps them; a report without votes is that of one judge."""
    found = []
    for vote in [*as_maps(entry.get("votes")), *as_maps(entry.get("multi_choice_votes"))] or [entry]:
        judge = visible(as_text(vote.get("judge_id")) or JUDGE, limit=200)
        seat = {"criterion": called, "judge": judge, "repeat": 0}
        if (said := _verdict(vote))["failed"]:
            message = as_text(vote.get("error")) or "The judge gave no verdict."
            cause = _CAUSES.get(message.partition(":")[0], "metric_failed")
            found.append({**seat, "cause": cause, "message": visible(message, limit=300)})
        else:
            reason = as_text(vote.get("reason"))
            found.append({**seat, "verdict": said["verdict"], "reason": reason and shorten(reason)})
    return found


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
