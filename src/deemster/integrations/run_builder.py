"""Builds a run that another tool made: samples, executions, marks by one set of rules, and what is left out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from deemster.datasets import Dataset
from deemster.errors import DatasetError, InputError, Issue, visible
from deemster.evaluation.external_run import ExternalRun
from deemster.formats.json_values import is_number
from deemster.records import NOT_APPLICABLE, Execution, Mark, MetricCard, MetricScore, Output, TargetFailure, Unscored
from deemster.records.marks import reaches
from deemster.records.usage import Usage, cached_usage
from deemster.rubrics.rubric_definition import Rubric

THRESHOLD = 0.5
_LONGEST_NAME = 200
# A hostile file may number a repetition at will, and each is a place in every sample.
_MOST_REPETITIONS = 1000
_LONGEST_TEXT = 10_000


def read_mark(
    score: Any,
    *,
    passed: bool | None = None,
    threshold: Any = None,
    reason: Any = None,
    higher_is_better: bool = True,
    details: Mapping[str, Any] | None = None,
) -> Mark:
    """The mark that a score of another tool becomes.

    - A number within [0, 1] is the score.
    - Where the tool's own verdict is not what score and threshold say, or the number is outside [0, 1], the verdict
      counts: the score is 1 or 0, and the tool's number is kept as `rubric_score`.
    - A number outside [0, 1] without a verdict has no known scale: it is unscored (`unreadable`).
    - No number and no verdict is unscored (`metric_failed`).

    Args:
        score: What the tool's file has: a number, a boolean, or anything else for none.
        passed: The tool's own verdict, where it has one.
        threshold: The tool's pass mark; one outside [0, 1] is on another scale and is not used.
        reason: What the tool says about it.
        higher_is_better: Whether a higher score is a better one.
        details: What else to keep of it, as JSON.
    """
    said = {"reason": shorten(reason)} if isinstance(reason, str) and reason.strip() else {}
    found = {**said, **(details or {})}
    value = float(score) if isinstance(score, bool) or is_number(score) else None
    bound = float(threshold) if is_number(threshold) and 0 <= threshold <= 1 else THRESHOLD
    if value is not None and 0 <= value <= 1:
        own = reaches(value, bound, higher_is_better=higher_is_better)
        if passed is None or passed is own:
            return MetricScore(value, found, threshold=bound, higher_is_better=higher_is_better)
    if passed is not None:
        return MetricScore(float(passed), found, rubric_score=value)
    if value is None:
        why = said.get("reason") or f"The tool gave no score, but {describe(score)}."
        return Unscored("metric_failed", why)
    return Unscored("unreadable", f"The score {value:g} is outside of 0 to 1, and its scale is not known.")


def as_map(value: Any) -> dict[str, Any]:
    """A JSON map, or an empty one where the value is none."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """A JSON list, or an empty one where the value is none."""
    return value if isinstance(value, list) else []


def as_maps(value: Any) -> list[dict[str, Any]]:
    """The maps in a JSON list; an empty one for an entry that is none."""
    return [as_map(entry) for entry in as_list(value)]


def add_up(counts: Iterable[Any]) -> Any:
    """The sum of the numbers among some values; None where there is none."""
    known = [count for count in counts if isinstance(count, (int, float))]
    return sum(known) if known else None


def as_text(value: Any) -> str | None:
    """Text that says something, or None."""
    return value if isinstance(value, str) and value.strip() else None


def describe(value: Any) -> str:
    """A value in a few words, for a message."""
    return "none" if value is None else visible(repr(value), limit=80)


def shorten(text: str) -> str:
    """Text of another tool, cut where it is very long."""
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}..."


def parse_time(value: Any) -> datetime | None:
    """A time in ISO 8601, or in seconds, milliseconds or nanoseconds since 1970; None where it is none."""
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(value)
            return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
        if is_number(value) and 0 < value < 1e20:
            seconds = float(value)
            while seconds > 1e11:
                seconds /= 1000
            return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


class RunBuilder:
    """Collects what a file of another tool says about one run.

    Args:
        tool: The tool, with its version where its file says it.
        name: What the dataset is called.
    """

    def __init__(self, tool: str, name: str) -> None:
        self.tool, self.name = tool, name
        self._samples: dict[str, dict[str, Any]] = {}
        self._cards: dict[str, MetricCard] = {}
        self._rubrics: dict[str, Rubric] = {}
        self._executions: dict[tuple[str, int], tuple[Output | TargetFailure | None, Mapping[str, Mark]]] = {}
        self._left_out: Counter[str] = Counter()
        self._times: dict[str, str] = {}

    def add_sample(
        self,
        wanted: Any,
        sample_input: Any,
        *,
        expected_output: Any = None,
        tags: Iterable[Any] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> str:
        """Add a sample; its id, which is numbered where another sample has the wanted one.

        Args:
            wanted: The id that the tool gives it.
            sample_input: What went in; anything but a map becomes `{"input": ...}`.
            expected_output: What should have come out.
            tags: Its tags.
            metadata: What else is known of it.
        """
        name = base = str(wanted).strip()[:_LONGEST_NAME] or "sample"
        number = 1
        while name in self._samples:
            number += 1
            name = f"{base}-{number}"
        facts = dict(metadata or {})
        if words := [str(tag).strip() for tag in tags if str(tag).strip()]:
            facts["tags"] = list(dict.fromkeys(words))
        elif not _is_tags(facts.get("tags", [])):
            facts["original_tags"] = facts.pop("tags")
        self._samples[name] = {
            "id": name,
            "input": self.plain(sample_input if isinstance(sample_input, Mapping) else {"input": sample_input}),
            "expected_output": self.plain(expected_output),
            "metadata": self.plain(facts),
        }
        return name

    def has_sample(self, sample: str) -> bool:
        """Whether a sample of that id was added."""
        return sample in self._samples

    def add_metric(self, name: Any, *, options: str = "", threshold: Any = None, higher_is_better: bool = True) -> str:
        """Declare a metric; how it is called. A metric that is declared again stays as it was.

        Its identity is the tool, the name and the options, so that runs compare it only where they are the same.

        Args:
            name: What the tool calls it.
            options: What else makes it what it is, such as the model that judged.
            threshold: Its pass mark, where it has one for all samples and that lies within [0, 1].
            higher_is_better: Whether a higher score is a better one.
        """
        called = visible(str(name).strip(), limit=_LONGEST_NAME) or "score"
        spec = f"{self.tool.partition(' ')[0]}:{called}"
        bound = float(threshold) if is_number(threshold) and 0 <= threshold <= 1 else None
        card = MetricCard(
            name=called,
            spec=spec,
            identity=f"{spec}({options})" if options else spec,
            family="custom",
            quotes=None,
            threshold=bound,
            higher_is_better=higher_is_better,
        )
        self._cards.setdefault(called, card)
        return called

    def add_rubric(self, metric: str, criteria: Iterable[Mapping[str, Any]]) -> None:
        """Say by which rubric a metric judges, so that people can label its criteria; one that is none is noted.

        Args:
            metric: The metric, which was declared before.
            criteria: The criteria, as a rubric file has them.
        """
        try:
            rubric = Rubric.load({"criteria": list(criteria)})
        except InputError as error:
            self.leave_out(f"the rubric of `{metric}`: {error.issues[0].message}")
            return
        self._rubrics[metric] = rubric
        self._cards[metric] = self._cards[metric]._replace(parts=rubric.names)

    def add_execution(
        self,
        sample: str,
        answer: Output | TargetFailure | None,
        marks: Mapping[str, Mark],
        *,
        repetition: int = 0,
        at: str | None = None,
    ) -> None:
        """Add what the target said for a sample, and how that was marked.

        Args:
            sample: The sample's id.
            answer: What it said, or how it failed.
            marks: By metric. A metric that is not among them does not apply to the sample.
            repetition: From 0.
            at: When that was, for a recording.

        Raises:
            DatasetError: The sample has that repetition already, or its number is too large.
        """
        if not 0 <= repetition < _MOST_REPETITIONS:
            raise DatasetError(Issue(f"There are at most {_MOST_REPETITIONS:,} repetitions.", sample=sample))
        if (sample, repetition) in self._executions:
            raise DatasetError(Issue(f"Repetition {repetition} is given twice.", sample=sample))
        self._executions[sample, repetition] = answer, marks
        if at is not None:
            self._times[sample] = at

    def leave_out(self, what: str, count: int = 1) -> None:
        """Note something that the file has and no record holds."""
        self._left_out[what] += count

    def leave_out_keys(self, value: Any, known: Iterable[str], *, of: str) -> None:
        """Note the keys of a map that say something and that no record holds.

        Args:
            value: The map.
            known: Its keys that are kept, or that only repeat what is kept.
            of: What the map is, for the note.
        """
        for key in value if isinstance(value, Mapping) else ():
            if key not in known and value[key] not in (None, "", [], {}, False, 0):
                self.leave_out(f"`{visible(str(key), limit=80)}` of {of}")

    def plain(self, value: Any) -> Any:
        """A JSON value without NaN and infinity, which become null and are noted."""
        if isinstance(value, float) and not math.isfinite(value):
            self.leave_out("NaN or infinity in the data of a sample became null")
            return None
        if isinstance(value, Mapping):
            return {str(key): self.plain(entry) for key, entry in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.plain(entry) for entry in value]
        return value

    def build(
        self, *, target: str | None = None, started: datetime | None = None, duration_s: float | None = None
    ) -> ExternalRun:
        """The run.

        Args:
            target: What was run.
            started: When it began.
            duration_s: How long it took.

        Raises:
            DatasetError: There is no sample, or something in one cannot be kept.
        """
        self._drop_metrics_without_scale()
        dataset = Dataset(self._samples.values(), name=self.name)
        repetitions = 1 + max((repetition for _, repetition in self._executions), default=0)
        executions = []
        for position, name in enumerate(self._samples):
            for repetition in range(repetitions):
                if (found := self._executions.get((name, repetition))) is not None:
                    answer, marks = found
                    row = tuple(marks.get(metric, NOT_APPLICABLE) for metric in self._cards)
                    executions.append(Execution(position, name, repetition, answer, row))
        return ExternalRun(
            tool=self.tool,
            dataset=dataset,
            cards=tuple(self._cards.values()),
            executions=executions,
            repetitions=repetitions,
            target=target,
            started=started,
            duration_s=duration_s if is_number(duration_s) and duration_s is not None and duration_s >= 0 else None,
            times=[self._times[name] for name in self._samples] if self._times else (),
            rubrics={metric: self._rubrics[metric].to_dict() for metric in self._cards if metric in self._rubrics},
            left_out=tuple(
                what if count == 1 else f"{what} ({count:,} times)" for what, count in self._left_out.items()
            ),
        )

    def _drop_metrics_without_scale(self) -> None:
        """Leave out metrics of which no sample has a score: their numbers are on a scale that is not known."""
        for metric in list(self._cards):
            marks = [marks[metric] for _, marks in self._executions.values() if metric in marks]
            if marks and all(isinstance(mark, Unscored) and mark.cause == "unreadable" for mark in marks):
                del self._cards[metric]
                self.leave_out(f"the metric `{metric}`: its numbers are on a scale that is not known")


def _is_tags(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(tag, str) and tag.strip() for tag in value)


def read_usage(
    *,
    prompt: Any = None,
    completion: Any = None,
    total: Any = None,
    reasoning: Any = None,
    latency_ms: Any = None,
    cost_usd: Any = None,
    model: str | None = None,
    is_cached: bool = False,
) -> Usage | None:
    """Tokens, cost and time of an output, as another tool counted them; what is no such number is left out.

    Args:
        prompt: Tokens sent.
        completion: Tokens received.
        total: The tool's own sum.
        reasoning: Of the tokens received, those spent on reasoning.
        latency_ms: How long it took.
        cost_usd: What it cost.
        model: The model that answered.
        is_cached: Whether the tool answered from its cache.
    """
    counts = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": total,
        "reasoning_tokens": reasoning,
    }
    known: dict[str, Any] = {
        name: int(count) for name, count in counts.items() if is_number(count) and count >= 0 and count == int(count)
    }
    if is_number(latency_ms) and latency_ms >= 0:
        known["latency_ms"] = float(latency_ms)
    if is_number(cost_usd) and cost_usd >= 0:
        known["cost_usd"] = Decimal(str(cost_usd))
    if not known:
        return None
    usage = Usage(model=model, **known)
    return cached_usage(usage) if is_cached else usage
