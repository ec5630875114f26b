"""The entries of a report: samples, executions and failures; texts above 64 KiB are cut."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from deemster.datasets import SelectedPart
from deemster.formats.json_values import json_bytes
from deemster.records import (
    Execution,
    MetricScore,
    NotApplicable,
    Output,
    Sample,
    SampleContent,
    SampleFacts,
    Unscored,
)
from deemster.report.report_entries import (
    ExecutionEntry,
    FailureEntry,
    MarkEntry,
    ScoreEntry,
    UnscoredEntry,
    UnscoredReason,
)
from deemster.results import SampleEntry
from deemster.results.mark_table import MarkTable
from deemster.results.sample_summary import DECIMALS, summarize_samples

LONGEST = 64 * 1024
# A store leaves out what is larger; a report that was never stored shows the same.
LARGEST = 1 << 20
# A character takes at most four bytes.
_SURELY = LONGEST // 4
_T = TypeVar("_T")


def cut_text(text: str) -> str:
    """Text of at most 64 KiB of UTF-8, cut between characters."""
    if len(text) <= _SURELY:
        return text
    data = text.encode("utf-8", "surrogatepass")
    return text if len(data) <= LONGEST else data[:LONGEST].decode("utf-8", "ignore")


def shorten_texts(value: Any) -> Any:
    """A JSON value in which every text has at most 64 KiB; the very same one where none has more.

    >>> shorten_texts({"a": ["b"]})
    {'a': ['b']}
    """
    if _is_short(value):
        return value
    if isinstance(value, str):
        return cut_text(value)
    if isinstance(value, Mapping):
        return {key: shorten_texts(entry) for key, entry in value.items()}
    return [shorten_texts(entry) for entry in value]


def _is_short(value: Any) -> bool:
    """Whether no text in a JSON value has more than 64 KiB."""
    if isinstance(value, str):
        return cut_text(value) is value
    entries = value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ()
    # Most entries are short texts. A list comprehension is faster here than a generator.
    return all([(type(entry) is str and len(entry) <= _SURELY) or _is_short(entry) for entry in entries])  # noqa: C419


def shorten_attachment(value: _T) -> _T | None:
    """What came with an output: its texts cut, or nothing where it is above 1 MiB as a whole.

    Args:
        value: The passages or the trajectory; None where there are none.
    """
    if value is None:
        return None
    try:
        size = len(json_bytes(value))
    except (UnicodeEncodeError, OverflowError, ValueError):
        return value
    if size <= LONGEST:
        return value
    if size > LARGEST:
        return None
    if isinstance(value, msgspec.Struct):
        plain = msgspec.to_builtins(value)
        less = shorten_texts(plain)
        return value if less is plain else msgspec.convert(less, type(value))
    short: _T = shorten_texts(value)
    return short


_WHOLE = (1.0, 0.0)
_NOT_RUN = Unscored("not_run", "The run stopped before this sample.")


class RunSamples(Protocol):
    """The samples of a run: a dataset, or what is kept of one."""

    name: str
    schema_version: str
    part: SelectedPart | None
    cluster: str | None

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Sample]: ...

    def facts(self, *, content: bool = True) -> Iterator[SampleFacts]:
        """Every sample as the run keeps it, in order, with expected output and input where they are wanted."""
        ...

    def metadata(self) -> Iterator[Mapping[str, Any]]:
        """The metadata of every sample, in order."""
        ...

    @property
    def fingerprint(self) -> str | None:
        """The dataset's fingerprint, where it has one."""
        ...

    @property
    def duplicates(self) -> Sequence[Sequence[str]]:
        """Ids of samples that are equal, group by group."""
        ...

    @property
    def row_hashes(self) -> Iterable[str]:
        """The row hash of every sample, in order."""
        ...


def sample_entries(dataset: RunSamples, tally: MarkTable) -> Iterator[SampleEntry]:
    """The entry of every sample."""
    return summarize_samples(tally, map(_with_short_texts, dataset.facts()))


def _with_short_texts(sample: SampleFacts) -> SampleFacts:
    content = SampleContent(shorten_texts(sample.expected_output), shorten_texts(sample.input or {}))
    return SampleFacts(sample.position, sample.id, sample.row_hash, sample.labels, content)


def execution_entries(
    dataset: RunSamples, tally: MarkTable, executions: Iterable[Execution]
) -> Iterator[ExecutionEntry]:
    """The entry of every execution; one that is missing was not run."""
    names, applies = [card.name for card in tally.cards], tally.applies_to(slice(None))
    missing = _missing_executions(dataset, tally)
    seen = 0

    for execution in executions:
        place = execution.position * tally.repetitions + execution.repetition
        for absent in missing(range(seen, place)):
            yield execution_entry(absent, names, applies[absent.position].tolist())
        yield execution_entry(execution, names, applies[execution.position].tolist())
        seen = place + 1

    for absent in missing(range(seen, tally.samples * tally.repetitions)):
        yield execution_entry(absent, names, applies[absent.position].tolist())


def _missing_executions(dataset: RunSamples, tally: MarkTable) -> Callable[[range], Iterator[Execution]]:
    """Gives the executions that were not run, at places that are asked for in order."""
    # A large dataset is read from its file: only as far as the last execution that is missing, whose id it alone knows.
    samples = dataset.facts(content=False)
    marks = (_NOT_RUN,) * len(tally.cards)
    sample: SampleFacts | None = None

    def missing(places: range) -> Iterator[Execution]:
        nonlocal sample
        for place in places:
            position, repetition = divmod(place, tally.repetitions)
            while sample is None or sample.position < position:
                sample = next(samples)
            yield Execution(position, sample.id, repetition, None, marks)

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
    answer = execution.answer
    output = answer if isinstance(answer, Output) else None
    text = output.text if output is not None else ""
    kept = cut_text(text)
    is_cut = len(kept) < len(text) or execution.cut is not None
    retrieved = trajectory = None
    if output is not None and (output.retrieved is not None or output.trajectory is not None):
        retrieved, trajectory = shorten_attachment(output.retrieved), shorten_attachment(output.trajectory)
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
            why = mark.unscored
            of_target = why.cause == "target_failed"
            yield FailureEntry(
                id=entry.id,
                repetition=entry.repetition,
                metric=None if of_target else name,
                cause=why.cause,
                message=why.message,
            )
            if of_target:
                break
