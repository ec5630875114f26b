"""Where a person labels samples in the viewer: the queue, a sample as the person sees it, and its labels."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from deemster.calibration.people_labels import LabelTask, label_tasks
from deemster.errors import ConfigurationError, InputError
from deemster.records import Execution
from deemster.store import LabelFacts
from deemster.view.judgements import find_judgement
from deemster.view.label_queue import LabelQueue, QueueRequest, choose_tasks, draw_queue, task_entry
from deemster.view.label_shapes import (
    LabelledOutput,
    LabelSampleAnswer,
    NextSample,
    QueueAnswer,
    StoredLabel,
    UndoneLabel,
    label_entry,
)
from deemster.view.opened_grading import SEEN
from deemster.view.opened_run import OpenedRun
from deemster.view.sample_pages import execution_facts, sample_at, sample_facts


class LabelRequest(QueueRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A label as a page sends it; its author and time are set here.

    Attributes:
        position: The sample's place.
        repetition: The repetition that the person saw.
        metric: The metric; None for a criterion of a grading.
        criterion: The criterion; None for a metric.
        verdict: The answer; None for a skipped one.
        note: What else the person wrote.
        skip_reason: Why it was skipped.
    """

    position: int
    repetition: int = 0
    metric: str | None = None
    criterion: str | None = None
    verdict: str | None = None
    note: str | None = None
    skip_reason: str | None = None


