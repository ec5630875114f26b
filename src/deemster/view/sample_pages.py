"""What the viewer says of samples: a page of the table, and one sample with everything that is known of it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Any, TypeGuard

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.comparison.without_text import TextRemover
from deemster.errors import InputError
from deemster.records import CAUSES, Execution, Output, SampleFacts, TargetFailure
from deemster.report.failing_samples import quoted_text
from deemster.report.kept_details import kept_details
from deemster.report.report_assembly import execution_entry
from deemster.report.report_entries import MarkEntry, ScoreEntry
from deemster.report.sample_report import KeptDetails
from deemster.results import SampleEntry
from deemster.results.mark_table import MarkTable
from deemster.results.metric_summary import OUTSIDE, SCORED
from deemster.results.sample_summary import summarize_samples
from deemster.text.embedded_files import with_named_files
from deemster.view.opened_run import OpenedRun, first_output, mean_latencies, mean_lengths
from deemster.view.sample_query import SampleQuery, find_samples, neighbours
from deemster.view.sample_shapes import ExecutionAnswer, FailureAnswer, ListedSample, MetricCell, Preview, SampleAnswer

# So many characters of a text are shown in a table.
_PREVIEW = 240
_OTHER_RUNS = 10


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
    run: OpenedRun,
    positions: NDArray[np.integer[Any]],
    *,
    metadata: Collection[str] = (),
    most_chars: int = _PREVIEW,
) -> list[ListedSample]:
    """Some samples as lines of the table.

    Args:
        run: The run.
        positions: Their places.
        metadata: The metadata keys that are shown.
        most_chars: So many characters of each text are shown.

    Raises:
        StoreError: The store fails.
    """
    stored = list(run.samples_at(positions.tolist()))
    table = run.table_of(stored)
    entries = _entries(table, [sample for sample, _ in stored])
    latencies = mean_latencies(table).tolist()
    lengths = mean_lengths(table).tolist()

    lines = []
    for row, (sample, executions) in enumerate(stored):
        entry = entries[row]
        line = ListedSample(
            position=sample.position,
            id=sample.id,
            tags=sample.tags,
            metadata={key: value for key, value in (sample.metadata or {}).items() if key in metadata},
            repetitions=entry.repetitions,
            passed=entry.pass_rate if run.has_passes else None,
            unscored=entry.unscored,
            unstable=entry.unstable,
            score_mean=entry.score_mean,
            scores=_cells(run, table, row, entry),
            latency_ms=None if math.isnan(latencies[row]) else latencies[row],
            output_chars=None if math.isnan(lengths[row]) else lengths[row],
            preview=Preview(
                _preview(sample.input, most_chars),
                _preview(sample.expected_output, most_chars),
                _preview(run.shown_output(sample, executions), most_chars),
            ),
        )
        lines.append(line)
    return lines


def _entries(table: MarkTable, samples: Sequence[SampleFacts]) -> list[SampleEntry]:
    facts = (msgspec.structs.replace(sample, content=None) for sample in samples)
    return list(summarize_samples(table, facts))


def _cells(run: OpenedRun, table: MarkTable, row: int, entry: SampleEntry) -> dict[str, MetricCell | None]:
    """The marks of a sample over its repetitions, by metric; None where the metric does not apply."""
    cells: dict[str, MetricCell | None] = {}
    for column, name in enumerate(run.names):
        causes = table.causes[row, :, column]
        if (causes == OUTSIDE).all():
            cells[name] = None
            continue

        lost = causes[(causes != SCORED) & (causes != OUTSIDE)]
        spread = entry.metrics[name]
        passed = float(table.passed[row, :, column].mean()) if run.has_passes else None
        cause = CAUSES[int(lost[0]) - 1] if len(lost) else None
        cells[name] = MetricCell(spread.mean, spread.stdev, spread.n, passed, cause)
    return cells


def _preview(value: Any, most_chars: int = _PREVIEW) -> str | None:
    if value is None:
        return None
    text = quoted_text(value)
    return text if len(text) <= most_chars else f"{text[:most_chars]}…"


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
    (answer,) = sample_answers(run, [stored])
    kept = add_prompts(run, position, answer.executions)
    return {
        **msgspec.structs.asdict(answer),
        "prompt": [message._asdict() for message in kept.asked_target(answer.input)] or None,
        "prompts_remark": kept.remark or None,
        **neighbours(find_samples(run, query or SampleQuery()), position),
        "other_runs": list(_in_other_runs(run, stored[0])),
    }


def add_prompts(run: OpenedRun, position: int, executions: Sequence[ExecutionAnswer]) -> KeptDetails:
    """Add to the repetitions of a sample what judges were asked and replied; all that is kept beside its report.

    Args:
        run: The run.
        position: The sample's place.
        executions: Its repetitions, as `execution_facts` gives them.

    Raises:
        StoreError: The store fails.
    """
    kept = kept_details(run.store, run.row.id, position, prompts=True)
    for execution in executions:
        execution.prompts = {
            name: exchanges
            for (repetition, name), exchanges in (kept.prompts or {}).items()
            if repetition == execution.repetition
        }
    return kept


def sample_answers(
    run: OpenedRun, stored: Sequence[tuple[SampleFacts, Sequence[Execution]]], *, remover: TextRemover | None = None
) -> list[SampleAnswer]:
    """Some samples with everything that is stored of them but the prompts of judges.

    Args:
        run: The run.
        stored: The samples with their executions.
        remover: Leaves out what is not to be shown; everything is shown unless given.
    """
    table = run.table_of(stored)
    entries = _entries(table, [sample for sample, _ in stored])
    metrics = {
        card.name: {"threshold": card.threshold, "higher_is_better": card.higher_is_better, "family": card.family}
        for card in run.cards
    }

    answers = []
    for row, (sample, executions) in enumerate(stored):
        entry = entries[row]
        answer = SampleAnswer(
            run=run.row.id,
            kind=run.row.kind,
            **sample_facts(sample),
            passed=entry.pass_rate if run.has_passes else None,
            repetitions=entry.repetitions,
            interval=entry.interval if run.has_passes else None,
            unstable=entry.unstable,
            metric_order=run.names,
            metrics=metrics,
            scores=_cells(run, table, row, entry),
            executions=[execution_facts(run, execution, remover=remover) for execution in executions],
            grading=run.sample_grading(sample.position),
        )
        answers.append(answer)
    return answers


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
        "input": with_named_files(sample.input),
        "expected_output": with_named_files(sample.expected_output),
    }


def execution_facts(run: OpenedRun, execution: Execution, *, remover: TextRemover | None = None) -> ExecutionAnswer:
    """One repetition of a sample: what was said, and every mark with its details.

    Args:
        run: The run.
        execution: The repetition.
        remover: Leaves out what is not to be shown; everything is shown unless given.
    """
    entry = execution_entry(execution, run.names)
    if remover is not None:
        entry = remover.execution(entry)
    shared = msgspec.structs.asdict(entry)
    del shared["id"]
    shared["output"] = with_named_files(entry.output)

    answer = execution.answer
    failure = None
    if isinstance(answer, TargetFailure):
        failure = FailureAnswer(answer.message, answer.traceback)
    output = answer if isinstance(answer, Output) else Output("")
    shared["usage"] = output.usage
    return ExecutionAnswer(
        **shared,
        latency_ms=None if output.usage is None else output.usage.latency_ms,
        model=output.model,
        failure=failure,
        votes={name: mark.details["votes"] for name, mark in entry.marks.items() if _has_votes(mark)},
    )


def _has_votes(mark: MarkEntry) -> TypeGuard[ScoreEntry]:
    return isinstance(mark, ScoreEntry) and isinstance(mark.details.get("votes"), (list, tuple))


def _in_other_runs(run: OpenedRun, sample: SampleFacts) -> Iterator[dict[str, Any]]:
    """The same sample in the latest other runs over the dataset, with its marks there."""
    store = run.store
    row = run.row
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
