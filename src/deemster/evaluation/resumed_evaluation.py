"""An evaluation that goes on with a stored run: which run it is, what it decides, and what must not have changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from deemster.datasets import Dataset
from deemster.engine.run_plan import Plan
from deemster.evaluation.resolved_evaluation import Evaluation
from deemster.records import Metric
from deemster.report.report_settings import report_facts
from deemster.runs.find_resumed_run import find_resumed
from deemster.runs.run_storage import NotStored, StoredOrNot
from deemster.store import RunRow, Store


class NewRun:
    """What an evaluation goes on with that resumes nothing: its samples and metrics stand as they are given."""

    id: None = None

    def order_samples(self, dataset: Dataset) -> Dataset:
        """The samples as they are given."""
        return dataset

    def order_metrics(self, metrics: Sequence[Metric]) -> tuple[Metric, ...]:
        """The metrics as they are given."""
        return tuple(metrics)


class ResumedRun:
    """The stored run that an evaluation resumes: it decides the order of the samples and of the metrics.

    Args:
        store: Where it is stored.
        row: The run.

    Attributes:
        id: Its id.
    """

    def __init__(self, store: Store, row: RunRow) -> None:
        self._store = store
        self._row = row
        self.id = row.id

    def order_samples(self, dataset: Dataset) -> Dataset:
        """The samples in the order of the run, where that was drawn at random, as earlier versions could.

        Raises:
            StoreError: The run cannot be read.
        """
        if not report_facts(self._row).until_decided:
            return dataset

        ids = [sample.id for sample in self._store.samples(self.id, content=False)]
        part = report_facts(self._row).part
        if part is not None and dataset.part is None:
            dataset = dataset.keep(ids, selection=part.selection or "")
        return dataset.in_order(ids)

    def order_metrics(self, metrics: Sequence[Metric]) -> tuple[Metric, ...]:
        """The metrics in the order of the stored marks. One that the run lacks stands last, and is refused later."""
        columns = {card.name: column for column, card in enumerate(self._row.scorings[0].cards)}
        return tuple(sorted(metrics, key=lambda metric: columns.get(metric.name, len(columns))))


def find_resumed_run(storage: StoredOrNot, *, suite: str | None, dataset: Dataset) -> ResumedRun | NewRun:
    """The stored run that is to be resumed, if one is.

    Args:
        storage: Where it is stored, and what it resumes.
        suite: The suite's name.
        dataset: The samples that are to be run.

    Raises:
        StoreError: The run that is to be resumed is missing, or cannot be read.
    """
    if isinstance(storage, NotStored):
        return NewRun()
    selection = None if dataset.part is None else dataset.part.selection

    def is_alike(row: RunRow) -> bool:
        is_same_part = row.identity.get("part") == selection or report_facts(row).until_decided
        return is_same_part and row.experiment is None

    row = find_resumed(storage, kind="run", suite=suite, dataset=dataset.name, accept=is_alike)
    return NewRun() if row is None else ResumedRun(storage.store, row)


def shape_changes(job: Evaluation, order: str, store: Store, row: RunRow) -> list[str]:
    """What a resumed evaluation must not change, not even with `allow_changed`: samples, metrics, `where`, repetitions.

    Args:
        job: What is to be run.
        order: The digest of the samples' ids in their order.
        store: Where the run is stored.
        row: The run.
    """
    return [
        *_metric_changes(job.plan, row),
        *_repetition_changes(job.plan, row),
        *_sample_changes(job.plan, order, store, row),
    ]


def _metric_changes(plan: Plan, row: RunRow) -> Iterator[str]:
    earlier = {card.name: card for card in row.scorings[0].cards}
    names = [metric.name for metric in plan.metrics]
    if sorted(earlier) != sorted(names):
        change = f"The metrics were {', '.join(earlier)} and are {', '.join(names)}."
        yield f"{change} `deemster run --outputs {row.id} --metric ...` adds metrics to a run."

    for card in plan.cards:
        if card.name in earlier and card.where != earlier[card.name].where:
            yield f"`{card.name}` has another `where`, and applies to other samples."


def _repetition_changes(plan: Plan, row: RunRow) -> Iterator[str]:
    if row.repetitions != plan.repetitions:
        yield f"The repetitions were {row.repetitions} and are {plan.repetitions}."


def _sample_changes(plan: Plan, order: str, store: Store, row: RunRow) -> Iterator[str]:
    if row.identity.get("order") == order:
        return
    ids = zip_longest((stored.id for stored in store.samples(row.id)), (sample.id for sample in plan.dataset))
    if any(stored != given for stored, given in ids):
        yield "The dataset has other samples, or has them in another order."
