"""Rules about the options of a criterion: how many, how they are labelled, and what they are worth."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from deemster.formats.json_values import Path
from deemster.rubrics.criterion import Criterion

FEWEST_LEVELS: Final = 3
MOST_LEVELS: Final = 7
# A step twice as wide as another is a decision or a mistake; below that it is rounding, as in 0.33 and 0.67.
_UNEVEN: Final = 2.0
_NUMBER: Final = re.compile(r"\W*(?:\d+(?:[.,]\d+)?|[ivx]+|[a-e]|(?:level|score|grade|step) *\d+)\W*", re.IGNORECASE)
_CONDITIONAL: Final = re.compile(
    r"\A(?:if|when|where|whenever)\b|\b(?:if|where|when) (?:any|applicable)\b", re.IGNORECASE
)


class ScaleIssue(NamedTuple):
    """What a rule found in the options, and the path to it from the criterion."""

    path: Path
    code: str
    message: str


def scale_issues(criterion: Criterion) -> Iterator[ScaleIssue]:
    """Find what is wrong with the options of a criterion; a binary criterion has none."""
    if not criterion.options:
        return
    if criterion.kind == "ordinal":
        yield from _levels(criterion)
        yield from _labels(criterion)
        yield from _steps(criterion)
    best = max(value for value in criterion.values if value is not None)
    if criterion.weight > 0 and best < 1:
        message = f"The best option is worth {best:g}: no submission can earn the whole weight."
        yield ScaleIssue(("options",), "open-scale", message)
    if criterion.na_option_index is None and _CONDITIONAL.search(criterion.requirement):
        message = "The requirement holds only sometimes, and no option says that it does not."
        yield ScaleIssue(("options",), "no-na-option", message)


def _levels(criterion: Criterion) -> Iterator[ScaleIssue]:
    levels = len(criterion.scored)
    if levels < FEWEST_LEVELS:
        yield ScaleIssue(("options",), "few-levels", f"A scale of {levels} levels is no scale.")
    elif levels > MOST_LEVELS:
        message = f"A scale of {levels} levels asks for differences that judges do not see."
        yield ScaleIssue(("options",), "many-levels", message)


def _labels(criterion: Criterion) -> Iterator[ScaleIssue]:
    labels = {code: criterion.options[code].label for code in criterion.scored if code < len(criterion.options)}
    single = []
    for code, label in labels.items():
        if _NUMBER.fullmatch(label):
            message = f"The label `{label}` says nothing about what earns it."
            yield ScaleIssue(("options", code, "label"), "bare-number", message)
        elif len(label.split()) == 1:
            single.append(f"`{label}`")
    # One plain word among sentences, such as `none`, is explained by the others.
    if len(single) * 2 > len(labels):
        message = f"The labels {', '.join(single)} are single words: each judge decides where one ends."
        yield ScaleIssue(("options",), "bare-label", message)


def _steps(criterion: Criterion) -> Iterator[ScaleIssue]:
    values = sorted(value for value in criterion.values if value is not None)
    steps = [high - low for low, high in pairwise(values) if high > low]
    if len(steps) > 1 and max(steps) >= _UNEVEN * min(steps):
        shown = ", ".join(f"{value:g}" for value in values)
        message = f"The values {shown} are not evenly spaced; a panel's mean leans towards the crowded end."
        yield ScaleIssue(("options",), "uneven-scale", message)
