"""What the viewer says of samples: a page of the table, and one sample with everything that is known of it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.calibration.people_labels import LabelTask, criterion_entry
from deemster.comparison.without_text import TextRemover
from deemster.errors import InputError
from deemster.records import CAUSES, Execution, Output, SampleFacts, TargetFailure
from deemster.report.failing_samples import quoted_text
from deemster.report.kept_details import kept_details
from deemster.report.report_assembly import execution_entry
from deemster.report.report_entries import ScoreEntry
from deemster.results import SampleEntry
from deemster.results.mark_table import MarkTable
from deemster.results.metric_summary import OUTSIDE, SCORED
from deemster.results.sample_summary import summarize_samples
from deemster.view.opened_run import OpenedRun, first_output, mean_latencies, mean_lengths
from deemster.view.sample_query import SampleQuery, find_samples, neighbours

# So many characters of a text are shown in a table.
_PREVIEW = 240
_OTHER_RUNS = 10
_POINTS = 2000
# The details of a mark in which a judge says why.
_REASONS = ("judge_reason", "reason", "reasons")


def sample_page(
    run: OpenedRun, query: SampleQuery, *, offset: int, limit: int, metadata: Collection[str] = ()
) -> dict[str, Any]:
    """A page of the samples that a query asks for.

    Args:
        run: The run.
        query: Which samples, in which order.
        offset: How many are passed over.
        limit: How many are shown at most.
        metadata: The metadata keys that are shown.

    Raises:
        InputError: The query names what the run does not have.
        StoreError: The store fails.
    """
    found = find_samples(run, query)
    rows = sample_rows(run, found[offset : offset + limit], metadata=metadata)
    return {"total": run.row.samples, "matched": len(found), "offset": offset, "rows": rows}


def sample_rows(
    run: OpenedRun, positions: NDArray[np.integer[Any]], *, metadata: Collection[str] = ()
) -> list[dict[str, Any]]:
    """Some samples as lines of the table.

    Args:
        run: The run.
        positions: Their places.
        metadata: The metadata keys that are shown.

    Raises:
        StoreError: The store fails.
    """
    stored = list(run.samples_at(positions.tolist()))
    table = run.table_of(stored)
    entries = _entries(table, [sample for sample, _ in stored])
    latencies, lengths = mean_latencies(table).tolist(), mean_lengths(table).tolist()
    return [
        {
            "position": sample.position,
            "id": sample.id,
            "tags": sample.tags,
            "metadata": {key: value for key, value in (sample.metadata or {}).items() if key in metadata},
            "repetitions": entry.repetitions,
            "passed": entry.pass_rate if run.has_passes else None,
            "unscored": entry.unscored,
            "unstable": entry.unstable,
            "score_mean": entry.score_mean,
            "scores": _scores(run, table, place, entry),
            "latency_ms": None if math.isnan(latency) else latency,
            "output_chars": None if math.isnan(length) else length,
            "preview": {
                "input": _preview(sample.input),
                "expected": _preview(sample.expected_output),
                "output": _preview(run.shown_output(sample, executions)),
            },
        }
        for place, ((sample, executions), entry, latency, length) in enumerate(
            zip(stored, entries, latencies, lengths, strict=True)
        )
    ]


def _entries(table: MarkTable, samples: Sequence[SampleFacts]) -> list[SampleEntry]:
    facts = (msgspec.structs.replace(sample, content=None) for sample in samples)
    return list(summarize_samples(table, facts))


def _scores(run: OpenedRun, table: MarkTable, place: int, entry: SampleEntry) -> dict[str, dict[str, Any] | None]:
    """The marks of a sample over its repetitions, by metric; None where the metric does not apply."""
    causes, passed = table.causes[place], table.passed[place]
    found: dict[str, dict[str, Any] | None] = {}
    for at, name in enumerate(run.names):
        codes = causes[:, at]
        if (codes == OUTSIDE).all():
            found[name] = None
            continue
        lost = codes[(codes != SCORED) & (codes != OUTSIDE)]
        spread = entry.metrics[name]
        found[name] = {
            "score": spread.mean,
            "stdev": spread.stdev,
            "n": spread.n,
            # A verdict on a criterion neither passes nor fails.
            "passed": float(passed[:, at].mean()) if run.has_passes else None,
            "cause": CAUSES[int(lost[0]) - 1] if len(lost) else None,
        }
    return found


def _preview(value: Any) -> str | None:
    if value is None:
        return None
    text = quoted_text(value)
    return text if len(text) <= _PREVIEW else f"{text[:_PREVIEW]}…"


def whole_sample(run: OpenedRun, position: int, query: SampleQuery | None = None) -> dict[str, Any]:
    """Everything that is known of one sample.

    Args:
        run: The run.
        position: Its place.
        query: The samples among which its neighbours are; all unless given.

    Raises:
        InputError: There is no such sample.
        StoreError: The store fails.
    """
    stored = sample_at(run, position)
    (shown,) = sample_answers(run, [stored])
    remark = add_prompts(run, position, shown["executions"])
    return {
        **shown,
        "prompts_remark": remark,
        **neighbours(find_samples(run, query or SampleQuery()), position),
        "other_runs": list(_in_other_runs(run, stored[0])),
    }


def add_prompts(run: OpenedRun, position: int, executions: Sequence[dict[str, Any]]) -> str | None:
    """Add to the repetitions of a sample what judges were asked and replied; what is said of prompts that are missing.

    Args:
        run: The run.
        position: The sample's place.
        executions: Its repetitions, as `execution_facts` gives them.

    Raises:
        StoreError: The store fails.
    """
    kept = kept_details(run.store, run.row.id, position, prompts=True)
    for execution in executions:
        execution["prompts"] = {
            name: exchanges
            for (repetition, name), exchanges in (kept.prompts or {}).items()
            if repetition == execution["repetition"]
        }
    return kept.remark or None


def sample_answers(
    run: OpenedRun, stored: Sequence[tuple[SampleFacts, Sequence[Execution]]], *, remover: TextRemover | None = None
) -> list[dict[str, Any]]:
    """Some samples with everything that is stored of them but the prompts of judges.

    Args:
        run: The run.
        stored: The samples with their executions.
        remover: Leaves out what is not to be shown; everything is shown unless given.
    """
    table = run.table_of(stored)
    entries = _entries(table, [sample for sample, _ in stored])
    return [
        {
            "run": run.row.id,
            "kind": run.row.kind,
            **sample_facts(sample),
            "passed": entry.pass_rate if run.has_passes else None,
            "repetitions": entry.repetitions,
            "interval": entry.interval if run.has_passes else None,
            "unstable": entry.unstable,
            "metric_order": run.names,
            "metrics": {
                card.name: {
                    "threshold": card.threshold,
                    "higher_is_better": card.higher_is_better,
                    "family": card.family,
                }
                for card in run.cards
            },
            "scores": _scores(run, table, place, entry),
            "executions": [execution_facts(run, execution, remover=remover) for execution in executions],
            "grading": run.sample_grading(sample.position),
        }
        for place, ((sample, executions), entry) in enumerate(zip(stored, entries, strict=True))
    ]


def sample_at(run: OpenedRun, position: int) -> tuple[SampleFacts, list[Execution]]:
    """A sample with its executions.

    Args:
        run: The run.
        position: Its place.

    Raises:
        InputError: There is no such sample.
        StoreError: The store fails.
    """
    found = next(run.samples_at([position]), None) if 0 <= position < run.row.samples else None
    if found is None or found[0].position != position:
        raise InputError(f"The run has no sample at position {position}.")
    return found


def sample_facts(sample: SampleFacts) -> dict[str, Any]:
    """What the dataset says of a sample."""
    return {
        "position": sample.position,
        "id": sample.id,
        "row_hash": sample.row_hash,
        "tags": sample.tags,
        "metadata": sample.metadata,
        "input": sample.input,
        "expected_output": sample.expected_output,
    }


def execution_facts(run: OpenedRun, execution: Execution, *, remover: TextRemover | None = None) -> dict[str, Any]:
    """One repetition of a sample: what was said, and every mark with its details.

    Args:
        run: The run.
        execution: The repetition.
        remover: Leaves out what is not to be shown; everything is shown unless given.
    """
    answer = execution.answer
    shown = execution_entry(execution, run.names)
    entry: dict[str, Any] = msgspec.structs.asdict(shown if remover is None else remover.execution(shown))
    output = answer if isinstance(answer, Output) else None
    failure = answer if isinstance(answer, TargetFailure) else None
    usage = None if output is None else output.usage
    del entry["id"]
    return {
        **entry,
        "latency_ms": None if usage is None else usage.latency_ms,
        "usage": usage,
        "model": None if output is None else output.model,
        "failure": None if failure is None else {"message": failure.message, "traceback": failure.traceback},
        "votes": {name: mark.details["votes"] for name, mark in _with_votes(entry["marks"])},
    }


def _with_votes(marks: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [
        (name, mark)
        for name, mark in marks.items()
        if isinstance(getattr(mark, "details", {}).get("votes"), (list, tuple))
    ]


def _in_other_runs(run: OpenedRun, sample: SampleFacts) -> Iterator[dict[str, Any]]:
    """The same sample in the latest other runs over the dataset, with its marks there."""
    store, row = run.store, run.row
    others = [
        other
        for other in store.runs(dataset=row.dataset, kind=row.kind, on_damage=lambda _: None)
        if other.id != row.id
    ]
    for other in others[:_OTHER_RUNS]:
        position = store.find_sample(other.id, sample.row_hash, near=sample.position)
        if position is None:
            continue
        found = next(store.samples_at(other.id, [position]), None)
        if found is None:
            continue
        names = [card.name for card in store.cards(other.id)]
        entries = [execution_entry(execution, names) for execution in found[1]]
        yield {
            "id": other.id,
            "label": other.facts.get("label"),
            "started_at": other.started_at,
            "status": other.status,
            "position": position,
            "output": _preview(first_output(found[1])),
            "marks": {
                name: [_short_mark(entry.marks[name]) for entry in entries if name in entry.marks] for name in names
            },
        }


def _short_mark(mark: Any) -> dict[str, Any]:
    score, unscored = getattr(mark, "score", None), getattr(mark, "unscored", None)
    return {
        "score": score,
        "passed": getattr(mark, "success", None),
        "cause": None if unscored is None else unscored.cause,
    }


def judgement(run: OpenedRun, position: int, repetition: int, task: LabelTask) -> dict[str, Any]:
    """What was said of a sample by one metric, or on one criterion, and why.

    Args:
        run: The run.
        position: The sample's place.
        repetition: The repetition.
        task: The metric or criterion.

    Raises:
        InputError: There is no such sample.
        StoreError: The store fails.
    """
    found: dict[str, Any] = {"verdict": run.verdict(position, repetition, task), "score": None, "passed": None}
    item = run.sample_grading(position)
    if item is not None:
        graded = next((one for one in item.criteria if one.criterion == task.criterion), None)
        if graded is None:
            return {**found, "reason": None, "votes": []}
        return {**found, "score": graded.value, "reason": graded.reason, "votes": graded.votes}
    _, executions = sample_at(run, position)
    facts = next((execution_facts(run, one) for one in executions if one.repetition == repetition), None)
    mark = None if facts is None else facts["marks"].get(task.metric)
    if not isinstance(mark, ScoreEntry):
        return {**found, "reason": None if mark is None else mark.unscored.message, "votes": []}
    votes = mark.details.get("votes", [])
    if task.criterion:
        votes = [vote for vote in votes if vote.get("criterion") == task.criterion]
        reason = next((vote.get("reason") for vote in votes if vote.get("verdict") == found["verdict"]), None)
        return {
            **found,
            "score": criterion_entry(mark.details, task.criterion).get("value"),
            "reason": reason,
            "votes": votes,
        }
    reason = next((mark.details[key] for key in _REASONS if key in mark.details), None)
    return {**found, "score": mark.score, "passed": mark.success, "reason": reason, "votes": votes}


def draw_points(places: NDArray[np.int64], *, seed: int) -> NDArray[np.int64]:
    """All of some places where a plot can show them, else 2,000 drawn at random; in order.

    Args:
        places: The places.
        seed: The seed of the draw.
    """
    if len(places) <= _POINTS:
        return places
    return np.sort(np.random.default_rng(seed).choice(places, _POINTS, replace=False))


def score_points(run: OpenedRun, metric: str, *, seed: int = 0) -> dict[str, Any]:
    """The scores of a metric against the lengths of the outputs: of every sample, or of 2,000 drawn at random.

    Args:
        run: The run.
        metric: The metric.
        seed: The seed of the draw.

    Raises:
        InputError: The run has no such metric.
        StoreError: The store fails.
    """
    if metric not in run.names:
        raise InputError(f"The run has no metric {metric!r:.100}.")
    scores, lengths = run.mean_scores(run.names.index(metric)), mean_lengths(run.table)
    known = np.flatnonzero(~np.isnan(scores) & ~np.isnan(lengths))
    drawn = draw_points(known, seed=seed)
    points = zip(drawn.tolist(), lengths[drawn].tolist(), scores[drawn].tolist(), strict=True)
    return {
        "metric": metric,
        "total": len(known),
        "seed": seed,
        "points": [(length, score, position) for position, length, score in points],
    }
