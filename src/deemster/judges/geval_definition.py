"""The definition of a G-Eval metric: presets, steps, fields and examples, read and checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from deemster.errors import ConfigurationError, did_you_mean, list_names, show_value
from deemster.formats.document import Reading
from deemster.formats.strict_yaml import yaml_document
from deemster.judges._score_bands import Band, parse_bands
from deemster.judges.prompt_templates import check_text, check_unicode

FIELDS = ("input", "context", "expected_output", "actual_output")
SHOWN = {
    "input": "the question or request",
    "context": "the passages of the context",
    "expected_output": "the expected answer",
    "actual_output": "the actual answer",
}
MOST_STEPS = 20
MOST_EXAMPLES = 20
KEYS = ("about", "fields", "higher_is_better", "threshold", "steps", "rubric")


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """A ready-made quality.

    Attributes:
        name: How it is called.
        about: What it judges, in one sentence.
        steps: What the judge does, in order.
        rubric: What earns which score.
        fields: What the judge is shown.
        higher_is_better: Whether a higher score is the better one.
        threshold: The pass mark, on the normalised score.
    """

    name: str
    about: str
    steps: tuple[str, ...]
    rubric: tuple[Band, ...]
    fields: tuple[str, ...]
    higher_is_better: bool
    threshold: float


class GEvalExample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A case with the score it deserves, shown to the judge before its own.

    Attributes:
        score: The score, on the rubric.
        reason: Why.
        input: The question.
        context: The context, as one text.
        expected_output: The expected answer.
        actual_output: The actual answer.
    """

    score: int
    reason: str
    input: str | None = None
    context: str | None = None
    expected_output: str | None = None
    actual_output: str | None = None


@cache
def preset_names() -> tuple[str, ...]:
    """The names of the ready-made qualities, in alphabetical order."""
    room = files(__package__).joinpath("prompts", "presets")
    return tuple(sorted(entry.name.removesuffix(".yml") for entry in room.iterdir() if entry.name.endswith(".yml")))


def load_preset(name: Any, *, metric: str = "g-eval") -> Preset:
    """A ready-made quality.

    Args:
        name: Its name.
        metric: The metric it is for.

    Raises:
        ConfigurationError: None is called that.
    """
    if not isinstance(name, str):
        raise ConfigurationError(f"`preset` of {metric} is a name, not {show_value(name)}.")
    if name not in preset_names():
        raise ConfigurationError(f"`preset` of {metric} knows no `{name}`. {did_you_mean(name, preset_names())}")
    return _read(name)


@cache
def _read(name: str) -> Preset:
    file = f"{name}.yml"
    text = files(__package__).joinpath("prompts", "presets", file).read_text(encoding="utf-8")
    entries = yaml_document(text, Reading(file, error=ConfigurationError)).value
    if not isinstance(entries, dict) or set(entries) != set(KEYS):
        raise ConfigurationError(f"A preset has {list_names(KEYS)}; {file} has others.")
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
    return tuple(check_text(step, option=f"steps[{place}]", metric=metric) for place, step in enumerate(steps))


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
    return tuple(
        _example(entry, fields, (low, high), f"`few_shot[{place}]` of {metric}") for place, entry in enumerate(examples)
    )


def _example(entry: Any, fields: Sequence[str], ends: tuple[int, int], called: str) -> GEvalExample:
    if isinstance(entry, GEvalExample):
        entry = {key: value for key, value in msgspec.structs.asdict(entry).items() if value is not None}
    if not isinstance(entry, Mapping):
        raise ConfigurationError(f"{called} is a map, not {show_value(entry)}.")
    known = ("score", "reason", *fields)
    for key in entry:
        if key not in known:
            raise ConfigurationError(f"{called} has no key {show_value(key)}. {did_you_mean(str(key), known)}")
    for key in known[1:]:
        if not isinstance(entry.get(key), str) or (key == "reason" and not entry[key].strip()):
            raise ConfigurationError(f"`{key}` of {called} is text, not {show_value(entry.get(key))}.")
        check_unicode(entry[key], called=f"`{key}` of {called}")
    score = entry.get("score")
    if type(score) is not int or not ends[0] <= score <= ends[1]:
        raise ConfigurationError(
            f"`score` of {called} is a whole number from {ends[0]} to {ends[1]}, not {show_value(score)}."
        )
    return GEvalExample(**entry)
