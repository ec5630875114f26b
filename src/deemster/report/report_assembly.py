"""The entries of a report: samples, executions and failures; their long texts are cut."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from deemster.formats.streamed_list import Stream
from deemster.records import (
    Execution,
    MetricScore,
    NotApplicable,
    Output,
    SampleContent,
    SampleFacts,
    Unscored,
)
from deemster.records.shared_call_cost import PaidExecutions
from deemster.report.report_entries import (
    ExecutionEntry,
    FailureEntry,
    MarkEntry,
    ScoreEntry,
    UnscoredEntry,
    UnscoredReason,
)
from deemster.report.run_samples import RunExecutions, RunSamples
from deemster.report.text_cutting import cut_text, shorten_attachment, shorten_texts
from deemster.results.mark_table import MarkTable
from deemster.results.sample_summary import (
    DECIMALS,
    SampleEntries,
    summarize_sample,
    summarize_samples,
)

_WHOLE = (1.0, 0.0)
_NOT_RUN = Unscored("not_run", "The run stopped before this sample.")


def sample_entries(
    dataset: RunSamples, tally: Callable[[], MarkTable], *, higher_is_better: Sequence[bool]
) -> SampleEntries:
    """The entry of every sample.

    Args:
        dataset: The samples.
        tally: Gives their marks, once they are needed.
        higher_is_better: For each metric, whether 1 is its best score.
    """
    return SampleEntries(
        lambda: summarize_samples(tally(), map(_with_short_texts, dataset.facts())),
        pick=lambda position: summarize_sample(tally(), position, _with_short_texts(dataset.facts_at(position))),
        marks=tally,
        higher_is_better=higher_is_better,
    )


def _with_short_texts(sample: SampleFacts) -> SampleFacts:
    content = SampleContent(shorten_texts(sample.expected_output), shorten_texts(sample.input or {}))
    return SampleFacts(sample.position, sample.id, sample.row_hash, sample.labels, content)


def execution_entries(
    dataset: RunSamples, tally: Callable[[], MarkTable], executions: RunExecutions
) -> Stream[ExecutionEntry]:
    """The entry of every execution; one that is missing was not run.

    Args:
        dataset: The samples.
        tally: Gives their marks, once they are needed.
        executions: The executions that there are.
    """

    def every() -> Iterator[ExecutionEntry]:
        marks = tally()
        names, applies = marks.names, marks.applies_to(slice(None))
        for execution in _with_missing_executions(dataset, marks, PaidExecutions(executions)):
            yield execution_entry(execution, names, applies[execution.position].tolist())

    def pick(index: int) -> ExecutionEntry:
        marks = tally()
        position, repetition = divmod(index, marks.repetitions)
        known = {execution.repetition: execution for execution in executions.at(position)}
        execution = known.get(repetition) or _not_run(dataset.facts_at(position), repetition, marks)
        (applies,) = marks.applies_to(slice(position, position + 1)).tolist()
        return execution_entry(execution, marks.names, applies)

    return Stream(every, pick=pick)


def _not_run(sample: SampleFacts, repetition: int, tally: MarkTable) -> Execution:
    return Execution(sample.position, sample.id, repetition, None, (_NOT_RUN,) * len(tally.cards))


def _with_missing_executions(
    dataset: RunSamples, tally: MarkTable, executions: Iterable[Execution]
) -> Iterator[Execution]:
    """Executions in order, and between them those that were not run."""
    missing = _missing_executions(dataset, tally)
    following = 0

    for execution in executions:
        index = execution.position * tally.repetitions + execution.repetition
        yield from missing(range(following, index))
        yield execution
        following = index + 1

    yield from missing(range(following, tally.samples * tally.repetitions))


def _missing_executions(dataset: RunSamples, tally: MarkTable) -> Callable[[range], Iterator[Execution]]:
    """Gives the executions that were not run, by indexes that are asked for in order."""
    # A large dataset is read from its file: only as far as the last execution that is missing, whose id it alone knows.
    samples = dataset.facts(content=False)
    sample: SampleFacts | None = None

    def missing(indexes: range) -> Iterator[Execution]:
        nonlocal sample
        for index in indexes:
            position, repetition = divmod(index, tally.repetitions)
            while sample is None or sample.position < position:
                sample = next(samples)
            yield _not_run(sample, repetition, tally)

    return missing


def execution_entry(
    execution: Execution, names: Sequence[str], applies: Sequence[bool] | None = None
) -> ExecutionEntry:
    """One execution as a report shows it.

    Args:
        execution: The execution.
        names: The metrics, in the order of its marks.
        applies: Whether each metric applies to the sample; as the marks say, unless given.
    """
    if applies is None:
        applies = [not isinstance(mark, NotApplicable) for mark in execution.marks]

    output = execution.answer if isinstance(execution.answer, Output) else None
    text = "" if output is None else output.text
    kept = cut_text(text)
    is_cut = len(kept) < len(text) or execution.cut is not None

    retrieved = trajectory = None
    if output is not None and (output.retrieved is not None or output.trajectory is not None):
        retrieved = shorten_attachment(output.retrieved)
        trajectory = shorten_attachment(output.trajectory)
        is_cut = is_cut or retrieved is not output.retrieved or trajectory is not output.trajectory

    return ExecutionEntry(
        id=execution.id,
        repetition=execution.repetition,
        output=kept if output is not None else None,
        output_chars=len(text) if execution.cut is None else execution.cut.chars,
        output_valid=execution.valid,
        output_cut=is_cut,
        retrieved=retrieved,
        trajectory=trajectory,
        marks={
            name: _mark(_NOT_RUN if isinstance(mark, NotApplicable) else mark)
            for name, mark, is_applied in zip(names, execution.marks, applies, strict=True)
            if is_applied
        },
        usage=None if output is None else output.usage,
        broken_off=msgspec.UNSET if output is None or output.broken_off is None else output.broken_off,
    )


def _mark(mark: MetricScore | Unscored) -> MarkEntry:
    if isinstance(mark, MetricScore):
        score = mark.score
        return ScoreEntry(
            # Most scores are 0 or 1, and rounding to decimals is slow.
            score=score if score in _WHOLE else round(score, DECIMALS),
            success=mark.success,
            threshold=mark.threshold,
            rubric_score=mark.rubric_score,
            details=mark.details,
            usage=mark.usage,
        )
    return UnscoredEntry(unscored=UnscoredReason(mark.cause, mark.message), usage=mark.usage)


def failure_entries(entries: Iterable[ExecutionEntry]) -> Iterator[FailureEntry]:
    """The entry of every mark that could not be made."""
    for entry in entries:
        for name, mark in entry.marks.items():
            if isinstance(mark, ScoreEntry) or mark.unscored.cause == "not_run":
                continue

            reason = mark.unscored
            is_of_target = reason.cause == "target_failed"
            yield FailureEntry(
                id=entry.id,
                repetition=entry.repetition,
                metric=None if is_of_target else name,
                cause=reason.cause,
                message=reason.message,
            )
            # All its marks say the same.
            if is_of_target:
                break
