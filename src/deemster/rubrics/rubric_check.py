"""Checks a rubric for what makes judges disagree, by simple rules and without a model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from deemster.formats import Document
from deemster.formats.json_values import Path, pointer
from deemster.rubrics._wording_rules import wording_issues
from deemster.rubrics.criterion import Criterion
from deemster.rubrics.rubric_definition import Rubric
from deemster.rubrics.rubric_format import default_name
from deemster.rubrics.rubric_reader import criterion_paths

Severity = Literal["warning", "hint"]
FEWEST_LEVELS: Final = 3
MOST_LEVELS: Final = 7
# A step twice as wide as another is a decision or a mistake; below that it is rounding, as in 0.33 and 0.67.
_UNEVEN: Final = 2.0
_BARE_NUMBER: Final = re.compile(
    r"\W*(?:\d+(?:[.,]\d+)?|[ivx]+|[a-e]|(?:level|score|grade|step) *\d+)\W*", re.IGNORECASE
)
_CONDITIONAL: Final = re.compile(
    r"\A(?:if|when|where|whenever)\b|\b(?:if|where|when) (?:any|applicable)\b", re.IGNORECASE
)
# The path to something wrong, from the criterion; the code of the rule; the message.
_Found: TypeAlias = tuple[Path, str, str]


class CheckRule(NamedTuple):
    """A rule of the check: a warning is likely to cost agreement, a hint is worth a look."""

    severity: Severity
    suggestion: str


RULES: Final[dict[str, CheckRule]] = {
    "vague-word": CheckRule("warning", "Say what a judge must see in the text for it to count."),
    "double-barrelled": CheckRule("warning", "Make it two criteria, or an ordinal one that counts how many are met."),
    "double-negative": CheckRule("warning", "Say what the submission does."),
    "negated-fault": CheckRule("warning", "Turn it round: ask for what should be there, with a positive weight."),
    "negated": CheckRule("hint", "Ask for the fault itself, with a negative weight."),
    "outside-knowledge": CheckRule(
        "warning", "Write the facts that count into the requirement, the guidelines or the reference."
    ),
    "long-requirement": CheckRule("hint", "Ask for one thing, and move what holds for all to `guidelines`."),
    "duplicate": CheckRule("warning", "Drop one of the two, and add its weight to the other."),
    "overlap": CheckRule("warning", "Join them, or say in each what the other leaves out."),
    "no-negative": CheckRule(
        "hint", "Name the faults that matter (a claim made up, padding, a refusal), each with a negative weight."
    ),
    "dominant-weight": CheckRule("warning", "Divide it into criteria, or lower its weight."),
    "zero-weight": CheckRule("hint", "Give it a weight, or `fatal: true` where it is a gate."),
    "bare-number": CheckRule("warning", "Describe what a submission at it does."),
    "bare-label": CheckRule(
        "hint", "Add to each label what a submission at it does, for instance `fair: one of three causes explained`."
    ),
    "listed-order": CheckRule("warning", "Say the order by `order`, lowest first, or mend the values."),
    "few-levels": CheckRule("warning", "Drop the options: a binary criterion says the same. Or add a level between."),
    "many-levels": CheckRule("warning", f"Use {FEWEST_LEVELS} to {MOST_LEVELS} levels, each described."),
    "uneven-scale": CheckRule("hint", "Space them evenly, or aggregate by `median` or `mode`."),
    "open-scale": CheckRule("warning", "Give the best option the value 1."),
    "no-na-option": CheckRule("hint", "Add an option with `na: true`."),
    "unnamed": CheckRule("hint", "Give it a short `name`."),
}
DOMINANT_SHARE: Final = 0.5
# A smaller rubric is a question or two; it need not name faults, nor share its weight.
SMALL_RUBRIC: Final = 3
# Of ten pairs that say the same, this share of common words finds five; of ten that do not, none (decision 0010).
OVERLAP_SHARE: Final = 0.8
# Inflections of a word begin alike.
_STEM: Final = 4
_WORD: Final = re.compile(r"\w+")
_EMPTY_WORDS: Final = re.compile(
    r"(?:a|an|the|and|or|of|to|in|on|for|by|with|is|are|be|it|its|that|this|at|as|from|does|do|has|have|not|no|each"
    r"|every|all|answer|response|submission|text)"
)


class RubricIssue(msgspec.Struct, frozen=True):
    """Something in a rubric that judges are likely to read differently.

    Attributes:
        code: The rule that found it: one of `RULES`, or `judged-` and a criterion of the meta-rubric.
        severity: `warning` or `hint`.
        where: The place as `file:line`; None for a rubric from memory.
        path: The keys and positions to it, such as `criteria[2].requirement`.
        message: What is wrong.
        suggestion: What to do.
    """

    code: str
    severity: Severity
    where: str | None
    path: str
    message: str
    suggestion: str


def check_rubric(rubric: Rubric, *, document: Document | None = None) -> tuple[RubricIssue, ...]:
    """Find what is likely to make judges disagree; the issues of the whole rubric come first, then each criterion's.

    Args:
        rubric: The rubric.
        document: The file it was read from, for places.

    >>> [issue.code for issue in check_rubric(Rubric.parse("- {name: tone, requirement: The tone is nice.}"))]
    ['vague-word']
    """
    return tuple(
        RubricIssue(
            code=code,
            severity=RULES[code].severity,
            where=None if document is None else document.where(path),
            path=pointer(path),
            message=message,
            suggestion=suggestion or RULES[code].suggestion,
        )
        for path, code, message, suggestion in _find_issues(rubric, document)
    )


def _find_issues(rubric: Rubric, document: Document | None) -> Iterator[tuple[Path, str, str, str | None]]:
    criteria = rubric.criteria
    if len(criteria) >= SMALL_RUBRIC and not any(each.weight < 0 or each.fatal for each in criteria):
        message = "No criterion has a negative weight: what is wrong in a submission costs nothing."
        yield (), "no-negative", message, None
    for place, path in enumerate(criteria_paths(rubric, document)):
        criterion = criteria[place]
        if not _has_name(criterion, place, path, document):
            message = f"The criterion has no name: reports call it `{criterion.name}`, and its number may change."
            yield path, "unnamed", message, None
        for found in wording_issues(criterion):
            yield (*path, "requirement"), *found
        for code, message in _repetition(criterion, criteria[:place]):
            yield (*path, "requirement"), code, message, None
        for code, message in _weight(criterion, criteria):
            yield (*path, "weight"), code, message, None
        for rest, code, message in _scale_issues(criterion):
            yield (*path, *rest), code, message, None


def _has_name(criterion: Criterion, place: int, path: Path, document: Document | None) -> bool:
    """Tell whether the author gave a name; a rubric from memory shows it only by the name itself."""
    if document is None:
        return criterion.name != default_name(place)
    raw: Any = document.value
    for step in path:
        raw = raw[step]
    return bool(raw.get("name"))


def _repetition(criterion: Criterion, earlier: Sequence[Criterion]) -> Iterator[tuple[str, str]]:
    words = _WORD.findall(criterion.requirement.casefold())
    for other in earlier:
        if words == _WORD.findall(other.requirement.casefold()):
            yield "duplicate", f"The requirement is that of `{other.name}`, word for word: it is scored twice."
            return
    for other in earlier:
        if word_overlap(criterion.requirement, other.requirement) >= OVERLAP_SHARE:
            message = f"`{criterion.name}` and `{other.name}` use the same words: one thing may be scored twice."
            yield "overlap", message
            return


def word_overlap(one: str, other: str) -> float:
    """The share of the shorter text's words that the longer one has too, without empty words.

    >>> word_overlap("Cites a source.", "A source of a claim is cited."), word_overlap("Is polite.", "Cites a source.")
    (1.0, 0.0)
    """
    left, right = _stems(one), _stems(other)
    return len(left & right) / min(len(left), len(right)) if left and right else 0.0


def _stems(text: str) -> set[str]:
    words = (word for word in _WORD.findall(text.casefold()) if len(word) > 1 and not _EMPTY_WORDS.fullmatch(word))
    return {word[:_STEM] for word in words}


def _weight(criterion: Criterion, criteria: Sequence[Criterion]) -> Iterator[tuple[str, str]]:
    positive = [each.weight for each in criteria if each.weight > 0]
    if criterion.weight == 0 and not criterion.fatal:
        yield "zero-weight", "A weight of 0 is reported and not scored."
    elif len(positive) >= SMALL_RUBRIC and criterion.weight > DOMINANT_SHARE * sum(positive):
        share = criterion.weight / sum(positive)
        yield "dominant-weight", f"`{criterion.name}` holds {share:.0%} of the positive weight: it decides alone."


def _scale_issues(criterion: Criterion) -> Iterator[_Found]:
    """Find what is wrong with the options of a criterion; a binary criterion has none."""
    if not criterion.options:
        return
    if criterion.kind == "ordinal":
        if criterion.is_in_listed_order:
            message = "The values neither rise nor fall from option to option: the options count as they are listed."
            yield ("options",), "listed-order", message
        yield from _levels(criterion)
        yield from _labels(criterion)
        yield from _steps(criterion)
    best = max((value for value in criterion.values if value is not None), default=1.0)
    if criterion.weight > 0 and best < 1:
        message = f"The best option is worth {best:g}: no submission can earn the whole weight."
        yield ("options",), "open-scale", message
    if criterion.na_option_index is None and _CONDITIONAL.search(criterion.requirement):
        message = "The requirement holds only sometimes, and no option says that it does not."
        yield ("options",), "no-na-option", message


def _levels(criterion: Criterion) -> Iterator[_Found]:
    levels = len(criterion.scored)
    if levels < FEWEST_LEVELS:
        yield ("options",), "few-levels", f"A scale of {levels} levels is no scale."
    elif levels > MOST_LEVELS:
        message = f"A scale of {levels} levels asks for differences that judges do not see."
        yield ("options",), "many-levels", message


def _labels(criterion: Criterion) -> Iterator[_Found]:
    labels = {code: criterion.options[code].label for code in criterion.scored if code < len(criterion.options)}
    single = []
    for code, label in labels.items():
        if _BARE_NUMBER.fullmatch(label):
            message = f"The label `{label}` says nothing about what earns it."
            yield ("options", code, "label"), "bare-number", message
        elif len(label.split()) == 1:
            single.append(f"`{label}`")
    # One plain word among sentences, such as `none`, is explained by the others.
    if len(single) * 2 > len(labels):
        message = f"The labels {', '.join(single)} are single words: each judge decides where one ends."
        yield ("options",), "bare-label", message


def _steps(criterion: Criterion) -> Iterator[_Found]:
    values = sorted(value for value in criterion.values if value is not None)
    steps = [high - low for low, high in pairwise(values) if high > low]
    if len(steps) > 1 and max(steps) >= _UNEVEN * min(steps):
        listed = ", ".join(f"{value:g}" for value in values)
        message = f"The values {listed} are not evenly spaced; a panel's mean leans towards the crowded end."
        yield ("options",), "uneven-scale", message


def criteria_paths(rubric: Rubric, document: Document | None) -> Sequence[Path]:
    """The path of every criterion: in the file it was read from, or as the writer would write the rubric."""
    return criterion_paths(rubric.to_dict() if document is None else document.value)