class LabelDesk:
    """Shows one person samples to label, and stores what the person says.

    Args:
        run: The run.
        author: Who labels; None where nobody does.
        settings: How samples come to the person.

    Raises:
        ReportError: The run cannot be labelled.
        InputError: There is no such metric.
        StoreError: The store fails.
    """

    def __init__(self, run: OpenedRun, author: str | None, settings: QueueRequest) -> None:
        self.run = run
        self.author = author
        self.settings = settings
        tasks_of_run = label_tasks(run.store, run.row)
        if not tasks_of_run:
            raise InputError("The run has no metric, so there is nothing to label.")

        self.tasks = choose_tasks(run, tasks_of_run, settings.metrics)
        self.labels = run.store.labels(run.row.id)
        self.queue: LabelQueue = draw_queue(run, settings, self.tasks, self.labels)

    def page(self) -> QueueAnswer:
        """The queue, and how far the person is."""
        positions = self.queue.positions
        waiting = [position for position in positions if not self._is_done(position)]
        return QueueAnswer(
            said=self.queue.said,
            total=len(positions),
            done=len(positions) - len(waiting),
            positions=positions,
            tasks=list(map(task_entry, self.tasks)),
            next=NextSample(waiting[0], self.queue.probabilities.get(waiting[0])) if waiting else None,
        )

    def sample(self, position: int, repetition: int) -> LabelSampleAnswer:
        """What the person sees of a sample: nothing of what a judge said, until the person has decided.

        Raises:
            InputError: There is no such sample or repetition.
            StoreError: The store fails.
        """
        sample, executions = sample_at(self.run, position)
        facts = sample_facts(sample)
        if self.run.sample_grading(position) is None:
            output = self._output(executions, repetition)
        else:
            output = LabelledOutput(output=self.run.shown_output(sample, executions))
            # What people said before is no part of the question.
            facts["expected_output"] = None
            facts["input"] = {name: value for name, value in (sample.input or {}).items() if name in SEEN}

        labels = self._labels_of_author(position, repetition)
        decided = [task for task in self.tasks if task.key in labels]
        return LabelSampleAnswer(
            **facts,
            **msgspec.structs.asdict(output),
            repetition=repetition,
            repetitions=self.run.row.repetitions,
            tasks=list(map(task_entry, self.tasks)),
            decided=list(map(label_entry, labels.values())),
            revealed=[self._reveal(position, repetition, task) for task in decided] or None,
            probability=self.queue.probabilities.get(position),
        )

    def _output(self, executions: Sequence[Execution], repetition: int) -> LabelledOutput:
        for execution in executions:
            if execution.repetition == repetition:
                facts = execution_facts(self.run, execution)
                return LabelledOutput(
                    output=facts.output, retrieved=facts.retrieved, trajectory=facts.trajectory, failure=facts.failure
                )
        raise InputError(f"The sample has no repetition {repetition}.")

    def add(self, request: LabelRequest) -> StoredLabel:
        """Store a label, and show what the judge said.

        Raises:
            InputError: The label is none.
            ConfigurationError: Nobody labels here.
            StoreError: The store fails.
        """
        if self.author is None:
            raise ConfigurationError("Labels need an author: `deemster view --annotator NAME`.")
        task = self._find_task(request)
        label = self._label(request)

        self.run.store.put_label(self.run.row.id, label)
        return StoredLabel(label_entry(label), self._reveal(request.position, request.repetition, task))

    def _find_task(self, request: LabelRequest) -> LabelTask:
        """The question that a label answers, once it is sure that it does, and that there is such an output."""
        key = (request.metric or "", request.criterion or "")
        task = next((task for task in self.tasks if task.key == key), None)
        if task is None:
            raise InputError("The run has no such metric or criterion.")

        if (request.verdict is None) == (request.skip_reason is None):
            raise InputError("A label has a `verdict`, or a `skip_reason` where there is none.")
        if request.verdict is not None and not task.takes(request.verdict):
            raise InputError(f"`{task.title}` has no answer {request.verdict!r:.60}.")

        sample_at(self.run, request.position)
        if not 0 <= request.repetition < self.run.row.repetitions:
            raise InputError(f"The run has no repetition {request.repetition}.")
        return task

    def _label(self, request: LabelRequest) -> LabelFacts:
        """What is stored of a label: what the person said, when, and how the sample came to the person."""
        label = {
            "position": request.position,
            "repetition": request.repetition,
            "metric": request.metric or "",
            "criterion": request.criterion or "",
            "author": self.author,
            "at": datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
            "verdict": request.verdict,
            "skip_reason": request.skip_reason,
            "note": request.note or None,
            "order": self._order_of(request.position),
            "probability": self.queue.probabilities.get(request.position),
            "seed": self.settings.seed,
        }
        # The lengths of texts are checked where a map is converted, not where a struct is made.
        try:
            return msgspec.convert(label, LabelFacts)
        except msgspec.ValidationError as error:
            raise InputError(f"This is no label: {error}.") from None

    def _order_of(self, position: int) -> str:
        """How a sample came to the person: one that an unequal draw left out was chosen, since it has no weight."""
        order = self.settings.order
        is_left_out = order == "efficient" and position not in self.queue.probabilities
        return "chosen" if is_left_out else order

    def undo(self) -> UndoneLabel:
        """Take the person's last label back.

        Raises:
            StoreError: The store fails.
        """
        labels = [label for label in self.labels if label.author == self.author]
        if not labels:
            return UndoneLabel(None)

        last = max(labels, key=lambda label: label.at)
        self.run.store.delete_label(self.run.row.id, last)
        return UndoneLabel(label_entry(last))

    def _labels_of_author(self, position: int, repetition: int) -> dict[tuple[str, str], LabelFacts]:
        """What the person said of an output, by question."""
        return {
            (label.metric, label.criterion): label
            for label in self.labels
            if (label.position, label.repetition, label.author) == (position, repetition, self.author)
            and self._counts(label)
        }

    def _counts(self, label: LabelFacts) -> bool:
        """Whether a label answers for this queue.

        A random draw asks again where a sample was labelled because it was more likely to be seen: such samples would
        be missing from the draw otherwise.
        """
        if self.settings.order == "random":
            return label.order == "random"
        return label.is_drawn if self.settings.order == "efficient" else True

    def _is_done(self, position: int) -> bool:
        """Whether the person answered every question about a sample, in whichever repetition."""
        answered = {
            (label.metric, label.criterion)
            for label in self.labels
            if label.position == position and label.author == self.author and self._counts(label)
        }
        return answered.issuperset(task.key for task in self.tasks)

    def _reveal(self, position: int, repetition: int, task: LabelTask) -> dict[str, Any]:
        """What the judge said."""
        return {
            "metric": task.metric or None,
            "criterion": task.criterion or None,
            **msgspec.structs.asdict(find_judgement(self.run, position, repetition, task)),
        }
