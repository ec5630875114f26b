"""Whether a judge may stand in for a person, and what the judges say where no person is asked."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from pathlib import Path

import numpy as np

from deemster.alignment._human_agreement import people
from deemster.alignment._labelled_votes import Codes, Graded, panel
from deemster.alignment._verdict_classes import Classes, Modes, classes_by_column
from deemster.alignment.metrics_result import Mode
from deemster.datasets import RubricDataset, Votes
from deemster.errors import InputError, counted, did_you_mean, visible
from deemster.stats.alternative_annotator_test import AlternativeAnnotator, alternative_annotator_test
from deemster.stats.dawid_skene import DawidSkene, dawid_skene

_FEWEST = 3


def annotator_tests(
    result: Votes | Graded | str | Path,
    dataset: RubricDataset | str | Path | None = None,
    *,
    judge: str | None = None,
    epsilon: float = 0.2,
    q: float = 0.05,
    min_items: int = 30,
    cannot_assess: Mode = "exclude",
    na_mode: Mode = "exclude",
) -> dict[str, AlternativeAnnotator]:
    """The alternative annotator test of each criterion: does a judge agree with people as well as they do?

    Ordinal criteria are compared by the values of their options, others by equality.

    Args:
        result: Votes, a grading, or the path of a votes file.
        dataset: Where the annotations come from; None where the votes carry them.
        judge: Who is tested; None tests the final verdicts of the panel.
        epsilon: How much worse than a person the judge may be, as it is cheaper.
        q: The false discovery rate over annotators.
        min_items: The fewest items an annotator is tested on.
        cannot_assess: What an abstention counts as on binary criteria.
        na_mode: What an abstention counts as on multi-choice criteria.

    Raises:
        InputError: There are fewer than three annotators, there is no such judge, or the votes cannot be used.
        ValueError: An option is out of range.

    Reference: N. Calderon, R. Reichart, R. Dror, The alternative annotator test for LLM-as-a-judge, arXiv:2501.10970
    (2025).
    """
    whole = panel(result, dataset)
    classes = classes_by_column(whole.columns, Modes(cannot_assess, na_mode))
    if judge is not None and judge not in whole.judges:
        known = did_you_mean(judge, whole.judges)
        raise InputError(f"There is no judge {visible(judge, limit=60)!r} among the votes. {known}")
    known_people = people(whole)
    if len(known_people.names) < _FEWEST:
        found = counted(len(known_people.names), "annotator")
        raise InputError(f"The alternative annotator test needs three annotators; {found} labelled these items.")
    tests = {}
    for column, kinds in zip(whole.columns, classes, strict=True):
        labels = _numbers(kinds)
        said = column.final if judge is None else column.votes[:, whole.judges.index(judge)]
        persons = kinds.of(known_people.labels[column.index], column.worst)
        tests[column.name] = alternative_annotator_test(
            labels(kinds.of(said, column.worst)),
            {name: labels(persons[:, place]) for place, name in enumerate(known_people.names)},
            ordinal=kinds.kind == "ordinal",
            epsilon=epsilon,
            q=q,
            min_items=min_items,
        )
    return tests


def latent_truth(
    result: Votes | Graded | str | Path,
    dataset: RubricDataset | str | Path | None = None,
    *,
    cannot_assess: Mode = "exclude",
    na_mode: Mode = "exclude",
) -> dict[str, DawidSkene]:
    """What the judges' votes alone say about the truth and about each judge, criterion by criterion (Dawid, Skene).

    Beside the measured accuracies it tells whether the panel could have known its weak judges without any label.

    Args:
        result: Votes, a grading, or the path of a votes file.
        dataset: Where the truth comes from, which decides which items are used; None where the votes carry it.
        cannot_assess: What an abstention counts as on binary criteria.
        na_mode: What an abstention counts as on multi-choice criteria.

    Raises:
        InputError: The votes cannot be used.

    Reference: A. P. Dawid, A. M. Skene, Applied Statistics 28 (1979).
    """
    whole = panel(result, dataset)
    classes = classes_by_column(whole.columns, Modes(cannot_assess, na_mode))
    found = {}
    for column, kinds in zip(whole.columns, classes, strict=True):
        names = (*kinds.labels, None)
        votes: dict[Hashable, dict[Hashable, str | None]] = {
            whole.ids[row]: {judge: names[place] for judge, place in zip(whole.judges, said, strict=True)}
            for row, said in zip(column.rows.tolist(), kinds.of(column.votes, column.worst).tolist(), strict=True)
        }
        found[column.name] = dawid_skene(votes, classes=kinds.labels)
    return found


def _numbers(classes: Classes) -> Callable[[Codes], list[float]]:
    """From classes to what is compared, NaN for none: values on a scale, else the class itself."""
    ordinal = classes.kind == "ordinal"
    worth = [value if ordinal else float(place) for place, value in enumerate(classes.values)]
    table = np.array([*worth, None], dtype=np.float64)
    return lambda found: table[found].tolist()
