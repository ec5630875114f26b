"""One sample of a run, whole: what was asked, expected, retrieved and said, and every mark with its details."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from deemster.datasets.where_condition import describe_where
from deemster.errors import InputError, MissingExtraError, did_you_mean, plural
from deemster.records import Exchange, Message
from deemster.report.failing_samples import ExecutedSample, executed_samples, plain_text, text_difference
from deemster.report.report_entries import ExecutionEntry, ScoreEntry
from deemster.report.usage_sections import describe_usage
from deemster.results import SampleEntry
from deemster.targets.chat_prompt import ChatPrompt
from deemster.text.text_sections import DataText, MetricName, TextDetail, TextField, TextSection, WholeText

if TYPE_CHECKING:
    from deemster.report.report_document import Report


class KeptDetails(NamedTuple):
    """What a store keeps of a sample beside its report.

    Attributes:
        tracebacks: Where the target raised, by repetition.
        prompts: What judges were asked, by repetition and metric; None where that is not to be shown.
        remark: Says whose prompts are not kept.
        target_prompt: The prompt of a chat target.
    """

    tracebacks: Mapping[int, str] = {}
    prompts: Mapping[tuple[int, str], Sequence[Exchange]] | None = None
    remark: str = ""
    target_prompt: ChatPrompt | None = None

    def asked_target(self, sample_input: Any) -> tuple[Message, ...]:
        """What a chat target was asked about a sample; nothing where that cannot be told."""
        if self.target_prompt is None or not isinstance(sample_input, Mapping):
            return ()
        try:
            return self.target_prompt.fill(sample_input)
        except (LookupError, MissingExtraError):
            return ()


NOTHING_KEPT = KeptDetails()


def find_sample(report: Report, sample_id: str) -> ExecutedSample:
    """A sample of a report, with its repetitions.

    Raises:
        InputError: The report has no such sample.
    """
    known = []
    for executed in executed_samples(report):
        if executed.sample.id == sample_id:
            return executed
        known.append(executed.sample.id)
    raise InputError(f"The run has no sample {sample_id!r:.200}. {did_you_mean(sample_id, known)}")


def sample_sections(report: Report, found: ExecutedSample, kept: KeptDetails = NOTHING_KEPT) -> Iterator[TextSection]:
    """The parts of what is known about a sample, in order; texts are not cut.

    Args:
        report: The report.
        found: A sample of it.
        kept: What the store keeps of the sample beside the report.
    """
    sample = found.sample
    passed = f"{sample.passed} of {plural(sample.repetitions, 'repetition')} passed"
    if sample.pass_rate is None:
        passed = "no metric applies"
    tags: tuple[str, ...] = ("; tags ", DataText(", ".join(sample.tags))) if sample.tags else ()
    yield TextSection(("Sample ", DataText(sample.id)), [("Run ", DataText(report.run.id), f": {passed}", *tags, ".")])
    asked = [*_fields(sample.input, "input"), *_field("expected", sample.expected_output)]
    if asked:
        yield TextSection(("Question",), details=[TextDetail((), asked)])
    if messages := kept.asked_target(sample.input):
        fields = [field for message in messages for field in _field(message.role, message.content)]
        yield TextSection(("Prompt",), details=[TextDetail((), fields)])
    for execution in found.executions:
        number = f", repetition {execution.repetition}" if sample.repetitions > 1 else ""
        if said := list(_said(sample, execution)):
            yield TextSection((f"Output{number}",), details=[TextDetail((), said)])
        if (traceback := kept.tracebacks.get(execution.repetition)) is not None:
            yield TextSection((f"Error of the target{number}",), details=[TextDetail((), list(_field("", traceback)))])
        marks = [_mark(report, name, execution.marks.get(name)) for name in report.metric_order]
        yield TextSection((f"Scores{number}",), details=marks)
        if kept.prompts is not None:
            details = [
                _exchange(name, place, exchange)
                for name in report.metric_order
                for place, exchange in enumerate(kept.prompts.get((execution.repetition, name), ()), 1)
            ]
            yield TextSection((f"Prompts{number}",), [(kept.remark,)] if kept.remark else (), details=details)


def _said(sample: SampleEntry, execution: ExecutionEntry) -> Iterator[TextField]:
    yield from _field("output", execution.output)
    yield from text_difference(sample.expected_output, execution.output)
    retrieved = execution.retrieved
    for number, entry in enumerate(retrieved if isinstance(retrieved, (list, tuple)) else (), 1):
        yield from _field(f"retrieved {number}", entry)
    if execution.trajectory is not None:
        for number, call in enumerate(execution.trajectory.tool_calls, 1):
            yield TextField(f"step {number}", (WholeText(f"{call.name} {plain_text(call.arguments)}"),))
            yield from _field("", call.result)
            yield from _field("", call.error)


def _mark(report: Report, name: str, mark: Any) -> TextDetail:
    fields: list[TextField] = []
    if mark is None:
        where = report.metrics[name].where
        outside: tuple[str, ...] = () if where is None else (": ", DataText(describe_where(where)))
        return TextDetail((MetricName(name), ": not applicable, outside its `where`", *outside), fields)
    if isinstance(mark, ScoreEntry):
        sign = ">=" if report.metrics[name].higher_is_better else "<="
        outcome = "pass" if mark.success else "fail"
        title = (MetricName(name), f": {outcome}, {mark.score:.4f}, passes with {sign} {mark.threshold:.4g}")
        fields += (field for key, value in sorted(mark.details.items()) for field in _field(key, value))
    else:
        title = (MetricName(name), f": unscored, {mark.unscored.cause}")
        fields += _field("message", mark.unscored.message)
    if mark.usage is not None:
        fields.append(TextField("usage", (describe_usage(mark.usage),)))
    return TextDetail(title, fields)


def _exchange(name: str, place: int, exchange: Exchange) -> TextDetail:
    model = (", answered by ", DataText(exchange.model)) if exchange.model else ()
    fields = [
        *(field for message in exchange.messages for field in _field(message.role, message.content)),
        *_field("reply", exchange.reply),
        *_field("no reply", exchange.failure),
    ]
    return TextDetail((MetricName(name), f", question {place}, to ", DataText(exchange.role), *model), fields)


def _fields(value: Any, label: str) -> Iterator[TextField]:
    """A map as a line for each of its keys, anything else as one line."""
    if isinstance(value, Mapping):
        for key, part in sorted(value.items()):
            yield from _field(f"{label}.{key}", part)
    else:
        yield from _field(label, value)


def _field(label: str, value: Any) -> Iterator[TextField]:
    if value is not None:
        yield TextField(DataText(label), (WholeText(plain_text(value)),))
