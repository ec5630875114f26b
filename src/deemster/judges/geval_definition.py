"""The definition of a G-Eval metric: presets, steps, bands of scores, fields and examples, read and checked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from deemster.errors import ConfigurationError, did_you_mean, list_names, show_value
from deemster.formats.document import Reading
from deemster.formats.schema_validation import NonBlank, decode_shape, plain_value
from deemster.formats.strict_yaml import yaml_document
from deemster.judges.prompt_templates import check_text

FIELDS = ("input", "context", "expected_output", "actual_output")
SHOWN = {
    "input": "the question or request",
    "context": "the passages of the context",
    "expected_output": "the expected answer",
    "actual_output": "the actual answer",
}
MOST_STEPS = 20
MOST_EXAMPLES = 20
HIGHEST = 1000
_SLACK = 1e-9
_Score = Annotated[int, Meta(ge=0, le=HIGHEST)]


class Band(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A band: neighbouring scores with one meaning.

    Attributes:
        range: The least and the greatest of them.
        outcome: What earns one of them.
    """

    range: Annotated[tuple[_Score, _Score], Meta(title="two whole numbers")]
    outcome: NonBlank

    @property
    def numbers(self) -> str:
        """The scores, as a judge reads them.

        >>> Band((1, 3), "poor").numbers, Band((4, 4), "good").numbers
        ('1 to 3', '4')
        """
        low, high = self.range
        return str(low) if low == high else f"{low} to {high}"


_Bands = Annotated[
    tuple[Band, ...],
    Meta(min_length=1, title="a list of bands such as `{range: [1, 3], outcome: what earns it}`"),
]
# The bands say how much of a quality is there, so they serve qualities of either polarity.
TENTHS = (
    Band((0, 0), "The quality is not there at all."),
    Band((1, 3), "There is a little of it; most of the answer lacks it."),
    Band((4, 6), "It is there in part."),
    Band((7, 9), "It is there almost throughout, with a small lapse."),
    Band((10, 10), "It is there throughout, without a lapse."),
)


