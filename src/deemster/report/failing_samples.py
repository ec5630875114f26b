"""Why samples did not pass: what was asked, expected and said, and what each failed metric or judge says about it."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from deemster.errors import list_first, plural
from deemster.report.report_entries import ExecutionEntry, MarkEntry, ScoreEntry, UnscoredReason
from deemster.results import SampleEntry
from deemster.results.sample_summary import SampleEntries
from deemster.text.embedded_files import conversation_text, name_embedded_files
from deemster.text.text_sections import (
    AddedText,
    DataText,
    MetricName,
    PassageText,
    RemovedText,
    TextDetail,
    TextField,
    TextLine,
    TextSection,
)

if TYPE_CHECKING:
    from deemster.report.report_document import Report

SHOWN = 20
# So many samples that still fail are named.
_MOST_NAMED = 4
# Longer texts are shown without their difference.
_MOST_WORDS = 1_000
# Texts that have less in common than this are shown without their difference too.
_LEAST_ALIKE = 0.3
_MOST_NOTES = 5
# Details that are shown in words of their own, and details that are settings of a metric.
_TOLD = frozenset({"judge_reason", "votes", "findings"})
_SETTINGS = frozenset({"mode", "model", "prompt_hash", "rubric_range", "scoring", "unit", "weights"})
_WORDS = re.compile(r"(?:\w+|[^\w\s])\s*")


class ExecutedSample(NamedTuple):
    """A sample of a report with its repetitions, or with those in which a metric did not pass.

    Attributes:
        position: Its place in the run.
        sample: The sample with its figures.
        executions: The repetitions.
    """

    position: int
    sample: SampleEntry
    executions: Sequence[ExecutionEntry]


def failing_samples(report: Report) -> Iterator[ExecutedSample]:
    """The samples that did not pass in every repetition with those repetitions, in the order of the dataset."""
    for executed in executed_samples(report):
        if failed := failed_executions(executed.executions):
            yield executed._replace(executions=failed)


def worst_samples(report: Report, most: int, *, before: Sequence[int] = ()) -> list[ExecutedSample]:
    """The worst samples that did not pass with those repetitions, worst first; equal ones as the dataset has them.

    Args:
        report: The report.
        most: How many at most.
        before: The places of samples that come before all others, where they did not pass.
    """
    failing = _failing_positions(report)
    first = [position for position in before if position in failing]
    others = (position for position in failing if position not in first)
    return [_failing_sample(report, position) for position in islice(chain(first, others), most)]


def _failing_sample(report: Report, position: int) -> ExecutedSample:
    sample = report.samples[position]
    first = position * sample.repetitions
    executions = [report.executions[index] for index in range(first, first + sample.repetitions)]
    return ExecutedSample(position, sample, failed_executions(executions))


def _failing_positions(report: Report) -> Sequence[int]:
    """The places of the samples that did not pass in every repetition, worst first."""
    samples = report.samples
    if isinstance(samples, SampleEntries):
        return samples.failing
    failing = (
        (sample.pass_rate, mean_score(report, sample), position)
        for position, sample in enumerate(samples)
        if sample.pass_rate is not None and sample.passed < sample.repetitions
    )
    return [position for _, _, position in sorted(failing)]


def mean_score(report: Report, sample: SampleEntry) -> float:
    """The mean score of a sample, where 1 is best; a metric without a score counts as 0."""
    scores = [
        0.0 if spread.mean is None else spread.mean if report.metrics[name].higher_is_better else 1 - spread.mean
        for name, spread in sample.metrics.items()
        if name not in sample.not_applicable
    ]
    return sum(scores) / max(1, len(scores))


def executed_samples(report: Report) -> Iterator[ExecutedSample]:
    """Every sample with its repetitions, in the order of the dataset."""
    executions = iter(report.executions)
    for position, sample in enumerate(report.samples):
        yield ExecutedSample(position, sample, list(islice(executions, sample.repetitions)))


def failed_executions(executions: Iterable[ExecutionEntry]) -> list[ExecutionEntry]:
    """The repetitions in which a metric did not pass."""
    return [execution for execution in executions if any(map(is_failed, execution.marks.values()))]


def count_failing(report: Report) -> int:
    """How many samples did not pass in every repetition. Their executions are not read."""
    return len(_failing_positions(report))


def describe_passed(report: Report) -> TextLine:
    """How many samples passed every metric that applies to them; of what failed before, which still fail."""
    failing = count_failing(report)
    rated = report.totals.samples - report.totals.samples_not_applicable
    if not rated:
        return ("No metric applies to any sample.",)
    if report.run.part is not None and report.run.part.is_of_failed:
        return _describe_rerun(report, rated, failing)
    if rated == 1:
        return ("The sample did not pass." if failing else "The sample passed.",)
    return (f"{failing:,} of {rated:,} samples did not pass." if failing else f"All {rated:,} samples passed.",)


def _describe_rerun(report: Report, rated: int, failing: int) -> TextLine:
    """What became of samples that failed before."""
    passing = rated - failing
    passed = "1 now passes" if passing == 1 else f"{passing:,} now pass" if passing else "none passes now"
    if not failing:
        return (f"{rated:,} run again: {passed}, none still fails.",)

    names = list_first([worst.sample.id for worst in worst_samples(report, _MOST_NAMED)], failing)
    still = "1 still fails" if failing == 1 else f"{failing:,} still fail"
    return (f"{rated:,} run again: {passed}, {still} (", DataText(names), ").")


def is_failed(mark: MarkEntry) -> bool:
    """Whether a mark has no score, or one that does not pass."""
    return not isinstance(mark, ScoreEntry) or not mark.success


def failing_section(report: Report) -> TextSection:
    """The first samples that did not pass, each with the reasons."""
    title = ("Samples that did not pass",)
    details = [describe_sample(report, failing.sample, failing.executions) for failing in worst_samples(report, SHOWN)]
    if not details:
        return TextSection(title, [("None: every metric passed everywhere.",)], key="samples")
    count = count_failing(report)
    rest = count - len(details)
    lines: list[TextLine] = [(f"{plural(count, 'sample')} of {report.totals.samples:,}.",)]
    after: list[TextLine] = [(f"... and {rest:,} more.",)] if rest else []
    return TextSection(title, lines, details=details, after=after, key="samples")


def describe_sample(report: Report, sample: SampleEntry, executions: Sequence[ExecutionEntry]) -> TextDetail:
    """What one sample asked and expected, and why its first failed repetition did not pass."""
    execution = executions[0]
    title: list[str] = [DataText(sample.id)]
    if sample.repetitions > 1:
        title.append(f", {sample.passed} of {plural(sample.repetitions, 'repetition')} passed")
    if sample.tags:
        title += [" (", DataText(", ".join(sample.tags)), ")"]
    fields = [
        *quoted_field("input", sample.input),
        *quoted_field("expected", sample.expected_output),
        *quoted_field("output", execution.output),
        *text_difference(sample.expected_output, execution.output),
        *_failed_marks(report, execution.marks),
        *_retrieved(execution.retrieved),
        *_steps(execution),
    ]
    return TextDetail(tuple(title), fields)


def quoted_field(label: str, value: Any) -> Iterator[TextField]:
    """A text of a sample or output; nothing where there is none, or it is not shown."""
    if value is not None and value != {}:
        yield TextField(label, (PassageText(quoted_text(value)),))


def quoted_text(value: Any) -> str:
    """What a sample or output says, as text; of a map with one entry that entry."""
    if isinstance(value, Mapping) and len(value) == 1:
        value = next(iter(value.values()))
    return plain_text(value)


def plain_text(value: Any) -> str:
    """A value as text: a text as it is, messages by turns, anything else as JSON; embedded files by kind and size."""
    text = value if isinstance(value, str) else conversation_text(value)
    if text is None:
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, default=dict)
    return name_embedded_files(text)


def text_difference(expected: Any, output: str | None) -> Iterator[TextField]:
    """What was expected and is not there, and what is there and was not expected, word by word."""
    if isinstance(expected, str) and output is not None and (parts := word_difference(expected, output)):
        yield TextField("difference", parts)


def word_difference(before: str, after: str) -> TextLine:
    """What two texts have in common, what only the first has, and what only the second has, word by word.

    Nothing where the texts are the same, too long, or too different for this to help a reader.
    """
    if before == after:
        return ()
    wanted, found = _WORDS.findall(before), _WORDS.findall(after)
    if not wanted or not found or max(len(wanted), len(found)) > _MOST_WORDS:
        return ()
    words, others = ([word.rstrip() for word in side] for side in (wanted, found))
    matcher = difflib.SequenceMatcher(None, words, others, autojunk=False)
    if matcher.ratio() < _LEAST_ALIKE:
        return ()
    parts: list[str] = []
    for kind, start, stop, first, last in matcher.get_opcodes():
        if kind == "equal":
            # The last word of a text has no space after it, which the same word has inside of the other text.
            common = (max(pair, key=len) for pair in zip(wanted[start:stop], found[first:last], strict=True))
            parts.append(PassageText("".join(common)))
            continue
        if stop > start:
            parts.append(RemovedText("".join(wanted[start:stop])))
        if last > first:
            parts.append(AddedText("".join(found[first:last])))
    return tuple(parts)


def _failed_marks(report: Report, marks: Mapping[str, MarkEntry]) -> Iterator[TextField]:
    """Every metric that did not pass: its score and threshold, or why there is no score; then what its details say."""
    unscored = {mark.unscored for mark in marks.values() if not isinstance(mark, ScoreEntry)}
    if len(unscored) == 1 and (reason := next(iter(unscored))).cause in ("target_failed", "not_run"):
        yield TextField("target", describe_unscored(reason))
        return
    for name in report.metric_order:
        mark = marks.get(name)
        if mark is None:
            continue
        if not isinstance(mark, ScoreEntry):
            yield TextField(MetricName(name), describe_unscored(mark.unscored))
        elif not mark.success:
            sign = ">=" if report.metrics[name].higher_is_better else "<="
            yield TextField(MetricName(name), (f"{mark.score:.4f}, passes with {sign} {mark.threshold:.4g}",))
            for label, text in islice(detail_notes(mark.details), _MOST_NOTES):
                yield TextField("", (DataText(label.rstrip(":")), ": ", PassageText(text)))


def describe_unscored(reason: UnscoredReason) -> TextLine:
    """Why there is no score."""
    return (reason.cause,) if reason.message is None else (reason.cause, ": ", PassageText(reason.message))


def detail_notes(details: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What a mark's details tell a reader: judges' reasons, unsupported claims, what is missing; as label and text."""
    if isinstance(reason := details.get("judge_reason"), str):
        yield "reason", reason
    votes = [*_maps(details.get("votes"))]
    if any("cause" in vote for vote in votes):
        said = (vote.get("cause") or vote.get("verdict") or vote.get("score") for vote in votes)
        yield "votes", ", ".join(f"{_judge(vote)} {word}" for vote, word in zip(votes, said, strict=True))
    for vote in votes:
        if isinstance(reason := vote.get("reason"), str):
            yield f"{_judge(vote)} says", reason
    for finding in _maps(details.get("findings")):
        if finding.get("verdict") != "supported":
            yield f"claim {finding.get('verdict')}", f"{finding.get('claim')}: {finding.get('reason')}"
    # By name, as a saved report has them.
    for key, value in sorted(details.items()):
        if key in _TOLD or key in _SETTINGS:
            continue
        if isinstance(value, str) or (isinstance(value, (list, tuple)) and value):
            yield key, value if isinstance(value, str) else ", ".join(map(plain_text, value))
        elif key.startswith("missing") and not isinstance(value, bool) and isinstance(value, int) and value:
            yield key, str(value)


def _judge(vote: Mapping[str, Any]) -> str:
    return str(vote.get("role") or vote.get("judge") or "judge")


def _maps(value: Any) -> Iterator[Mapping[str, Any]]:
    for entry in value if isinstance(value, (list, tuple)) else ():
        if isinstance(entry, Mapping):
            yield entry


def _retrieved(retrieved: Any) -> Iterator[TextField]:
    if isinstance(retrieved, (list, tuple)) and retrieved:
        ids = (entry.get("id") if isinstance(entry, Mapping) else entry for entry in retrieved)
        yield TextField("retrieved", (PassageText(", ".join(map(plain_text, ids))),))


def _steps(execution: ExecutionEntry) -> Iterator[TextField]:
    calls = () if execution.trajectory is None else execution.trajectory.tool_calls
    for number, call in enumerate(calls, 1):
        arguments = ", ".join(f"{name}={plain_text(value)}" for name, value in sorted(call.arguments.items()))
        outcome = f" failed: {call.error}" if call.error is not None else ""
        if call.error is None and call.result is not None:
            outcome = f" gave {plain_text(call.result)}"
        yield TextField(f"step {number}", (PassageText(f"{call.name}({arguments}){outcome}"),))
