"""What the viewer says of labels: the queue, what a person labels, who said what, and how many labels are needed."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from deemster.agreement import BootstrapSettings
from deemster.agreement.annotator_alpha import annotator_alpha
from deemster.calibration.people_labels import LabelTask, label_tasks, labelled_votes, labels_csv
from deemster.errors import ConfigurationError, InputError
from deemster.stats import cohen_kappa
from deemster.stats.confidence_interval import interval_ends
from deemster.store import LabelFacts
from deemster.view.judgements import find_judgement
from deemster.view.label_needs import needed_labels
from deemster.view.label_queue import LabelQueue, QueueRequest, choose_tasks, draw_queue, task_entry
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
        self.run, self.author, self.settings = run, author, settings
        every = label_tasks(run.store, run.row)
        if not every:
            raise InputError("The run has no metric, so there is nothing to label.")
        self.tasks = choose_tasks(run, every, settings.metrics)
        self.labels = run.store.labels(run.row.id)
        self.queue: LabelQueue = draw_queue(run, settings, self.tasks, self.labels)

    def page(self) -> dict[str, Any]:
        """The queue, and how far the person is."""
        left = [position for position in self.queue.positions if not self._is_done(position)]
        return {
            "run": self.run.row.id,
            "order": self.settings.order,
            "seed": self.settings.seed,
            "said": self.queue.said,
            **self._progress(),
            "positions": self.queue.positions,
            "tasks": list(map(task_entry, self.tasks)),
            "next": {"position": left[0], "probability": self.queue.probabilities.get(left[0])} if left else None,
        }

    def sample(self, position: int, repetition: int) -> dict[str, Any]:
        """What the person sees of a sample: nothing of what a judge said, until the person has decided.

        Raises:
            InputError: There is no such sample or repetition.
            StoreError: The store fails.
        """
        sample, executions = sample_at(self.run, position)
        facts = sample_facts(sample)
        shown: dict[str, Any] = {"output": None, "retrieved": None, "trajectory": None}
        if self.run.sample_grading(position) is not None:
            shown["output"] = self.run.shown_output(sample, executions)
            # What people said before is no part of the question.
            seen = {name: value for name, value in (sample.input or {}).items() if name in SEEN}
            facts |= {"expected_output": None, "input": seen}
        else:
            execution = next((one for one in executions if one.repetition == repetition), None)
            if execution is None:
                raise InputError(f"The sample has no repetition {repetition}.")
            whole = execution_facts(self.run, execution)
            shown = {name: getattr(whole, name) for name in (*shown, "failure")}
        own = self._own(position, repetition)
        at = self.queue.positions.index(position) if position in self.queue.positions else None
        return {
            "run": self.run.row.id,
            **facts,
            "repetition": repetition,
            "repetitions": self.run.row.repetitions,
            **shown,
            "tasks": list(map(task_entry, self.tasks)),
            "decided": list(map(_entry, own.values())),
            "revealed": [self._reveal(position, repetition, task) for task in self.tasks if task.key in own] or None,
            "probability": self.queue.probabilities.get(position),
            "place": at,
            "previous": self.queue.positions[at - 1] if at else None,
            "next": self.queue.positions[at + 1] if at is not None and at + 1 < len(self.queue.positions) else None,
            **self._progress(),
        }

    def add(self, request: LabelRequest) -> dict[str, Any]:
        """Store a label, and show what the judge said.

        Raises:
            InputError: The label is none.
            ConfigurationError: Nobody labels here.
            StoreError: The store fails.
        """
        if self.author is None:
            raise ConfigurationError("Labels need an author: `deemster view --annotator NAME`.")
        wanted = (request.metric or "", request.criterion or "")
        task = next((task for task in self.tasks if task.key == wanted), None)
        if task is None:
            raise InputError("The run has no such metric or criterion.")
        if (request.verdict is None) == (request.skip_reason is None):
            raise InputError("A label has a `verdict`, or a `skip_reason` where there is none.")
        if request.verdict is not None and not task.takes(request.verdict):
            raise InputError(f"`{task.title}` has no answer {request.verdict!r:.60}.")
        sample_at(self.run, request.position)
        if not 0 <= request.repetition < self.run.row.repetitions:
            raise InputError(f"The run has no repetition {request.repetition}.")
        label = {
            "position": request.position,
            "repetition": request.repetition,
            "metric": task.metric,
            "criterion": task.criterion,
            "author": self.author,
            "at": datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
            "verdict": request.verdict,
            "skip_reason": request.skip_reason,
            "note": request.note or None,
            "order": self.settings.order,
            "probability": self.queue.probabilities.get(request.position),
            "seed": self.settings.seed,
        }
        try:
            stored = msgspec.convert(label, LabelFacts)
        except msgspec.ValidationError as error:
            raise InputError(f"This is no label: {error}.") from None
        self.run.store.put_label(self.run.row.id, stored)
        self.labels = self.run.store.labels(self.run.row.id)
        return {
            "label": _entry(stored),
            "revealed": self._reveal(request.position, request.repetition, task),
            "progress": self._progress(),
            "undo": True,
        }

    def undo(self) -> dict[str, Any]:
        """Take the person's last label back.

        Raises:
            StoreError: The store fails.
        """
        own = [label for label in self.labels if label.author == self.author]
        last = max(own, key=lambda label: label.at, default=None)
        if last is not None:
            self.run.store.delete_label(self.run.row.id, last)
            self.labels = [label for label in self.labels if label != last]
        return {
            "undone": None if last is None else _entry(last),
            "progress": self._progress(),
            "undo": len(own) > 1,
        }

    def _own(self, position: int, repetition: int) -> dict[tuple[str, str], LabelFacts]:
        return {
            (label.metric, label.criterion): label
            for label in self.labels
            if (label.position, label.repetition, label.author) == (position, repetition, self.author)
        }

    def _is_done(self, position: int) -> bool:
        own = {
            (label.metric, label.criterion)
            for label in self.labels
            if label.position == position and label.author == self.author
        }
        return own.issuperset(task.key for task in self.tasks)

    def _progress(self) -> dict[str, int]:
        return {"total": len(self.queue.positions), "done": sum(map(self._is_done, self.queue.positions))}

    def _reveal(self, position: int, repetition: int, task: LabelTask) -> dict[str, Any]:
        """What the judge said."""
        return {
            "metric": task.metric or None,
            "criterion": task.criterion or None,
            **msgspec.structs.asdict(find_judgement(self.run, position, repetition, task)),
        }


def _entry(label: LabelFacts) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(label)
    return {**plain, "metric": label.metric or None, "criterion": label.criterion or None}


def label_summary(run: OpenedRun) -> dict[str, Any]:
    """All labels of a run, how far their authors agree, and how many more would decide something.

    Args:
        run: The run.

    Raises:
        ReportError: The run cannot be labelled.
        StoreError: The store fails.
    """
    labels = run.store.labels(run.row.id)
    authors = Counter(label.author for label in labels)
    tasks = [task for task in label_tasks(run.store, run.row) if any(_is_about(label, task) for label in labels)]
    return {
        "run": run.row.id,
        "labels": list(map(_entry, labels)),
        "authors": [{"name": name, "labels": count} for name, count in sorted(authors.items())],
        "agreement": [_agreement(task, labels) for task in tasks],
        "needed": needed_labels(run, tasks, labels),
    }


def _is_about(label: LabelFacts, task: LabelTask) -> bool:
    return (label.metric, label.criterion) == task.key


def _agreement(task: LabelTask, labels: Sequence[LabelFacts]) -> dict[str, Any]:
    """How far the authors agree on one question: Cohen's kappa of two, Krippendorff's alpha of more.

    Samples that were picked say nothing of the others, least of all those on which people differ.
    """
    said: dict[str, dict[tuple[int, int], str]] = {}
    for label in labels:
        if label.verdict is not None and label.order == "random" and _is_about(label, task):
            said.setdefault(label.author, {})[label.position, label.repetition] = label.verdict
    found: dict[str, Any] = {"title": task.title, "metric": task.metric or None, "criterion": task.criterion or None}
    # Repetitions of a sample are alike: one of each is compared.
    counts = Counter(itertools.chain.from_iterable(said.values()))
    by_position = {key[0]: key for key, count in sorted(counts.items(), reverse=True) if count > 1}
    shared = list(by_position.values())
    found |= {"authors": sorted(said), "n": len(shared), "value": None, "interval": None, "statistic": None}
    if not shared:
        return {**found, "because": "No sample that was drawn at random was labelled by two people."}
    columns = [[answers.get(key) for key in sorted(shared)] for _, answers in sorted(said.items())]
    if len(columns) == 2:
        kappa = cohen_kappa(*columns)
        why = None if kappa.value is not None else "Both gave one same answer throughout, so kappa is undefined."
        return {
            **found,
            "statistic": "kappa",
            "value": kappa.value,
            "interval": interval_ends(kappa.interval),
            "because": why,
        }
    alpha = annotator_alpha(columns, replicates=BootstrapSettings().replicates, seed=0)
    why = None
    if alpha.estimate is None:
        one = len(shared) > 1
        why = "All gave one same answer throughout" if one else "Only one sample was labelled by two people"
        why += ", so alpha is undefined."
    return {
        **found,
        "statistic": "alpha",
        "value": alpha.estimate,
        "interval": interval_ends(alpha.ci),
        "because": why,
    }


# How labels leave: the media type, the ending of the file, and its bytes.
EXPORTS: Mapping[str, tuple[str, str, Callable[[OpenedRun], bytes]]] = {
    "csv": ("text/csv", "csv", lambda run: labels_csv(run.store, run.row).encode()),
    "votes": (
        "application/json",
        "json",
        lambda run: msgspec.json.encode(labelled_votes(run.store, run.row).to_dict()),
    ),
}