class GEvalExample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A case with the score it deserves: shown to the judge before its own.

    Attributes:
        score: The score, on the rubric.
        reason: Why.
        input: The question.
        context: The context, as one text.
        expected_output: The expected answer.
        actual_output: The actual answer.
    """

    score: int
    reason: NonBlank
    input: str | None = None
    context: str | None = None
    expected_output: str | None = None
    actual_output: str | None = None


class JudgedQuality(msgspec.Struct, frozen=True, kw_only=True):
    """One quality as a judge is told of it, and the scale of whole numbers that its rubric makes.

    Attributes:
        about: What it is, in a sentence or more.
        steps: What the judge does, in order; None if a model writes them from `about`.
        rubric: What earns which score.
        fields: What the judge is shown.
        higher_is_better: Whether a higher score is the better one.
        info: What else the judge should know.
        examples: Cases with the scores they deserve.
    """

    about: str
    steps: tuple[str, ...] | None
    rubric: tuple[Band, ...]
    fields: tuple[str, ...]
    higher_is_better: bool = True
    info: str | None = None
    examples: tuple[GEvalExample, ...] = ()

    @property
    def low(self) -> int:
        """The least score."""
        return self.rubric[0].range[0]

    @property
    def high(self) -> int:
        """The greatest score."""
        return self.rubric[-1].range[1]

    @property
    def best(self) -> int:
        """The score of what could not be better."""
        return self.high if self.higher_is_better else self.low

    @property
    def worst(self) -> int:
        """The score of what could not be worse."""
        return self.low if self.higher_is_better else self.high

    def normalize(self, value: float) -> float:
        """A value of the rubric brought to [0, 1]: 0 for the least, 1 for the greatest."""
        return (value - self.low) / (self.high - self.low)

    def value(self, score: float) -> float:
        """The value of the rubric that a score in [0, 1] stands for."""
        return self.low + score * (self.high - self.low)

    def nearest_integer(self, score: float) -> int:
        """The whole number of the rubric nearest to a score in [0, 1]; of two equally near ones the higher."""
        # Division may leave a half slightly too small; the slack makes up for it.
        return math.floor(self.value(score) + 0.5 + _SLACK)


class Preset(JudgedQuality, frozen=True, kw_only=True):
    """A ready-made quality.

    Attributes:
        name: How it is called.
        threshold: The pass mark, on the normalised score.
    """

    name: str
    threshold: float


def parse_bands(rubric: Any, *, metric: str) -> tuple[Band, ...]:
    """The bands of a rubric, lowest first.

    Args:
        rubric: A list of maps with a `range` of two whole numbers and an `outcome`.
        metric: The metric it is for.

    Raises:
        ConfigurationError: A band cannot be read, two overlap, a number between two is in none, or there is one number.

    >>> parse_bands([{"range": [2, 3], "outcome": "good"}, {"range": [1, 1], "outcome": "bad"}], metric="m")[0].outcome
    'bad'
    """
    given = decode_shape(plain_value(rubric), _Bands, error=ConfigurationError, path=(metric, "rubric"))
    bands = tuple(sorted((Band(band.range, band.outcome.strip()) for band in given), key=lambda band: band.range))

    for band in bands:
        if band.range[0] > band.range[1]:
            raise ConfigurationError(f"A `range` of `rubric` of {metric} has the lower one first, not {band.numbers}.")

    for lower, upper in pairwise(bands):
        gap = upper.range[0] - lower.range[1]
        if gap < 1:
            raise ConfigurationError(
                f"Two bands of `rubric` of {metric} overlap: {lower.numbers} and {upper.numbers} both hold "
                f"{upper.range[0]}."
            )
        if gap > 1:
            raise ConfigurationError(f"`rubric` of {metric} has no band for {lower.range[1] + 1}.")

    if bands[0].range[0] == bands[-1].range[1]:
        raise ConfigurationError(f"`rubric` of {metric} has the one score {bands[0].numbers}; two are the least.")
    return bands


def format_bands(rubric: Sequence[Band]) -> str:
    r"""Bands as a judge reads them, one a line.

    >>> format_bands([Band((0, 1), "bad"), Band((2, 2), "good")])
    '- 0 to 1: bad\n- 2: good'
    """
    return "\n".join(f"- {band.numbers}: {band.outcome}" for band in rubric)


@cache
def preset_names() -> tuple[str, ...]:
    """The names of the ready-made qualities, in alphabetical order."""
    room = files(__package__).joinpath("prompts", "presets")
    return tuple(sorted(entry.name.removesuffix(".yml") for entry in room.iterdir() if entry.name.endswith(".yml")))


def load_preset(name: Any) -> Preset:
    """A ready-made quality.

    Args:
        name: Its name.

    Raises:
        ConfigurationError: None is called that.
    """
    if not isinstance(name, str):
        raise ConfigurationError(f"`preset` of g-eval is a name, not {show_value(name)}.")
    if name not in preset_names():
        raise ConfigurationError(f"`preset` of g-eval knows no `{name}`. {did_you_mean(name, preset_names())}")
    return _read(name)


@cache
def _read(name: str) -> Preset:
    file = f"{name}.yml"
    text = files(__package__).joinpath("prompts", "presets", file).read_text(encoding="utf-8")
    entries = yaml_document(text, Reading(file, error=ConfigurationError)).value
    return Preset(
        name=name,
        about=entries["about"],
        steps=check_steps(entries["steps"], metric=name),
        rubric=parse_bands(entries["rubric"], metric=name),
        fields=check_fields(entries["fields"], metric=name),
        higher_is_better=entries["higher_is_better"],
        threshold=entries["threshold"],
    )


def check_steps(steps: Any, *, metric: str) -> tuple[str, ...]:
    """The steps of a judge, each a text.

    Raises:
        ConfigurationError: They are no list of texts, or too many.
    """
    example = "Write a list, such as `[Read the answer., Compare it with the context.]`."
    if not isinstance(steps, (list, tuple)) or not 1 <= len(steps) <= MOST_STEPS:
        raise ConfigurationError(f"`steps` of {metric} are 1 to {MOST_STEPS} texts, not {show_value(steps)}. {example}")
    return tuple(check_text(step, option=f"steps[{index}]", metric=metric) for index, step in enumerate(steps))


def check_fields(fields: Any, *, metric: str) -> tuple[str, ...]:
    """What a judge is shown, in the order in which it is shown.

    Raises:
        ConfigurationError: They are no list, name something unknown, or are none.
    """
    if isinstance(fields, (str, Mapping)) or not isinstance(fields, Sequence) or not fields:
        raise ConfigurationError(f"`fields` of {metric} are some of {list_names(FIELDS)}, not {show_value(fields)}.")
    for field in fields:
        if field not in FIELDS:
            raise ConfigurationError(
                f"`fields` of {metric} knows no {show_value(field)}. {did_you_mean(str(field), FIELDS)}"
            )
    if len(set(fields)) != len(fields):
        raise ConfigurationError(f"`fields` of {metric} names one twice.")
    return tuple(field for field in FIELDS if field in fields)


def check_example_list(examples: Any, *, metric: str) -> tuple[Any, ...]:
    """Cases as they were given, before they are looked at one by one.

    Raises:
        ConfigurationError: They are no list, or too many.
    """
    if not isinstance(examples, (list, tuple)) or len(examples) > MOST_EXAMPLES:
        raise ConfigurationError(f"`few_shot` of {metric} is a list of at most {MOST_EXAMPLES} cases.")
    return tuple(examples)


def check_examples(
    examples: Sequence[Any], *, fields: Sequence[str], low: int, high: int, metric: str
) -> tuple[GEvalExample, ...]:
    """Cases with the scores they deserve.

    Args:
        examples: Maps with a `score`, a `reason`, and a text for every field that is shown.
        fields: What the judge is shown.
        low: The least score.
        high: The greatest.
        metric: The metric they are for.

    Raises:
        ConfigurationError: One cannot be read.
    """
    cases = decode_shape(
        plain_value([_given_fields(entry) for entry in examples]),
        tuple[GEvalExample, ...],
        error=ConfigurationError,
        path=(metric, "few_shot"),
    )

    for index, case in enumerate(cases):
        path = f"{metric}.few_shot[{index}]"
        for field in FIELDS:
            is_given = getattr(case, field) is not None
            if is_given != (field in fields):
                fault = "is not shown to the judge" if is_given else "is missing"
                raise ConfigurationError(f"{path}: `{field}` {fault}. Shown are {list_names(fields)}.")
        if not low <= case.score <= high:
            raise ConfigurationError(f"{path}.score must be a whole number from {low} to {high}, not {case.score}.")
    return tuple(cases)


def _given_fields(entry: Any) -> Any:
    """A case as a file would hold it: without the fields that it lacks."""
    return msgspec.to_builtins(entry) if isinstance(entry, GEvalExample) else entry
