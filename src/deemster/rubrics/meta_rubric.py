"""The rubric by which a judge examines rubrics, and how one is shown to it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Final, Literal, NamedTuple, TypeAlias

from deemster.rubrics.criterion import Criterion
from deemster.rubrics.rubric_definition import Rubric

Part: TypeAlias = Literal["criterion", "options", "whole"]
PREFIX: Final = "judged-"
# What is worth a look, and does not cost agreement by itself.
HINTS: Final = frozenset({"neutral", "separating"})
# What a judge says of a rubric that does not meet a requirement of the meta-rubric.
MEANING: Final[dict[str, str]] = {
    "decidable": "it cannot be decided from the submission alone",
    "single": "more than one thing is asked for",
    "bounded": "where the line is stays open",
    "defined": "a word on which the verdict hangs has no fixed meaning",
    "neutral": "the wording hints at a verdict",
    "distinct": "two options cannot be told apart",
    "exhaustive": "some submissions fit no option",
    "disjoint": "two criteria look at the same property",
    "consistent": "no submission can fulfil all criteria",
    "separating": "an answer beside the point keeps too many points",
}
# What to do where a requirement of the meta-rubric is not met.
ADVICE: Final[dict[str, str]] = {
    "decidable": "Ask for what the submission itself shows, or put the missing fact into the requirement.",
    "single": "Make a criterion of each part, or an ordinal one that counts how many are fulfilled.",
    "bounded": "Say what must stand in the text, how often or how exactly, for the criterion to be met.",
    "defined": "Say in the requirement what the word means, or use one that needs no definition.",
    "neutral": "Describe the submission, and leave the verdict out of the wording.",
    "distinct": "Give each option something that the next one lacks and that can be pointed at.",
    "exhaustive": "Word the options so that one begins where the other ends.",
    "disjoint": "Join the two criteria, or say in each what the other leaves out.",
    "consistent": "Say which of the two goes before the other, or drop one.",
    "separating": "Add a criterion that a bad submission fails, or give one that it fails more weight.",
}


def meta_rubric(*parts: Part) -> Rubric:
    """The criteria by which a judge examines some part of a rubric.

    Args:
        parts: What is examined: a `criterion`, its `options`, or the `whole` rubric.

    >>> meta_rubric("whole").names
    ('disjoint', 'consistent', 'separating')
    """
    every = _meta()
    chosen = tuple(criterion for section in every.sections if section.name in parts for criterion in section.criteria)
    return Rubric(chosen, guidelines=every.guidelines, name=every.name, version=every.version)


@cache
def _meta() -> Rubric:
    text = files(__package__).joinpath("meta.yaml").read_text(encoding="utf-8")
    return Rubric.parse(text, format="yaml")


class Exam(NamedTuple):
    """Something that a judge is shown of a rubric.

    Attributes:
        place: The place of the criterion; None for the whole rubric.
        text: What the judge reads.
        rubric: The criteria of the meta-rubric that it answers.
    """

    place: int | None
    text: str
    rubric: Rubric


def exams(rubric: Rubric) -> Iterator[Exam]:
    """What a judge is shown of a rubric: the whole where there are two criteria or more, and each that a judge answers.

    A criterion that a metric answers is read by no judge.
    """
    if len(rubric.criteria) > 1:
        listed = "\n\n".join(_describe(criterion) for criterion in rubric.criteria)
        yield Exam(None, _add_head("A whole rubric.", rubric, listed), meta_rubric("whole"))
    for place, criterion in enumerate(rubric.criteria):
        if criterion.check is None:
            parts: tuple[Part, ...] = ("criterion", "options") if criterion.options else ("criterion",)
            yield Exam(
                place, _add_head("One criterion of a rubric.", rubric, _describe(criterion)), meta_rubric(*parts)
            )


def _add_head(head: str, rubric: Rubric, body: str) -> str:
    guidelines = [] if rubric.guidelines is None else [f"Guidelines that go with every criterion:\n{rubric.guidelines}"]
    return "\n\n".join([head, *guidelines, body])


def _describe(criterion: Criterion) -> str:
    r"""A criterion as a person reads it.

    >>> _describe(Criterion("Names the author.", name="author", weight=-2))
    'Criterion `author`: a fault, which takes away 2 points.\nNames the author.'
    """
    points = f"{abs(criterion.weight):g} points"
    worth = f"a fault, which takes away {points}" if criterion.weight < 0 else f"worth {points}"
    fatal = " A submission that fails it gets no points at all." if criterion.fatal else ""
    answered = "" if criterion.check is None else f" Answered by the metric {criterion.check.metric}, not by a reader."
    lines = [f"Criterion `{criterion.name}`: {worth}.{fatal}{answered}", criterion.requirement]
    if criterion.options:
        scale = "Options, one of which is chosen" if criterion.kind == "nominal" else "Options, steps of one scale"
        lines.append(f"{scale}:")
        lines += [_option(criterion, code) for code in range(len(criterion.options))]
    return "\n".join(lines)


def _option(criterion: Criterion, code: int) -> str:
    value = criterion.values[code]
    return f"- {criterion.labels[code]} ({'no verdict' if value is None else f'value {value:g}'})"
