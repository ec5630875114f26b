"""What is wrong with criteria taken together: those that say the same, and weights that decide alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from deemster.rubrics._vague_words import words
from deemster.rubrics.criterion import Criterion
from deemster.rubrics.wording_check import Remark

DOMINANT: Final = 0.5
# A rubric of fewer criteria is a question or two; it need not name issues, nor share its weight.
SMALL: Final = 3
_BEGINNING: Final = 4
_WORD: Final = re.compile(r"\w+")
_EMPTY: Final = words(
    "a an the and or of to in on for by with is are be it its that this at as from answer response submission text "
    "does do has have not no each every all"
)


class Likeness(NamedTuple):
    """How alike texts are, and from where on they say the same.

    Attributes:
        measure: Gives the likeness of every pair of texts, a square of numbers.
        threshold: The likeness from which on two requirements may overlap.
        rest: The likeness that what is left of them without their common words must have too: `the risk of the drug`
            and `the benefit of the drug` are alike, and ask for different things.
    """

    measure: Callable[[Sequence[str]], Sequence[Sequence[float]]]
    threshold: float
    rest: float

    def overlap(self, one: str, other: str) -> bool:
        """Whether what is left of two texts without their common words is nothing, or alike too."""
        left, right = _apart(one, other), _apart(other, one)
        return not left or not right or self.measure([left, right])[0][1] >= self.rest


def _apart(text: str, other: str) -> str:
    """The words of a text whose beginning no word of the other has; inflections begin alike.

    >>> _apart("Cites the source of a claim.", "The cited source is named.")
    'claim'
    """
    known = {word[:_BEGINNING] for word in _words(other)}
    return " ".join(word for word in _words(text) if word[:_BEGINNING] not in known)


def _words(text: str) -> list[str]:
    return [word for word in _WORD.findall(text.casefold()) if len(word) > 1 and word not in _EMPTY]


def word_overlap(texts: Sequence[str]) -> list[list[float]]:
    """The share of words that two texts have in common: twice the common ones over all, without empty words.

    It is 1 for the same words in any order and 0 for none in common or none at all. Words count as the same that begin
    alike, for inflections do.

    >>> word_overlap(["Cites a source.", "A source of a claim is cited.", "Is polite."])[0]
    [1.0, 0.8, 0.0]
    """
    bags = [{word[:_BEGINNING] for word in _words(text)} for text in texts]
    return [[_dice(one, other) for other in bags] for one in bags]


def _dice(one: set[str], other: set[str]) -> float:
    return 2 * len(one & other) / (len(one) + len(other)) if one or other else 0.0


WORDS: Final = Likeness(word_overlap, threshold=0.7, rest=0.25)


def overlaps(criteria: Sequence[Criterion], likeness: Likeness) -> Iterator[tuple[int, Remark]]:
    """Criteria that repeat an earlier one, word for word or in meaning, by their place."""
    texts = [" ".join(_WORD.findall(criterion.requirement.casefold())) for criterion in criteria]
    alike = likeness.measure([criterion.requirement for criterion in criteria])
    for place, criterion in enumerate(criteria):
        if texts[place] in texts[:place]:
            first = texts.index(texts[place])
            message = f"The requirement is that of `{criteria[first].name}`, word for word: it is scored twice."
            yield place, Remark("duplicate", message, "Drop one of the two, and add its weight to the other.")
            continue
        near = [other for other in range(place) if alike[place][other] >= likeness.threshold]
        near = [other for other in near if likeness.overlap(criterion.requirement, criteria[other].requirement)]
        if near:
            most = max(near, key=lambda other: alike[place][other])
            message = f"`{criterion.name}` and `{criteria[most].name}` ask for much the same (likeness "
            message += f"{alike[place][most]:.2f}): a submission is scored twice for one thing."
            yield place, Remark("overlap", message, "Join them, or say in each what the other leaves out.")


def weights(criteria: Sequence[Criterion]) -> Iterator[tuple[int, Remark]]:
    """Weights of 0 on what gates nothing, and weights that outweigh all others, by the place of the criterion."""
    positive = sum(criterion.weight for criterion in criteria if criterion.weight > 0)
    many = sum(criterion.weight > 0 for criterion in criteria)
    for place, criterion in enumerate(criteria):
        if criterion.weight == 0 and not criterion.fatal:
            message = "A weight of 0 is reported and not scored."
            yield place, Remark("zero-weight", message, "Give it a weight, or `fatal: true` where it is a gate.")
        elif many >= SMALL - 1 and criterion.weight > DOMINANT * positive:
            share = criterion.weight / positive
            message = f"`{criterion.name}` holds {share:.0%} of the positive weight: it decides alone."
            yield place, Remark("dominant-weight", message, "Divide it into criteria, or lower its weight.")


def lacks_issues(criteria: Sequence[Criterion]) -> Remark | None:
    """A remark where a rubric rewards and never takes away; None where it does, or is too small to need it."""
    if len(criteria) < SMALL or any(criterion.weight < 0 or criterion.fatal for criterion in criteria):
        return None
    message = "No criterion has a negative weight: what is wrong in a submission costs nothing."
    advice = "Name the issues that matter (a claim made up, padding, a refusal), each with a negative weight."
    return Remark("no-negative", message, advice)
