"""What the viewer says of all labels of a run, and the files in which they leave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from deemster.calibration.label_agreement import label_agreement
from deemster.calibration.people_labels import LabelTask, label_tasks, labelled_votes, labels_csv
from deemster.store import LabelFacts
from deemster.view.label_needs import needed_labels
from deemster.view.label_shapes import Author, LabelOverview
from deemster.view.opened_run import OpenedRun


def label_overview(run: OpenedRun) -> LabelOverview:
    """Who labelled a run, how far they agree, and how many more labels would decide something.

    Args:
        run: The run.

    Raises:
        ReportError: The run cannot be labelled.
        StoreError: The store fails.
    """
    labels = run.store.labels(run.row.id)
    labelled = {(label.metric, label.criterion) for label in labels}
    tasks = [task for task in label_tasks(run.store, run.row) if task.key in labelled]
    counts = Counter(label.author for label in labels)

    return LabelOverview(
        authors=[Author(name, count) for name, count in sorted(counts.items())],
        agreement=list(_agreement(tasks, labels)),
        needed=needed_labels(run, tasks, labels),
    )


def _agreement(tasks: Sequence[LabelTask], labels: Sequence[LabelFacts]) -> Iterator[dict[str, Any]]:
    for task in tasks:
        agreement = label_agreement(label for label in labels if (label.metric, label.criterion) == task.key)
        yield {"title": task.title, **msgspec.structs.asdict(agreement)}


# How labels leave: the media type, the ending of the file, and its bytes.
EXPORTS: Mapping[str, tuple[str, str, Callable[[OpenedRun], bytes]]] = {
    "csv": ("text/csv", "csv", lambda run: labels_csv(run.store, run.row).encode()),
    "votes": (
        "application/json",
        "json",
        lambda run: msgspec.json.encode(labelled_votes(run.store, run.row).to_dict()),
    ),
}
