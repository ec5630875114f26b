"""Splits a labelled dataset into a training part and a held-out part."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import NamedTuple

from deemster.datasets.label_codebook import Codebook
from deemster.datasets.rubric_dataset import RubricDataset
from deemster.errors import DatasetError, Issue, list_names
from deemster.judges.grading_case import GradingCase, make_case
from deemster.rubrics.rubric_definition import Rubric


class DatasetPart(NamedTuple):
    """One part of a dataset.

    Attributes:
        cases: Its items as judges see them.
        truths: The code of every label of every item, or its number; `MISSING` where there is none.
        reasons: Why, for every criterion, where people say so.
        clusters: The cluster of every item; None where every item stands for itself.
        task: What the submissions' authors were asked to do, where all were asked the same.
    """

    cases: tuple[GradingCase, ...]
    truths: tuple[tuple[int | float, ...], ...]
    reasons: tuple[tuple[str | None, ...], ...]
    clusters: tuple[Hashable, ...] | None
    task: str | None


def split_train_test(
    rubric: Rubric, dataset: RubricDataset, *, train: float, cluster: str | None, seed: int
) -> tuple[DatasetPart, DatasetPart]:
    """Split a dataset into a training part and a held-out part; no cluster is in both.

    Items without a label are left out.

    Args:
        rubric: What the items are judged by.
        dataset: The items and people's labels.
        train: Which share of the items, or how many, the first part has.
        cluster: The key of the metadata that names an item's cluster.
        seed: What the choice derives from.

    Raises:
        DatasetError: The labels are not about this rubric, there are too few, or an item belongs to no cluster.
    """
    if issues := list(_issues(rubric, dataset)):
        raise DatasetError(issues)
    labelled = [
        item
        for item, truth in zip(dataset.items, dataset.truths, strict=True)
        if any(label is not None for label in truth or ())
    ]
    if len(labelled) < 2:
        raise DatasetError(f"At least two items need people's labels, and {len(labelled)} of the dataset has them.")
    known = RubricDataset(
        labelled,
        name=dataset.name,
        prompt=dataset.prompt,
        rubric=rubric,
        reference_submission=dataset.reference_submission,
    )
    first, second = known.split(train, cluster=cluster, seed=seed)
    return _dataset_part(first, cluster), _dataset_part(second, cluster)


def _issues(rubric: Rubric, dataset: RubricDataset) -> Iterator[Issue]:
    for item in dataset.items:
        if item.rubric is not None:
            message = "The item has a rubric of its own; a rubric is improved by items that are all judged by it."
            yield Issue(message, None, item.id)
    theirs = dataset.rubric
    if theirs is None:
        return
    if theirs.names != rubric.names:
        message = f"The labels of the dataset are about the criteria {list_names(theirs.names)}, "
        yield Issue(f"{message}and the rubric has {list_names(rubric.names)}; both need the same, in one order.")
        return
    for mine, other in zip(rubric.criteria, theirs.criteria, strict=True):
        if mine.options != other.options or mine.kind != other.kind:
            yield Issue(f"The options of `{mine.name}` are not those that the dataset's labels are about.")


def _dataset_part(part: RubricDataset, cluster: str | None) -> DatasetPart:
    book = Codebook(part.rubrics[0])
    none = [None] * len(book)
    cases = tuple(make_case(part, position) for position in range(len(part)))
    tasks = {case.prompt for case in cases}
    return DatasetPart(
        cases=cases,
        truths=tuple(tuple(book.cells(truth or none)) for truth in part.truths),
        reasons=tuple(tuple(item.ground_truth_reasons or ()) for item in part.items),
        clusters=None if cluster is None else tuple(_cluster(item.metadata[cluster]) for item in part.items),
        task=tasks.pop() if len(tasks) == 1 else None,
    )


def _cluster(name: object) -> Hashable:
    # 1 and true are one key of a dict and two clusters.
    return type(name) is bool, str(name)
