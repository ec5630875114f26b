"""What is wrong with the options of a criterion."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from deemster.formats.json_values import Path
from deemster.rubrics.criterion import Criterion
from deemster.rubrics.wording_check import Remark

FEWEST: Final = 3
MOST: Final = 7
# A step twice as wide as another is a decision or a mistake; below that it is rounding, as in 0.33 and 0.67.
_UNEVEN: Final = 2.0
_NUMBER: Final = re.compile(
    r"\W*(?:\d+(?:[.,]\d+)?|[ivx]+|[a-e]|(?:level|score|grade|step|tier) *\d+)\W*", re.IGNORECASE
)
_CONDITIONAL: Final = re.compile(
    r"\b(?:if|when|where|whenever|any|in case|as applicable|if applicable)\b", re.IGNORECASE
)


class Spot(NamedTuple):
    """A remark, and where in the criterion it belongs."""

    path: Path
    remark: Remark


def scale_remarks(criterion: Criterion) -> Iterator[Spot]:
    """What is wrong with the options of a criterion; nothing of a binary one."""
    if not criterion.options:
        return
    if criterion.kind == "ordinal":
        yield from _levels(criterion)
        yield from _anchors(criterion)
        yield from _steps(criterion)
    yield from _ends(criterion)
    if criterion.na_option_index is None and _CONDITIONAL.search(criterion.requirement):
        message = "The requirement holds only sometimes, and no option says that it does not."
        yield Spot(("options",), Remark("no-na-option", message, "Add an option with `na: true`."))


def _levels(criterion: Criterion) -> Iterator[Spot]:
    levels = len(criterion.scored)
    if levels < FEWEST:
        advice = "Drop the options: a binary criterion says the same. Or add a level between."
        yield Spot(("options",), Remark("few-levels", f"A scale of {levels} levels is no scale.", advice))
    elif levels > MOST:
        message = f"A scale of {levels} levels asks for differences that judges do not see."
        yield Spot(("options",), Remark("many-levels", message, f"Use {FEWEST} to {MOST} levels, each described."))


def _anchors(criterion: Criterion) -> Iterator[Spot]:
    bare = [code for code in criterion.scored if code < len(criterion.options)]
    numbers = [code for code in bare if _NUMBER.fullmatch(criterion.options[code].label)]
    words = [code for code in bare if code not in numbers and len(criterion.options[code].label.split()) == 1]
    for code in numbers:
        message = f"The label `{criterion.options[code].label}` says nothing about what earns it."
        yield Spot(("options", code, "label"), Remark("bare-number", message, "Describe what a submission at it does."))
    # One plain word among sentences (`none`) is told by the others.
    if words and len(words) * 2 > len(criterion.scored):
        labels = ", ".join(f"`{criterion.options[code].label}`" for code in words)
        message = f"The labels {labels} are single words: where one ends and the next begins is left to each judge."
        advice = "Add to each label what a submission at it does, for instance `fair: one of three causes explained`."
        yield Spot(("options",), Remark("bare-label", message, advice))


def _steps(criterion: Criterion) -> Iterator[Spot]:
    values = sorted(value for value in criterion.values if value is not None)
    steps = [high - low for low, high in pairwise(values) if high > low]
    if len(steps) > 1 and max(steps) >= _UNEVEN * min(steps):
        shown = ", ".join(f"{value:g}" for value in values)
        message = f"The values {shown} are not evenly spaced; a panel's mean leans towards the crowded end."
        advice = "Space them evenly, or aggregate by `median` or `mode`."
        yield Spot(("options",), Remark("uneven-scale", message, advice))


def _ends(criterion: Criterion) -> Iterator[Spot]:
    values = [value for value in criterion.values if value is not None]
    if criterion.weight > 0 and max(values) < 1:
        message = f"The best option is worth {max(values):g}: no submission can earn the whole weight."
        yield Spot(("options",), Remark("open-scale", message, "Give the best option the value 1."))
